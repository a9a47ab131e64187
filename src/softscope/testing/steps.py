"""Properties of small steps: no jumps (continuity) and, for information only, no kinks (smooth)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from softscope.testing.inputs import random
from softscope.testing.probe import BrokenError, Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softscope.testing.probe import Array, Probe

_STEP = 0.001
_SEGMENTS = 16
_SHORTEST = 2.0**-16  # the last step of the jump search, if eps allows it; it reveals jumps above 0.0003

_KINK = 0.2  # a slope that jumps by more than this share of the steepest slope is a kink
_FINEST = 2.0**-40  # the last step of the kink search, as a share of the path


def continuity(probe: Probe) -> None:
    """Check ‖f(y) − f(x)‖ ≤ lipschitz·‖y − x‖ in the 2-norm, up to rounding.

    Softmax, sparsemax and the α-entmax maps between them have the constant 1 at temperature 1, and 1/T at T. The
    reason: they are gradients of convex conjugates, p = argmax ⟨p, x⟩ − Ω(p), with Ω'' = diag(p^(α−2)) on the
    simplex. There p ≤ 1, so Ω'' ≥ 1 for α ≤ 2: Ω is 1-strongly convex, and the gradient of its conjugate
    is 1-Lipschitz. (Or from the Jacobian: 0 ≤ J = diag(s) − s sᵀ/Σs ≤ diag(s), and s = p^(2−α) ≤ 1.) Two
    equal weights reach 2^(α−2): 1 for sparsemax, where no smaller constant works, and 1/2 for softmax.

    The check tries near ties first, then paths through logit space. It halves every segment of a path, always keeping
    the half where the weights move more. A jump survives halving; a slope does not.
    """
    for x, y in (((0, _STEP), (_STEP, 0)), ((0, 0), (0, _STEP)), ((1, 0, 1), (1, 0, 1 + _STEP))):
        a, b = probe.array(*x), probe.array(*y)
        _compare(probe, a, probe.finite_weights(a), b, probe.finite_weights(b))
    for start, end in _ways(probe):
        _walk(probe, start, end)


def smooth(probe: Probe) -> None:
    """Check that the slopes before and after each point of two paths agree; informative only, as sparsemax has kinks.

    At a kink the slope jumps, however short the step; a mere bend straightens out. The search follows the largest
    second difference down to 2⁻⁴⁰ of the path. α-entmax with α < 2 has no kink, but where a weight leaves 0, its slope
    grows like t^((2−α)/(α−1)). For α above about 1.9, that looks like a kink at any step float64 resolves.
    """
    for start, end in (((0.3, 6.0), (6.0, 0.3)), ((-1.3, 1.1, 0.7), (1.7, 0.2, 0.4))):
        _search(probe, probe.array(*start), probe.array(*end))


def _compare(probe: Probe, a: Array, w: Weights, b: Array, v: Weights) -> float:
    """Return how far the weights moved from a to b; moving too far breaks the property."""
    step = math.dist(a.tolist(), b.tolist())
    moved = math.dist(w, v)
    allowed = probe.lipschitz * step
    if moved > allowed + probe.tolerance:
        values = {"step": step, "allowed": allowed, "moved": moved, "lipschitz": probe.lipschitz}
        raise BrokenError("continuity", (a, b), (w, v), **values)
    return moved


def _ways(probe: Probe) -> Iterator[tuple[Array, Array]]:
    """Yield starts and ends of paths on which logits overtake each other, change sign and leave the support."""
    rng = np.random.default_rng(probe.seed)
    yield probe.array(-4, 4), probe.array(4, -3)
    yield probe.array(4, 0, -1.5), probe.array(-4, 2.25, 1)
    yield random(rng, 5).astype(probe.dtype), random(rng, 5).astype(probe.dtype)


def _way(probe: Probe, start: Array, end: Array) -> Callable[[float], tuple[Array, Weights]]:
    """Return a function that gives the point at share t of the path, with its weights."""
    origin, direction = start.astype(np.float64), end.astype(np.float64) - start

    def at(t: float) -> tuple[Array, Weights]:
        x = (origin + t * direction).astype(probe.dtype)
        return x, probe.finite_weights(x)

    return at


def _walk(probe: Probe, start: Array, end: Array) -> None:
    """Halve every segment of a path towards its steepest part; this finds a jump wherever it lies."""
    at = _way(probe, start, end)
    # Rounding moves the weights by about eps, so a step of √eps or more separates real movement from rounding.
    shortest = max(_SHORTEST, math.sqrt(probe.eps))
    length = math.dist(start.tolist(), end.tolist())
    for i in range(_SEGMENTS):
        low, high = i / _SEGMENTS, (i + 1) / _SEGMENTS
        (a, w), (b, v) = at(low), at(high)
        _compare(probe, a, w, b, v)
        # If the weights moved less than the last step allows, the segment hides no jump that step could reveal.
        while (high - low) * length > shortest and math.dist(w, v) > probe.lipschitz * shortest / 2.0:
            middle = (low + high) / 2.0
            c, u = at(middle)
            if _compare(probe, a, w, c, u) >= _compare(probe, c, u, b, v):
                high, b, v = middle, c, u
            else:
                low, a, w = middle, c, u


def _search(probe: Probe, start: Array, end: Array) -> None:
    """Follow the largest second difference on a path down to the finest step; what remains there is a kink."""
    at = _way(probe, start, end)
    points = [at(i / _SEGMENTS)[1] for i in range(_SEGMENTS + 1)]
    slopes = [(b - a) * _SEGMENTS for a, b in pairwise(points)]
    limit = _KINK * max(float(np.linalg.norm(slope)) for slope in slopes)
    for i in range(1, _SEGMENTS):
        centre, step = i / _SEGMENTS, 1.0 / _SEGMENTS
        around = points[i - 1 : i + 2]
        # At least one of three overlapping triples shows half of a kink's size or more, hence limit / 2.
        while step > _FINEST and _bend(around, step) > limit / 2.0:
            step /= 2.0
            left, middle, right = around
            finer = [left, at(centre - step)[1], middle, at(centre + step)[1], right]
            triples = [finer[k : k + 3] for k in range(3)]
            sharpest = int(np.argmax([_bend(triple, step) for triple in triples]))
            centre += (sharpest - 1) * step
            around = triples[sharpest]
        # Weights are accurate to about eps, so slopes to eps / step.
        if _bend(around, step) > limit + 4.0 * probe.eps / step:
            before, after = (np.diff(around, axis=0)) / step
            raise BrokenError("smooth", at(centre)[0], around[1], direction=end - start, before=before, after=after)


def _bend(around: list[Weights], step: float) -> float:
    """Return how much the slope changes at the middle of three points."""
    left, middle, right = around
    return float(np.linalg.norm(left - 2.0 * middle + right)) / step
