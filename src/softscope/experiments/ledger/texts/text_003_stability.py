"""Text 003, chapter 4.2: the naive and the stable softmax, and what they print."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, equal, generator, near, off_by, symbols
from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts.figures import listed

_SMALL, _BIG = np.array([1.0, 2.0, 3.0]), np.array([1000.0, 1001.0, 1002.0])
_STATED = ["0.0900", "0.2447", "0.6652"]
_LINE = "[0.0900 0.2447 0.6652]"
_AS_NUMBERS = Text(zh="指的是数值，而不是逐字符的输出", en="it is read as numbers, not as printed characters")


@claim(
    "S3-08",
    says=Text(zh="朴素的实现有数值问题", en="The naive implementation has numerical problems"),
    where="4.2, L69/L95",
    experiment="overflow",
)
def _s3_08() -> Outcome:
    trials = {
        "float64, [1000, 1001, 1002]": _BIG,
        "float64, [−1000, −1001]": np.array([-1000.0, -1001.0]),
        "float32, [90, 91]": np.array([90.0, 91.0], dtype=np.float32),
        "float16, [12, 13]": np.array([12.0, 13.0], dtype=np.float16),
    }
    broken = {name: bool(np.isnan(code.reported(code.naive, x)[0]).any()) for name, x in trials.items()}
    limits = {name: math.log(float(np.finfo(name).max)) for name in ("float64", "float32", "float16")}
    shown = ", ".join(f"{name} {x:.1f}" for name, x in limits.items())
    return Outcome.of(
        broken,
        measured=Text(zh=f"exp 溢出的界限：{shown}", en=f"exp overflows above: {shown}"),
        because={
            "holds": Text(
                zh="上溢给出 ∞/∞，下溢给出 0/0，两者都是 NaN。",
                en="Overflow gives ∞/∞ and underflow gives 0/0; both are NaN.",
            )
        },
    )


@claim(
    "S3-09",
    says=Text(
        zh="减去最大值后，最大的指数项是 e^0 = 1",
        en="After subtracting the maximum, the largest exponential is e^0 = 1",
    ),
    where="4.2, L75-76",
    experiment="overflow",
)
def _s3_09() -> Outcome:
    x = generator("S3-09").standard_normal((500, 10)) * 100.0
    largest = np.exp(x - x.max(-1, keepdims=True)).max(-1)
    return Outcome.of(
        {Text(zh="500 行随机数", en="500 random rows"): bool((largest == 1.0).all())},
        measured=Text(
            zh=f"每行最大的指数项：{largest.min():g} 到 {largest.max():g}",
            en=f"largest exponential in each row: {largest.min():g} to {largest.max():g}",
        ),
        because={"holds": Text(zh="最大值减去自身恰好是 0。", en="The maximum minus itself is exactly 0.")},
    )


@claim(
    "S3-10",
    says=Text(zh="两个版本都打印 [0.0900 0.2447 0.6652]", en="Both versions print [0.0900 0.2447 0.6652]"),
    where="4.2, L85",
    experiment="overflow",
)
def _s3_10() -> Outcome:
    a, b = code.naive(_SMALL), code.stable(_SMALL)
    line = code.printed(b, 4)
    return Outcome.of(
        under={
            Text(zh="数值，朴素", en="numbers, naive"): near(a, _STATED),
            Text(zh="数值，稳定", en="numbers, stable"): near(b, _STATED),
            Text(zh="打印的字符", en="characters printed"): line == _LINE,
        },
        measured=line,
        because={
            "only-if": Text(
                zh="NumPy 打印数组时去掉末尾的零。", en="NumPy drops trailing zeros when printing an array."
            )
        },
        only_if=_AS_NUMBERS,
    )


@claim("S3-11", says=Text(zh="总和打印为 1.0", en="The sum prints as 1.0"), where="4.2, L89")
def _s3_11() -> Outcome:
    total = float(code.stable(_SMALL).sum())
    line = f"{total:.6f}"
    return Outcome.of(
        under={
            Text(zh="数值", en="number"): abs(total - 1.0) < 1e-15,
            Text(zh="打印的字符", en="characters printed"): line == "1.0",
        },
        measured=line,
        because={"only-if": Text(zh="格式 .6f 打印 6 位小数。", en="The format .6f prints 6 decimals.")},
        only_if=_AS_NUMBERS,
    )


@claim(
    "S3-12",
    says=Text(
        zh="朴素实现遇到 [1000, 1001, 1002] 会溢出，异常由 except 捕获",
        en="The naive version overflows on [1000, 1001, 1002], and except catches the exception",
    ),
    where="4.2, L95-102",
    experiment="overflow",
)
def _s3_12() -> Outcome:
    result, seen, raised = code.reported(code.naive, _BIG)
    return Outcome.of(
        {Text(zh="有异常", en="an exception is raised"): raised != ""},
        measured=Text(
            zh=f"异常：{raised or '无'}；结果 {listed(result, 'g')}；警告 {len(seen)} 个：{'；'.join(seen)}",
            en=f"exception: {raised or 'none'}; result {listed(result, 'g')}; {len(seen)} warnings: {'; '.join(seen)}",
        ),
        because={
            "fails": Text(
                zh="NumPy 只发出警告并返回 NaN，except 永远不会执行。",
                en="NumPy only warns and returns NaN, so the except branch never runs.",
            )
        },
    )


@claim(
    "S3-13",
    says=Text(zh="稳定版本打印 [0.0900 0.2447 0.6652]", en="The stable version prints [0.0900 0.2447 0.6652]"),
    where="4.2, L106-107",
    experiment="overflow",
)
def _s3_13() -> Outcome:
    p = code.stable(_BIG)
    line = code.printed(p, 6)
    return Outcome.of(
        under={
            Text(zh="数值", en="numbers"): near(p, _STATED),
            Text(zh="打印的字符", en="characters printed"): line == _LINE,
        },
        measured=line,
        because={
            "only-if": Text(
                zh="代码保留 6 位小数，注释只写了 4 位。", en="The code keeps 6 decimals; the comment shows only 4."
            )
        },
        only_if=_AS_NUMBERS,
    )


@claim(
    "S3-14",
    says=Text(
        zh="[1000, 1001, 1002] 与 [1, 2, 3] 的结果相同", en="[1000, 1001, 1002] gives the same result as [1, 2, 3]"
    ),
    where="4.2, L107-108",
    experiment="overflow",
)
def _s3_14() -> Outcome:
    off = off_by(ss.softmax(_BIG), ss.softmax(_SMALL))
    return Outcome.of(
        {
            "softscope.softmax": off == 0.0,
            Text(zh="文中的代码", en="the text's code"): off_by(code.stable(_BIG), code.stable(_SMALL)) == 0.0,
        },
        measured=Text(zh=f"相差 {off:g}", en=f"they differ by {off:g}"),
        because={
            "holds": Text(
                zh="减去最大值后，两者是相同的数。", en="After subtracting the maximum, they are the same numbers."
            )
        },
    )


@claim(
    "S3-15",
    says=Text(
        zh="所有分数加上同一个数，softmax 不变", en="Adding the same number to all scores does not change softmax"
    ),
    where="4.2, L114-116",
    experiment="overflow",
)
def _s3_15() -> Outcome:
    import sympy

    z, s = symbols(3)
    c = sympy.Symbol("c", real=True)
    shifted = s.subs({x: x + c for x in z}, simultaneous=True)
    rng = generator("S3-15")
    x, shifts = rng.standard_normal((200, 10)), rng.uniform(-100.0, 100.0, (200, 1))
    off = off_by(ss.softmax(x + shifts), ss.softmax(x))
    return Outcome.of(
        {
            Text(zh="推导，n = 3", en="derivation, n = 3"): equal(shifted, s),
            Text(zh="200 次随机平移", en="200 random shifts"): off < 1e-13,
        },
        measured=Text(zh=f"平移后最多相差 {off:.1g}", en=f"off by at most {off:.1g} after the shift"),
        because={"holds": Text(zh="e^C 在分子和分母中约去。", en="e^C cancels between numerator and denominator.")},
    )


@claim(
    "S3-16",
    says=Text(zh="取 C = max 时所有指数 ≤ 0，不会溢出", en="With C = max, all exponents are ≤ 0 and nothing overflows"),
    where="4.2, L118-119",
    experiment="overflow",
)
def _s3_16() -> Outcome:
    rng = generator("S3-16")
    trials = {
        Text(zh="500 个随机数，±1e300", en="500 random numbers, ±1e300"): rng.uniform(-1e300, 1e300, 500),
        "[1000, 1001, 1002]": _BIG,
        "[1e308, −1e308]": np.array([1e308, -1e308]),
    }
    quiet, right = {}, True
    for name, x in trials.items():
        p, seen, _ = code.reported(code.stable, x)
        quiet[name] = not any("overflow" in message for message in seen)
        right = right and bool(np.isfinite(p).all()) and abs(float(p.sum()) - 1.0) < 1e-14
    largest = float(np.finfo(np.float64).max)
    return Outcome.of(
        under=quiet | {Text(zh="结果有限，和为 1", en="results are finite and sum to 1"): right},
        measured=Text(
            zh=f"没有溢出警告的例子：{sum(quiet.values())}/{len(quiet)}",
            en=f"cases without an overflow warning: {sum(quiet.values())}/{len(quiet)}",
        ),
        because={
            "only-if": Text(
                zh="exp 从不溢出；相差极大时减法会溢出为 −∞，但 e^−∞ = 0，结果仍然正确。",
                en="exp never overflows; when the spread is enormous the subtraction overflows to −∞, but e^−∞ = 0, so the "
                "result is still right.",
            )
        },
        only_if=Text(
            zh=f"最大与最小相差不到 {largest:.1e}", en=f"the largest and the smallest differ by less than {largest:.1e}"
        ),
    )
