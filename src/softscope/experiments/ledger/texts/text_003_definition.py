"""Text 003, chapter 4.1: what softmax is, and what a hard maximum loses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import softscope as ss
from softscope._text import Text, same
from softscope.experiments.ledger import Outcome, claim, equal, generator, near, off_by, symbols
from softscope.experiments.ledger.texts.figures import listed

if TYPE_CHECKING:
    from collections.abc import Callable

_X = np.array([1.0, 2.0, 3.0])
_TIED = np.array([3.0, 3.0, 1.0])


def _hard(x: np.ndarray) -> np.ndarray:
    """1 at the largest entry (the first of them if several tie), 0 elsewhere."""
    return (np.arange(x.size) == np.argmax(x)).astype(np.float64)


@claim(
    "S3-01",
    says=Text(zh="softmax 是“软化”的最大值函数", en="Softmax is a softened maximum function"),
    quote='Softmax = "Softened" max function',
    where="4.1, L34/L44",
    experiment="extremes",
)
def _s3_01() -> Outcome:
    p, cold = ss.softmax(_X), ss.softmax(_X, temperature=0.01)
    return Outcome.of(
        {
            Text(zh="最大的分数得到最大的权重", en="the largest score gets the largest weight"): int(p.argmax())
            == int(_X.argmax()),
            Text(zh="其余的仍有权重", en="the others keep some weight"): bool((p > 0.0).all()),
            Text(zh="T → 0 时成为硬最大值", en="as T → 0 it becomes the hard maximum"): off_by(cold, _hard(_X)) < 1e-12,
        },
        measured=f"[1, 2, 3] → {listed(p, '.3f')}, T = 0.01 → {listed(cold, '.2g')}",
        because={
            "holds": Text(
                zh="文中的“硬最大值”是 one-hot，只标出哪个最大；softmax 把它软化，让其余各项也分到一些，降温又变回去。"
                "软化的是“哪个最大”；“最大是多少”软化后是 logsumexp。",
                en="The text's “hard max” is one-hot: it marks which entry is largest. Softmax softens that, so that the others get "
                "a share too, and cooling turns it back. What is softened is which entry is largest; softening its value gives logsumexp.",
            )
        },
    )


@claim(
    "S3-02",
    says=Text(
        zh="任意实数输入都给出介于 0 与 1 之间、和为 1 的值",
        en="Any real numbers give values between 0 and 1 that sum to 1",
    ),
    quote="Output: Probability distribution (all values between 0~1, sum to 1)",
    where="4.1, L36/L46",
    experiment="normalisers",
)
def _s3_02() -> Outcome:
    rng = generator("S3-02")
    cases = {
        Text(zh="2000 行随机数", en="2000 random rows"): rng.standard_normal((2000, 50)) * 10.0,
        same("±1e308"): np.array([[1e308, -1e308, 0.0]]),
        same("[1000, 1001, 1002]"): np.array([[1000.0, 1001.0, 1002.0]]),
        Text(zh="全为 0", en="all 0"): np.zeros((1, 7)),
    }
    found = {name: ss.softmax(x) for name, x in cases.items()}
    off = max(off_by(p.sum(-1), 1.0) for p in found.values())
    return Outcome.of(
        {n: bool((p >= 0.0).all() and (p <= 1.0).all() and off_by(p.sum(-1), 1.0) < 1e-14) for n, p in found.items()},
        measured=Text(zh=f"和与 1 最多相差 {off:.1g}", en=f"sums differ from 1 by at most {off:.1g}"),
        because={
            "holds": Text(
                zh="e^x 总是正数；每一项是其中一个除以它们全部之和，所以是整体的一份。",
                en="e^x is always positive, and each value is one of these numbers divided by the sum of all: a share of the whole.",
            )
        },
    )


@claim(
    "S3-03",
    says=Text(zh="softmax 的公式是 exp(x_i)/Σexp(x_j)", en="The formula for softmax is exp(x_i)/Σexp(x_j)"),
    quote="softmax(x_i) = exp(x_i) / Σ_j exp(x_j)",
    where="4.1, L40/L50",
)
def _s3_03() -> Outcome:
    x = generator("S3-03").standard_normal((500, 20))
    off = off_by(ss.softmax(x), np.exp(x) / np.exp(x).sum(-1, keepdims=True))
    return Outcome.of(
        {Text(zh="500 行随机数", en="500 random rows"): off < 1e-15},
        measured=Text(zh=f"与公式最多相差 {off:.1g}", en=f"differs from the formula by at most {off:.1g}"),
        because={
            "holds": Text(
                zh="这就是定义；库先减去最大值，算出的仍是同一些数。",
                en="This is the definition. The library subtracts the maximum first and still gets the same numbers.",
            )
        },
    )


@claim(
    "S3-04",
    says=Text(zh="[1, 2, 3] 的硬最大值是 [0, 0, 1]", en="The hard maximum of [1, 2, 3] is [0, 0, 1]"),
    quote="Hard max:  [1, 2, 3] → [0, 0, 1]",
    where="4.1, L54",
    experiment="extremes",
)
def _s3_04() -> Outcome:
    hard = _hard(_X)
    return Outcome.of(
        {"[1, 2, 3]": hard.tolist() == [0.0, 0.0, 1.0]},
        measured=listed(hard, "g"),
        because={
            "holds": Text(
                zh="硬最大值在最大的一项处写 1，其余写 0；3 是最大的。",
                en="A hard maximum writes 1 at the largest entry and 0 elsewhere, and 3 is the largest.",
            )
        },
    )


@claim(
    "S3-05",
    says=Text(zh="[1, 2, 3] 的 softmax 是 [0.09, 0.24, 0.67]", en="The softmax of [1, 2, 3] is [0.09, 0.24, 0.67]"),
    quote="Softmax:   [1, 2, 3] → [0.09, 0.24, 0.67]",
    where="4.1, L55",
    experiment="extremes",
)
def _s3_05() -> Outcome:
    p = ss.softmax(_X)
    return Outcome.of(
        {"[1, 2, 3]": near(p, ["0.09", "0.24", "0.67"])},
        measured=listed(p, ".4f"),
        because={
            "holds": Text(
                zh="相邻两项各差 1，所以权重之比都是 e ≈ 2.718；和为 1 的三个数只能是这些，保留 2 位小数正如文中所写。",
                en="Neighbours differ by 1, so each weight is e ≈ 2.718 times the one before; with a sum of 1 that leaves only these "
                "three numbers, which round to the text's.",
            )
        },
    )


@claim(
    "S3-06",
    says=Text(zh="softmax 保留“哪个最大”和“大多少”", en="Softmax keeps which entry is largest and by how much"),
    quote='Softmax 保留了"哪个最大"的信息,同时也保留了"大多少"的信息',
    where="4.1, L57",
    experiment="extremes",
)
def _s3_06() -> Outcome:
    x = 5.0 * generator("S3-06").standard_normal((500, 10))
    p = ss.softmax(x)
    off = off_by(np.log(p[:, 1:] / p[:, :1]), x[:, 1:] - x[:, :1])
    return Outcome.of(
        {
            Text(zh="推导：p_i/p_j = e^(x_i − x_j)", en="derivation: p_i/p_j = e^(x_i − x_j)"): _ratio(*symbols(3)),
            Text(zh="顺序", en="order"): bool((p.argsort(-1) == x.argsort(-1)).all()),
            Text(zh="差值", en="differences"): off < 1e-12,
        },
        measured=Text(
            zh=f"log(p_i/p_j) 与 x_i − x_j 最多相差 {off:.1g}",
            en=f"log(p_i/p_j) differs from x_i − x_j by at most {off:.1g}",
        ),
        because={
            "holds": Text(
                zh="两个权重之比是 e^(x_i − x_j)，取对数就得回差值；丢失的只是共同的平移量。",
                en="The ratio of two weights is e^(x_i − x_j), whose logarithm gives back the difference; only a common shift is lost.",
            )
        },
        evidence="derived",
    )


def _ratio(z: object, s: object) -> bool:
    import sympy

    return equal(s[0] / s[2], sympy.exp(z[0] - z[2]))  # type: ignore[index]


def _change(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step: float) -> float:
    """The largest change of an output when one entry grows by `step`."""
    return max(off_by(function(x + step * e), function(x)) for e in np.eye(x.size))


@claim(
    "S3-07",
    says=Text(
        zh="硬最大值丢失梯度信息，softmax 保留梯度信息",
        en="A hard maximum loses gradient information; softmax preserves it",
    ),
    quote="Hard max loses gradient information; softmax preserves it.",
    where="4.1, L58",
    experiment="normalisers",
)
def _s3_07() -> Outcome:
    steps = (1e-3, 1e-6)
    hard = max(_change(_hard, _X, step) for step in steps)
    jumps = [_change(_hard, _TIED, step) for step in steps]
    soft = {name: _change(ss.softmax, x, 1e-6) / 1e-6 for name, x in (("[1, 2, 3]", _X), ("[3, 3, 1]", _TIED))}
    shown = ", ".join(f"{name}: {slope:.3f}" for name, slope in soft.items())
    return Outcome.of(
        {
            Text(zh="没有并列时，硬最大值的斜率为 0", en="away from ties the hard maximum has slope 0"): hard == 0.0,
            Text(zh="并列时它跳变，没有斜率", en="at a tie it jumps and has no slope"): min(jumps) == 1.0,
            Text(zh="softmax 在两处都有斜率", en="softmax has a slope at both"): min(soft.values()) > 0.1,
        },
        measured=Text(
            zh=f"硬最大值：[1, 2, 3] 处变化 {hard:g}，并列的 [3, 3, 1] 处不论步长多小都跳 {min(jumps):g}；softmax 的斜率 {shown}",
            en=f"hard maximum: change {hard:g} at [1, 2, 3]; at the tie [3, 3, 1] a jump of {min(jumps):g} however small the step; "
            f"slope of softmax {shown}",
        ),
        because={
            "holds": Text(
                zh="名次不变时 one-hot 是常数，斜率为 0；并列处名次一变就从 0 跳到 1，那里没有导数。两处都无法告诉我们该往哪边走，"
                "而 softmax 的权重处处随分数平滑变化。",
                en="While the ranking stays, a one-hot vector is constant: slope 0. At a tie the ranking changes and it jumps from 0 "
                "to 1: no derivative at all. Neither says which way to go, while softmax's weights move smoothly with the scores.",
            )
        },
    )
