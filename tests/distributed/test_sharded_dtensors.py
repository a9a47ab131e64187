"""A DTensor knows its group: results come back as DTensors, wherever its axes are sharded."""

import pytest

from distributed import sharded_dtensors
from distributed.ranks import Ranks


@pytest.mark.parametrize(
    ("run", "many"),
    [(sharded_dtensors.maps, 40), (sharded_dtensors.reduced, 30), (sharded_dtensors.as_loss_parallel, 3)],
)
def test_dtensors(four: Ranks, run: object, many: int) -> None:
    for found in four.run(run):  # type: ignore[arg-type]
        assert [name for name, right in found if not right] == []
        assert len(found) == many


def test_refusals(four: Ranks) -> None:
    words = (
        "group must be None for a DTensor",
        "last axis sharded over one mesh axis, but it is over 2",
        "x must be sharded or replicated, but has the placement",
        'reduction must be "sum" or "none" where the rows of logits are sharded',
        "targets must be a DTensor with placements",
        "targets must be placed like the rows of logits",
    )
    for found in four.run(sharded_dtensors.refusals):
        for said, wanted in zip(found, words, strict=True):
            assert wanted in said
