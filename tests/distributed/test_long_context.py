"""The doctor reads rows whose keys lie on several ranks as if all keys were here."""

from __future__ import annotations

import numpy as np
import pytest

from distributed import long_context
from distributed.ranks import Ranks
from softscope.doctor.listen import reasons

# Each rank's part of a sequence counts as a sequence of its own, and a row is compared with the richest of its rank.
OF_PARTS = ("advantage_error", "blocked_mass", "sink_mass", "sink_column", "blocked_offset_mass", "q_alike", "k_alike")


@pytest.mark.parametrize("layout", ["contiguous", "zigzag"])
def test_keys_on_other_ranks_are_read(two: Ranks, layout: str) -> None:
    got, wanted = two.run(long_context.compared, layout, 3)[0]
    assert [site.name for site in got.sites] == [site.name for site in wanted.sites]
    compared = set()
    for mine, theirs in zip(got.snapshots, wanted.snapshots, strict=True):
        assert mine.loss == pytest.approx(theirs.loss, rel=1e-6)
        for name, values in theirs.readings.items():
            if ":" not in name and name not in OF_PARTS and name in mine.readings:
                np.testing.assert_allclose(mine.readings[name], values, rtol=1e-4, atol=1e-6, err_msg=name)
                compared.add(name)
    assert {"sharpness", "transmission", "advantage", "demand", "count", "max_logit", "ahead", "own"} <= compared


def test_four_ranks(four: Ranks) -> None:
    got, wanted = four.run(long_context.compared, "zigzag", 2)[0]
    for name in ("sharpness", "count", "max_logit", "transmission", "demand"):
        mine, theirs = (history.snapshots[-1].readings[name] for history in (got, wanted))
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_rank_without_positions_leaves_nobody_waiting(two: Ranks) -> None:
    assert two.run(long_context.one_rank_is_empty, timeout=40) == [(0, 2), (0, 2)]


def test_a_rank_that_cannot_read_leaves_nobody_waiting(two: Ranks) -> None:
    (snapshots, _), (_, unseen) = two.run(long_context.one_rank_fails, timeout=40)
    assert snapshots == 0
    assert unseen == [reasons.FAILED]


def test_one_rank_alone_cannot_read_them(two: Ranks) -> None:
    assert two.run(long_context.without_a_group) == [[reasons.SHARDS] * 2] * 2


def test_pytorchs_own_context_parallel(two: Ranks) -> None:
    got, wanted = two.run(long_context.in_pytorchs_context, True)[0]
    (mine,), (theirs,) = got.snapshots, wanted.snapshots
    assert mine.readings["count"].tolist() == [[long_context.LENGTH] * long_context.HEADS]
    for name in ("sharpness", "peak", "logit_spread", "max_logit", "k_norm", "v_norm", "cosine", "q_norm"):
        np.testing.assert_allclose(mine.readings[name], theirs.readings[name], rtol=1e-5, err_msg=name)


def test_pytorchs_own_context_parallel_without_a_group(two: Ranks) -> None:
    assert two.run(long_context.in_pytorchs_context, False) == [[reasons.SHARDS]] * 2
