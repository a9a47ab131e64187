"""Homework 8: sparsemax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.lab.homework.contract import contract
from softscope.lab.homework.exactness import SINGLE
from softscope.lab.homework.exercise import Exercise
from softscope.lab.homework.inputs import hard, rows
from softscope.lab.homework.rule import Arguments, Rule
from softscope.lab.homework.trial import Numbers, Trial
from softscope.testing.wording import show

if TYPE_CHECKING:
    from collections.abc import Iterator


def _apart(rng: np.random.Generator) -> Iterator[Arguments]:
    """Yield rows with one logit at least 1 ahead of all others."""
    yield (np.array([0.0, 1.0]),)
    yield (np.array([0.0, 2.0]),)
    yield (np.array([3.0, 0.0, 1.0]),)
    yield (np.append(np.round(rng.uniform(-3.0, 0.0, 4), 2), 2.0),)


def _any(rng: np.random.Generator) -> Iterator[Arguments]:
    yield from rows(rng)
    yield from hard(rng)


def _zeros(trial: Trial, x: Numbers) -> Text | None:
    if x.size > 1 and np.diff(np.sort(x)[-2:])[0] < 1.0:
        return None
    w = trial.array("sparsemax", x, shape=x.shape)
    others = np.delete(w, int(np.argmax(x)))
    return None if (others == 0.0).all() else Text(zh=f"得到 {show(w)}", en=f"got {show(w)}")


def _straight(trial: Trial, x: Numbers) -> Text | None:
    w = trial.array("sparsemax", x, shape=x.shape)
    seen = np.flatnonzero(w > 0.0)
    if seen.size:
        i, j = seen[np.argmax(x[seen])], seen[np.argmin(x[seen])]
        if abs((w[i] - w[j]) - (x[i] - x[j])) > SINGLE:
            return Text(
                zh=f"分数 {show(x[i])} 和 {show(x[j])} 得到 {show(w[i])} 和 {show(w[j])}",
                en=f"the logits {show(x[i])} and {show(x[j])} get {show(w[i])} and {show(w[j])}",
            )
    return None


def _nearest(trial: Trial, x: Numbers) -> Text | None:
    return trial.off(ss.sparsemax(x), "sparsemax", x)


EXERCISE = Exercise(
    id="sparsemax",
    title=Text(zh="sparsemax：精确的零", en="Sparsemax: exact zeros"),
    task=Text(
        zh="写一个函数 sparsemax(x)：在所有权重（非负、总和为 1）中，找出离 x 最近的那一组（欧氏距离）。x 是一维数组。\n\n"
        "它的形状很简单：有一个阈值 τ，每个权重是 max(x − τ, 0)，而 τ 使总和恰好为 1。分数可能很大，也可能是 -inf。"
        "现成的 sparsemax 在这里用不了。",
        en="Write a function sparsemax(x): among all weights (none negative, sum 1), find those nearest to x in Euclidean "
        "distance. x is a one-dimensional array.\n\n"
        "They have a simple form: there is a threshold τ, each weight is max(x − τ, 0), and τ makes them sum to exactly 1. "
        "Logits may be very large, and they may be -inf. A ready-made sparsemax is not available here.",
    ),
    functions=("sparsemax(x)",),
    starter=Text(
        zh="import numpy as np\n\n\ndef sparsemax(x):\n    tau = 0.0  # 哪个 τ 使总和为 1？\n    return np.maximum(x - tau, 0.0)\n",
        en="import numpy as np\n\n\ndef sparsemax(x):\n    tau = 0.0  # which τ makes the sum 1?\n    return np.maximum(x - tau, 0.0)\n",
    ),
    checks=(
        Rule(
            "zeros",
            Text(
                zh="领先 1 以上的分数应当独占全部权重，其余恰好为 0",
                en="A logit that leads by 1 or more must take all the weight, and the others must be exactly 0",
            ),
            ("x",),
            _apart,
            _zeros,
        ),
        Rule(
            "straight",
            Text(
                zh="两个正的权重之差应当等于分数之差",
                en="Two positive weights must differ by as much as their logits do",
            ),
            ("x",),
            rows,
            _straight,
        ),
        contract("sparsemax", but=("nan", "all_minus_infinity")),
        Rule(
            "nearest",
            Text(zh="权重应当是离 x 最近的一组", en="The weights must be those nearest to x"),
            ("x",),
            _any,
            _nearest,
        ),
    ),
    hints=(
        Text(
            zh="若已知哪 k 个分数留下，τ 就是（它们的和 − 1）/ k。",
            en="If you knew which k logits stay, τ would be (their sum − 1) / k.",
        ),
        Text(
            zh="留下的总是最大的几个：从大到小排序，用 np.cumsum 得到前 k 个的和。",
            en="The ones that stay are always the largest: sort in descending order, and np.cumsum gives the sums of the first k.",
        ),
        Text(
            zh="k 是满足“第 k 大的分数 > 前 k 个算出的 τ”的最大的 k。分数很大时，先减去最大值，免得丢掉有效数字。",
            en="k is the largest number for which the k-th largest logit is above the τ of the first k. For large logits, subtract "
            "the maximum first so that no digits are lost.",
        ),
    ),
    notice=Text(
        zh="softmax 人人有份，sparsemax 会给出精确的零：在支撑集之外，权重和梯度都是 0。它是分段线性的，所以有折点，"
        "但没有跳变。",
        en="Softmax gives everyone something; sparsemax gives exact zeros: outside its support both weight and gradient are 0. "
        "It is piecewise linear, so it has kinks but no jumps.",
    ),
    minutes=25,
)
