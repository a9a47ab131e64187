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
    says=Text(zh="T → 0：趋近 one-hot", en="T → 0: it approaches one-hot"),
    where="4.4, L197/L208",
    experiment="temperature",
)
def _s3_24() -> Outcome:
    trials = {"[1, 2, 3]": _X, "[1, 3, 3]": np.array([1.0, 3.0, 3.0])}
    found = {name: ss.softmax(x, temperature=1e-3) for name, x in trials.items()}
    return Outcome.of(
        under={name: bool(p.max() > 0.999) for name, p in found.items()},
        measured=", ".join(f"{name} → {listed(p, 'g')}" for name, p in found.items()) + ", T = 0.001",
        because={
            "only-if": Text(
                zh="并列最大的各项在任何温度下都平分权重。",
                en="Entries tied for the maximum split the weight evenly at every temperature.",
            )
        },
        only_if=Text(zh="最大值只有一个", en="the maximum is unique"),
    )


@claim(
    "S3-25",
    says=Text(zh="T = 1：标准 softmax", en="T = 1: the standard softmax"),
    where="4.4, L198/L209",
    experiment="temperature",
)
def _s3_25() -> Outcome:
    x = generator("S3-25").standard_normal((200, 10))
    off = off_by(ss.softmax(x, temperature=1.0), code.stable(x))
    return Outcome.of(
        {Text(zh="200 行随机数", en="200 random rows"): off < 1e-15},
        measured=Text(zh=f"最多相差 {off:.1g}", en=f"off by at most {off:.1g}"),
        because={"holds": Text(zh="除以 1 不改变分数。", en="Dividing by 1 leaves the scores unchanged.")},
    )


@claim(
    "S3-26",
    says=Text(zh="T → ∞：趋近均匀分布", en="T → ∞: it approaches the uniform distribution"),
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
                zh="x/T 各项之差趋于 0，偏离按 1/T 缩小。",
                en="The differences within x/T go to 0, and the distance shrinks like 1/T.",
            )
        },
    )


@claim(
    "S3-27",
    says=Text(zh="温度控制 softmax 的尖锐程度", en="Temperature controls how sharp the softmax is"),
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
                zh="dH/dT = Var(x)/T³ ≥ 0，方差按权重计算。",
                en="dH/dT = Var(x)/T³ ≥ 0, with the variance taken under the weights.",
            )
        },
    )


def _at(temperature: float, stated: list[str], because: Text) -> Outcome:
    p = ss.softmax(_X, temperature=temperature)
    return Outcome.of(
        {f"T = {temperature:g}": near(p, stated)},
        measured=f"{listed(p, '.6f')}",
        because={"holds": because},
    )


@claim(
    "S3-28",
    says=Text(zh="T = 0.1：[0, 0, 1]，保留 4 位小数", en="T = 0.1: [0, 0, 1] to 4 decimals"),
    where="4.4, L230",
    experiment="temperature",
)
def _s3_28() -> Outcome:
    return _at(
        0.1, ["0.0000", "0.0000", "1.0000"], Text(zh="差值放大到 10 倍。", en="The differences are 10 times as large.")
    )


@claim(
    "S3-29",
    says=Text(zh="T = 1.0：[0.0900, 0.2447, 0.6652]", en="T = 1.0: [0.0900, 0.2447, 0.6652]"),
    where="4.4, L231",
    experiment="temperature",
)
def _s3_29() -> Outcome:
    return _at(1.0, ["0.0900", "0.2447", "0.6652"], Text(zh="这是标准 softmax。", en="This is the standard softmax."))


@claim(
    "S3-30",
    says=Text(zh="T = 10：[0.3006, 0.3322, 0.3672]，接近均匀", en="T = 10: [0.3006, 0.3322, 0.3672], near uniform"),
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
                zh=f"熵达到最大值的 {100 * share:.1f}%。", en=f"Entropy is {100 * share:.1f}% of its maximum."
            )
        },
    )


@claim(
    "S3-31",
    says=Text(zh="输出的行形如“T=0.1: […]”", en="The printed lines look like “T=0.1: […]”"),
    where="4.4, L229-232",
    experiment="temperature",
)
def _s3_31() -> Outcome:
    listed = {
        0.1: "T=0.1: [0.0000 0.0000 1.0000]",
        1.0: "T=1.0: [0.0900 0.2447 0.6652]",
        10.0: "T=10.0: [0.3006 0.3322 0.3672]",
    }
    printed = {T: f"T={T:4.1f}: {code.printed(code.stable(_X / T), 4)}" for T in listed}
    return Outcome.of(
        under={f"T = {T:g}": printed[T] == line for T, line in listed.items()},
        measured=" / ".join(printed.values()),
        because={
            "only-if": Text(
                zh="格式 4.1f 在一位数前补一个空格，NumPy 又会去掉末尾的零。",
                en="The format 4.1f pads a one-digit number with a space, and NumPy drops trailing zeros.",
            )
        },
        only_if=Text(zh="T 是 10：只有这一行逐字符相同", en="T is 10: only that line matches character for character"),
    )
