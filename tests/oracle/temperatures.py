"""The temperatures that reach an entropy, a peak or the best likelihood, and the calibration error."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mpmath import mp, mpf

from oracle import losses, readings, rows
from oracle.rows import Number, Row, Visible, exact


def _bisect(f: Callable[[mpf], mpf], low: mpf, high: mpf) -> mpf:
    """The root of an increasing function, to 35 digits."""
    while high - low > mpf(10) ** -35:
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return (low + high) / 2


def temperature_for(x: Row, entropy: Number | None = None, peak: Number | None = None, visible: Visible = None) -> mpf:
    """The temperature at which the row has that entropy or peak weight; NaN if there is none."""
    seen = [exact(v) for v, s in zip(x, rows.shown(x, visible), strict=True) if s]
    n, ties = len(seen), seen.count(max(seen))
    with mp.workdps(rows.DIGITS):
        if entropy is not None:
            reachable = mp.log(ties) < exact(entropy) < mp.log(n)
        else:
            reachable = mpf(1) / n < exact(peak) < mpf(1) / ties
        if not reachable:
            return mp.nan

        def excess(log_temperature: mpf) -> mpf:
            p = rows.weights(seen, mp.exp(log_temperature))
            return readings.entropy(p) - exact(entropy) if entropy is not None else exact(peak) - max(p)

        spread = mp.log(max(seen) - min(seen))
        return mp.exp(_bisect(excess, spread - 60, spread + 60))


class Calibration(NamedTuple):
    """The temperature with the best likelihood, and the mean NLL and calibration error before and after."""

    temperature: mpf
    nll_before: mpf
    nll_after: mpf
    ece_before: mpf
    ece_after: mpf


def fit_temperature(logits: Sequence[Row], labels: Sequence[int]) -> Calibration:
    """The minimum of the mean NLL over T > 0, convex in 1/T: there the mean of E_p[x] - x_label is 0."""

    def slope(log_beta: mpf) -> mpf:
        t = mp.exp(-log_beta)
        return mp.fsum(
            mp.fsum(w * (exact(v) - exact(row[label])) for w, v in zip(rows.weights(row, t), row, strict=True))
            for row, label in zip(logits, labels, strict=True)
        )

    with mp.workdps(rows.DIGITS):
        best = mp.exp(-_bisect(slope, mpf(-12), mpf(12)))
        nll = [losses.mean_kept(losses.cross_entropy(logits, labels, t)) for t in (1, best)]
        ece = [calibration_error(logits, labels, t) for t in (1, best)]
        return Calibration(best, nll[0], nll[1], ece[0], ece[1])


def calibration_error(logits: Sequence[Row], labels: Sequence[int], temperature: Number = 1, bins: int = 15) -> mpf:
    """The expected calibration error: |accuracy - confidence| per bin (low, high], weighted by its share."""
    gaps = [mpf(0)] * bins
    for row, label in zip(logits, labels, strict=True):
        p = rows.weights(row, temperature)
        confidence = max(p)
        bin_ = max(0, int(mp.ceil(confidence * bins)) - 1)
        gaps[bin_] += (p.index(confidence) == label) - confidence
    return mp.fsum(abs(gap) for gap in gaps) / len(labels)
