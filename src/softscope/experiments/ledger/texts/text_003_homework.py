"""Text 003, homework: what its four exercises find."""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, off_by, share
from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts.figures import listed


def _by_operators(x: np.ndarray) -> np.ndarray:
    """Softmax of a NumPy vector with only operators and Python's max and sum: no library function is called."""
    powers = 2.718281828459045 ** (x - max(x))
    return np.asarray(powers / sum(powers))


@claim(
    "S3-55",
    says=Text(
        zh="不调用任何库函数，用 NumPy 写出稳定的 softmax",
        en="Write a stable softmax in NumPy without calling any library function",
    ),
    where="Homework 1, L395",
    experiment="overflow",
)
def _s3_55() -> Outcome:
    calls = inspect.getsource(code.stable).count("np.")
    rng = generator("S3-55")
    rows = [scale * rng.standard_normal(20) for scale in (1.0, 30.0, 1000.0) for _ in range(100)]
    off = max(off_by(_by_operators(x), ss.softmax(x)) for x in rows)
    return Outcome.of(
        under={
            Text(zh="本章自己的写法", en="the chapter's own version"): calls == 0,
            Text(zh="只用运算符", en="with operators only"): off < 1e-13,
        },
        measured=Text(
            zh=f"本章的 softmax_stable 调用 NumPy {calls} 次；只用运算符的写法误差 {off:.1g}（{len(rows)} 行）",
            en=f"the chapter's softmax_stable calls NumPy {calls} times; a version with operators only is off by {off:.1g} "
            f"({len(rows)} rows)",
        ),
        because={
            "only-if": Text(
                zh="照字面理解，题目与本章的代码矛盾；但 e ** (x − max(x)) 确实够用。",
                en="Taken literally, the exercise contradicts the chapter's code; but e ** (x − max(x)) does the job.",
            )
        },
        only_if=Text(
            zh="用 e ** x 代替 np.exp，并用 Python 自带的 max 和 sum",
            en="e ** x replaces np.exp, and max and sum are Python's own",
        ),
    )


@claim(
    "S3-56",
    says=Text(
        zh="用 T = 0.01、0.1、1、10、100 观察 [1, 2, 3, 4, 5]：从 one-hot 到均匀",
        en="T = 0.01, 0.1, 1, 10, 100 on [1, 2, 3, 4, 5]: from one-hot to uniform",
    ),
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
                zh=f"log 5 = {math.log(5.0):.3f} nat 是均匀分布的熵。",
                en=f"log 5 = {math.log(5.0):.3f} nats is the entropy of a uniform distribution.",
            )
        },
    )


@claim(
    "S3-57",
    says=Text(
        zh="d = 64 时，Q@K.T 与 Q@K.T/√64 的数值范围不同", en="At d = 64, Q@K.T and Q@K.T/√64 differ in their range"
    ),
    where="Homework 3, L397",
    experiment="variance",
)
def _s3_57() -> Outcome:
    q, k = generator("S3-57").standard_normal((2, 64, 64))
    plain, scaled = q @ k.T, q @ k.T / math.sqrt(64.0)
    ratio = float(np.ptp(plain) / np.ptp(scaled))
    return Outcome.of(
        {
            Text(zh="范围缩小到 1/8", en="the range shrinks to 1/8"): abs(ratio - 8.0) < 1e-12,
            Text(zh="标准差约为 8 与 1", en="standard deviations of about 8 and 1"): abs(plain.std() - 8.0) < 1.0
            and abs(scaled.std() - 1.0) < 0.125,
        },
        measured=Text(
            zh=f"64×64 个分数：{plain.min():.1f} 到 {plain.max():.1f}，缩放后 {scaled.min():.2f} 到 {scaled.max():.2f}；标准差 {plain.std():.2f} 与 {scaled.std():.2f}",
            en=f"64×64 scores: {plain.min():.1f} to {plain.max():.1f}, scaled {scaled.min():.2f} to {scaled.max():.2f}; standard "
            f"deviations {plain.std():.2f} and {scaled.std():.2f}",
        ),
        because={
            "holds": Text(
                zh=f"每个分数都除以 8；{plain.size} 个分数里最大的超过 3σ。",
                en=f"Every score is divided by 8; the largest of {plain.size} scores lies beyond 3σ.",
            )
        },
    )


@claim(
    "S3-58",
    says=Text(zh="scores/sum(scores) 遇到负数会有问题", en="scores/sum(scores) breaks down on negative numbers"),
    where="Homework 4, L398",
    experiment="normalisers",
)
def _s3_58() -> Outcome:
    x = generator("S3-58").standard_normal((20_000, 10))
    p = x / x.sum(-1, keepdims=True)
    negative, flipped = share((p < 0.0).any(-1)), share(p.argmax(-1) != x.argmax(-1))
    return Outcome.of(
        {
            Text(zh="出现负的权重", en="weights become negative"): negative.above(0.9),
            Text(zh="次序颠倒", en="the order is reversed"): flipped.above(0.1),
        },
        measured=Text(
            zh=f"10 个 N(0, 1) 的分数：{100 * negative.mean:.1f}% 的行有负权重，{100 * flipped.mean:.1f}% 的行里最大的分数不再得到最大的权重；"
            f"最大的 |权重| {np.abs(p).max():.0f}（{negative.n} 行）",
            en=f"10 scores from N(0, 1): {100 * negative.mean:.1f}% of rows have a negative weight; in {100 * flipped.mean:.1f}% the "
            f"largest score no longer gets the largest weight; largest |weight| {np.abs(p).max():.0f} ({negative.n} rows)",
        ),
        because={"holds": Text(zh="和可以为负，也可以接近 0。", en="The sum can be negative or close to 0.")},
    )
