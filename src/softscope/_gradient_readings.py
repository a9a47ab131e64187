"""gradient_readings: is a row still able to learn, and are the keys that it reads the right ones?"""

from __future__ import annotations

from typing import Any

from softscope._arguments.arrays import Array, floating, giver, is_tensor
from softscope._arguments.attention import prepare
from softscope._backends.choose import attention_backend_of
from softscope._backends.reference.gradient_readings import GradientReadings


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
    alpha: float = 1.0,
    rows: Any = None,
) -> GradientReadings:
    """Demand, supply, transmission, advantage, regret ratio and blocked, one per query row: (…, heads, n).

    Arguments:
        q, k, v and the options: as for `attention`.
        grad_output: the gradient of the loss with respect to attention's output, of its shape.
        rows: indices of the queries to read, at their true positions; masks and grad_output are given whole.

    A sink counts as one more key with gradient 0. See `GradientReadings` for what each number says.

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
            f"{tuple(grad.shape)}; pass the whole gradient, also with rows"
        )
    if call.rows is not None:
        grad = grad[..., call.rows, :]
    readings = attention_backend_of(call.q).gradients(call, grad)
    give = giver(q)
    return GradientReadings(*(give(x[0] if call.single else x) for x in readings))
