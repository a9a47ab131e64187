"""A group may be given in several ways, and a wrong one is told in one sentence on every rank."""

import pytest

from distributed import groups
from distributed.ranks import RankError, Ranks
from softscope.distributed._group import process_group


def test_the_ways_to_give_a_group(four: Ranks) -> None:
    assert four.run(groups.sizes) == [[4, 4, 2, 2, 2, 4]] * 4


def test_a_group_that_does_not_fit_is_told_on_every_rank(four: Ranks) -> None:
    for rank, told in enumerate(four.run(groups.refusals)):
        assert "mesh of one axis, but got one of 2; choose one: mesh['dp']" in told[0]
        assert "axis of its mesh, but got 'cp'; the mesh has ('dp', 'tp')" in told[1]
        assert "a ProcessGroup, a DeviceMesh or None, but got 'world'" in told[2]
        assert rank == 0 or f"rank {rank} is not in it" in told[3]


def test_without_processes() -> None:
    with pytest.raises(RuntimeError, match="torchrun"):
        process_group(None)


def test_an_error_on_a_rank_reaches_the_test(two: Ranks) -> None:
    with pytest.raises(RankError, match="ZeroDivisionError"):
        two.run(divmod, 1, 0)
    assert two.run(divmod, 7, 2) == [(3, 1)] * 2
