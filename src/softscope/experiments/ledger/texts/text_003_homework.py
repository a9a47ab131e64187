"""Text 003, homework: what its four exercises find."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import textwrap
from typing import Any

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, estimate, generator, off_by, share
from softscope.experiments.ledger.texts.figures import listed


def _by_operators(x: Any) -> Any:
    """Softmax of a NumPy vector with operators and loops only: no function is called."""
    top = x[0]
    for score in x:
        if score > top:
            top = score
    powers = 2.718281828459045 ** (x - top)
    total = 0.0
    for power in powers:
        total = total + power
    return powers / total


def _calls(function: Any) -> int:
    """How many function calls stand in its source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return sum(isinstance(node, ast.Call) for node in ast.walk(tree))


@claim(
    "S3-55",
    says=Text(
        zh="不调用任何库函数，能用 NumPy 写出数值稳定的 softmax",
        en="A stable softmax can be written in NumPy without calling any library function",
    ),
    quote="手写 Softmax:不调用任何库函数,用 NumPy 实现 softmax_stable,并验证数值稳定性",
    where="Homework 1, L395",
)
def _s3_55() -> Outcome:
    rng = generator("S3-55")
    rows = [scale * rng.standard_normal(20) for scale in (1.0, 30.0, 1000.0) for _ in range(100)]
    off = max(off_by(_by_operators(x), ss.softmax(x)) for x in rows)
    big = float(_by_operators(np.array([1000.0, 1001.0, 1002.0])).sum())
    return Outcome.of(
        {
            Text(zh="没有函数调用", en="no function is called"): _calls(_by_operators) == 0,
            Text(zh="结果正确", en="the result is right"): off < 1e-13,
            Text(zh="数值稳定", en="numerically stable"): abs(big - 1.0) < 1e-14,
        },
        measured=Text(
            zh=f"只用运算符和循环的写法：{_calls(_by_operators)} 次函数调用，误差 {off:.1g}（{len(rows)} 行），[1000, 1001, 1002] 的和 {big:g}",
            en=f"with operators and loops only: {_calls(_by_operators)} function calls, off by {off:.1g} ({len(rows)} rows), "
            f"sum for [1000, 1001, 1002] {big:g}",
        ),
        because={
            "holds": Text(
                zh="NumPy 数组有自己的运算符：e ** (x − 最大值) 就是 exp，最大值与总和用循环求；本章自己的写法则用了 np.max、np.exp 和 np.sum。",
                en="NumPy arrays have operators of their own: e ** (x − largest) is exp, and loops find the largest and the sum. The "
                "chapter's own version does use np.max, np.exp and np.sum.",
            )
        },
    )


@claim(
    "S3-56",
    says=Text(
        zh="用 [1, 2, 3, 4, 5] 测试 T = 0.01、0.1、1、10、100（按 4.4，应从 one-hot 走到均匀）",
        en="Test T = 0.01, 0.1, 1, 10, 100 on [1, 2, 3, 4, 5] (by 4.4, from one-hot to uniform)",
    ),
    quote="用 [1.0, 2.0, 3.0, 4.0, 5.0] 测试 T=0.01, 0.1, 1.0, 10.0, 100.0 的结果",
    where="Homework 2, L396",
    experiment="temperature",
)
def _s3_56() -> Outcome:
    x = np.arange(1.0, 6.0)
    found = {T: ss.partition(x, temperature=T) for T in (0.01, 0.1, 1.0, 10.0, 100.0)}
    entropies = [float(p.entropy) for p in found.values()]
    return Outcome.of(
        {
            Text(zh="T = 0.01：one-hot", en="T = 0.01: one-hot"): bool(found[0.01].peak > 0.999999),
            Text(zh="T = 100：均匀", en="T = 100: uniform"): entropies[-1] > 0.999 * math.log(5.0),
            Text(zh="熵逐次上升", en="entropy rises at every step"): all(
                a < b for a, b in itertools.pairwise(entropies)
            ),
        },
        measured=Text(
            zh=f"最大权重 {listed([float(p.peak) for p in found.values()], '.4f')}；熵 {listed(entropies, '.3f')} nat",
            en=f"largest weight {listed([float(p.peak) for p in found.values()], '.4f')}; entropy {listed(entropies, '.3f')} nats",
        ),
        because={
            "holds": Text(
                zh=f"领先 1 除以 0.01 成为 100，第二名只剩 e^−100；除以 100 则只差 0.01，熵达到均匀分布的 log 5 = {math.log(5.0):.3f} nat。",
                en=f"A lead of 1 divided by 0.01 becomes 100, which leaves e^−100 for the second; divided by 100 it is 0.01, and the "
                f"entropy reaches log 5 = {math.log(5.0):.3f} nats, that of a uniform distribution.",
            )
        },
    )


def _queries_and_keys() -> Any:
    """50 draws of Q and K with 64 rows and d = 64."""
    return generator("S3-57").standard_normal((2, 50, 64, 64))


@claim(
    "S3-57",
    says=Text(
        zh="d = 64 时比较 Q@K.T 与 Q@K.T/√64 的数值范围（按 4.5，前者大，后者方差约为 1）",
        en="At d = 64, compare the ranges of Q@K.T and Q@K.T/√64 (by 4.5, the first is large and the second has a variance of about 1)",
    ),
    quote="生成一个 d=64 的随机 Q 和 K",
    where="Homework 3, L397",
    experiment="lanes",
)
def _s3_57() -> Outcome:
    q, k = _queries_and_keys()
    plain = q @ k.transpose(0, 2, 1)
    scaled = plain / math.sqrt(64.0)
    spread, variance = estimate(plain.std((-2, -1))), estimate(scaled.var((-2, -1)))
    ranges = [estimate(np.ptp(x, (-2, -1))) for x in (plain, scaled)]
    return Outcome.of(
        {
            Text(zh="Q@K.T 的标准差约为 8", en="Q@K.T has a standard deviation of about 8"): spread.agrees(8.0, 0.4),
            Text(zh="缩放后方差约为 1", en="scaled, its variance is about 1"): variance.agrees(1.0, 0.1),
            Text(zh="Q@K.T 的范围超过 40", en="the range of Q@K.T exceeds 40"): ranges[0].above(40.0),
            Text(zh="缩放后的范围小于 10", en="scaled, the range is below 10"): ranges[1].below(10.0),
        },
        measured=Text(
            zh=f"64×64 个分数，{len(plain)} 次：最大减最小 {ranges[0]:.1f}，缩放后 {ranges[1]:.2f}；标准差 {spread:.2f}，缩放后方差 {variance:.3f}",
            en=f"64×64 scores, {len(plain)} times: largest minus smallest {ranges[0]:.1f}, scaled {ranges[1]:.2f}; standard deviation "
            f"{spread:.2f}, scaled variance {variance:.3f}",
        ),
        because={
            "holds": Text(
                zh="每个分数是 64 个独立项之和，标准差 √64 = 8；除以 8 后回到 1，几千个这样的数里最大与最小相差七个多标准差。",
                en="Each score is a sum of 64 independent terms with a standard deviation of √64 = 8; divided by 8 it is 1, and among "
                "thousands of such numbers the largest and the smallest lie some seven standard deviations apart.",
            )
        },
    )


def _over_sum(scores: Any) -> Any:
    return scores / scores.sum(-1, keepdims=True)


@claim(
    "S3-58",
    says=Text(
        zh="不用 softmax，直接用 scores/sum(scores) 归一化，遇到负数会有问题",
        en="Without softmax, scores/sum(scores) has a problem with negative numbers",
    ),
    quote="直接用 scores / sum(scores) 做归一化,有什么问题?(提示:负数)",
    where="Homework 4, L398",
    experiment="normalisers",
)
def _s3_58() -> Outcome:
    negative, flipped, largest = {}, {}, 0.0
    for n in (2, 10, 100):
        x = generator(f"S3-58 {n}").standard_normal((20_000, n))
        p = _over_sum(x)
        negative[n], flipped[n] = share((p < 0.0).any(-1)), share(p.argmax(-1) != x.argmax(-1))
        largest = max(largest, float(np.abs(p).max()))
    shown = "; ".join(f"n = {n}: {100 * negative[n].mean:.1f}%, {100 * flipped[n].mean:.1f}%" for n in negative)
    return Outcome.of(
        {
            Text(zh="出现负的权重", en="weights become negative"): all(x.above(0.4) for x in negative.values()),
            Text(zh="次序颠倒", en="the order is reversed"): all(x.above(0.3) for x in flipped.values()),
        },
        measured=Text(
            zh=f"n 个 N(0, 1) 的分数，有负权重的行、最大的分数不再得到最大权重的行：{shown}；最大的 |权重| {largest:.2g}（各 20000 行）",
            en=f"n scores from N(0, 1), rows with a negative weight and rows in which the largest score no longer gets the largest "
            f"weight: {shown}; largest |weight| {largest:.2g} (20000 rows each)",
        ),
        because={
            "holds": Text(
                zh="负的分数得到负的权重；和本身为负时，除法颠倒所有次序；和接近 0 时，权重大得没有界限。",
                en="A negative score gets a negative weight; where the sum itself is negative, dividing reverses the order; and where it "
                "is close to 0, the weights grow without bound.",
            )
        },
    )
