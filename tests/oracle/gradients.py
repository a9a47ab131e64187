"""What the loss demands of a row's weights, and how much of it reaches the products scale * q . k."""

from collections.abc import Sequence
from typing import NamedTuple

from mpmath import mp, mpf

from oracle import attention, derivatives, rows
from oracle.attention import Matrix, Options
from oracle.rows import Number, exact


class Gradients(NamedTuple):
    """The readings of one row; NaN and not blocked if it has one key or no demand."""

    demand: mpf
    supply: mpf
    transmission: mpf
    advantage: mpf
    regret_ratio: mpf
    blocked: bool


def gradient_readings(
    i: int, raw: Sequence[Number], v: Matrix, grad_output: Sequence[Number], options: Options
) -> Gradients:
    """The readings of query i for the loss sum(grad_output * output); a sink is one more key, of value 0."""
    see = [value != -mp.inf for value in attention.logits(i, raw, options)]
    keys = [j for j, s in enumerate(see) if s]
    sunk = options.sink is not None

    def pull(p: list[mpf]) -> mpf:
        return mp.fsum(p[j] * exact(g) * exact(v[j][d]) for j in range(len(raw)) for d, g in enumerate(grad_output))

    def loss(values: list[mpf]) -> mpf:
        return pull(attention.key_weights(i, values[: len(raw)], options, values[-1] if sunk else None))

    with mp.workdps(rows.DIGITS + 20):
        # The loss is linear in the weights, so each component of its gradient is its value at that corner.
        corner = [[mpf(j == at) for j in range(len(raw))] for at in keys]
        d_p = [pull(p) for p in corner] + [mpf(0)] * sunk
        start = [*map(exact, raw), *([exact(options.sink)] if sunk else [])]
        slope = derivatives.gradient(loss, start)
        d_s = [slope[j] for j in keys] + slope[len(raw) :]
        p = attention.key_weights(i, raw, options, options.sink)
        return _from_gradients([p[j] for j in keys] + p[len(raw) :], d_p, d_s)


def _from_gradients(p: list[mpf], d_p: list[mpf], d_s: list[mpf]) -> Gradients:
    n = len(d_p)
    if n == 0:
        return Gradients(*[mp.nan] * 5, blocked=False)
    mean = mp.fsum(d_p) / n
    demand = mp.sqrt(mp.fsum((g - mean) ** 2 for g in d_p))
    supply = mp.sqrt(mp.fsum(g**2 for g in d_s))
    if n == 1 or demand == 0:
        return Gradients(demand, supply, mp.nan, mp.nan, mp.nan, blocked=False)
    transmission = n * supply / demand
    read = mp.fsum(w * g for w, g in zip(p, d_p, strict=True))
    return Gradients(
        demand=demand,
        supply=supply,
        transmission=transmission,
        advantage=(mean - read) / (demand / mp.sqrt(n)),
        regret_ratio=(read - min(d_p)) / (mean - min(d_p)),
        blocked=bool(transmission < mpf("0.0025") * mp.sqrt(n)),
    )
