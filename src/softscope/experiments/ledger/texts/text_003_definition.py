"""Text 003, chapter 4.1: what softmax is, and what a hard maximum loses."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text, same
from softscope.experiments.ledger import Outcome, claim, equal, generator, near, off_by, symbols
from softscope.experiments.ledger.texts.figures import listed

_X = np.array([1.0, 2.0, 3.0])


def _hard(x: np.ndarray) -> np.ndarray:
    """1 at the largest entry, 0 elsewhere."""
    return (np.arange(x.size) == np.argmax(x)).astype(np.float64)


@claim(
    "S3-01",
    says=Text(zh="softmax 是“软化”的最大值函数", en="Softmax is a softened maximum"),
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
                zh="它软化的是“哪个最大”（one-hot 的 argmax）；软化的最大值本身是 logsumexp。",
                en="What it softens is which entry is largest (a one-hot argmax); the softened maximum itself is logsumexp.",
            )
        },
    )


@claim(
    "S3-02",
    says=Text(
        zh="任意实数输入都给出介于 0 与 1 之间、和为 1 的值",
        en="Any real input gives values between 0 and 1 that sum to 1",
    ),
    where="4.1, L36/L46",
    experiment="overflow",
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
                zh="每一项都是一个非负数除以所有这些数之和。",
                en="Each value is a non-negative number divided by the sum of all of them.",
            )
        },
    )


@claim(
    "S3-03",
    says=Text(zh="softmax 的公式是 exp(x_i)/Σexp(x_j)", en="The formula for softmax is exp(x_i)/Σexp(x_j)"),
    where="4.1, L40/L50",
)
def _s3_03() -> Outcome:
    x = generator("S3-03").standard_normal((500, 20))
    off = off_by(ss.softmax(x), np.exp(x) / np.exp(x).sum(-1, keepdims=True))
    return Outcome.of(
        {Text(zh="500 行随机数", en="500 random rows"): off < 1e-15},
        measured=Text(zh=f"与公式最多相差 {off:.1g}", en=f"differs from the formula by at most {off:.1g}"),
        because={"holds": Text(zh="这是定义。", en="This is the definition.")},
    )


@claim(
    "S3-04",
    says=Text(zh="[1, 2, 3] 的硬最大值是 [0, 0, 1]", en="The hard maximum of [1, 2, 3] is [0, 0, 1]"),
    where="4.1, L54",
    experiment="extremes",
)
def _s3_04() -> Outcome:
    hard = _hard(_X)
    return Outcome.of(
        {"[1, 2, 3]": hard.tolist() == [0.0, 0.0, 1.0]},
        measured=listed(hard, "g"),
        because={"holds": Text(zh="只保留最大的一项。", en="Only the largest entry is kept.")},
    )


@claim(
    "S3-05",
    says=Text(zh="[1, 2, 3] 的 softmax 是 [0.09, 0.24, 0.67]", en="The softmax of [1, 2, 3] is [0.09, 0.24, 0.67]"),
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
                zh="四舍五入到 2 位小数正是这 3 个数。", en="Rounded to 2 decimals, it gives exactly these 3 numbers."
            )
        },
    )


@claim(
    "S3-06",
    says=Text(zh="softmax 保留“哪个最大”和“大多少”", en="Softmax keeps which entry is largest and by how much"),
    where="4.1, L57",
    experiment="extremes",
)
def _s3_06() -> Outcome:
    x = 5.0 * generator("S3-06").standard_normal((500, 10))
    p = ss.softmax(x)
    off = off_by(np.log(p[:, 1:] / p[:, :1]), x[:, 1:] - x[:, :1])
    z, s = symbols(3)
    return Outcome.of(
        {
            Text(zh="推导：p_i/p_j = e^(x_i − x_j)", en="derivation: p_i/p_j = e^(x_i − x_j)"): _ratio(z, s),
            Text(zh="顺序", en="order"): bool((p.argsort(-1) == x.argsort(-1)).all()),
            Text(zh="差值", en="differences"): off < 1e-12,
        },
        measured=Text(
            zh=f"log(p_i/p_j) 与 x_i − x_j 最多相差 {off:.1g}",
            en=f"log(p_i/p_j) differs from x_i − x_j by at most {off:.1g}",
        ),
        because={
            "holds": Text(
                zh="由权重之比可以原样求回差值；丢失的只是共同的平移量。",
                en="The ratios of the weights give back the differences; only a common shift is lost.",
            )
        },
    )


def _ratio(z: object, s: object) -> bool:
    import sympy

    return equal(s[0] / s[2], sympy.exp(z[0] - z[2]))  # type: ignore[index]


@claim(
    "S3-07",
    says=Text(zh="硬最大值丢失梯度，softmax 保留梯度", en="A hard maximum loses the gradient; softmax keeps it"),
    where="4.1, L58",
    experiment="saturation",
)
def _s3_07() -> Outcome:
    step = 1e-3
    hard = max(off_by(_hard(_X + step * e), _hard(_X)) / step for e in np.eye(3))
    soft = float(np.linalg.norm(ss.jacobian(ss.softmax(_X))))
    return Outcome.of(
        {
            Text(zh="硬最大值没有梯度", en="the hard maximum has no gradient"): hard == 0.0,
            Text(zh="softmax 有梯度", en="softmax has a gradient"): soft > 0.1,
        },
        measured=Text(
            zh=f"[1, 2, 3] 处：硬最大值的变化率 {hard:g}，softmax 的 ‖J‖ = {soft:.3f}",
            en=f"at [1, 2, 3]: rate of change {hard:g} for the hard maximum, ‖J‖ = {soft:.3f} for softmax",
        ),
        because={
            "holds": Text(
                zh="只要名次不变，one-hot 就是常数，斜率为 0。",
                en="A one-hot vector is constant as long as the ranking does not change, so its slope is 0.",
            )
        },
    )
