"""Train the two built-in patients live, then show the verdicts, the difference and the prescription."""

from __future__ import annotations

import dataclasses
import io
from functools import partial
from typing import TYPE_CHECKING

from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Sequence

    from softscope.cli.console import Console
    from softscope.doctor.judge.diagnosis import Diagnosis
    from softscope.doctor.patients import Trained


def run(console: Console, mute: Sequence[str], aloud: bool, report: pathlib.Path | None) -> list[Diagnosis]:
    """Train both patients; if `aloud`, print everything, otherwise only write the report if one is requested."""
    from softscope._installed import missing
    from softscope._progress_bar import ProgressBar
    from softscope.cli.checkup import writing
    from softscope.cli.checkup.live import Table
    from softscope.doctor import patients
    from softscope.doctor.judge.diagnosis import diagnose

    if missing(("torch",)):
        raise UsageError("checkup.torch")
    stage = console if aloud else dataclasses.replace(console, stream=io.StringIO())
    stage.paragraph(stage.say("checkup.opening", d=patients.WIDTH, steps=patients.STEPS), "")
    stage.write()
    table = Table(stage, patients.PATIENTS, patients.STEPS)
    waiting = ProgressBar(console.say("checkup.progress.patients"))  # for when the table is hidden
    trained: list[Trained] = []

    def step(name: str, at: int, of: int) -> None:
        table.progress(name, at, of)
        if not table.live:
            waiting((len(trained) + at / of) / len(patients.PATIENTS))

    try:
        for patient in patients.PATIENTS:
            watch, progress = partial(table.read, patient.name), partial(step, patient.name)
            trained.append(patients.train(patient, watch=watch, progress=progress))
    finally:
        waiting.wipe()
    table.close()
    diagnoses = [diagnose(one.history, mute=mute, title=one.patient.title) for one in trained]
    for diagnosis in diagnoses:
        stage.write()
        writing.text(diagnosis, stage)
    _difference(trained, diagnoses, stage)
    if report is not None:
        writing.page_to(report, diagnoses, stage, tell=True)
    elif aloud:
        _keep(diagnoses, stage)
    return diagnoses


def _keep(diagnoses: Sequence[Diagnosis], console: Console) -> None:
    """Write the page beside the learner's progress, over the last one: a new folder each time would pile up."""
    from softscope.cli.checkup import writing
    from softscope.lab.state_folder import state_folder

    path = state_folder() / "checkup.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writing.page_to(path, diagnoses, console, tell=True)
    except (OSError, UsageError) as error:
        reason = error.values["reason"] if isinstance(error, UsageError) else error.strerror or type(error).__name__
        console.write()
        console.paragraph(console.say("checkup.kept.not", path=shown(path), reason=reason), "")


def _difference(trained: Sequence[Trained], diagnoses: Sequence[Diagnosis], console: Console) -> None:
    from softscope.doctor.patients import PAIRS

    first = [f"{float(one.history.snapshots[0].readings['blocked'][0, 0]):.0%}" for one in trained]
    last = [next(iter(diagnosis.view.states.values())) for diagnosis in diagnoses]
    good, bad = (f"{state.advantage:.2f} ± {state.error:.2f}".replace("-", "−") for state in last)
    answers = {
        "right": f"{trained[0].accuracy:.0%}",
        "wrong": f"{trained[1].accuracy:.0%}",
        "chance": f"{1 / PAIRS:.0%}",
    }
    end = {"right": f"{last[0].blocked:.0%}", "wrong": f"{last[1].blocked:.0%}", "good": good, "bad": bad}
    console.write()
    console.write(console.paint(console.say("checkup.difference"), "bold"))
    console.paragraph(console.say("checkup.difference.answers", **answers))
    console.paragraph(console.say("checkup.difference.start", right=first[0], wrong=first[1]))
    console.paragraph(console.say("checkup.difference.end", **end))
