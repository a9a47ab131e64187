"""Sharded context at its edges: what is refused, special values, memory, other users of the ranks."""

import re

import pytest

from distributed import sharded_edges
from distributed.ranks import Ranks
from softscope.distributed._layout import segments
from softscope.distributed._ring import Plan

BETWEEN = [  # told on every rank
    r"q's heads must be the same on all ranks of the group, but ranks 0 and 1 differ: 2 and 4",
    r"the last axis of q and k must be the same .* differ: 8 and 4",
    r"dtype must be the same .* differ: float32 and float64",
    r"layout must be the same .* differ: contiguous and zigzag",
    r"the window's right side must be the same .* differ: no limit and 0",
    r"scale must be the same .* differ: 0.25 and 0.5",
    r"the axes before the heads must be the same .* differ; pass shards of the same call",
    r"whether q, k or v needs a gradient must be the same .* differ: False and True",
    r"layout must be 'contiguous' or 'zigzag', but got 'striped'",
    r"mask is not supported where keys are sharded, .* use causal or window, or gather the keys with \S*unshard",
    r"mask is not supported",
    r"",
    r"",
    r"q and k must hold the same positions for causal or window, but have 8 and 5",
    r"zigzag shards of \d+ positions must have lengths \[.*\], but the ranks hold \[8, 7\S*.*\]; cut them with .*shard",
    r"softcap must be a finite number > 0",
]


def test_what_is_refused_is_told_on_every_rank_and_nobody_waits(two: Ranks, four: Ranks) -> None:
    for ranks in (two, four):
        for rank, told in enumerate(ranks.run(sharded_edges.refusals)):
            for wanted, got in zip(BETWEEN, told, strict=True):
                assert re.match(wanted, got), (rank, wanted, got)
                assert got.count(". ") == 0
            others = "all ranks of a group must take part, but rank 1 of it refused its arguments; see its error"
            assert told[11] == others if rank != 1 else "q must be a torch tensor, but got ndarray" in told[11]
            assert told[12] == others if rank != 1 else "got a DTensor; pass q.to_local()" in told[12]


def test_shards_that_do_not_belong_together_and_ranks_outside(four: Ranks) -> None:
    for rank, (axes, layout, lengths, group) in enumerate(four.run(sharded_edges.refused_shards)):
        assert "must have the same layout, dtype and other axes on all ranks" in axes
        assert ("layout must be 'contiguous' or" if rank == 1 else "rank 1 of it refused its arguments") in layout
        assert "22 positions must have lengths [5, 5, 6, 6], but the ranks hold [4, 5, 6, 7]" in lengths
        assert group == "nothing" if rank < 2 else f"rank {rank} is not in it" in group


def test_special_values_are_those_of_one_process(four: Ranks) -> None:
    for same in four.run(sharded_edges.special_values):
        assert len(same) == 70
        assert all(same)


def test_queries_that_see_nothing(two: Ranks) -> None:
    assert two.run(sharded_edges.nothing_to_see) == [(0.0, 0)] * 2


def test_other_queries_than_the_keys_positions(four: Ranks) -> None:
    assert max(four.run(sharded_edges.other_queries)) < 1e-6


def test_results_do_not_depend_on_timing(four: Ranks) -> None:
    assert all(map(all, four.run(sharded_edges.repeated)))


@pytest.mark.parametrize("layout", ["contiguous", "zigzag"])
def test_memory_grows_with_the_shard_alone(two: Ranks, four: Ranks, layout: str) -> None:
    n = 4096
    for ranks in (two, four):
        shard = n // ranks.many * 64 * 4
        for largest, most in ranks.run(sharded_edges.allocated, n, layout):
            assert largest <= 2 * shard  # keys and values travel in one message: no tensor is larger than that
            assert most <= 24 * shard  # q, k, v, out, their gradients, and blocks that come, are used, and go


def test_an_axis_of_a_mesh(four: Ranks) -> None:
    assert max(four.run(sharded_edges.on_an_axis_of_a_mesh)) < 1e-6


def test_tensor_operations_agree_with_the_engine(four: Ranks) -> None:
    for off in four.run(sharded_edges.watched):
        assert max(off) < 1e-12


def test_checkpointing(two: Ranks) -> None:
    assert two.run(sharded_edges.recomputed) == [[True] * 3] * 2


def test_second_derivatives_are_refused(two: Ranks) -> None:
    for told in two.run(sharded_edges.differentiated_twice):
        assert "first derivatives only, but got create_graph=True" in told


def test_in_a_compiled_program(two: Ranks) -> None:
    for off, same in two.run(sharded_edges.compiled):
        assert off < 1e-5
        assert same


def test_autocast(two: Ranks) -> None:
    for dtype, off in two.run(sharded_edges.autocast):
        assert dtype == "torch.bfloat16"
        assert off <= 2**-7


def test_pytorchs_context_parallel_works_beside_it(two: Ranks) -> None:
    for off in two.run(sharded_edges.beside_context_parallel):
        assert max(off) < 1e-6


@pytest.mark.parametrize("n", [0, 1, 3, 16, 21])
def test_cutting_and_joining(four: Ranks, n: int) -> None:
    found = four.run(sharded_edges.layouts, n)
    for contiguous in (0, 3):
        assert sorted(i for one in found for i in one[contiguous]) == list(range(n))
    assert all(all(one[1:3] + one[4:]) for one in found)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_zigzag_balances_causal_work(ranks: int) -> None:
    def work(layout: str) -> list[int]:
        held = [segments(layout, 64 * ranks, ranks, rank) for rank in range(ranks)]  # type: ignore[arg-type]
        plan = Plan(held, None, 0)
        return [
            sum(
                max(0, min(position - first + 1, keys.stop - keys.start))
                for source in range(ranks)
                for rows, keys, first in plan.parts(reader, source, 64)
                for position in [p for part in held[reader] for p in part][rows]
            )
            for reader in range(ranks)
        ]

    n = 64 * ranks
    assert sum(work("zigzag")) == sum(work("contiguous")) == n * (n + 1) // 2
    assert len(set(work("zigzag"))) == 1
    assert max(work("contiguous")) > 1.4 * min(work("zigzag"))
