"""Sampling from logits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope import _engine, _threads
from softscope._arguments.arrays import Array, floating, giver, is_tensor, values
from softscope._arguments.axes import Rows
from softscope._arguments.checks import LARGEST, is_number, number, plain_number, real_beside, short, whole_number
from softscope._arguments.seen import numbers_needed
from softscope._backends.choose import plain_rows
from softscope._backends.engine.quick import described
from softscope._backends.numpy.maps import exact

if TYPE_CHECKING:
    from softscope._engine import Memory, RowsAt


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
    found = plain_rows(logits)
    if found is None:
        given = floating(logits, "logits")
        numbers_needed("sample", given, temperature, derivative=False)
        wide = np.ascontiguousarray(exact(values(Rows(given.shape, -1).bring(given))))
        found = wide, described(wide), wide.shape[:-1]
    x, rows, lead = found
    k = LARGEST if top_k is None else whole_number(top_k, "top_k", low=1)
    p = 0.0 if top_p is None else _share(top_p, "top_p", zero=False)
    least = 0.0 if min_p is None else _share(min_p, "min_p", zero=True)
    t = plain_number(temperature)
    each = 0 if t >= 0.0 else _temperatures(temperature, logits, x, (*lead, rows[1]))
    _check_rows(x, rows, lead)
    uniform = _uniform(rng, lead)
    index = np.empty(lead, np.int64)
    if rows[0]:
        numbers = uniform if type(uniform) is np.ndarray else uniform.data_ptr()
        _engine.sample_at(x, index, rows, t, each, (k, p, least), numbers, _threads.count)
    if is_tensor(logits):
        torch: Any = sys.modules["torch"]
        tensor: Any = logits
        return torch.from_numpy(index) if tensor.is_cpu else torch.as_tensor(index, device=tensor.device)
    return giver(logits)(index)


def _temperatures(value: Any, logits: Array, x: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return a temperature for each row; 0 is allowed."""
    if is_number(value):
        t = np.asarray(number(value, "temperature", "a number ≥ 0"))
    else:
        numbers_needed("sample", value, derivative=False)
        like = logits if is_tensor(logits) else x
        t = exact(values(Rows(shape, -1).bring_kept(real_beside(value, like, "temperature"), "temperature")))[..., 0]
    if not (t >= 0.0).all():
        raise ValueError(f"temperature must be ≥ 0 (0 is argmax), but got {t[~(t >= 0.0)].flat[0]}; pass a number ≥ 0")
    return np.ascontiguousarray(np.broadcast_to(t, shape[:-1]))


def _share(value: Any, name: str, zero: bool) -> float:
    rule = "a number in [0, 1]" if zero else "a number in (0, 1]"
    result = number(value, name, rule)
    if not 0.0 <= result <= 1.0 or (result == 0.0 and not zero):
        raise ValueError(f"{name} must be {rule}, but got {short(value)}; pass {0.05 if zero else 0.9}, for example")
    return result


def _check_rows(x: Memory, rows: RowsAt, lead: tuple[int, ...]) -> None:
    count, n, _ = rows
    if n == 0 and count:
        shape = (*lead, n)
        raise ValueError(f"logits must have at least one entry in a row, but has shape {shape}; nothing can be drawn")
    bad = _engine.first_without_weights_at(x, rows)
    if bad < count:
        where = tuple(int(i) for i in np.unravel_index(bad, lead))
        raise ValueError(
            f"logits must have a finite entry and no NaN or +inf in each row, but row {where} breaks this; fix it"
        )


def _uniform(rng: Any, shape: tuple[int, ...]) -> Any:
    """Draw one number in [0, 1) for each row, as an array or a CPU tensor, from a NumPy or a torch generator."""
    if isinstance(rng, np.random.Generator):
        return np.asarray(rng.random(shape))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(rng, torch.Generator):
        draws = torch.rand(shape, generator=rng, dtype=torch.float64, device=rng.device)
        return draws if draws.is_cpu else draws.cpu()
    raise TypeError(
        f"rng must be a numpy.random.Generator or a torch.Generator, but got {type(rng).__name__}; "
        f"pass numpy.random.default_rng(0), for example"
    )
