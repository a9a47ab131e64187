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
_NUMBERS = Text(zh="数值", en="numbers")
_CHARACTERS = Text(zh="打印的字符", en="characters printed")


@claim(
    "S3-08",
    says=Text(zh="朴素的实现有数值问题", en="The naive implementation has numerical problems"),
    quote="Naive Softmax (has numerical issues)",
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
        measured=Text(
            zh=f"给出 NaN 的有 {sum(broken.values())}/{len(broken)} 例；exp 溢出的界限：{shown}",
            en=f"NaN in {sum(broken.values())} of {len(broken)} cases; exp overflows above: {shown}",
        ),
        because={
            "holds": Text(
                zh="大的分数使 exp 上溢，得 ∞/∞；很负的分数使它全部下溢，得 0/0；两者都是 NaN。",
                en="Large scores overflow exp and give ∞/∞; very negative ones underflow to 0/0; both are NaN.",
            )
        },
    )


@claim(
    "S3-09",
    says=Text(
        zh="减去最大值后，最大的指数项变为 e^0 = 1",
        en="With the maximum subtracted, the largest exponential becomes e^0 = 1",
    ),
    quote="Max exponent becomes e^0 = 1",
    where="4.2, L75-76",
)
def _s3_09() -> Outcome:
    rows = generator("S3-09").standard_normal((500, 10))
    trials = {
        Text(zh="500 行随机数，标准差 100", en="500 random rows, standard deviation 100"): 100.0 * rows,
        Text(zh="同上，标准差 1e300", en="the same, standard deviation 1e300"): 1e300 * rows,
        Text(zh="同上，float16", en="the same in float16"): (100.0 * rows).astype(np.float16),
        "[1000, 1001, 1002]": _BIG,
    }
    # What the chapter's own code exponentiates: its largest power in each row.
    largest = {name: code.reported(code.powers, x)[0].max(-1) for name, x in trials.items()}
    low, high = (float(f([f(x) for x in largest.values()])) for f in (np.min, np.max))
    return Outcome.of(
        {name: bool((x == 1.0).all()) for name, x in largest.items()},
        measured=Text(
            zh=f"文中代码每行最大的指数项：{low:g} 到 {high:g}",
            en=f"largest power per row in the text's code: {low:g} to {high:g}",
        ),
        because={
            "holds": Text(
                zh="最大的一项减去自己恰好是 0，没有舍入误差；e^0 恰好是 1，其余的指数项都更小。",
                en="The largest entry minus itself is exactly 0, with no rounding; e^0 is exactly 1, and all other powers are smaller.",
            )
        },
    )


@claim(
    "S3-10",
    says=Text(zh="两个版本都打印 [0.0900 0.2447 0.6652]", en="Both versions print [0.0900 0.2447 0.6652]"),
    quote="[0.0900 0.2447 0.6652]",
    where="4.2, L85",
    experiment="overflow",
)
def _s3_10() -> Outcome:
    a, b = code.naive(_SMALL), code.stable(_SMALL)
    lines = {code.printed(a, 4), code.printed(b, 4)}
    line = " / ".join(sorted(lines))
    return Outcome.of(
        {_NUMBERS: near(a, _STATED) and near(b, _STATED), _CHARACTERS: lines == {_LINE}},
        measured=line,
        because={
            "fails": Text(
                zh="两个版本的数值都对，但写在 print 下面的这一行不是它打印的：NumPy 打印数组时去掉末尾的零。",
                en="Both versions have these values, but this line below the print is not what is printed: NumPy drops trailing "
                "zeros when it prints an array.",
            )
        },
        instead=Text(
            zh=f"两个版本都得到 [0.0900, 0.2447, 0.6652]，打印出来是 {line}",
            en=f"Both versions give [0.0900, 0.2447, 0.6652], which prints as {line}",
        ),
    )


@claim(
    "S3-11",
    says=Text(zh="总和打印为 1.0", en="The sum prints as 1.0"),
    quote='print(f"总和 | Sum: {result.sum():.6f}")   # 1.0',
    where="4.2, L89",
)
def _s3_11() -> Outcome:
    total = float(code.stable(_SMALL).sum())
    line = _sum_as_printed(total)
    return Outcome.of(
        {_NUMBERS: abs(total - 1.0) < 1e-15, _CHARACTERS: line == "1.0"},
        measured=line,
        because={
            "fails": Text(
                zh="和确实是 1，但 print 里的格式 .6f 总是写出 6 位小数。",
                en="The sum is 1, but the format .6f in that print always writes 6 decimals.",
            )
        },
        instead=Text(zh=f"总和是 1，打印为 {line}", en=f"The sum is 1 and prints as {line}"),
    )


def _sum_as_printed(total: float) -> str:
    """As the chapter's line formats it."""
    return f"{total:.6f}"


@claim(
    "S3-12",
    says=Text(
        zh="朴素实现遇到 [1000, 1001, 1002] 会溢出，异常由 except 捕获",
        en="The naive version overflows on [1000, 1001, 1002], and except catches the exception",
    ),
    quote="Naive overflow: {e}",
    where="4.2, L95-102",
    experiment="overflow",
)
def _s3_12() -> Outcome:
    result, seen, raised = code.reported(code.naive, _BIG)
    shown = "–" if result is None else listed(result, "g")
    return Outcome.of(
        {
            Text(zh="溢出", en="it overflows"): result is None or any("overflow" in message for message in seen),
            Text(zh="有异常可捕获", en="there is an exception to catch"): raised != "",
        },
        measured=Text(
            zh=f"异常：{raised or '无'}；结果 {shown}；警告 {len(seen)} 个：{'；'.join(seen)}",
            en=f"exception: {raised or 'none'}; result {shown}; {len(seen)} warnings: {'; '.join(seen)}",
        ),
        because={
            "fails": Text(
                zh="溢出是真的，但 NumPy 只发出警告并返回 NaN，没有异常，except 一支永远不会执行。",
                en="It does overflow, but NumPy only warns and returns NaN; no exception is raised, so the except branch never runs.",
            )
        },
        instead=Text(
            zh=f"朴素实现遇到 [1000, 1001, 1002] 会溢出：NumPy 发出 {len(seen)} 个警告，返回 {shown}，不抛异常",
            en=f"On [1000, 1001, 1002] the naive version overflows: NumPy gives {len(seen)} warnings and returns {shown}, "
            "without an exception",
        ),
    )


@claim(
    "S3-13",
    says=Text(
        zh="稳定版本对 [1000, 1001, 1002] 打印 [0.0900 0.2447 0.6652]",
        en="On [1000, 1001, 1002] the stable version prints [0.0900 0.2447 0.6652]",
    ),
    quote="# [0.0900 0.2447 0.6652]",
    where="4.2, L106-107",
    experiment="overflow",
)
def _s3_13() -> Outcome:
    p = code.stable(_BIG)
    line = code.printed(p, 6)
    return Outcome.of(
        {_NUMBERS: near(p, _STATED), _CHARACTERS: line == _LINE},
        measured=line,
        because={
            "fails": Text(
                zh="数值是对的，但那一行 print 用 round(6)，打印 6 位小数；注释只写了 4 位。",
                en="The values are right, but that print uses round(6) and shows 6 decimals; the comment shows only 4.",
            )
        },
        instead=Text(
            zh=f"稳定版本打印 {line}，保留 4 位小数是 [0.0900, 0.2447, 0.6652]",
            en=f"The stable version prints {line}, which is [0.0900, 0.2447, 0.6652] to 4 decimals",
        ),
    )


@claim(
    "S3-14",
    says=Text(
        zh="[1000, 1001, 1002] 的结果与 [1, 2, 3] 相对关系相同",
        en="[1000, 1001, 1002] comes out with the same relative relationships as [1, 2, 3]",
    ),
    quote="Same relative relationships as [1,2,3]!",
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
        measured=Text(zh=f"两组权重相差 {off:g}", en=f"the two sets of weights differ by {off:g}"),
        because={
            "holds": Text(
                zh="减去最大值后，两者都是 [−2, −1, 0]：softmax 只看差值，所以权重完全相同。",
                en="After subtracting the maximum both are [−2, −1, 0]: softmax sees only differences, so the weights are identical.",
            )
        },
    )


@claim(
    "S3-15",
    says=Text(
        zh="所有分数减去同一个数 C，softmax 不变",
        en="Subtracting the same number C from all scores leaves softmax unchanged",
    ),
    quote="= exp(x_i - C) / Σ exp(x_j - C)",
    where="4.2, L114-116",
    experiment="overflow",
)
def _s3_15() -> Outcome:
    import sympy

    z, s = symbols(3)
    c = sympy.Symbol("c", real=True)
    shifted = s.subs({x: x - c for x in z}, simultaneous=True)
    rng = generator("S3-15")
    x, shifts = rng.standard_normal((200, 10)), rng.uniform(-100.0, 100.0, (200, 1))
    off = off_by(ss.softmax(x - shifts), ss.softmax(x))
    return Outcome.of(
        {
            Text(zh="推导，n = 3", en="derivation, n = 3"): equal(shifted, s),
            Text(zh="200 次随机平移", en="200 random shifts"): off < 1e-13,
        },
        measured=Text(zh=f"平移后最多相差 {off:.1g}", en=f"off by at most {off:.1g} after the shift"),
        because={
            "holds": Text(
                zh="分子和分母的每一项都带同一个因子 e^(−C)，约去后什么也没变。",
                en="Every term above and below carries the same factor e^(−C), which cancels.",
            )
        },
        evidence="derived",
    )


@claim(
    "S3-16",
    says=Text(
        zh="取 C = max 时所有指数 ≤ 0，不会溢出", en="With C = max, all exponents are ≤ 0 and no overflow occurs"
    ),
    quote="Taking C = max(x), all exponents ≤ 0, no overflow occurs.",
    where="4.2, L118-119",
    experiment="overflow",
)
def _s3_16() -> Outcome:
    trials = {
        Text(zh="500 个随机数，±1e300", en="500 random numbers, ±1e300"): generator("S3-16").uniform(
            -1e300, 1e300, 500
        ),
        "[1000, 1001, 1002]": _BIG,
        "[1e308, −1e308]": np.array([1e308, -1e308]),
        "float16, [40000, −40000]": np.array([40000.0, -40000.0], dtype=np.float16),
    }
    quiet, right = {}, 0
    for name, x in trials.items():
        e, seen, _ = code.reported(code.powers, x)
        quiet[name] = bool((e <= 1.0).all()) and not any("overflow" in message for message in seen)
        right += off_by(code.reported(code.stable, x)[0].sum(), 1.0) < 1e-14
    wide, half = (float(np.finfo(name).max) for name in ("float64", "float16"))
    return Outcome.of(
        under=quiet,
        measured=Text(
            zh=f"没有溢出警告：{sum(quiet.values())}/{len(quiet)} 例；权重和为 1：{right}/{len(quiet)} 例",
            en=f"no overflow warning in {sum(quiet.values())} of {len(quiet)} cases; weights sum to 1 in {right} of {len(quiet)}",
        ),
        because={
            "only-if": Text(
                zh="exp 不再溢出，因为指数都 ≤ 0；但 x − max 这个减法本身也可能溢出为 −∞（NumPy 会警告）。e^−∞ = 0，所以结果仍然正确。",
                en="exp no longer overflows, since all exponents are ≤ 0. But the subtraction x − max can itself overflow to −∞, with a "
                "warning; e^−∞ = 0, so the result is still right.",
            )
        },
        only_if=Text(
            zh=f"最大与最小之差不超过该类型的最大数（float64 是 {wide:.1e}，float16 是 {half:.0f}）",
            en=f"the largest and the smallest differ by no more than the type's largest number ({wide:.1e} in float64, {half:.0f} "
            "in float16)",
        ),
    )
