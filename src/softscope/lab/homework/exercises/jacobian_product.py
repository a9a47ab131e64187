"""Homework 3: the Jacobian of softmax times a vector, without building the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.lab.homework.exactness import SINGLE, off
from softscope.lab.homework.exercise import Exercise
from softscope.lab.homework.inputs import drawn
from softscope.lab.homework.rule import Arguments, Rule
from softscope.lab.homework.trial import Numbers, Trial
from softscope.testing.wording import show

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONG = 20_000  # the matrix would take 3 GB


def _pairs(rng: np.random.Generator) -> Iterator[Arguments]:
    """Yield weights and directions; the weights come from logits, so they sum to 1."""
    yield np.array([0.5, 0.5]), np.array([1.0, 0.0])
    yield np.array([0.25, 0.75]), np.array([0.0, 1.0])
    yield np.array([0.5, 0.25, 0.25]), np.array([1.0, -1.0, 2.0])
    yield np.array([1.0, 0.0]), np.array([1.0, 2.0])
    for n in (2, 3, 5, 9):
        yield ss.softmax(drawn(rng, n)), drawn(rng, n)


def _long(rng: np.random.Generator) -> Iterator[Arguments]:
    yield ss.softmax(drawn(rng, _LONG)), drawn(rng, _LONG) + 3.0  # so that the mean of v counts


def _call(trial: Trial, p: Numbers, v: Numbers) -> Numbers:
    return trial.array("jacobian_product", p, v, shape=p.shape)


def _constant(trial: Trial, p: Numbers, v: Numbers) -> Text | None:
    if abs(float(p.sum()) - 1.0) > 1e-9:
        return None
    got = _call(trial, p, np.full_like(v, 3.0))
    return (
        None
        if np.abs(got).max() <= 1e-9
        else Text(zh=f"v 全是 3 时得到 {show(got)}", en=f"v = 3 everywhere gives {show(got)}")
    )


def _total(trial: Trial, p: Numbers, v: Numbers) -> Text | None:
    if abs(float(p.sum()) - 1.0) > 1e-9:
        return None
    total = float(_call(trial, p, v).sum())
    return None if abs(total) <= 1e-9 else Text(zh=f"总和是 {show(total)}", en=f"they sum to {show(total)}")


def _derivative(trial: Trial, p: Numbers, v: Numbers) -> Text | None:
    """Use that logits log p give weights p: a central difference along v gives the true change."""
    if abs(float(p.sum()) - 1.0) > 1e-9 or (p <= 0.0).any():
        return None
    got, step = _call(trial, p, v), 1e-5
    moved = (ss.softmax(np.log(p) + step * v) - ss.softmax(np.log(p) - step * v)) / (2.0 * step)
    if np.abs(got - moved).max() <= 1e-6 * max(1.0, float(np.abs(v).max()) ** 3):
        return None
    return Text(zh=f"得到 {show(got)}", en=f"got {show(got)}")


def _fits(trial: Trial, p: Numbers, v: Numbers) -> Text | None:
    """Compare on the scale of the result: every weight is tiny here."""
    if abs(float(p.sum()) - 1.0) > 1e-9:
        return None
    scale = 1.0 / float(p.max())
    got = _call(trial, p, v) * scale
    return off(got, SINGLE, ss.jacobian_product(p, v) * scale)


EXERCISE = Exercise(
    id="jacobian-product",
    title=Text(zh="雅可比乘积：不写出矩阵", en="The Jacobian product without the Jacobian"),
    task=Text(
        zh="softmax 的雅可比矩阵是 J = diag(p) − p pᵀ：它给出第 j 个分数动一点时，第 i 个权重动多少。反向传播要的不是 J，而是 J 乘以一个向量。\n\n"
        f"写一个函数 jacobian_product(p, v)：p 是权重，v 是同样长度的向量，返回 J v。向量可以有 {_LONG} 个数，"
        "而 J 有它的平方那么多个：所以不能写出 J。",
        en="The Jacobian of softmax is J = diag(p) − p pᵀ: it says how much weight i moves when logit j moves a little. "
        "Backpropagation does not need J itself, only J times a vector.\n\n"
        f"Write a function jacobian_product(p, v): p holds the weights and v is a vector of the same length; return J v. A "
        f"vector may hold {_LONG} numbers, and J the square of that many: so you cannot write J out.",
    ),
    functions=("jacobian_product(p, v)",),
    starter=Text(
        zh="import numpy as np\n\n\ndef jacobian_product(p, v):\n    # (diag(p) − p pᵀ) v，但不要建立 n × n 的矩阵\n    return v\n",
        en="import numpy as np\n\n\ndef jacobian_product(p, v):\n    # (diag(p) − p pᵀ) v, without building an n × n matrix\n    return v\n",
    ),
    checks=(
        Rule(
            "constant",
            Text(
                zh="所有分数一起动，权重不动：v 是常数时结果应当为 0",
                en="Weights do not move when all logits move together: for a constant v the result must be 0",
            ),
            ("p", "v"),
            _pairs,
            _constant,
        ),
        Rule(
            "total",
            Text(
                zh="权重之和总是 1，所以变化量之和应当为 0",
                en="The weights always sum to 1, so their changes must sum to 0",
            ),
            ("p", "v"),
            _pairs,
            _total,
        ),
        Rule(
            "derivative",
            Text(
                zh="结果应当是分数沿 v 移动时权重的变化率",
                en="The result must be the rate at which the weights change as the logits move along v",
            ),
            ("p", "v"),
            _pairs,
            _derivative,
        ),
        Rule(
            "no_matrix",
            Text(
                zh=f"{_LONG} 个数时也应当算对，而不建立矩阵",
                en=f"It must be right for {_LONG} numbers too, without building a matrix",
            ),
            ("p", "v"),
            _long,
            _fits,
        ),
    ),
    hints=(
        Text(
            zh="把 J v 按定义展开成两项：diag(p) v 和 p (pᵀ v)。", en="Write J v as two terms: diag(p) v and p (pᵀ v)."
        ),
        Text(
            zh="diag(p) v 就是逐项相乘；pᵀ v 只是一个数。",
            en="diag(p) v is an elementwise product; pᵀ v is a single number.",
        ),
        Text(
            zh="两项有公因子 p。p·v 是 v 按 p 加权的平均；括号里剩下 v 与这个平均的差。",
            en="Both terms share the factor p. p·v is the mean of v weighted by p; what is left in the brackets is v minus that mean.",
        ),
    ),
    notice=Text(
        zh="J v 只问一件事：v 的每一项比按 p 加权的平均高多少，再乘上自己的权重。权重为 0 的位置得不到梯度，"
        "接近 one-hot 时平均就等于那一项，处处都接近 0：这就是饱和。",
        en="J v asks one thing: how far each entry of v lies above the mean weighted by p, times its own weight. Where a "
        "weight is 0, no gradient arrives; near one-hot, the mean equals that one entry, so everything is close to 0: this "
        "is saturation.",
    ),
    minutes=20,
)
