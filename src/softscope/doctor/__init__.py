"""The doctor: attaches to an unmodified PyTorch transformer, reads its attention, and reports which heads starve.

    with Record("run.db") as record, softscope.probe(model) as scope:
        follow(scope, record)
        ...                                     # train
    diagnosis = diagnose(scope.history())       # or: diagnose(read_record("run.db"))

Data flows one way: `listen` (which calls, which rows) → `read` (readings of rows and heads) → `judge` (states,
checks) → `treat` (prescriptions, remedies) → `diagnosis` (all of it for one history). `record` and
`report` store and present the results.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softscope.doctor import events, report, sinks
    from softscope.doctor.callbacks import HuggingFaceCallback, LightningCallback, watch_training
    from softscope.doctor.diagnosis import Diagnosis, diagnose
    from softscope.doctor.read.snapshot import History, Site, Snapshot
    from softscope.doctor.record.export import export
    from softscope.doctor.record.problems import RecordError, RecordNotFoundError, RecordWarning
    from softscope.doctor.record.read import read_record
    from softscope.doctor.record.write import Record
    from softscope.doctor.sinks import follow
    from softscope.doctor.treat import remedies
    from softscope.doctor.treat.prescriptions import Prescription

# Names are imported on first use: judging a record then needs no PyTorch, and a probe needs no SQLite.
_HOMES = {
    "Diagnosis": "diagnosis",
    "History": "read.snapshot",
    "HuggingFaceCallback": "callbacks",
    "LightningCallback": "callbacks",
    "Prescription": "treat.prescriptions",
    "Record": "record.write",
    "RecordError": "record.problems",
    "RecordNotFoundError": "record.problems",
    "RecordWarning": "record.problems",
    "Site": "read.snapshot",
    "Snapshot": "read.snapshot",
    "diagnose": "diagnosis",
    "events": "",
    "export": "record.export",
    "follow": "sinks",
    "read_record": "record.read",
    "remedies": "treat",
    "report": "",
    "sinks": "",
    "watch_training": "callbacks",
}

__all__ = [
    "Diagnosis",
    "History",
    "HuggingFaceCallback",
    "LightningCallback",
    "Prescription",
    "Record",
    "RecordError",
    "RecordNotFoundError",
    "RecordWarning",
    "Site",
    "Snapshot",
    "diagnose",
    "events",
    "export",
    "follow",
    "read_record",
    "remedies",
    "report",
    "sinks",
    "watch_training",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    home = f"{__name__}.{_HOMES[name]}".rstrip(".")
    if name in ("events", "remedies", "report", "sinks"):
        value: object = importlib.import_module(f"{home}.{name}")
    else:
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
