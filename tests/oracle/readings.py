"""The readings of one row of weights, each straight from its definition in terms of p."""

from collections.abc import Sequence
from typing import NamedTuple

from mpmath import mp, mpf

from oracle import rows
from oracle.rows import Number, Row, Visible, exact


class Readings(NamedTuple):
    """What a partition reports for one row; lse, mean and variance in tempered units, the mean that of (x - m)/T."""

    count: int
    max_logit: mpf
    lse: mpf
    entropy: mpf
    collision: mpf
    peak: mpf
    mean: mpf
    variance: mpf
    jacobian_trace: mpf
    effective_support: mpf
    sharpness: mpf


def entropy(p: Sequence[mpf]) -> mpf:
    """The Shannon entropy -sum p log p in nats, with 0 log 0 = 0."""
    return -mp.fsum(v * mp.log(v) for v in p if v > 0)


def partition(x: Row, temperature: Number = 1, visible: Visible = None) -> Readings:
    """All readings of the softmax of one row; if nothing is visible, NaN except for count, lse and max_logit."""
    see = rows.shown(x, visible)
    seen = [exact(v) for v, s in zip(x, see, strict=True) if s]
    n = len(seen)
    if n == 0:
        return Readings(0, -mp.inf, -mp.inf, *[mp.nan] * 8)
    with rows.enough_digits(x, temperature, visible):
        top = max(seen)
        tempered = [(v - top) / exact(temperature) for v in seen]
        p = [w for w, s in zip(rows.weights(x, temperature, visible), see, strict=True) if s]
        h = entropy(p)
        mean = mp.fsum(w * v for w, v in zip(p, tempered, strict=True))
        return Readings(
            count=n,
            max_logit=top,
            lse=rows.logsumexp(x, temperature, visible),
            entropy=h,
            collision=mp.fsum(w * w for w in p),
            peak=max(p),
            mean=mean,
            variance=mp.fsum(w * (v - mean) * (v - mean) for w, v in zip(p, tempered, strict=True)),
            jacobian_trace=mp.fsum(w * (1 - w) for w in p),
            effective_support=mp.exp(h),
            sharpness=1 - h / mp.log(n) if n > 1 else mpf(0),
        )
