"""The softmax family where a row does not fit one process: partitions of its parts merge over `torch.distributed`."""

from softscope.distributed import counting, traffic
from softscope.distributed._attention import attention
from softscope.distributed._cross_entropy import cross_entropy
from softscope.distributed._exchange import RanksDifferError
from softscope.distributed._layout import positions, shard, unshard
from softscope.distributed._maps import log_softmax, logsumexp, softmax
from softscope.distributed._partition import partition

__all__ = [
    "RanksDifferError",
    "attention",
    "counting",
    "cross_entropy",
    "log_softmax",
    "logsumexp",
    "partition",
    "positions",
    "shard",
    "softmax",
    "traffic",
    "unshard",
]
