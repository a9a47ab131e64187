"""Reads the file of an offline run of Weights & Biases: protobuf messages in LevelDB's log format."""

from __future__ import annotations

import json
import struct
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

BLOCK = 32768
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4


class Written(NamedTuple):
    """What a run has written: its rows, its alerts (title, level), and the x-axis of each name that was defined."""

    rows: list[dict[str, Any]]
    alerts: list[tuple[str, str]]
    axes: dict[str, str]


def written(folder: pathlib.Path) -> Written:
    """What the only run below this folder has written; it must have ended."""
    (file,) = folder.rglob("*.wandb")
    found = _messages(file)
    rows = [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in m.history.item}
        for m in found
        if m.HasField("history")
    ]
    return Written(
        rows,
        [(m.alert.title, m.alert.level) for m in found if m.HasField("alert")],
        {m.metric.name or m.metric.glob_name: m.metric.step_metric for m in found if m.HasField("metric")},
    )


def _messages(path: pathlib.Path, patience: float = 60.0) -> list[Any]:
    """Every record of a finished run, in order; another process writes them, so the last may take a moment."""
    from wandb.proto import wandb_internal_pb2

    latest = time.monotonic() + patience
    found: list[Any] = []
    while not (found and found[-1].HasField("exit")):
        assert time.monotonic() < latest, f"{path.name} has no end"
        time.sleep(0.01)
        found = [wandb_internal_pb2.Record.FromString(data) for data in _entries(path.read_bytes())]
    return found


def _entries(data: bytes) -> Iterator[bytes]:
    at, parts = 7, b""  # after the file's own header
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # too little for an entry: the next one is in the next block
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        parts = (b"" if kind in (WHOLE, FIRST) else parts) + data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (WHOLE, LAST):
            yield parts
