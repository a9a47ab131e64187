"""`python -m softscope.doctor.faults`: which faults of attention does the doctor name, and when does it cry wolf?"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from softscope._natural_number import natural_number
from softscope._progress_bar import ProgressBar
from softscope._text import LANGS
from softscope.doctor.faults import remedies, repairs
from softscope.doctor.faults.catalogue import FAULTS
from softscope.doctor.faults.measure import Band, alarms, band, right, wrong
from softscope.doctor.faults.models import KINDS
from softscope.doctor.faults.runs import RATE, Case, Result, quiet, run
from softscope.doctor.faults.table import table

RATES, WIDTHS = (5e-4, RATE, 5e-3), (32, 64)
Found = TypeVar("Found")
CONTROLS = 2  # healthy runs for each faulty seed


def cases(first: int, seeds: int) -> Iterator[Case]:
    """Healthy runs at several rates and sizes, then every fault that fits a model, in all layers and in one."""
    for kind in KINDS:
        for seed in range(first, first + CONTROLS * seeds):
            for rate in RATES:
                yield from (Case(kind.name, seed, rate=rate, width=width) for width in WIDTHS)
    for fault in FAULTS:
        for kind in KINDS:
            if kind.family not in fault.families:
                continue
            for seed in range(first, first + seeds):
                yield from (
                    Case(kind.name, seed, fault.name, mild) for mild in ((False,) if fault.whole else (False, True))
                )


def main(given: argparse.Namespace) -> None:
    """Run them all and print the table."""
    if given.remedies:
        print(remedies.table(run_all(list(remedies.cases(given.first, given.seeds)), given.workers, run), given.lang))
        return
    if given.repairs:
        found = run_all(list(repairs.cases(given.first, given.seeds)), given.workers, repairs.tried)
        for one in found if given.details else ():
            print(one.case.of, one.case.seed, one.case.name, one.said)
        print(repairs.table(found, given.lang))
        return
    results = run_all(list(cases(given.first, given.seeds)), given.workers, run)

    @functools.cache
    def of(kind: str, width: int) -> Band:
        mine = [r for r in results if (r.case.of, r.case.width, r.case.rate, r.case.name) == (kind, width, RATE, "")]
        return band(mine)

    def bands(result: Result) -> Band:
        return of(result.case.of, result.case.width)

    for result in results if given.details else ():
        told = [f"{said.code} {said.kind} {said.site} {said.step}" for said in (*right(result), *wrong(result))]
        harmed = bands(result).harmed(result)
        missed = harmed and result.case.name and not right(result)
        if missed or wrong(result) or (not result.case.name and alarms(result)):
            sign = "harmed" if harmed else "fine"
            print("MISSED" if missed else "ALSO", sign, result.case, f"{result.loss:.3f}", told)
    print(table(results, bands, given.lang))


def run_all(wanted: Sequence[Case], workers: int, do: Callable[[Case], Found]) -> list[Found]:
    """The results in the order of the cases, with a progress bar."""
    results: list[Found] = []
    bar = ProgressBar()
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=spawn, initializer=quiet) as pool:
        for done, result in enumerate(pool.map(do, wanted, chunksize=4)):
            bar(done / len(wanted))
            results.append(result)
    bar.wipe()
    return results


def _some(text: str) -> int:
    """A number of at least 1, for argparse."""
    found = natural_number(text)
    if not found:
        raise argparse.ArgumentTypeError(
            f"it must be a whole number of at least 1, but got {text!r}; pass 2, for example"
        )
    return found


parser = argparse.ArgumentParser(prog="python -m softscope.doctor.faults", description=__doc__)
parser.add_argument("--seeds", type=_some, default=5, help="how many runs of each kind (5)")
parser.add_argument("--first", type=int, default=100, help="the first seed (100: nothing was chosen on 100 to 109)")
parser.add_argument("--workers", type=_some, default=2, help="processes, one thread each (2)")
parser.add_argument("--remedies", action="store_true", help="instead: does taking the fault away help?")
parser.add_argument("--repairs", action="store_true", help="instead: what does trying the repair in the run show?")
parser.add_argument("--lang", choices=LANGS, default="en")
parser.add_argument("--details", action="store_true", help="print every run that was missed or named for another cause")
if __name__ == "__main__":
    main(parser.parse_args())
