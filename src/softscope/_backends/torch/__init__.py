"""The torch backend: the same functions as differentiable tensor operations, on any device.

They take rows on the last axis, like the NumPy backend's. CPU tensors in eager mode go to the engine; everything else
uses plain tensor operations, so that torch.compile, transforms and other devices need nothing from us.
"""

from softscope._backends.torch.cross_entropy import cross_entropy, plain_cross_entropy
from softscope._backends.torch.losses import distillation, plain_distillation
from softscope._backends.torch.maps import (
    entmax,
    jacobian_product,
    log_softmax,
    logsumexp,
    packed,
    plain,
    plain_product,
    plain_rows,
    plain_state,
    plain_temperature,
    reading,
    softmax,
    split,
    state,
)
from softscope._backends.torch.plain_attention import plain_attention, plain_statistics
from softscope._backends.torch.tensor_jacobian import jacobian

__all__ = [
    "cross_entropy",
    "distillation",
    "entmax",
    "jacobian",
    "jacobian_product",
    "log_softmax",
    "logsumexp",
    "packed",
    "plain",
    "plain_attention",
    "plain_cross_entropy",
    "plain_distillation",
    "plain_product",
    "plain_rows",
    "plain_state",
    "plain_statistics",
    "plain_temperature",
    "reading",
    "softmax",
    "split",
    "state",
]
