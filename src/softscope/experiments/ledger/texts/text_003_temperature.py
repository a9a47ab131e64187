"""Text 003, chapter 4.4: what temperature does to a softmax, and what the code prints."""

from __future__ import annotations

import itertools
import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, near, off_by
from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts.figures import listed

_X = np.array([1.0, 2.0, 3.0])


@claim(
    "S3-24",
    says=Text(zh="T → 0：更尖锐，趋近 one-hot（确定）", en="T → 0: sharper, approaching one-hot (deterministic)"),
    quote="T → 0: Sharper, approaches one-hot (deterministic)",
    where="4.4, L197/L208",
    experiment="temperature",
)
def _s3_24() -> Outcome:
    trials = {"[1, 2, 3]": _X, "[1, 2.9, 3]": np.array([1.0, 2.9, 3.0]), "[1, 3, 3]": np.array([1.0, 3.0, 3.0])}
    found = {name: ss.softmax(x, temperature=1e-3) for name, x in trials.items()}
    return Outcome.of(
        under={name: bool(p.max() > 0.999) for name, p in found.items()},
        measured=", ".join(f"{name} → {listed(p, 'g')}" for name, p in found.items()) + ", T = 0.001",
        because={
            "only-if": Text(
                zh="除以 T 把每个差值放大 1/T 倍，所以再小的领先最终也够；但并列最大的各项差 0，放大后还是 0，在任何温度下都平分权重。",
                en="Dividing by T makes every difference 1/T times as large, so even a small lead is enough in the end. But entries tied "
                "for the maximum differ by 0, which stays 0: they split the weight evenly at every temperature.",
            )
        },
        only_if=Text(zh="最大值只有一个", en="the maximum is unique"),
    )


@claim(
    "S3-25",
    says=Text(zh="T = 1：标准 softmax", en="T = 1: the standard softmax"),
    quote="T = 1: Standard softmax",
    where="4.4, L198/L209",
    experiment="temperature",
)
def _s3_25() -> Outcome:
    x = generator("S3-25").standard_normal((200, 10))
    off = off_by(ss.softmax(x, temperature=1.0), code.stable(x))
    return Outcome.of(
        {Text(zh="200 行随机数", en="200 random rows"): off < 1e-15},
        measured=Text(zh=f"最多相差 {off:.1g}", en=f"off by at most {off:.1g}"),
        because={
            "holds": Text(
                zh="温度只是除数；除以 1 不改变分数，所以就是原来的公式。",
                en="Temperature is only a divisor; dividing by 1 leaves the scores unchanged, so this is the plain formula.",
            )
        },
    )


@claim(
    "S3-26",
    says=Text(
        zh="T → ∞：更平滑，趋近均匀分布（随机）", en="T → ∞: smoother, approaching the uniform distribution (random)"
    ),
    quote="T → ∞: Smoother, approaches uniform distribution (random)",
    where="4.4, L199/L210",
    experiment="temperature",
)
def _s3_26() -> Outcome:
    x = np.arange(1.0, 6.0)
    off = {T: off_by(ss.softmax(x, temperature=T), 0.2) for T in (1.0, 100.0, 1e4, 1e6)}
    last = list(off.values())
    return Outcome.of(
        {
            Text(zh="离均匀越来越近", en="closer and closer to uniform"): all(
                a > b for a, b in itertools.pairwise(last)
            ),
            "T = 1e6": off[1e6] < 1e-5,
        },
        measured=Text(
            zh="[1, 2, 3, 4, 5] 的权重与 0.2 的最大差：" + ", ".join(f"T = {T:g}: {d:.1g}" for T, d in off.items()),
            en="[1, 2, 3, 4, 5], largest distance of a weight from 0.2: "
            + ", ".join(f"T = {T:g}: {d:.1g}" for T, d in off.items()),
        ),
        because={
            "holds": Text(
                zh="x/T 各项之差趋于 0，分数越来越像相等的数，而相等的分数得到相等的权重；偏离按 1/T 缩小。",
                en="The differences within x/T go to 0, so the scores become more and more alike, and equal scores get equal weights; "
                "the distance shrinks like 1/T.",
            )
        },
    )


@claim(
    "S3-27",
    says=Text(zh="温度控制 softmax 的尖锐程度", en="Temperature controls how sharp the softmax is"),
    quote='Temperature = A hyperparameter controlling Softmax "sharpness"',
    where="4.4, L192/L203",
    experiment="temperature",
)
def _s3_27() -> Outcome:
    x = generator("S3-27").standard_normal((200, 10))
    temperatures = np.geomspace(0.05, 50.0, 40)
    entropies = np.array([ss.partition(x, temperature=float(T)).entropy for T in temperatures])
    reached = ss.temperature_for(x, entropy=1.0)
    off = off_by(ss.partition(x, temperature=reached).entropy, 1.0)
    return Outcome.of(
        {
            Text(zh="200 个随机向量：熵随 T 上升", en="200 random vectors: entropy rises with T"): bool(
                (np.diff(entropies, axis=0) > 0.0).all()
            ),
            Text(zh="能达到指定的熵", en="a given entropy can be reached"): off < 1e-6,
        },
        measured=Text(
            zh=f"平均熵从 {entropies[0].mean():.3f}（T = {temperatures[0]:g}）到 {entropies[-1].mean():.3f}（T = {temperatures[-1]:g}），"
            f"最大 {math.log(10):.3f} nat",
            en=f"mean entropy from {entropies[0].mean():.3f} (T = {temperatures[0]:g}) to {entropies[-1].mean():.3f} "
            f"(T = {temperatures[-1]:g}); the maximum is {math.log(10):.3f} nats",
        ),
        because={
            "holds": Text(
                zh="dH/dT = Var(x)/T³，方差按权重计算，不会为负：升温总使熵上升，所以调 T 就能得到想要的尖锐程度（除非分数全部相等）。",
                en="dH/dT = Var(x)/T³, with the variance taken under the weights, which is never negative: warming always raises the "
                "entropy, so T can set any sharpness (unless all scores are equal).",
            )
        },
    )


# The chapter's temperatures.
_TEMPERATURES = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)


@claim(
    "S3-28",
    says=Text(zh="T = 0.1：[0.0000, 0.0000, 1.0000]，最尖锐", en="T = 0.1: [0.0000, 0.0000, 1.0000], the sharpest"),
    quote="T=0.1: [0.0000 0.0000 1.0000]  <- 最尖锐 | Sharpest",
    where="4.4, L230",
    experiment="temperature",
)
def _s3_28() -> Outcome:
    found = {T: ss.softmax(_X, temperature=T) for T in _TEMPERATURES}
    return Outcome.of(
        {
            Text(zh="数值", en="numbers"): near(found[0.1], ["0.0000", "0.0000", "1.0000"]),
            Text(zh="六个温度中最尖锐", en="the sharpest of the six"): max(found, key=lambda T: found[T].max()) == 0.1,
        },
        measured=listed(found[0.1], ".6f"),
        because={
            "holds": Text(
                zh="除以 0.1 使领先从 1 变成 10，第二名只剩 e^−10，保留 4 位小数就是 0。",
                en="Dividing by 0.1 turns a lead of 1 into 10 and leaves e^−10 for the second, which is 0 to 4 decimals.",
            )
        },
    )


@claim(
    "S3-29",
    says=Text(zh="T = 1.0：[0.0900, 0.2447, 0.6652]，标准", en="T = 1.0: [0.0900, 0.2447, 0.6652], the standard"),
    quote="T=1.0: [0.0900 0.2447 0.6652]",
    where="4.4, L231",
    experiment="temperature",
)
def _s3_29() -> Outcome:
    p = ss.softmax(_X, temperature=1.0)
    return Outcome.of(
        {
            Text(zh="数值", en="numbers"): near(p, ["0.0900", "0.2447", "0.6652"]),
            Text(zh="标准 softmax", en="the standard softmax"): off_by(p, code.stable(_X)) < 1e-15,
        },
        measured=listed(p, ".6f"),
        because={
            "holds": Text(
                zh="除以 1 什么也不变，这就是 [1, 2, 3] 的标准 softmax。",
                en="Dividing by 1 changes nothing: this is the standard softmax of [1, 2, 3].",
            )
        },
    )


@claim(
    "S3-30",
    says=Text(zh="T = 10：[0.3006, 0.3322, 0.3672]，接近均匀", en="T = 10: [0.3006, 0.3322, 0.3672], near uniform"),
    quote="T=10.0: [0.3006 0.3322 0.3672] <- 接近均匀 | Near uniform",
    where="4.4, L232",
    experiment="temperature",
)
def _s3_30() -> Outcome:
    p = ss.softmax(_X, temperature=10.0)
    entropy = float(ss.partition(_X, temperature=10.0).entropy)
    share = entropy / math.log(3.0)
    return Outcome.of(
        {
            Text(zh="数值", en="numbers"): near(p, ["0.3006", "0.3322", "0.3672"]),
            Text(zh="接近均匀", en="near uniform"): share > 0.99,
        },
        measured=listed(p, ".6f"),
        because={
            "holds": Text(
                zh=f"除以 10 使分数只差 0.1，几乎相等；熵达到均匀分布的 {100 * share:.1f}%。",
                en=f"Dividing by 10 leaves scores only 0.1 apart, almost equal; entropy is {100 * share:.1f}% of that of a uniform "
                "distribution.",
            )
        },
    )


def _printed(temperature: float) -> str:
    """The line as the chapter's f-string prints it."""
    return f"T={temperature:4.1f}: {code.printed(code.stable(_X / temperature), 4)}"


@claim(
    "S3-31",
    says=Text(zh="输出的行形如“T=0.1: […]”", en="The printed lines look like “T=0.1: […]”"),
    quote="T=0.1: [0.0000 0.0000 1.0000]",
    where="4.4, L229-232",
)
def _s3_31() -> Outcome:
    stated = {
        0.1: "T=0.1: [0.0000 0.0000 1.0000]",
        1.0: "T=1.0: [0.0900 0.2447 0.6652]",
        10.0: "T=10.0: [0.3006 0.3322 0.3672]",
    }
    printed = {T: _printed(T) for T in stated}
    shown = " / ".join(printed.values())
    return Outcome.of(
        {f"T = {T:g}": printed[T] == line for T, line in stated.items()},
        measured=shown,
        because={
            "fails": Text(
                zh=f"{sum(printed[T] != line for T, line in stated.items())} 行与打印的不同：格式 4.1f 在一位数前补一个空格，"
                "NumPy 又会去掉末尾的零。数值本身是对的。",
                en=f"{sum(printed[T] != line for T, line in stated.items())} lines are printed differently: the format 4.1f pads a "
                "one-digit number with a space, and NumPy drops trailing zeros. The values are right.",
            )
        },
        instead=Text(zh=f"打印的行是 {shown}", en=f"The lines printed are {shown}"),
    )
