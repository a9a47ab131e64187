"""Sentences for beginners, chosen and filled in from the measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from softscope.cli.explain.maps import named
from softscope.cli.explain.measure import SATURATED
from softscope.cli.figures import difference, different, number, percent, weight

if TYPE_CHECKING:
    from softscope.cli.explain.maps import Map
    from softscope.cli.explain.measure import Explanation

_HARDLY = 0.01  # times s(1−s) in a uniform row; an absolute bound would call every weight of a long row stuck


class Say(Protocol):
    """Looks up words in one language by key."""

    def __call__(self, key: str, **values: object) -> str:
        """Return the words, with the values filled in."""
        ...


def paragraphs(e: Explanation, say: Say) -> list[str]:
    """Say what the weights mean, what the temperature did, what the slopes mean, and what to watch out for."""
    parts = [_weights(e, say), _temperature(e, say), _slopes(e, say), _beware(e, say), _rows(e, say)]
    joint = "" if say("joint") == "-" else " "
    return [joint.join(sentences) for sentences in parts if sentences]


def _weights(e: Explanation, say: Say) -> list[str]:
    if "undefined" in e.findings:
        return [say(f"undefined.{e.map.name}")]
    sentences = [_leader(e, say)]
    n = len(e.row.logits)
    if n > 1 and e.shares:
        support = f"{e.now.readings.effective_support:.3g}"
        sentences.append(say("spread.one" if support == "1" else "spread", support=support, n=n))
    zeros = int(np.sum(e.now.weights == 0.0))
    if zeros and n > 1:
        sentences.append(say("zeros.rounded" if e.map.logistic else "zeros", k=zeros, n=n))
    return sentences


def _leader(e: Explanation, say: Say) -> str:
    """Say which number is largest, by how much, and what weight that earns it."""
    x, w = e.row.logits, e.now.weights
    order = np.argsort(-x, kind="stable")
    if len(x) == 1:
        return say("one" if w[0] == 1.0 else "one.other", weight=percent(float(w[0])))
    i, j = int(order[0]), int(order[1])
    top, share = number(float(x[i])), percent(float(w[i]))
    ties = int(np.sum(x == x[i]))
    if ties > 1:
        return say("equal" if ties == len(x) else "tied", n=len(x), k=ties, x=top, share=share)
    gap = difference(float(x[i]), float(x[j]))
    values = {"i": i + 1, "x": top, "j": j + 1, "y": number(float(x[j])), "gap": gap, "share": share}
    if w[i] > 0.0 and w[j] > 0.0:
        times = f"{float(w[i] / w[j]):.3g}"
        return say("lead", other=percent(float(w[j])), times=times, **values)
    return say("lead.zero" if w[j] == 0.0 and w[i] > 0.0 else "lead.bare", other=percent(float(w[j])), **values)


def _temperature(e: Explanation, say: Say) -> list[str]:
    n = len(e.row.logits)
    if n == 1 or "undefined" in e.findings:
        return []
    if e.now.temperature == 1.0:
        half, double = (e.map.weights(e.row.logits, T) for T in (0.5, 2.0))
        if np.array_equal(half, double):
            return [say("temperature.idle", map=e.map.title)] if not _equal(e) else []
        i = int(np.argmax(e.now.weights))
        colder, one, hotter = (percent(float(w[i])) for w in (half, e.now.weights, double))
        key = "temperature.try.same" if colder == one == hotter else "temperature.try"
        return [say(key, i=i + 1, half=colder, one=one, double=hotter)]
    now, plain = e.now, e.plain
    if np.array_equal(now.weights, plain.weights):
        return [say("temperature.same", map=e.map.title)]
    i = int(np.argmax(np.abs(now.weights - plain.weights)))
    values = {"T": number(now.temperature)}
    change = _change(plain.readings.effective_support, now.readings.effective_support)
    if not e.shares or change["before"] == change["after"]:
        values |= {"i": str(i + 1)} | _change(plain.weights[i], now.weights[i], percents=True)
        return [say("temperature.moved", **values)]
    peak = different(plain.readings.peak, now.readings.peak, percents=True)
    sharper = now.readings.entropy < plain.readings.entropy
    key = "temperature.sharper" if sharper else "temperature.flatter"
    return [say(key, **values, **change, peak_before=peak[0], peak_after=peak[1])]


def _change(before: float, after: float, percents: bool = False) -> dict[str, str]:
    texts = different(float(before), float(after), percents)
    return {"before": texts[0], "after": texts[1]}


def _equal(e: Explanation) -> bool:
    return bool((e.row.logits == e.row.logits[0]).all())


def _slopes(e: Explanation, say: Say) -> list[str]:
    if len(e.row.logits) == 1 or "undefined" in e.findings:
        return []
    if "saturated" in e.findings:
        trace = weight(e.now.readings.jacobian_trace)
        return [say("slope.saturated", trace=trace, bound=number(SATURATED))]
    if "no_slope" in e.findings:
        return [say("slope.none", map=e.map.title)]
    slope = e.now.response if e.map.logistic else e.now.slope
    name = say("name.logistic" if e.map.logistic else "name.slope")
    if not np.isfinite(slope).all():  # near temperature 0 it can overflow; we have no sentence for that
        return []
    i = int(np.argmax(np.abs(slope)))
    even = bool(np.ptp(slope) <= 1e-9 * abs(slope[i]))
    step = 0.01 * min(1.0, e.now.temperature)
    moved = float(e.now.response[i]) * (step / e.now.temperature)
    values = {"i": i + 1, "slope": f"{float(slope[i]):.3g}", "step": f"{step:.3g}", "moved": f"{moved:.2g}"}
    sentences = [say("slope.even" if even else "slope.most", name=name, **values)]
    n = len(slope)
    bound = _HARDLY * (n - 1) / n**2 if e.map.name == "softmax" else 0.0
    dead, idle = int(np.sum(slope == 0.0)), int(np.sum(np.abs(slope) < bound))
    if dead and e.map.name != "linear":  # linear's other slopes are not 0 there
        sentences.append(say("slope.zero", k=dead, n=n))
    if idle > dead:
        sentences.append(say("slope.hardly", k=idle - dead, n=n, bound=f"{bound:.2g}"))
    if not (idle or dead or even):
        j = int(np.argmin(np.abs(slope)))
        sentences.append(say("slope.least", i=j + 1, slope=f"{float(slope[j]):.3g}"))
    return sentences


def _beware(e: Explanation, say: Say) -> list[str]:
    """If the map is a rival, say so, and say what breaks."""
    if e.map.in_library:
        return []
    sentences = [say("rival", map=e.map.title)]
    w, total = e.now.weights, e.now.readings.weight_sum
    if "negative_weights" in e.findings:
        sentences.append(say("rival.negative", k=int(np.sum(w < 0.0)), n=len(w)))
        if w[int(np.argmax(e.row.logits))] == np.min(w):
            sentences.append(say("rival.flipped"))
    if "sum_not_one" in e.findings:
        sentences.append(say("rival.sum", total=f"{total:.4g}"))
    if len(sentences) == 1 and "undefined" not in e.findings and len(w) > 1:
        shift, steady = _shift(e, e.map), _shift(e, named("softmax"))
        if shift > 1e-9:
            sentences.append(say("rival.shift", shift=percent(shift), steady=percent(round(steady, 9))))
    return sentences


def _shift(e: Explanation, chosen: Map) -> float:
    """Measure how far adding 1 to every number moves the weights."""
    before, after = (chosen.weights(x, e.now.temperature) for x in (e.row.logits, e.row.logits + 1.0))
    return float(np.max(np.abs(after - before)))


def _rows(e: Explanation, say: Say) -> list[str]:
    if e.supports is None:
        return []
    known = e.supports[~np.isnan(e.supports)]
    if not known.size:
        return [say("rows.none", rows=len(e.supports))]
    low, middle, high = (f"{float(value):.3g}" for value in np.quantile(known, (0.0, 0.5, 1.0)))
    sentences = [say("rows", rows=len(known), low=low, middle=middle, high=high, n=len(e.row.logits))]
    if len(known) < len(e.supports):
        sentences.append(say("rows.left_out", k=len(e.supports) - len(known)))
    return sentences
