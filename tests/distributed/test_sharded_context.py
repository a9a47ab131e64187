"""Attention whose keys are shared out among ranks equals attention in one process."""

import pytest
import torch

from distributed import sharded_context
from distributed.ranks import Ranks


@pytest.mark.parametrize("first", [0, 100, 200])
def test_equal_to_one_process_with_two_ranks(two: Ranks, first: int) -> None:
    assert two.run(sharded_context.many_wrong, first, 40) == [[], []]


@pytest.mark.parametrize("first", [1000, 1100, 1200])
def test_equal_to_one_process_with_four_ranks(four: Ranks, first: int) -> None:
    assert four.run(sharded_context.many_wrong, first, 40) == [[]] * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_longer_than_a_block_of_the_kernels(four: Ranks, dtype: torch.dtype) -> None:
    assert four.run(sharded_context.long_rows, dtype) == [[]] * 4
