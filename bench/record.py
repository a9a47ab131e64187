"""How long does it take to record one step, for 144 heads and 20 readings?

    .venv/bin/python bench/record.py [--quick]

Unit: milliseconds per step, the median and the slowest of all steps (one in every few hundred merges SQLite's log into
the file), and ratios to three other ways of keeping the same numbers: only making the bytes, which every way must do;
one line of JSON, flushed; one SQLite row for each head. All take turns step by step in one run. At the end the record
is read back and must equal what was written.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import arguments

from softscope.doctor.read.snapshot import FORWARD, GRADIENT, Site, Snapshot
from softscope.doctor.record import Record, news, read_record

LAYERS, HEADS = 12, 12
NAMES = (*FORWARD, *GRADIENT)


def run(steps: int) -> tuple[list[Site], list[Snapshot]]:
    rng = np.random.default_rng(0)
    sites = [Site(f"layers.{i}.attention", "sdpa", HEADS, HEADS, 0.125, 64) for i in range(LAYERS)]
    first = {name: rng.standard_normal((LAYERS, HEADS)).astype(np.float32) for name in NAMES}
    made = [Snapshot(step, 0.1 * step, 2.0, {name: x + step for name, x in first.items()}) for step in range(steps)]
    assert len(NAMES) == 20
    return sites, made


def contenders(folder: Path, sites: list[Site]) -> dict[str, Callable[[Snapshot], object]]:
    record = Record(folder / "run.db")
    record.sites(sites)
    rows = sqlite3.connect(folder / "rows.db", isolation_level=None)
    rows.execute("PRAGMA journal_mode = WAL")
    rows.execute("PRAGMA synchronous = NORMAL")
    rows.execute("CREATE TABLE readings (step, site, head, name, value)")
    lines = (folder / "run.jsonl").open("w")

    def row_for_each_head(s: Snapshot) -> None:
        rows.execute("BEGIN")
        for name, x in s.readings.items():
            values = x.tolist()
            rows.executemany(
                "INSERT INTO readings VALUES (?, ?, ?, ?, ?)",
                [(s.step, i, head, name, value) for i, row in enumerate(values) for head, value in enumerate(row)],
            )
        rows.execute("COMMIT")

    def line(s: Snapshot) -> None:
        lines.write(json.dumps({name: x.tolist() for name, x in s.readings.items()}) + "\n")
        lines.flush()

    return {
        "nothing": lambda s: [x.tobytes() for x in s.readings.values()],
        "record": record.add,
        "JSON lines": line,
        "row per head": row_for_each_head,
    }


def check(path: Path, made: list[Snapshot]) -> None:
    found = read_record(path).snapshots
    assert len(found) == len(made)
    for a, b in zip(found, made, strict=True):
        assert (a.step, a.seconds, a.loss) == (b.step, b.seconds, b.loss)
        assert all((a.readings[name] == b.readings[name]).all() for name in NAMES)


def main() -> None:
    steps = 300 if arguments(__doc__).quick else 2000
    with tempfile.TemporaryDirectory() as folder:
        sites, made = run(steps)
        ways = contenders(Path(folder), sites)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for snapshot in made:
            for name, keep in ways.items():
                start = time.perf_counter()
                keep(snapshot)
                times[name].append(1000.0 * (time.perf_counter() - start))
        check(Path(folder) / "run.db", made)
        ours = float(np.median(times["record"]))
        print(f"{LAYERS * HEADS} heads × {len(NAMES)} readings, {steps} steps; milliseconds per step")
        for name, each in times.items():
            middle = float(np.median(each))
            print(f"  {name:14} median {middle:7.3f}  slowest {max(each):8.2f}  of ours {middle / ours:6.2f}")
        size = sum(path.stat().st_size for path in Path(folder).glob("run.db*"))
        start = time.perf_counter()
        news(Path(folder) / "run.db")
        look = 1000.0 * (time.perf_counter() - start)
        print(f"  {size / steps / 1000:.1f} kB per step; reading the newest takes {look:.1f} ms")


if __name__ == "__main__":
    main()
