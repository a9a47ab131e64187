"""gradient_readings: can a row still learn, and does it read the right keys?"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softscope._arguments.arrays import Array, floating, giver, is_tensor, namespace
from softscope._arguments.attention import prepare
from softscope._backends.choose import attention_backend_of

if TYPE_CHECKING:
    from softscope._backends.reference.row_reading import GradientSums

# A row is blocked when transmission < BLOCKED·√n. At a peak weight of 1−ε, transmission is about 1.4·ε·√n, so in a
# blocked row less than about 0.2% of the weight is still free.
BLOCKED = 0.0025


class GradientReadings(NamedTuple):
    """Gradient readings, one number per query row over its n visible keys.

    dP is the gradient of the loss with respect to the weights; dS is its gradient with respect to scale·q·k.
    Rows with one key or with demand 0 are not judged: their transmission, advantage and regret_ratio are NaN, and
    they do not count as blocked.

    Attributes:
        demand: ‖dP − mean dP‖: how much the loss cares which key the row reads.
        supply: ‖dS‖: how much of the demand reaches scale·q·k.
        transmission: n·supply/demand: 1 for a uniform, uncapped row.
        advantage: (mean dP − Σ p·dP)/std dP: positive if the keys the row reads serve the loss better than a
            random key would.
        regret_ratio: (Σ p·dP − min dP)/(mean dP − min dP): 0 if the row reads the best key, 1 if its choice is
            unrelated to the loss.
        blocked: transmission < 0.0025·√n: almost no gradient gets through.

    >>> import numpy as np, softscope as ss
    >>> q, k, v = np.full((1, 1, 4), 20.0), 9.0 * np.eye(4)[None], np.eye(4)[None]
    >>> wants = np.array([[[-1.0, 0.0, 0.0, 0.0]]])     # the loss falls where the first value is read
    >>> ss.gradient_readings(q, k, v, wants).demand.round(3)
    array([[0.866]])
    """

    demand: Any
    supply: Any
    transmission: Any
    advantage: Any
    regret_ratio: Any
    blocked: Any


def readings_of(sums: GradientSums) -> GradientReadings:
    """Compute the readings from the sums over each row, as arrays or tensors."""
    n, _, demand, lowest, expected, supply = sums
    xp = namespace(demand)
    nan = xp.full_like(demand, float("nan"))
    # A compiler does not know NumPy's switches, and tensors never warn.
    with contextlib.nullcontext() if is_tensor(demand) else np.errstate(invalid="ignore", divide="ignore"):
        judged = (n > 1) & (demand > 0.0)
        root = xp.sqrt(n + xp.zeros_like(demand))
        transmission = xp.where(judged, n * supply / demand, nan)
        advantage = xp.where(judged, -expected / (demand / root), nan)
        regret = xp.where(judged, (expected - lowest) / -lowest, nan)
        blocked = transmission < BLOCKED * root
    nothing = n == 0
    return GradientReadings(
        demand=xp.where(nothing, nan, demand),
        supply=xp.where(nothing, nan, supply),
        transmission=transmission,
        advantage=advantage,
        regret_ratio=regret,
        blocked=blocked,
    )


def gradient_readings(
    q: Array,
    k: Array,
    v: Array,
    grad_output: Array,
    *,
    scale: Any = None,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    softcap: float | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    rows: Any = None,
) -> GradientReadings:
    """Measure how the loss gradient passes through attention: `GradientReadings`, each of shape (…, heads, n).

    A sink counts as one more key with gradient 0. The other arguments are as for `attention`.

    Args:
        q: Queries, (…, heads, n, d).
        k: Keys, (…, kv_heads, m, d).
        v: Values, (…, kv_heads, m, dv).
        grad_output: Gradient of the loss with respect to attention's output, in the output's shape.
        rows: Indices of the queries to read. They keep their true positions, so pass masks and grad_output in full.

    >>> import numpy as np, softscope as ss
    >>> q, k = np.zeros((1, 1, 4)), np.zeros((1, 3, 4))           # a uniform row
    >>> v = np.array([[[1.0], [2.0], [3.0]]])
    >>> g = ss.gradient_readings(q, k, v, np.ones((1, 1, 1)))
    >>> g.transmission.round(6), g.regret_ratio.round(6), g.blocked
    (array([[1.]]), array([[1.]]), array([[False]]))
    """
    call = prepare(
        q, k, v, scale=scale, causal=causal, query_start=query_start, window=window, mask=mask,
        softcap=softcap, sink=sink, alpha=alpha, rows=rows,
    )  # fmt: skip
    grad = floating(grad_output, "grad_output")
    if is_tensor(grad) != is_tensor(call.q):
        raise TypeError("grad_output must be of the same kind as q, but only one is a torch tensor; convert one")
    if is_tensor(grad) and grad.device != call.q.device:
        raise ValueError(f"grad_output must be on q's device {call.q.device}, but is on {grad.device}; move it")
    grad = grad[None] if call.single and grad.ndim == 2 else grad
    assert call.v is not None
    batch = call.batch
    wanted = (*batch, call.q.shape[-3], floating(q, "q").shape[-2], call.v.shape[-1])
    if tuple(grad.shape) != tuple(wanted):
        raise ValueError(
            f"grad_output must have the shape of attention's output, {tuple(wanted)}, but has "
            f"{tuple(grad.shape)}; pass the whole gradient, even with rows"
        )
    if call.rows is not None:
        grad = grad[..., call.rows, :]
    sums = attention_backend_of(call.q).gradient_sums(call, grad)
    give = giver(q)
    return GradientReadings(*(give(x[0] if call.single else x) for x in readings_of(sums)))
