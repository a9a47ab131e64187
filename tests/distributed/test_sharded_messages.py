"""One message a call, as many bytes as the formulas say; and whatever a rank does wrong, all ranks are told."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from distributed import sharded_messages
from distributed.ranks import Ranks
from softscope.distributed import traffic

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 6])
def test_counted_as_the_formulas_say(several: Ranks, dtype: torch.dtype, rows: int) -> None:
    for found in several.run(sharded_messages.sent, dtype, rows):
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


def test_a_rank_that_fails_leaves_nobody_waiting(two: Ranks) -> None:
    first, last = two.run(sharded_messages.running_out_of_memory)
    assert last == ["MemoryError: no memory for the sums"] * 2
    assert first == ["RanksDifferError: rank 1 of the group could not take part: no memory for the sums"] * 2


def test_a_rank_outside_the_group_is_told(four: Ranks) -> None:
    *inside, outside = four.run(sharded_messages.outsiders)
    assert inside == ["nothing"] * 3
    assert "rank 3 is not in it" in outside


def test_second_derivatives_are_refused(two: Ranks) -> None:
    for found in two.run(sharded_messages.second_derivatives):
        assert len(found) == 5
        assert all("first derivatives" in told for told in found)


def test_transforms_are_refused(two: Ranks) -> None:
    for found in two.run(sharded_messages.transforms):
        assert len(found) == 2
        assert all("torch.func" in told for told in found)


def test_compiled_code_has_the_same_results(two: Ranks) -> None:
    assert two.run(sharded_messages.compiled) == [True, True]


def test_the_page_has_the_formulas() -> None:
    text = (DOCS / "distributed.md").read_text("utf-8").partition("### Messages")[2].partition("### Speed")[0]
    rows = [[int(cell) for cell in re.findall(r"\| (\d+)(?= )", line)] for line in text.splitlines()]
    ways = [("softmax", {}), ("cross_entropy", {}), None, ("partition", {}), ("softmax", {"backward": True}),
            ("log_softmax", {"backward": True}), ("logsumexp", {"backward": True})]  # fmt: skip
    found = [row for row in rows if row]
    assert len(found) == len(ways)

    def each(function: str, dtype: str, **way: bool) -> int:
        sent = traffic.bytes_sent(function, rows=1, ranks=2, dtype=dtype, **way)  # type: ignore[arg-type]
        return max(sent - traffic.HEADER, 0)

    for row, given in zip(found, ways, strict=True):
        for cell, dtype in zip(row, ("bfloat16", "float32", "float64"), strict=True):
            if given is None:
                assert cell == each("cross_entropy", dtype, smoothed=True) - each("cross_entropy", dtype)
            else:
                assert cell == each(given[0], dtype, **given[1])


def test_the_example_runs() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(DOCS / "examples/sharded_loss.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    losses = re.findall(r"rank (\d): loss (\S+), largest entropy (\S+), weights of row 0 (\S+)", done.stdout)
    assert {rank for rank, *_ in losses} == {"0", "1"}
    assert len({said[1:3] for said in losses}) == 1
    assert sum(float(said[3]) for said in losses) == pytest.approx(1.0, abs=2e-4)
