"""softmax, log_softmax, entmax, logsumexp and the partition's state of CPU tensors at the engine's speed.

The quick ways give sizes to torch.empty one by one: it takes 0.3 µs longer to read them from a tuple.

Tensor operations (the `tensor_*` modules) take over where the engine cannot access the memory (see
`engine_memory.reachable`) or refuses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from softscope import _engine
from softscope._arguments.checks import plain_number
from softscope._arguments.out import checked_out
from softscope._backends.engine import kernels
from softscope._backends.engine.quick import READINGS, plain_target
from softscope._backends.reference.partition import State
from softscope._backends.torch import backward, tensor_entmax, tensor_jacobian, tensor_partition, tensor_softmax
from softscope._backends.torch.autograd import DIFFERENTIABLE, Entmax, applied
from softscope._backends.torch.engine_memory import (
    AT,
    DTYPES,
    engine,
    flows,
    held,
    reachable,
    single,
    threads,
    unwatched,
)

if TYPE_CHECKING:
    from softscope._engine import RowsAt


def plain(name: str, x: Any, temperature: Any, axis: int, out: Tensor | None = None, alpha: Any = 1.0) -> Tensor | None:
    """Take the fast path for the common case: one temperature and alpha, the last axis. None for the full path."""
    if not unwatched():
        return None
    t, alpha = plain_number(temperature), plain_number(alpha)
    sparse = alpha if name == "entmax" and alpha != 1.0 else None
    if not 1.0 <= alpha < math.inf:
        return None
    if name == "entmax" and sparse is None:
        name = "softmax"
    found = _engine.rows_of(x) if out is None else None
    if found is None:
        return _plain_slowly(name, x, t, axis, out, sparse)
    address, rows, ndim = found
    low, high = kernels.RANGES[rows[2]]
    if not low <= t <= high or (axis != -1 and axis != ndim - 1):
        return None
    if x.requires_grad and torch.is_grad_enabled():
        return applied(DIFFERENTIABLE[name], x, t) if sparse is None else applied(Entmax, x, sparse, t)
    if name != "logsumexp":
        out = torch.empty_like(x)
    else:
        out = single(rows[2]) if ndim == 1 else torch.empty(*x.shape[:-1], dtype=x.dtype)
    numbers = (t,) if sparse is None else (t, sparse)
    getattr(_engine, AT[name])(address, out.data_ptr(), rows, *numbers, threads())
    return out


def _plain_slowly(
    name: str, x: Any, temperature: float, axis: int, out: Tensor | None, alpha: float | None
) -> Tensor | None:
    """Do the same for tensors with gaps between their rows, for `out`, and for a PyTorch before 2.10."""
    if not held(x) or x.dtype not in DTYPES or not kernels.offers(x.itemsize, temperature):
        return None
    if not x.numel() or not x.ndim or axis not in (-1, x.ndim - 1):
        return None
    if out is None:
        if not flows(x):
            return engine(name, x, temperature, None, alpha)
        return (
            applied(DIFFERENTIABLE[name], x, temperature) if alpha is None else applied(Entmax, x, alpha, temperature)
        )
    if not _plainly_fits(out, x):
        checked_out(out, x)
        if not reachable(out):
            return None
    return engine(name, x, temperature, out, alpha)


def plain_state(x: Any, temperature: Any, axis: int) -> tuple[Tensor, float] | None:
    """Compute each row's state in one tensor (…, 7), and return it with T as a float; None for the full path."""
    t = plain_number(temperature)
    found = _engine.rows_of(x) if unwatched() else None
    if found is None or flows(x):
        return None
    address, rows, ndim = found
    low, high = kernels.RANGES[rows[2]]
    if not low <= t <= high or (axis != -1 and axis != ndim - 1):
        return None
    out = torch.empty(7, dtype=torch.float64) if ndim == 1 else torch.empty(*x.shape[:-1], 7, dtype=torch.float64)
    _engine.state_at(address, out.data_ptr(), rows, t, threads())
    return out, t


def packed(state: State) -> Tensor | None:
    """Join the parts of a state into the engine's numbers (…, 7); None if tensor operations must read it."""
    wide = all(part.dtype is torch.float64 for part in state[1:])
    if not wide or not all(reachable(part) and not flows(part) for part in state):
        return None
    shape = np.broadcast_shapes(*(part.shape for part in state))
    return torch.stack([part.double().expand(shape) for part in state], dim=-1)


def reading(name: str, numbers: Tensor, temperature: Any) -> Tensor | None:
    """Compute one reading of each state of the engine's numbers (…, 7 or 8); None for tensor operations."""
    found = _engine.rows_of(numbers) if type(temperature) is float and unwatched() else None
    if found is None or flows(numbers):
        return None
    address, rows, ndim = found
    out = single(rows[2]) if ndim == 1 else torch.empty(*numbers.shape[:-1], dtype=torch.float64)
    _engine.reading_at(address, out.data_ptr(), rows, READINGS[name], temperature, 0, threads())
    return out


def plain_temperature(x: Any, name: str, wanted: Any) -> Tensor | None:
    """Find the temperatures at which the rows have one entropy or peak; they are constants for autograd."""
    target = plain_target(name, wanted)
    found = _engine.rows_of(x) if unwatched() else None
    if found is None or target != target:
        return None
    address, rows, ndim = found
    out = torch.empty(1, dtype=torch.float64) if ndim == 1 else torch.empty(*x.shape[:-1], 1, dtype=torch.float64)
    _engine.temperature_for_at(address, out.data_ptr(), rows, name == "peak", target, 0, threads())
    return out


def plain_rows(x: Any) -> tuple[int, RowsAt, tuple[int, ...]] | None:
    """Return the address of contiguous rows, how the engine sees them, and the shape before the last axis."""
    found = _engine.rows_of(x) if unwatched() else None
    if found is None:
        return None
    address, rows, ndim = found
    return address, rows, () if ndim == 1 else x.shape[:-1]


def plain_product(p: Any, v: Any, alpha: Any, temperature: Any, axis: int) -> Tensor | None:
    """Take the fast path of `jacobian_product`: one temperature and alpha up to 2, the last axis."""
    t, a = plain_number(temperature), plain_number(alpha)
    watched = not unwatched()
    weights, other = (None, None) if watched else (_engine.rows_of(p), _engine.rows_of(v))
    if weights is None or other is None or weights[1] != other[1] or weights[2] != other[2] or not 1.0 <= a <= 2.0:
        return None
    address, rows, ndim = weights
    low, high = kernels.RANGES[rows[2]]
    if not low <= t <= high or (axis != -1 and axis != ndim - 1) or flows(p) or flows(v):
        return None
    if ndim > 2 and p.shape != v.shape:  # as many rows, but in another arrangement
        return None
    out = torch.empty_like(p)
    _engine.jacobian_product_at(address, other[0], out.data_ptr(), rows, t, a, threads())
    return out


def _plainly_fits(out: Any, x: Tensor) -> bool:
    """Tell whether `out` clearly fits: x itself, or separate memory of x's size. The full check is ten times slower."""
    if not (reachable(out) and out.dtype is x.dtype and out.shape == x.shape) or flows(out) or flows(x):
        return False
    if out is x:
        return x.is_contiguous()
    distance = abs(out.data_ptr() - x.data_ptr())
    return out.is_contiguous() and x.is_contiguous() and distance >= x.numel() * x.itemsize


def softmax(x: Tensor, temperature: Any, visible: Tensor | None) -> Tensor:
    """Compute the weights of the rows of x, in x's dtype."""
    return _mapped("softmax", x, temperature, visible, 0.0)


def log_softmax(x: Tensor, temperature: Any, visible: Tensor | None) -> Tensor:
    """Compute the logarithms of the weights, in x's dtype."""
    return _mapped("log_softmax", x, temperature, visible, -math.inf)


def logsumexp(x: Tensor, temperature: Any, visible: Tensor | None) -> Tensor:
    """Compute log Σ exp(x/T) of the rows, in x's dtype."""
    if not offered(x, temperature, visible):
        return tensor_softmax.logsumexp(x, temperature, visible)
    return _computed("logsumexp", tensor_softmax.hidden_to_minus_inf(x, visible), temperature)


def entmax(x: Tensor, alpha: Any, temperature: Any, visible: Tensor | None) -> Tensor:
    """Compute the sparse weights of the rows, in x's dtype; with tensor operations if alpha needs a gradient."""
    if isinstance(alpha, float) and alpha == 1.0:
        return softmax(x, temperature, visible)
    known = not isinstance(alpha, Tensor) or (reachable(alpha) and not flows(alpha))
    if not known or not offered(x, temperature, visible):
        return tensor_entmax.entmax(x, alpha, temperature, visible)
    shown = tensor_softmax.hidden_to_minus_inf(x, visible)
    p = applied(Entmax, shown, alpha, temperature) if flows(x) else engine("entmax", shown, temperature, None, alpha)
    return p if visible is None else p.masked_fill(~visible, 0.0)


def state(x: Tensor, temperature: Any, visible: Tensor | None) -> tuple[State, Tensor]:
    """Compute the partition's state and the largest logit; with tensor operations if they need a gradient."""
    if flows(x) or not offered(x, temperature, visible):
        return tensor_partition.state(x, temperature, visible)
    return split(engine("state", tensor_softmax.hidden_to_minus_inf(x, visible), temperature))


def split(numbers: Tensor) -> tuple[State, Tensor]:
    """Split the engine's numbers (…, 7) into a state and the largest logit; attention has that as an eighth."""
    n, *sums = numbers.unbind(-1)
    state = State(n.to(torch.int64), *sums[:6])
    return state, sums[6] if len(sums) > 6 else state.m


def jacobian_product(p: Tensor, v: Tensor, alpha: Any, temperature: Any) -> Tensor:
    """Compute J·v/T in p's dtype; with tensor operations if it is differentiated again."""
    tensors = [value for value in (p, v, alpha, temperature) if isinstance(value, Tensor)]
    if not any(map(flows, tensors)) and all(map(reachable, tensors)) and p.dtype in DTYPES and p.dtype == v.dtype:
        out = torch.empty_like(p)
        if p.numel() and backward.run("jacobian_product", (p, v), (alpha, temperature), out):
            return out
    return tensor_jacobian.jacobian_product(p, v, alpha, temperature)


def offered(x: Tensor, temperature: Any, visible: Tensor | None = None) -> bool:
    """Tell whether the engine supports these rows at this temperature."""
    if not reachable(x) or x.dtype not in DTYPES or x.numel() == 0 or not (visible is None or reachable(visible)):
        return False
    if not isinstance(temperature, Tensor):
        return kernels.offers(x.itemsize, temperature)
    if flows(temperature) or not reachable(temperature):
        return False
    # aminmax returns NaN if there is one, and the range check refuses NaN.
    return all(kernels.offers(x.itemsize, float(t)) for t in torch.aminmax(temperature.detach().double()))


def _mapped(name: str, x: Tensor, temperature: Any, visible: Tensor | None, hidden: float) -> Tensor:
    if not offered(x, temperature, visible):
        return getattr(tensor_softmax, name)(x, temperature, visible)
    y = _computed(name, tensor_softmax.hidden_to_minus_inf(x, visible), temperature)
    return y if visible is None else y.masked_fill(~visible, hidden)


def _computed(name: str, x: Tensor, temperature: Any) -> Tensor:
    return applied(DIFFERENTIABLE[name], x, temperature) if flows(x) else engine(name, x, temperature)
