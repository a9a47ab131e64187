"""PyTorch modules: a drop-in multi-head attention with options that keep it healthy.

>>> import torch, softscope.nn
>>> layer = softscope.nn.MultiheadAttention(8, 2, softcap=30.0, sink=True)
>>> x = torch.ones(5, 3, 8)                                      # (length, batch, embed_dim), as PyTorch's
>>> output, weights = layer(x, x, x)
>>> tuple(output.shape), tuple(weights.shape)
((5, 3, 8), (3, 5, 5))
"""

try:
    import torch as _torch  # noqa: F401  (imported here once, so that a missing torch gives a readable error)
except ModuleNotFoundError as error:
    if error.name != "torch":  # torch is installed but broken: its own message says more than ours
        raise
    raise ImportError("softscope.nn needs PyTorch: pip install 'softscope[torch]'") from error

from softscope.nn.functional import scaled_dot_product_attention
from softscope.nn.multihead import MultiheadAttention
from softscope.nn.replacing import replace

__all__ = ["MultiheadAttention", "replace", "scaled_dot_product_attention"]
