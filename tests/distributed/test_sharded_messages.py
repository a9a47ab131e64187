"""One message a call, as many bytes as the formulas say; and whatever a rank does wrong, all ranks are told."""

import pytest
import torch

from distributed import sharded_messages
from distributed.ranks import Ranks


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 6])
def test_counted_as_the_formulas_say(two: Ranks, four: Ranks, dtype: torch.dtype, rows: int) -> None:
    for ranks in (two, four):
        for found in ranks.run(sharded_messages.sent, dtype, rows):
            assert len(found) == 6
            for name, counted, formula in found:
                assert counted == formula, name


def test_new_shapes_and_parts_take_one_message_more(two: Ranks, four: Ranks) -> None:
    for ranks in (two, four):
        for found in ranks.run(sharded_messages.changing):
            assert found == [(many, True) for many in (2, 1, 2, 1, 2, 2, 1, 2)]


WORDS = {
    "rows": "shape of x without its last axis must be the same on every rank of the group, but rank 0 has (6,) and",
    "axes": "(1, 6)",
    "dtype": "x's dtype must be the same on every rank of the group, but rank 0 has float32 and",
    "temperature": "temperature must be the same on every rank of the group, but rank 0 has 1.0 and",
    "a bad temperature": "temperature must be > 0, but got -1.0",
    "a list": "x must be a torch tensor with this rank's part of the rows, but got [1.0, 2.0]",
    "complex": "x must be real numbers",
    "a number": "x must have an axis to share among the ranks",
    "gradient": "whether x requires a gradient must be the same on every rank of the group, but rank 0 has False",
    "keepdims": "keepdims must be True or False, but got 1",
    "reduction": "reduction must be the same on every rank of the group, but rank 0 has mean",
    "a bad reduction": "reduction must be one of mean, sum, none, but got 'median'",
    "smoothing": "label_smoothing must be the same on every rank of the group, but rank 0 has 0.0",
    "ignored": "ignore_index must be the same on every rank of the group, but rank 0 has -100",
    "targets": "targets must be the same on every rank of the group",
    "their shape": "targets must have the shape of logits without the class axis, (6,), but has (5,)",
    "their dtype": "targets must be integers",
    "a target too high": "or be ignore_index = -100, but holds",
    "a target too low": "or be ignore_index = -100, but holds",
    "only one too high": "targets must be the same on every rank of the group",
}


def test_what_does_not_fit_is_told_on_every_rank(two: Ranks, four: Ranks) -> None:
    for ranks in (two, four):
        for rank, found in enumerate(ranks.run(sharded_messages.refusals)):
            assert found.keys() == WORDS.keys()
            for name, words in WORDS.items():
                assert words in found[name], (rank, name)
                assert "\n" not in found[name]
            alone = "" if rank == ranks.many - 1 else f"rank {ranks.many - 1} of the group could not take part: "
            assert f"{alone}temperature must be > 0" in found["a bad temperature"]


def test_a_rank_outside_the_group_is_told(four: Ranks) -> None:
    *inside, outside = four.run(sharded_messages.outsiders)
    assert inside == ["nothing"] * 3
    assert "rank 3 is not in it" in outside


def test_second_derivatives_are_refused(two: Ranks) -> None:
    for found in two.run(sharded_messages.second_derivatives):
        assert len(found) == 5
        assert all("first derivatives" in told for told in found)
