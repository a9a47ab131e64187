"""Sampling from logits."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from softscope._arguments.arrays import Array, floating, giver, is_tensor, values
from softscope._arguments.axes import Rows
from softscope._arguments.checks import is_number, number, real_beside, short, whole_number
from softscope._arguments.seen import numbers_needed
from softscope._backends.numpy.maps import exact
from softscope._backends.reference import sampling as _definition
from softscope._backends.reference.softmax import softmax


def sample(
    logits: Array,
    *,
    temperature: Any = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    rng: Any,
) -> Array:
    """Draw one index from each row of the last axis, with probability softmax(logits/T) after the filters.

    The filters apply in the order top_k, top_p, min_p.

    Args:
        logits: Logits, (…, n).
        temperature: A number ≥ 0, or an array that broadcasts against logits with the last axis kept as 1. 0 picks
            the largest logit, and the first one among ties.
        top_k: Keep the k largest weights.
        top_p: Keep the smallest set of largest weights whose sum reaches top_p.
        min_p: Keep the weights of at least min_p times the largest weight.
        rng: A numpy.random.Generator or a torch.Generator. Each row draws one uniform number from it.

    Returns:
        int64 indices, in the shape of logits without the last axis.

    Raises:
        ValueError: If a row has no finite logit, or contains NaN or +inf.

    >>> import numpy as np, softscope as ss
    >>> rng = np.random.default_rng(0)
    >>> draws = ss.sample(np.zeros((1000, 2)) + [0.0, np.log(3.0)], rng=rng)
    >>> 700 < draws.sum() < 800
    np.True_
    """
    x = floating(logits, "logits")
    numbers_needed("sample", x, temperature, derivative=False)
    rows = Rows(x.shape, -1)
    k = None if top_k is None else whole_number(top_k, "top_k", low=1)
    p = None if top_p is None else _share(top_p, "top_p", zero=False)
    least = None if min_p is None else _share(min_p, "min_p", zero=True)
    t = _temperature(temperature, x, rows)
    flat = exact(values(rows.bring(x)))
    _check_rows(flat)
    cold = np.broadcast_to(t == 0.0, (*rows.lead, 1))[..., 0]
    weights = softmax(flat, np.where(t == 0.0, 1.0, t))
    drawn = _definition.draw(_definition.keep(weights, k, p, least), _uniform(rng, rows.lead))
    index = np.where(cold, np.argmax(flat, axis=-1), drawn)
    if is_tensor(x):
        torch = sys.modules["torch"]
        return torch.as_tensor(np.asarray(index), device=x.device)
    return giver(logits)(np.asarray(index))


def _temperature(value: Any, x: Array, rows: Rows) -> np.ndarray[Any, Any]:
    if is_number(value):
        t = np.asarray(number(value, "temperature", "a number ≥ 0"))
    else:
        t = exact(values(rows.bring_kept(real_beside(value, x, "temperature"), "temperature")))
    if not (t >= 0.0).all():
        raise ValueError(f"temperature must be ≥ 0 (0 is argmax), but got {t[~(t >= 0.0)].flat[0]}; pass a number ≥ 0")
    return t


def _share(value: Any, name: str, zero: bool) -> float:
    rule = "a number in [0, 1]" if zero else "a number in (0, 1]"
    result = number(value, name, rule)
    if not 0.0 <= result <= 1.0 or (result == 0.0 and not zero):
        raise ValueError(f"{name} must be {rule}, but got {short(value)}; pass {0.05 if zero else 0.9}, for example")
    return result


def _check_rows(x: np.ndarray[Any, Any]) -> None:
    if x.shape[-1] == 0 and x.shape[:-1] != (0,) and np.prod(x.shape[:-1]) > 0:
        raise ValueError(f"logits must have at least one entry in a row, but has shape {x.shape}; nothing can be drawn")
    bad = np.isnan(x).any(axis=-1) | (x == np.inf).any(axis=-1) | (x == -np.inf).all(axis=-1)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"logits must have a finite entry and no NaN or +inf in each row, but row {where} breaks this; fix it"
        )


def _uniform(rng: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Draw one number in [0, 1) for each row, from a NumPy or a torch generator."""
    if isinstance(rng, np.random.Generator):
        return np.asarray(rng.random(shape))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(rng, torch.Generator):
        draws = torch.rand(shape, generator=rng, dtype=torch.float64, device=rng.device)
        return np.asarray(draws.cpu().numpy())
    raise TypeError(
        f"rng must be a numpy.random.Generator or a torch.Generator, but got {type(rng).__name__}; "
        f"pass numpy.random.default_rng(0), for example"
    )
