"""Find the temperature that gives a target entropy or peak, or that calibrates probabilities."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softscope._arguments.arrays import Array, as_numpy, floating, giver, is_tensor, values
from softscope._arguments.axes import Axis, Rows
from softscope._arguments.checks import is_number, number, real_beside, visible_for_rows
from softscope._arguments.seen import numbers_needed
from softscope._backends.choose import plain_temperature
from softscope._backends.engine.quick import temperatures
from softscope._backends.numpy.maps import exact
from softscope._backends.reference import temperature as _definition
from softscope._backends.reference.softmax import hidden_to_minus_inf


def temperature_for(x: Array, /, *, entropy: Any = None, peak: Any = None, axis: Axis = -1, where: Any = None) -> Array:
    """Find the temperature at which softmax(x/T) has a given entropy (in nats) or a given largest weight.

    Pass exactly one of `entropy` and `peak`: a number, or an array that broadcasts against x with the axis kept as 1.

    Args:
        x: Logits.
        entropy: Target entropy in nats. It must lie strictly between log(ties at the maximum) and log(count).
        peak: Target largest weight. It must lie strictly between 1/count and 1/ties.
        axis: As for `softmax`.
        where: As for `softmax`.

    Returns:
        The temperatures, with the axis kept, so that `softmax(x, temperature=temperature_for(x, …))` works. NaN
        where no temperature reaches the target. The result is float64 and not differentiable.

    >>> import softscope as ss
    >>> t = ss.temperature_for([1.0, 2.0, 3.0], peak=0.5)
    >>> ss.softmax([1.0, 2.0, 3.0], temperature=t).max().round(6)
    np.float64(0.5)
    """
    if (entropy is None) == (peak is None):
        raise ValueError("temperature_for needs exactly one of entropy and peak; pass entropy=… or peak=…")
    name, wanted = ("entropy", entropy) if peak is None else ("peak", peak)
    if where is None and type(axis) is int and axis == -1:
        quick = plain_temperature(x, name, wanted)
        if quick is not None:
            return quick
    array = floating(x, "x")
    numbers_needed("temperature_for", array, wanted, where)
    rows = Rows(array.shape, axis)
    visible = visible_for_rows(where, array, rows)
    target = _target(name, wanted, array, rows)
    logits = hidden_to_minus_inf(exact(values(rows.bring(array))), None if visible is None else values(visible))
    t = temperatures(logits, name, target).reshape(rows.kept_shape)
    if is_tensor(array):
        from softscope._backends.torch.dtypes import widest

        return array.new_tensor(t, dtype=widest(array))
    return giver(x)(t)


def _target(name: str, wanted: Any, x: Array, rows: Rows) -> np.ndarray[Any, Any]:
    """Return the target reading for each row."""
    if is_number(wanted):
        rule = "a number ≥ 0, in nats" if name == "entropy" else "a number in (0, 1]"
        value = number(wanted, name, rule)
        if value < 0.0 or (name == "peak" and not 0.0 < value <= 1.0):
            raise ValueError(f"{name} must be {rule}, but got {wanted}; pass a value that weights can have")
        return np.full(rows.lead, value)
    array = rows.bring_kept(real_beside(wanted, x, name), name)
    return exact(values(array))[..., 0]


class Calibration(NamedTuple):
    """The temperature that calibrates the probabilities, and its effect on the data it was fitted to.

    Attributes:
        temperature: The fitted temperature.
        nll_before: Mean negative log-likelihood in nats at temperature 1.
        nll_after: The same at the fitted temperature.
        ece_before: Expected calibration error over 15 equal bins at temperature 1.
        ece_after: The same at the fitted temperature.

    >>> import softscope as ss
    >>> ss.fit_temperature([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0]], [0, 0, 1])._fields
    ('temperature', 'nll_before', 'nll_after', 'ece_before', 'ece_after')
    """

    temperature: float
    nll_before: float
    nll_after: float
    ece_before: float
    ece_after: float


def fit_temperature(logits: Array, targets: Array) -> Calibration:
    """Fit the temperature that minimises the mean of −log softmax(logits/T)[label] (Guo et al. 2017).

    The loss is convex in 1/T, so bisecting its slope finds the minimum to the last digits.

    Args:
        logits: Logits of held-out data, not of the training data: (…, classes).
        targets: Class indices, (…).

    >>> import softscope as ss
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]]
    >>> fit = ss.fit_temperature(logits, [0, 0, 1, 1])    # sure of all four, right about three
    >>> round(fit.temperature, 4)                         # softmax then says 0.75
    3.641
    """
    x = floating(logits, "logits")
    numbers_needed("fit_temperature", x, targets)
    rows = Rows(x.shape, -1)
    y = as_numpy(targets, "targets")
    if y.shape != rows.lead:
        raise ValueError(
            f"targets must have the shape of logits without the class axis, {rows.lead}, but has {y.shape}; "
            f"give one class index for each row"
        )
    if y.size == 0 or rows.n == 0:
        raise ValueError(f"logits must hold at least one row and one class, but has shape {rows.shape}; pass some data")
    if y.dtype.kind not in "iu":
        raise TypeError(f"targets must be integers (class indices), but its dtype is {y.dtype}; convert it")
    if ((y < 0) | (y >= rows.n)).any():
        wrong = int(y[(y < 0) | (y >= rows.n)].reshape(-1)[0])
        raise ValueError(f"targets must lie in [0, {rows.n}), but holds {wrong}; correct the targets")
    flat = exact(values(x)).reshape(-1, rows.n)
    if not np.isfinite(flat).all():
        raise ValueError("logits must be finite to fit a temperature, but holds NaN or inf; clean them first")
    classes = y.reshape(-1).astype(np.int64)
    t = _calibrated_temperature(flat, classes)
    before, after = ((_definition.negative_log_likelihood(flat, classes, c)) for c in (1.0, t))
    ece_before, ece_after = (_definition.expected_calibration_error(flat, classes, c) for c in (1.0, t))
    return Calibration(t, before, after, ece_before, ece_after)


def _calibrated_temperature(logits: np.ndarray[Any, Any], targets: np.ndarray[Any, Any]) -> float:
    """Find the root of the slope in β = 1/T, bisecting log β between a surely negative and a surely positive slope."""
    with np.errstate(over="ignore"):
        spread = float(np.max(np.max(logits, axis=-1) - np.min(logits, axis=-1)))
    if spread == 0.0:
        raise ValueError(
            "logits must differ within a row to fit a temperature, but every row is constant; no temperature matters"
        )
    if not 1e-250 < spread < 1e250:
        raise ValueError(
            f"logits must differ by 1e-250 to 1e250 within a row to fit a temperature, but differ by {spread:.3g}; "
            f"scale them"
        )
    low, high = -math.log(spread) - 60.0, -math.log(spread) + 60.0
    cold = _definition.calibration_slope(logits, targets, math.exp(high))
    hot = _definition.calibration_slope(logits, targets, math.exp(low))
    if cold <= 0.0 or hot >= 0.0:
        sure = "0: every target is its row's largest logit"
        what = sure if cold <= 0.0 else "infinity: the targets contradict the logits"
        raise ValueError(
            f"no finite temperature is best for these logits and targets: the loss keeps falling as T goes to {what}; "
            f"fit on more held-out data"
        )
    while high - low > 1e-15 * max(1.0, abs(low), abs(high)):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if _definition.calibration_slope(logits, targets, math.exp(middle)) > 0.0:
            high = middle
        else:
            low = middle
    return math.exp(-0.5 * (low + high))
