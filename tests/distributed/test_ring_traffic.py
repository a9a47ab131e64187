"""What travels around the ring: as many messages and bytes as the formulas say, posted before the work on a block."""

from typing import Any

import pytest
import torch

from distributed import ring_traffic
from distributed.ranks import Ranks
from softscope.distributed import traffic

CALLS: list[tuple[dict[str, Any], bool]] = [  # options, and whether blocks go all the way round, or one hop
    ({}, True),
    ({"causal": True}, True),
    ({"causal": True, "layout": "zigzag"}, True),
    ({"causal": True, "window": (3, 0)}, False),
    ({"window": (3, 3)}, True),  # the last rank needs the first one's keys no longer, but the first needs the second's
]


@pytest.mark.parametrize(("options", "round_trip"), CALLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_messages_and_bytes_are_those_of_the_formulas(
    several: Ranks, options: dict[str, Any], round_trip: bool, dtype: torch.dtype
) -> None:
    keys = [16] * several.many
    hops = traffic.attention_hops(keys, **options)
    assert hops == (several.many - 1 if round_trip else 1)
    entry = 2 * 2 * (8 + 6)  # batch, key heads, d and dv
    forward = traffic.attention_forward(keys, entry * dtype.itemsize, hops)
    backward = traffic.attention_backward(keys, entry * dtype.itemsize, hops, entry * max(4, dtype.itemsize))
    got = several.run(ring_traffic.messages, keys, dtype, options)
    for rank, (there, back, header, nothing) in enumerate(got):
        assert there == forward[rank]
        assert back == backward[rank]
        assert header == [traffic.ATTENTION_HEADER]
        assert nothing == []


def test_shards_of_different_lengths(four: Ranks) -> None:
    keys = [5, 0, 9, 2]
    forward, backward = traffic.attention_forward(keys, 224, 3), traffic.attention_backward(keys, 224, 3, 224)
    assert [one.messages for one in forward] == [3, 2, 2, 2]  # an empty block is no message
    for rank, (there, back, *_) in enumerate(four.run(ring_traffic.messages, keys, torch.float32, {})):
        assert there == forward[rank]
        assert back == backward[rank]


def test_the_next_block_is_on_its_way_before_the_work_on_this_one(four: Ranks) -> None:
    for forward, backward in four.run(ring_traffic.order, {}):
        assert forward == ["post", "compute"] * 3 + ["compute"]
        # The sum of a block's gradients is sent when this rank has added to it, which is when the next block is there.
        assert backward == ["post", "compute", "post"] * 3 + ["compute", "post"]


def test_hidden_blocks_are_not_computed(four: Ranks) -> None:
    done = four.run(ring_traffic.order, {"causal": True})
    assert [(forward.count("compute"), backward.count("compute")) for forward, backward in done] == [
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
    ]
