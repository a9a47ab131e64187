"""`python -m softscope.doctor.evaluation`: how often is the doctor right about heads whose worth is measured?"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterator

from softscope._progress_bar import ProgressBar
from softscope._text import LANGS
from softscope.doctor.evaluation.counts import Count, count, crossed
from softscope.doctor.evaluation.details import details
from softscope.doctor.evaluation.packages import packages
from softscope.doctor.evaluation.patients import Patient, patients
from softscope.doctor.evaluation.table import table

PACKAGE = "instead: a model in a folder and a text for it, one sequence per line; may be repeated"


def main(given: argparse.Namespace) -> None:
    """Go through all patients and print the table."""
    bar, seen = ProgressBar(), list[Patient]()
    for patient in _packages(given, bar) if given.package else _seeds(given, bar):
        seen.append(patient)
        for line in details(patient) if given.details else ():
            print(line, flush=True)
    bar.wipe()
    counts: dict[str, Count] = {}
    for patient in seen:
        way = patient.case.way
        counts[way] = counts.get(way, Count()) + count(patient)
    print(table(counts, given.lang))
    if given.details:
        for (way, kind, state), many in sorted(crossed(seen).items()):
            print(f"{way:10} {kind:8} {state:10} {many}")


def _seeds(given: argparse.Namespace, bar: ProgressBar) -> Iterator[Patient]:
    for done, seed in enumerate(range(given.first, given.first + given.seeds)):
        yield from patients(seed, lambda share, done=done: bar((done + share) / given.seeds))  # type: ignore[misc]


def _packages(given: argparse.Namespace, bar: ProgressBar) -> Iterator[Patient]:
    for done, (folder, text) in enumerate(given.package):
        share_of_all = lambda share, done=done: bar((done + share) / len(given.package))  # noqa: E731
        yield from packages(pathlib.Path(folder), pathlib.Path(text), share_of_all)


parser = argparse.ArgumentParser(prog="python -m softscope.doctor.evaluation", description=__doc__)
parser.add_argument("--seeds", type=int, default=5, help="how many models of each kind (5)")
parser.add_argument("--first", type=int, default=50, help="the first seed (50: nothing was chosen on 50 to 54)")
parser.add_argument("--package", nargs=2, action="append", metavar=("FOLDER", "TEXT"), help=PACKAGE)
parser.add_argument("--lang", choices=LANGS, default="en")
parser.add_argument("--details", action="store_true", help="print every model, wrong head and prescription")
if __name__ == "__main__":
    main(parser.parse_args())
