"""The maps on NumPy arrays: the engine where it has a kernel, else the definition in a wider float, then rounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._backends.engine import kernels
from softscope._backends.reference import entmax as _entmax
from softscope._backends.reference import jacobian as _jacobian
from softscope._backends.reference import losses as _losses
from softscope._backends.reference import partition as _partition
from softscope._backends.reference import softmax as _softmax

if TYPE_CHECKING:
    from softscope._arguments.axes import Rows
    from softscope._backends.reference.partition import State
    from softscope._backends.reference.softmax import Array

# Decorates functions: what overflows or has no value becomes inf or NaN without a warning, as in the engine.
quietly = np.errstate(over="ignore", invalid="ignore", divide="ignore")


def exact(x: Any) -> Array:
    """Return x in float64, for computations that need no more precision."""
    return np.asarray(x).astype(np.float64, copy=False)


def wider(x: Array) -> Array:
    """Return x in a wider float: float64, or long double for float64.

    Where the maximum cancels log z, or x/T rounds far from the maximum, float64 alone misses its bounds by a few ulp.
    """
    return x.astype(np.longdouble if x.dtype == np.float64 else np.float64)


@quietly
def rounded(result: Array, dtype: Any) -> Array:
    """Round the result to a narrower dtype; values beyond its range become inf."""
    return np.asarray(result).astype(dtype, copy=False)


@quietly
def softmax(x: Array, temperature: Any, visible: Array | None) -> Array:
    """Compute the weights of the rows of x, in x's dtype."""
    return _mapped("softmax", x, temperature, visible, 0.0)


@quietly
def log_softmax(x: Array, temperature: Any, visible: Array | None) -> Array:
    """Compute the logarithms of the weights, in x's dtype."""
    return _mapped("log_softmax", x, temperature, visible, -np.inf)


def _mapped(name: str, x: Array, temperature: Any, visible: Array | None, hidden: float) -> Array:
    shown = kernels.native(_softmax.hidden_to_minus_inf(x, visible).astype(x.dtype, copy=False))
    out = np.empty_like(shown)
    if not kernels.run(name, shown, temperature, out):
        out = rounded(getattr(_softmax, name)(wider(shown), temperature), shown.dtype)
    if visible is not None:
        out[~visible] = hidden
    return out.astype(x.dtype, copy=False)


def written_into(out: Array, name: str, rows: Rows, x: Array, *numbers: Any) -> bool:
    """Let the engine write a map of x straight into `out`, which may be x; return False if it cannot.

    The other way makes an array as large as x and copies it.
    """
    *alphas, temperature = numbers
    given, result = rows.bring(x), rows.bring(out)
    reached = np.may_share_memory(result, out) and all(kernels.native(part) is part for part in (given, result))
    if not reached or (given is not x and not np.may_share_memory(given, x)):
        return False
    if name == "entmax" and not (isinstance(alphas[0], float) and alphas[0] == 1.0):
        return kernels.run("entmax", given, temperature, result, alpha=alphas[0])
    return kernels.run("softmax" if name == "entmax" else name, given, temperature, result)


@quietly
def logsumexp(x: Array, temperature: Any, visible: Array | None) -> Array:
    """Compute log Σ exp(x/T) of the rows, in x's dtype."""
    shown = kernels.native(_softmax.hidden_to_minus_inf(x, visible).astype(x.dtype, copy=False))
    out = np.empty(x.shape[:-1], shown.dtype)
    if not kernels.run("logsumexp", shown, temperature, out):
        out = rounded(_softmax.logsumexp(wider(shown), temperature), shown.dtype)
    return out.astype(x.dtype, copy=False)


@quietly
def entmax(x: Array, alpha: Any, temperature: Any, visible: Array | None) -> Array:
    """Compute the sparse weights of the rows, in x's dtype."""
    if isinstance(alpha, float) and alpha == 1.0:
        return softmax(x, temperature, visible)
    shown = kernels.native(_softmax.hidden_to_minus_inf(x, visible).astype(x.dtype, copy=False))
    out = np.empty_like(shown)
    if not kernels.run("entmax", shown, temperature, out, alpha=alpha):
        out = rounded(_entmax.entmax(exact(shown), alpha, temperature), shown.dtype)
    if visible is not None:
        out[~visible] = 0.0
    return out.astype(x.dtype, copy=False)


def split(numbers: Array) -> tuple[State, Array]:
    """Split the engine's numbers (…, 7) into a state and the largest logit; attention has that as an eighth."""
    result = _partition.State(numbers[..., 0].astype(np.int64), *(numbers[..., i] for i in range(1, 7)))
    return result, numbers[..., 7] if numbers.shape[-1] > 7 else result.m


@quietly
def state(x: Array, temperature: Any, visible: Array | None) -> tuple[State, Array]:
    """Compute the partition's state and the largest logit, in float64 whatever the input dtype."""
    shown = kernels.native(_softmax.hidden_to_minus_inf(x, visible).astype(x.dtype, copy=False))
    out = np.empty((*x.shape[:-1], 7))
    if kernels.run("state", shown, temperature, out):
        return split(out)
    n, *sums = _partition.state(wider(shown), temperature)
    result = _partition.State(n, *(rounded(part, np.float64) for part in sums))
    return result, result.m


@quietly
def jacobian(p: Array, alpha: float, temperature: Any) -> Array:
    """J/T, dense."""
    return rounded(_jacobian.jacobian(exact(p), alpha) / _inner(temperature), p.dtype)


@quietly
def jacobian_product(p: Array, v: Array, alpha: float, temperature: Any) -> Array:
    """J·v/T."""
    weights, direction = kernels.native(p), kernels.native(v.astype(p.dtype, copy=False))
    out = np.empty_like(weights)
    if direction.dtype == v.dtype and kernels.jacobian_product(weights, direction, alpha, temperature, out):
        return out.astype(p.dtype, copy=False)
    return rounded(_jacobian.jacobian_product(exact(p), exact(v), alpha) / temperature, p.dtype)


@quietly
def cross_entropy(x: Array, targets: Array, temperature: Any, label_smoothing: float) -> Array:
    """Compute each row's loss in float64; the public function reduces before it rounds."""
    losses = np.empty(x.shape[:-1])
    if kernels.cross_entropy(kernels.native(x), targets, temperature, label_smoothing, losses):
        return losses
    return _losses.cross_entropy(wider(x), targets, temperature, label_smoothing)


def _inner(temperature: Any) -> Any:
    """Reshape a temperature (…, 1) for rows to (…, 1, 1) for matrices."""
    return temperature if isinstance(temperature, float) else temperature[..., None]
