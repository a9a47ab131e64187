"""Text 003, chapter 4.3: large differences make softmax one-hot, and the listing that shows it."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, near
from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts.figures import listed

# The five cases, under the chapter's names.
_CASES = {
    "Uniform": [1.0, 1.0, 1.0],
    "Slight": [1.0, 2.0, 3.0],
    "Moderate": [1.0, 5.0, 10.0],
    "Huge": [1.0, 50.0, 100.0],
    "Extreme": [1.0, 500.0, 1000.0],
}
# The weights in its output listing.
_LISTING = {
    "Uniform": "[0.333333 0.333333 0.333333]",
    "Moderate": "[0.000123 0.006693 0.993184]",
    "Extreme": "[0.000000 0.000000 1.000000]",
}


@claim(
    "S3-17",
    says=Text(zh="输入差异很大时，softmax 趋近 one-hot", en="When inputs differ greatly, softmax approaches one-hot"),
    where="4.3, L127/L138",
    experiment="extremes",
)
def _s3_17() -> Outcome:
    trials = {
        "[1, 500, 1000]": [1.0, 500.0, 1000.0],
        "[1000, 1, 1]": [1000.0, 1.0, 1.0],
        "[1000, 1000, 1]": [1000.0, 1000.0, 1.0],
    }
    peaks = {name: float(ss.partition(np.array(x)).peak) for name, x in trials.items()}
    # The bound: all others together get at most (n − 1)·e^−gap, where gap is the lead over the runner-up.
    gap = math.log(2 / 0.001)
    return Outcome.of(
        under={name: x > 0.999 for name, x in peaks.items()},
        measured=", ".join(f"{name}: {x:g}" for name, x in peaks.items()),
        because={
            "only-if": Text(
                zh=f"起作用的只是第一名领先第二名多少：3 个数时领先 {gap:.1f} 就能得到 0.999；并列第一则平分。",
                en=f"Only the lead over the runner-up counts: with 3 numbers, a lead of {gap:.1f} gives 0.999; ties share the weight.",
            )
        },
        only_if=Text(zh="最大的一项领先第二名很多", en="the largest is far ahead of the second largest"),
    )


@claim(
    "S3-18",
    says=Text(zh="[1000, 1, 1] 的 softmax 约为 [1, 0, 0]", en="The softmax of [1000, 1, 1] is about [1, 0, 0]"),
    where="4.3, L129/L140",
    experiment="extremes",
)
def _s3_18() -> Outcome:
    x = np.array([1000.0, 1.0, 1.0])
    p = ss.softmax(x)
    digits = float(-ss.log_softmax(x)[1]) / math.log(10.0)
    return Outcome.of(
        {"[1000, 1, 1]": near(p, ["1", "0", "0"])},
        measured=listed(p, "g"),
        because={
            "holds": Text(
                zh=f"另外两项都是 10^−{digits:.0f}，小到连 float64 也无法表示。",
                en=f"The other two are each 10^−{digits:.0f}, too small even for float64.",
            )
        },
    )


@claim(
    "S3-19",
    says=Text(
        zh="分数最高的一项几乎独占权重，其余几乎被忽略",
        en="The highest score takes nearly all the weight and the others are all but ignored",
    ),
    where="4.3, L133-134",
    experiment="extremes",
)
def _s3_19() -> Outcome:
    peaks = {name: float(ss.partition(np.array(x)).peak) for name, x in _CASES.items()}
    return Outcome.of(
        under={f"{_CASES[name]}": x > 0.99 for name, x in peaks.items()},
        measured=", ".join(f"{_CASES[name]}: {x:.4f}" for name, x in peaks.items()),
        because={
            "only-if": Text(
                zh="领先 5 就足以达到 0.99；领先 1 或不领先则不够。",
                en="A lead of 5 is enough for 0.99; a lead of 1 or none is not.",
            )
        },
        only_if=Text(zh="第一名领先第二名 5 左右或更多", en="the first leads the second by about 5 or more"),
    )


_AS_NUMBERS = Text(zh="指的是数值，而不是逐字符的输出", en="it is read as numbers, not as printed characters")


def _line(name: str) -> str:
    """The weights of a case, as the chapter's code prints them."""
    return code.printed(code.stable(np.array(_CASES[name])), 6)


@claim(
    "S3-20",
    says=Text(zh="均匀的一例打印 0.333333 三次", en="The uniform case prints 0.333333 three times"),
    where="4.3 output, L174-176",
    experiment="extremes",
)
def _s3_20() -> Outcome:
    p, line = code.stable(np.array(_CASES["Uniform"])), _line("Uniform")
    return Outcome.of(
        {
            Text(zh="数值", en="numbers"): near(p, ["0.333333"] * 3),
            Text(zh="打印的字符", en="characters printed"): line == _LISTING["Uniform"],
        },
        measured=line,
        because={"holds": Text(zh="相等的分数给出相等的权重。", en="Equal scores get equal weights.")},
    )


@claim(
    "S3-21",
    says=Text(zh="[1, 5, 10] 打印 [0.000123 0.006693 0.993184]", en="[1, 5, 10] prints [0.000123 0.006693 0.993184]"),
    where="4.3 output, L178-180",
    experiment="extremes",
)
def _s3_21() -> Outcome:
    p, line = code.stable(np.array(_CASES["Moderate"])), _line("Moderate")
    stated = ["0.000123", "0.006693", "0.993184"]
    wrong = sum(not near(x, digits) for x, digits in zip(p, stated, strict=True))
    return Outcome.of(
        {
            Text(zh="数值", en="numbers"): near(p, stated),
            Text(zh="打印的字符", en="characters printed"): line == _LISTING["Moderate"],
        },
        measured=f"{listed(p, '.6f')} → {line}",
        because={
            "fails": Text(
                zh=f"{wrong} 个数的最后一位不对；并且最大与最小之比超过 1000 时，NumPy 用科学记数法打印。",
                en=f"The last digit of {wrong} numbers is wrong; also, when the largest is over 1000 times the smallest, "
                f"NumPy prints in scientific notation.",
            )
        },
    )


@claim(
    "S3-22",
    says=Text(
        zh="[1, 500, 1000] 打印 [0.000000 0.000000 1.000000]，几乎 one-hot",
        en="[1, 500, 1000] prints [0.000000 0.000000 1.000000], almost one-hot",
    ),
    where="4.3 output, L182-184",
    experiment="extremes",
)
def _s3_22() -> Outcome:
    p, line = code.stable(np.array(_CASES["Extreme"])), _line("Extreme")
    return Outcome.of(
        under={
            Text(zh="数值，one-hot", en="numbers, one-hot"): near(p, ["0.000000", "0.000000", "1.000000"]),
            Text(zh="打印的字符", en="characters printed"): line == _LISTING["Extreme"],
        },
        measured=line,
        because={
            "only-if": Text(
                zh="数值正确；NumPy 打印整数值时不写小数。",
                en="The numbers are right; NumPy prints whole values without decimals.",
            )
        },
        only_if=_AS_NUMBERS,
    )


@claim(
    "S3-23",
    says=Text(zh="输出示例就是代码打印的内容", en="The output listing is what the code prints"),
    where="4.3 output, L172-184",
    experiment="extremes",
)
def _s3_23() -> Outcome:
    # For each case the code prints a name, the input, the weights and the largest weight (ignoring blank lines).
    printed: list[str] = []
    for name, x in _CASES.items():
        printed += [f"{name}:", f"Input: {x}", f"Softmax: {_line(name)}", f"Max: {code.stable(np.array(x)).max():.6f}"]
    listed: list[str] = []
    for name, line in _LISTING.items():
        listed += [f"{name}:", f"Input: {_CASES[name]}", f"Softmax: {line}"]
    found = sum(line in printed for line in listed)
    return Outcome.of(
        {
            Text(zh="列出的行都会打印", en="every listed line is printed"): found == len(listed),
            Text(zh="打印的行都已列出", en="every printed line is listed"): all(line in listed for line in printed),
        },
        measured=Text(
            zh=f"列出 {len(listed)} 行，其中 {found} 行与打印的一致；代码打印 {len(printed)} 行",
            en=f"{len(listed)} lines are listed, {found} of them exactly as printed; the code prints {len(printed)}",
        ),
        because={
            "fails": Text(
                zh=f"示例略去 {len(_CASES) - len(_LISTING)} 例和每例的“最大值占比”，并且有 {len(listed) - found} 个数组不是 NumPy 的打印格式。",
                en=f"The listing omits {len(_CASES) - len(_LISTING)} cases and each case's largest share, and "
                f"{len(listed) - found} arrays are not written the way NumPy prints them.",
            )
        },
    )
