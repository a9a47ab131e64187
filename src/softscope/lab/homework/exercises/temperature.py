"""Homework 2: what temperature does to five numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.lab.homework.exactness import SINGLE
from softscope.lab.homework.exercise import Exercise
from softscope.lab.homework.inputs import drawn
from softscope.lab.homework.rule import Arguments, Rule
from softscope.lab.homework.trial import Numbers, Trial
from softscope.testing.wording import show

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIVE = np.arange(1.0, 6.0)
_TEMPERATURES = (0.01, 0.1, 1.0, 10.0, 100.0)


def _rows(rng: np.random.Generator) -> Iterator[Arguments]:
    for T in (1.0, 2.0, 0.5, *_TEMPERATURES):
        yield np.array([0.0, 1.0]), T
        yield _FIVE, T
    for n in (2, 3, 6):
        yield drawn(rng, n), float(np.round(rng.uniform(0.2, 5.0), 2))


def _cold(rng: np.random.Generator) -> Iterator[Arguments]:
    """Yield logits far apart for their temperature, and close together: so close that the weights are no one-hot."""
    yield np.array([0.0, 1.0]), 0.001
    yield _FIVE, 0.001
    yield drawn(rng, 4) + 10.0, 0.001
    for T in (0.001, 1e-6, 1e-12):
        yield np.array([0.0, T]), T
        yield np.array([2.0, 2.0, 1.0]), T
    yield np.array([1.0, 1.001]), 0.001
    yield _FIVE, 1e6


def _both(rng: np.random.Generator) -> Iterator[Arguments]:
    yield from _rows(rng)
    yield from _cold(rng)


def _sums(trial: Trial, x: Numbers, T: float) -> Text | None:
    w = trial.array("softmax_at", x, T, shape=x.shape)
    total = float(w.sum())
    return None if abs(total - 1.0) <= SINGLE else Text(zh=f"加起来是 {show(total)}", en=f"they sum to {show(total)}")


def _finite(trial: Trial, x: Numbers, T: float) -> Text | None:
    w = trial.array("softmax_at", x, T, shape=x.shape)
    return None if np.isfinite(w).all() else Text(zh=f"得到 {show(w)}", en=f"got {show(w)}")


def _sharper(trial: Trial, x: Numbers, T: float) -> Text | None:
    cold, warm = (trial.array("softmax_at", x, T * k, shape=x.shape) for k in (1.0, 2.0))
    top = int(np.argmax(x))
    if cold[top] >= warm[top] - SINGLE:
        return None
    return Text(
        zh=f"温度从 {show(2 * T)} 降到 {show(T)} 时，最大权重从 {show(warm[top])} 变成 {show(cold[top])}",
        en=f"as the temperature drops from {show(2 * T)} to {show(T)}, the largest weight goes from {show(warm[top])} to {show(cold[top])}",
    )


def _power(trial: Trial, x: Numbers, T: float) -> Text | None:
    return trial.off(ss.softmax(x, temperature=T), "softmax_at", x, T)


def _no_input(_: np.random.Generator) -> Iterator[Arguments]:
    yield ()


def _table(trial: Trial) -> Text | None:
    rows, allowed = trial.array_and_tolerance("experiment", shape=(len(_TEMPERATURES), 2))
    for T, (peak, entropy) in zip(_TEMPERATURES, rows, strict=True):
        truth = ss.partition(_FIVE, temperature=T)
        if not abs(peak - float(truth.peak)) <= allowed:
            return Text(
                zh=f"T = {show(T)} 那一行的最大权重是 {show(peak)}",
                en=f"the row for T = {show(T)} has largest weight {show(peak)}",
            )
        if not abs(entropy - float(truth.entropy)) <= allowed:
            return Text(
                zh=f"T = {show(T)} 那一行的熵是 {show(entropy)}",
                en=f"the row for T = {show(T)} has entropy {show(entropy)}",
            )
    return None


EXERCISE = Exercise(
    id="temperature",
    title=Text(zh="温度实验", en="The temperature experiment"),
    task=Text(
        zh="写两个函数。softmax_at(x, T)：先把分数除以温度 T，再做 softmax；T 是大于 0 的数，可能很小。\n\n"
        "experiment()：对 [1, 2, 3, 4, 5] 依次取 T = 0.01、0.1、1、10、100，返回 5 × 2 的数组，每行是最大权重和熵"
        "（−Σ p·log p，自然对数）。\n\n"
        "这道题研究的是温度，所以可以 import softscope；自己写也行。",
        en="Write two functions. softmax_at(x, T): divide the logits by the temperature T, then apply softmax; T is a number "
        "above 0 and may be very small.\n\n"
        "experiment(): for [1, 2, 3, 4, 5] and T = 0.01, 0.1, 1, 10, 100, in this order, return a 5 × 2 array; each row holds "
        "the largest weight and the entropy (−Σ p·log p with the natural logarithm).\n\n"
        "This exercise is about temperature, so you may import softscope; your own softmax is fine too.",
    ),
    functions=("softmax_at(x, T)", "experiment()"),
    starter=Text(
        zh="import numpy as np\n\n\ndef softmax_at(x, T):\n    # 先除以温度，再做 softmax\n    return x\n\n\n"
        "def experiment():\n    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])\n    rows = []\n"
        "    for T in (0.01, 0.1, 1.0, 10.0, 100.0):\n        p = softmax_at(x, T)\n"
        "        rows.append([0.0, 0.0])  # 最大权重，熵\n    return np.array(rows)\n",
        en="import numpy as np\n\n\ndef softmax_at(x, T):\n    # divide by the temperature, then softmax\n    return x\n\n\n"
        "def experiment():\n    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])\n    rows = []\n"
        "    for T in (0.01, 0.1, 1.0, 10.0, 100.0):\n        p = softmax_at(x, T)\n"
        "        rows.append([0.0, 0.0])  # largest weight, entropy\n    return np.array(rows)\n",
    ),
    checks=(
        Rule(
            "sums_to_one",
            Text(zh="任何温度下权重之和都应当是 1", en="At any temperature the weights must sum to 1"),
            ("x", "T"),
            _rows,
            _sums,
        ),
        Rule(
            "sharper",
            Text(
                zh="降低温度应当使最大权重变大，而不是变小",
                en="A lower temperature must make the largest weight larger, not smaller",
            ),
            ("x", "T"),
            _rows,
            _sharper,
        ),
        Rule(
            "finite",
            Text(zh="温度很低时权重也应当有限", en="The weights must be finite even at a very low temperature"),
            ("x", "T"),
            _cold,
            _finite,
        ),
        Rule(
            "power",
            Text(
                zh="除以 T 应当使权重之比变成原来的 1/T 次方",
                en="Dividing by T must raise the ratio of any two weights to the power 1/T",
            ),
            ("x", "T"),
            _both,
            _power,
        ),
        Rule(
            "table",
            Text(
                zh="experiment() 的每一行应当是这个温度下的最大权重和熵",
                en="Each row of experiment() must be the largest weight and the entropy at its temperature",
            ),
            (),
            _no_input,
            _table,
        ),
    ),
    hints=(
        Text(
            zh="除以 T 的是分数，不是权重：先除，再取指数。",
            en="T divides the logits, not the weights: divide first, then take exponentials.",
        ),
        Text(
            zh="T 很小时，x / T 很大。第一题减去最大值的办法在这里也有用。",
            en="When T is small, x / T is large. Subtracting the maximum, as in the first exercise, helps here too.",
        ),
        Text(
            zh="最大权重是 p.max()。熵是“负的总和”：每项是 p 乘以 np.log(p)，别忘了负号。",
            en="The largest weight is p.max(). The entropy is minus a sum, each term p times np.log(p); do not forget the minus sign.",
        ),
    ),
    notice=Text(
        zh="同样五个数，温度低时几乎是 one-hot，温度高时几乎均匀；次序从不改变。熵从 0 附近一路升到 log 5。"
        "除以 √d 就是这样一个温度，只是它由维度决定。",
        en="The same five numbers are nearly one-hot when cold and nearly uniform when hot, and their order never changes. "
        "The entropy climbs from about 0 to about log 5. Dividing by √d is such a temperature, set by the dimension.",
    ),
    may_import=("softscope",),
)
