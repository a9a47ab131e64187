"""Rows sharded over real processes: the same as in one process, within the stated bounds."""

import math

import pytest

from distributed import sharded
from distributed.ranks import Ranks


@pytest.fixture(params=[2, 4])
def ranks(request: pytest.FixtureRequest, two: Ranks, four: Ranks) -> Ranks:
    return {2: two, 4: four}[request.param]


def test_values_keep_the_bounds(ranks: Ranks) -> None:
    for many, wrong in ranks.run(sharded.values, range(40)):
        assert wrong == []
        assert many > 500


def test_gradients_are_those_of_one_process(ranks: Ranks) -> None:
    for _, wrong in ranks.run(sharded.gradients, range(48)):
        assert wrong == []


def test_nan_and_infinities(ranks: Ranks) -> None:
    for many, wrong in ranks.run(sharded.special):
        assert wrong == []
        assert many > 400


def test_every_rank_has_the_same_bits(ranks: Ranks) -> None:
    first, *others = ranks.run(sharded.reduced_bits)
    assert len(first) == 36
    assert all(other == first for other in others)


def test_the_options_of_cross_entropy(ranks: Ranks) -> None:
    for pairs in ranks.run(sharded.losses_with_options):
        assert len(pairs) == 7
        for ours, one in pairs:
            assert ours == pytest.approx(one, rel=1e-14)


@pytest.mark.parametrize("ignored", [math.nan, math.inf, -math.inf])
def test_an_ignored_row_has_no_gradient(two: Ranks, ignored: float) -> None:
    for first, second in two.run(sharded.slope_of_an_ignored_row, ignored):
        assert first == 0.0
        assert second > 0.1


def test_no_rows_and_no_entries(ranks: Ranks) -> None:
    assert ranks.run(sharded.nothing_there) == [[]] * ranks.many
