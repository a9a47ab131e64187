"""The NumPy room: the engine where it has a kernel, else the definition in float64, rounded at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope import _engine
from softscope._reference import entmax as _entmax
from softscope._reference import jacobian as _jacobian
from softscope._reference import losses as _losses
from softscope._reference import partition as _partition
from softscope._reference import rows as _rows

if TYPE_CHECKING:
    from softscope._reference.partition import State
    from softscope._reference.rows import Array


def exact(x: Any) -> Array:
    """x in float64, in which the definitions are written."""
    return np.asarray(x).astype(np.float64, copy=False)


def rounded(result: Array, like: Array) -> Array:
    """The float64 result in the dtype that came in; past its range it becomes inf, as a rounding does."""
    with np.errstate(over="ignore"):
        return np.asarray(result).astype(like.dtype, copy=False)


def softmax(x: Array, temperature: Any, visible: Array | None) -> Array:
    """Weights of the rows of x, in x's dtype."""
    if x.dtype == np.float32 and visible is None and isinstance(temperature, float) and temperature == 1.0:
        x = np.ascontiguousarray(x)
        out = np.empty_like(x)
        n = x.shape[-1]
        _engine.softmax_f32(x.reshape(x.size // n if n else 0, n), out.reshape(x.size // n if n else 0, n))
        return out
    return rounded(_rows.softmax(exact(x), temperature, visible), x)


def log_softmax(x: Array, temperature: Any, visible: Array | None) -> Array:
    """Logarithms of the weights, in x's dtype."""
    return rounded(_rows.log_softmax(exact(x), temperature, visible), x)


def logsumexp(x: Array, temperature: Any, visible: Array | None) -> Array:
    """log Σ exp(x/T) of the rows, in x's dtype."""
    return rounded(_rows.logsumexp(exact(x), temperature, visible), x)


def entmax(x: Array, alpha: Any, temperature: Any, visible: Array | None) -> Array:
    """Sparse weights of the rows, in x's dtype."""
    return rounded(_entmax.entmax(exact(x), alpha, temperature, visible), x)


def state(x: Array, temperature: Any, visible: Array | None) -> tuple[State, Array]:
    """The partition's state and the largest logit, float64 whatever came in."""
    result = _partition.state(exact(x), temperature, visible)
    return result, result.m


def jacobian(p: Array, alpha: float, temperature: Any) -> Array:
    """J/T, dense."""
    return rounded(_jacobian.jacobian(exact(p), alpha) / _inner(temperature), p)


def jacobian_product(p: Array, v: Array, alpha: float, temperature: Any) -> Array:
    """J·v/T."""
    return rounded(_jacobian.jacobian_product(exact(p), exact(v), alpha) / temperature, p)


def cross_entropy(x: Array, targets: Array, temperature: Any, label_smoothing: float) -> Array:
    """The loss of each row, float64: the public function reduces before it rounds."""
    return _losses.cross_entropy(exact(x), targets, temperature, label_smoothing)


def distillation(student: Array, teacher: Array, temperature: Any) -> Array:
    """T²·KL of each row, float64."""
    return _losses.distillation(exact(student), exact(teacher), temperature)


def _inner(temperature: Any) -> Any:
    """A temperature (…, 1) for rows as (…, 1, 1) for matrices."""
    return temperature if isinstance(temperature, float) else temperature[..., None]
