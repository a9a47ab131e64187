"""`python -m softscope.doctor.evaluation`: trains the models, spoils heads, asks the doctor, and prints the table."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from softscope._progress_bar import ProgressBar
from softscope._text import LANGS
from softscope.doctor.evaluation.spoiled_models import SpoiledModel, patients
from softscope.doctor.evaluation.table import counted, named, spoiled, table


def _all(first: int, seeds: int, details: bool) -> Iterator[SpoiledModel]:
    bar = ProgressBar()
    for seed in range(first, first + seeds):
        for patient in patients(seed, lambda share, seed=seed: bar((seed - first + share) / seeds)):  # type: ignore[misc]
            yield patient
            if details:
                _tell(seed, patient)
    bar.wipe()


def _tell(seed: int, patient: SpoiledModel) -> None:
    """Print one line for a model whose named heads differ from its spoiled heads."""
    sick = spoiled(patient)
    for loss, diagnosis in (("with", patient.with_loss), ("without", patient.without_loss)):
        said = named(diagnosis)
        if said != sick:
            states = [found.state for found in diagnosis.view.states.values()]
            print(f"{patient.way}, {patient.task}, seed {seed}, {loss} a loss: missed {sorted(sick - said)}, "
                  f"for nothing {sorted(said - sick)} {list(diagnosis.of('finding'))} {states}")  # fmt: skip


parser = argparse.ArgumentParser(prog="python -m softscope.doctor.evaluation", description=__doc__)
parser.add_argument("--seeds", type=int, default=4, help="how many models of each kind (4)")
parser.add_argument("--first", type=int, default=4, help="the first seed (4: 0 to 3 served to build this)")
parser.add_argument("--lang", choices=LANGS, default="en")
parser.add_argument("--details", action="store_true", help="say which heads were missed or named for nothing")
if __name__ == "__main__":
    given = parser.parse_args()
    found = counted(_all(given.first, given.seeds, given.details))
    print(table(found, given.lang))
