"""Homework 4: how far dot products spread, before and after dividing by √d."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._text import Text
from softscope.lab.homework.exactness import EXACT
from softscope.lab.homework.exercise import Exercise
from softscope.lab.homework.inputs import drawn
from softscope.lab.homework.rule import Arguments, Rule
from softscope.lab.homework.trial import Numbers, Trial, UnfitError, as_number, told
from softscope.testing.wording import show

if TYPE_CHECKING:
    from collections.abc import Iterator


def _pairs(rng: np.random.Generator) -> Iterator[Arguments]:
    """Yield queries and keys: first d = 1, where scaling does nothing, then few rows and columns, finally d = 64."""
    yield np.array([[1.0], [2.0]]), np.array([[1.0], [3.0]])
    yield np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]), np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0]])
    yield np.array([[-1.0], [-2.0]]), np.array([[1.0], [3.0]])
    for n, m, d in ((2, 3, 4), (3, 2, 9), (8, 8, 16), (32, 32, 64)):
        yield drawn(rng, n, d), drawn(rng, m, d)


def _two(trial: Trial, q: Numbers, k: Numbers) -> tuple[float, float]:
    raw: Any = trial.value("score_ranges", q, k)
    if isinstance(raw, np.ndarray):
        raw = raw.tolist()
    if not isinstance(raw, list | tuple) or len(raw) != 2:
        raise UnfitError(Text(zh=f"返回的是 {told(raw)[:60]}", en=f"it returned {told(raw)[:60]}"))
    return as_number(raw[0]), as_number(raw[1])


def _near(got: float, want: float) -> bool:
    """Compare within a relative tolerance, which an infinite number does not have: it would equal anything."""
    return math.isfinite(want) and abs(got - want) <= EXACT * max(1.0, abs(want))


def _first(_: np.random.Generator) -> Iterator[Arguments]:
    yield np.array([[1.0], [2.0]]), np.array([[1.0], [3.0]])


def _returns(trial: Trial, q: Numbers, k: Numbers) -> Text | None:
    _two(trial, q, k)
    return None


def _range(trial: Trial, q: Numbers, k: Numbers) -> Text | None:
    plain, _ = _two(trial, q, k)
    if _near(plain, float(np.ptp(q @ k.T))):
        return None
    return Text(zh=f"第一个数是 {show(plain)}", en=f"the first number is {show(plain)}")


def _scaled(trial: Trial, q: Numbers, k: Numbers) -> Text | None:
    plain, scaled = _two(trial, q, k)
    d = q.shape[-1]
    if _near(scaled * math.sqrt(d), plain):
        return None
    return Text(
        zh=f"d = {d} 时两个数是 {show(plain)} 和 {show(scaled)}",
        en=f"with d = {d} the two numbers are {show(plain)} and {show(scaled)}",
    )


EXERCISE = Exercise(
    id="dimension",
    title=Text(zh="维度实验", en="The dimension experiment"),
    task=Text(
        zh="写一个函数 score_ranges(q, k)：q 的形状是 (n, d)，k 的形状是 (m, d)，每一行是一个 query 或 key。返回两个数：\n\n"
        "1. 所有分数 q·k（共 n × m 个）的范围，即最大值减最小值；\n2. 除以 √d 之后的范围。\n\n"
        "d 从形状里读。写好后自己取 d = 64 的随机数试一试。可以 import softscope，不过 NumPy 就够了。",
        en="Write a function score_ranges(q, k): q has shape (n, d) and k has shape (m, d); each row is a query or a key. Return "
        "two numbers:\n\n"
        "1. the range of all n × m scores q·k, that is, the largest minus the smallest;\n2. the range after dividing by √d.\n\n"
        "Read d from the shapes. When you are done, try it on random numbers with d = 64. You may import "
        "softscope, but NumPy is enough.",
    ),
    functions=("score_ranges(q, k)",),
    starter=Text(
        zh="import numpy as np\n\n\ndef score_ranges(q, k):\n    # q: (n, d)，k: (m, d)\n    # 返回 (范围, 除以 √d 之后的范围)\n"
        "    return 0.0, 0.0\n\n\n# 自己试一试：\n# rng = np.random.default_rng(0)\n"
        "# print(score_ranges(rng.standard_normal((64, 64)), rng.standard_normal((64, 64))))\n",
        en="import numpy as np\n\n\ndef score_ranges(q, k):\n    # q: (n, d), k: (m, d)\n"
        "    # return (range, range after dividing by √d)\n    return 0.0, 0.0\n\n\n# Try it:\n"
        "# rng = np.random.default_rng(0)\n"
        "# print(score_ranges(rng.standard_normal((64, 64)), rng.standard_normal((64, 64))))\n",
    ),
    checks=(
        Rule(
            "returns",
            Text(zh="score_ranges 应当返回两个数", en="score_ranges must return two numbers"),
            ("q", "k"),
            _first,
            _returns,
        ),
        Rule(
            "range",
            Text(
                zh="第一个数应当是所有分数 q·k 的最大值减最小值",
                en="The first number must be the largest minus the smallest of all scores q·k",
            ),
            ("q", "k"),
            _pairs,
            _range,
        ),
        Rule(
            "scaled",
            Text(zh="第二个数应当是第一个数除以 √d", en="The second number must be the first divided by √d"),
            ("q", "k"),
            _pairs,
            _scaled,
        ),
    ),
    hints=(
        Text(
            zh="所有 query 与所有 key 的点积，一个矩阵乘法就够。",
            en="All queries times all keys: one matrix product is enough.",
        ),
        Text(
            zh="q @ k.T 的形状是 (n, m)。范围是 .max() - .min()，也就是 np.ptp。",
            en="q @ k.T has shape (n, m). The range is .max() - .min(), or np.ptp.",
        ),
        Text(
            zh="d 是 q.shape[-1]，不是行数，也不总是 64。",
            en="d is q.shape[-1]: not the number of rows, and not always 64.",
        ),
    ),
    notice=Text(
        zh="点积是 d 个乘积之和，所以它的方差随 d 增长，典型大小随 √d 增长。除以 √d 把分数拉回与维度无关的大小，"
        "softmax 就不会因为维度大而变成 one-hot。",
        en="A dot product is a sum of d products: its variance grows with d, its typical size with √d. Dividing by √d brings "
        "the scores back to a size that does not depend on the dimension, so softmax does not become one-hot just because d "
        "is large.",
    ),
    may_import=("softscope",),
)
