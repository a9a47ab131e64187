"""How long messages take on a machine that is described by four numbers: the model behind bench/past_one_machine.py.

What it assumes:

- A message takes latency + bytes/bandwidth. Latency is the same between any two ranks.
- Links are full-duplex: a rank sends and receives at once, each at the whole bandwidth. Links do not slow down others.
- All ranks begin together, and no rank is slower than others.
- An all-gather of W blocks takes log2 W latencies and moves W − 1 blocks (recursive doubling).
- An all-reduce takes 2·log2 W latencies and moves 2·(W − 1)/W of its bytes (by halves, there and back). Adding up
  takes no time.
- An all-to-all is W − 1 direct messages, or log2 W messages of half of the bytes: whichever is faster.
- Compute runs at one rate whatever the shape; sending takes none of it. Packing and merging take time in the probe, and
  none elsewhere.
- If there are more ranks than cores, compute takes so much longer.
"""

from __future__ import annotations

import dataclasses
import math

from softscope.distributed import traffic
from softscope.doctor.ranks import traffic as probe_traffic

LOGITS = "float32"
PEER = 132_000  # bytes that a peer's monitor is reported to reduce: 32 for each metric of a layer


@dataclasses.dataclass(frozen=True)
class Machine:
    """Seconds for each message, bytes a second in each direction, flop a second, seconds to merge a byte; cores."""

    latency: float = 5e-6
    bandwidth: float = 50e9
    flops: float = 400e12
    merge: float = 4e-9
    cores: float = math.inf

    def message(self, size: float) -> float:
        return self.latency + size / self.bandwidth

    def all_gather(self, ranks: int, block: float) -> float:
        return _doublings(ranks) * self.latency + (ranks - 1) * block / self.bandwidth

    def all_reduce(self, ranks: int, size: float) -> float:
        return 2 * _doublings(ranks) * self.latency + 2 * (ranks - 1) / ranks * size / self.bandwidth

    def all_to_all(self, ranks: int, size: float) -> float:
        direct = (ranks - 1) * self.message(size / ranks)
        return min(direct, _doublings(ranks) * self.message(size / 2))

    def compute(self, ranks: int, seconds: float) -> float:
        return seconds * max(1.0, ranks / self.cores)


@dataclasses.dataclass(frozen=True)
class Model:
    """The model, and how many tokens it reads at once."""

    layers: int = 96
    heads: int = 96
    kv_heads: int = 96
    d: int = 128
    vocabulary: int = 131_072
    tokens: int = 1_048_576
    batch: int = 1
    itemsize: int = 2  # bytes of a number in keys and values: bfloat16

    @property
    def rows(self) -> int:
        return self.batch * self.tokens

    @property
    def key_bytes(self) -> int:
        """Of one key and its value, in all heads."""
        return self.batch * self.kv_heads * 2 * self.d * self.itemsize

    @property
    def parameters(self) -> int:
        """Of the blocks, 12·width² for each layer, and of the vocabulary."""
        width = self.heads * self.d
        return 12 * self.layers * width**2 + self.vocabulary * width

    @property
    def shared_heads(self) -> int:
        """The most ranks, as a power of two, that can share out the key heads."""
        return self.kv_heads & -self.kv_heads


def _doublings(ranks: int) -> int:
    return math.ceil(math.log2(ranks))


def probe(machine: Machine, model: Model, ranks: int) -> dict[str, float]:
    """Seconds from the last rank's reading until the first rank has all of them."""
    if ranks == 1:
        return {"tree": 0.0, "peer": 0.0, "gathered": 0.0}
    sent = probe_traffic.of_read_step(rank=1, ranks=ranks, heads=model.layers * model.heads)
    work = sent.bytes * machine.merge
    each = sent.messages * machine.latency + sent.bytes / machine.bandwidth + work
    return {
        "tree": probe_traffic.levels(ranks) * each,
        "peer": machine.all_reduce(ranks, PEER),
        "gathered": machine.latency + (ranks - 1) * (sent.bytes / machine.bandwidth + work),
    }


def loss(machine: Machine, model: Model, ranks: int) -> dict[str, float]:
    """Seconds that the messages of one vocabulary-parallel cross-entropy take, without computing it."""
    if ranks == 1:
        return {"states": 0.0, "reduced": 0.0, "logits": 0.0, "planned": 0.0}
    block = row_states(model)
    logits = traffic.gathered_logits(rows=model.rows, classes=model.vocabulary, ranks=ranks, dtype=LOGITS)
    return {
        "states": machine.all_gather(ranks, block),
        "reduced": 3 * machine.all_reduce(ranks, 4 * model.rows),
        "logits": machine.all_gather(ranks, logits / (ranks - 1)),
        "planned": machine.all_reduce(ranks, block),
    }


def row_states(model: Model) -> int:
    """Bytes that one rank tells each other one."""
    return traffic.bytes_sent("cross_entropy", rows=model.rows, ranks=2, dtype=LOGITS)


def attention(machine: Machine, model: Model, ranks: int, *, causal: bool = True) -> dict[str, float]:
    """Seconds of one layer's attention, forward; with zigzag shards, causal attention is half of the work everywhere.

    "hop" is the time of passing on one block, "block" that of computing with it.
    """
    keys = model.tokens / ranks
    work = 4 * model.batch * model.heads * model.d * keys**2 * (0.5 if causal else 1.0)
    block = machine.compute(ranks, work / machine.flops)
    hop = machine.message(keys * model.key_bytes) if ranks > 1 else 0.0
    share = math.gcd(ranks, model.shared_heads)
    groups = ranks // share
    # q, k, v and the output change places; then each rank has all positions of its group, and its own heads only.
    changed = keys * model.batch * (2 * model.heads + 2 * model.kv_heads) * model.d * model.itemsize
    changing = machine.all_to_all(share, changed) if share > 1 else 0.0
    inner = hop if groups > 1 else 0.0
    return {
        "hop": hop,
        "block": block,
        "ring": _overlapped(ranks, hop, block),
        "gathered": machine.all_gather(ranks, keys * model.key_bytes) + ranks * block,
        "planned": changing + _overlapped(groups, inner, share * block),
    }


def _overlapped(ranks: int, hop: float, block: float) -> float:
    return (ranks - 1) * max(hop, block) + block
