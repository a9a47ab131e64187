"""The torch room: the same functions as differentiable tensor operations, on whatever device the tensors are.

They take rows on the last axis, as the NumPy room's do, and stay plain tensor operations, so that autograd,
torch.compile and other devices need nothing from us.
"""

from softscope._torch.entmax import entmax
from softscope._torch.jacobian import jacobian, jacobian_product
from softscope._torch.losses import cross_entropy, distillation
from softscope._torch.partition import state
from softscope._torch.rows import log_softmax, logsumexp, softmax

__all__ = [
    "cross_entropy",
    "distillation",
    "entmax",
    "jacobian",
    "jacobian_product",
    "log_softmax",
    "logsumexp",
    "softmax",
    "state",
]
