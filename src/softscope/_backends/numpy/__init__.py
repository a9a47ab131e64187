"""The NumPy backend: the engine where it has a kernel, else the definition in a wider float, rounded at the end."""

from softscope._backends.engine.quick import distillation
from softscope._backends.numpy.maps import (
    cross_entropy,
    entmax,
    jacobian,
    jacobian_product,
    log_softmax,
    logsumexp,
    softmax,
    split,
    state,
)

__all__ = [
    "cross_entropy",
    "distillation",
    "entmax",
    "jacobian",
    "jacobian_product",
    "log_softmax",
    "logsumexp",
    "softmax",
    "split",
    "state",
]
