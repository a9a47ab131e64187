"""The softmax family where a row does not fit one process: partitions of its parts merge over `torch.distributed`."""

from softscope.distributed._attention import attention
from softscope.distributed._layout import positions, shard, unshard

__all__ = ["attention", "positions", "shard", "unshard"]
