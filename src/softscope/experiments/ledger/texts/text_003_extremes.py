"""Text 003, chapter 4.3: large differences make softmax one-hot, and the listing that shows it."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, near, off_by
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
_NUMBERS = Text(zh="数值", en="numbers")
_CHARACTERS = Text(zh="打印的字符", en="characters printed")


@claim(
    "S3-17",
    says=Text(zh="输入差异很大时，softmax 趋近 one-hot", en="When inputs differ greatly, softmax approaches one-hot"),
    quote="When input values differ greatly, Softmax approaches a one-hot vector.",
    where="4.3, L127/L138",
    experiment="extremes",
)
def _s3_17() -> Outcome:
    trials = {
        "[1, 500, 1000]": [1.0, 500.0, 1000.0],
        "[1000, 1, 1]": [1000.0, 1.0, 1.0],
        "[1000, 1000, 1]": [1000.0, 1000.0, 1.0],
        "[1000, 999, 1]": [1000.0, 999.0, 1.0],
    }
    peaks = {name: float(ss.softmax(np.array(x)).max()) for name, x in trials.items()}
    # The bound: all others together get at most (n − 1)·e^−gap, where gap is the lead over the runner-up.
    gap = math.log(2 / 0.001)
    return Outcome.of(
        under={name: x > 0.999 for name, x in peaks.items()},
        measured=Text(
            zh="最大权重 " + ", ".join(f"{name}: {x:.3g}" for name, x in peaks.items()),
            en="largest weight " + ", ".join(f"{name}: {x:.3g}" for name, x in peaks.items()),
        ),
        because={
            "only-if": Text(
                zh=f"其余各项合起来最多得到 (n − 1)·e^−领先，所以起作用的只是第一名领先第二名多少：3 个数时领先 {gap:.1f} 就够 0.999；"
                "别的数差得再远也没用，并列第一则平分。",
                en=f"All others together get at most (n − 1)·e^−lead, so only the lead over the runner-up counts: with 3 numbers a lead "
                f"of {gap:.1f} is enough for 0.999. How far off the rest are does not matter, and a tie shares the weight.",
            )
        },
        only_if=Text(zh="最大的一项领先第二名很多", en="the largest is far ahead of the second largest"),
    )


@claim(
    "S3-18",
    says=Text(zh="[1000, 1, 1] 的 softmax 约为 [1, 0, 0]", en="The softmax of [1000, 1, 1] is about [1, 0, 0]"),
    quote="softmax([1000, 1, 1]) ≈ [1, 0, 0]",
    where="4.3, L129/L140",
    experiment="extremes",
)
def _s3_18() -> Outcome:
    x = np.array([1000.0, 1.0, 1.0])
    p = ss.softmax(x)
    digits = float(-ss.log_softmax(x)[1]) / math.log(10.0)
    return Outcome.of(
        {"[1000, 1, 1]": off_by(p, [1.0, 0.0, 0.0]) < 0.001},
        measured=listed(p, "g"),
        because={
            "holds": Text(
                zh=f"领先 999，另外两项就只有 e^−999 ≈ 10^−{digits:.0f}，小到连 float64 也无法表示。",
                en=f"A lead of 999 leaves e^−999 ≈ 10^−{digits:.0f} for each of the other two, too small even for float64.",
            )
        },
    )


@claim(
    "S3-19",
    says=Text(
        zh="softmax 接近 one-hot（如 [1000, 1, 1]）意味着：分数最高的一项几乎独占所有注意力，其他 token 几乎被忽略",
        en="That softmax is near one-hot, as for [1000, 1, 1], means that the highest score gets almost all the attention and the "
        "other tokens are effectively ignored",
    ),
    quote="The highest-scoring element gets almost all the attention",
    where="4.3, L133-134/L140-145",
    experiment="extremes",
)
def _s3_19() -> Outcome:
    rng = generator("S3-19")
    x = np.concatenate([100.0 * rng.standard_normal((2000, 8)), [[1000.0] + [1.0] * 7]])
    p = ss.softmax(x)
    sharp = p.max(-1) > 0.999  # near one-hot, which is what the sentence starts from
    x, p = x[sharp], p[sharp]
    top = np.eye(8)[x.argmax(-1)]
    highest = (p * top).sum(-1)
    # Exchange the values of all other tokens: does the output notice?
    before, after = rng.standard_normal((2, *p.shape))
    moved = np.abs((p * (1.0 - top) * (after - before)).sum(-1))
    return Outcome.of(
        {
            Text(zh="[1000, 1, …, 1] 接近 one-hot", en="[1000, 1, …, 1] is near one-hot"): bool(sharp[-1]),
            Text(zh="分数最高的一项得到 0.999 以上", en="the highest score gets over 0.999"): bool(
                (highest > 0.999).all()
            ),
            Text(
                zh="换掉其他 token 的值，输出不变（0.01 以内）",
                en="other tokens' values can be exchanged: the output stays within 0.01",
            ): bool((moved < 0.01).all()),
        },
        measured=Text(
            zh=f"{len(p)} 行接近 one-hot：分数最高的一项至少得到 {highest.min(initial=1.0):.4f}；换掉其他 7 个值，输出最多变 {moved.max(initial=0.0):.1g}",
            en=f"{len(p)} rows near one-hot: the highest score gets at least {highest.min(initial=1.0):.4f}; exchanging the other 7 values "
            f"moves the output by at most {moved.max(initial=0.0):.1g}",
        ),
        because={
            "holds": Text(
                zh="权重保持分数的次序，所以那个接近 1 的权重属于最高的分数；其余的合起来不到 0.001，它们的值在加权和里几乎不起作用。",
                en="Weights keep the order of the scores, so the weight near 1 belongs to the highest one; the rest add up to less than "
                "0.001, and their values hardly count in the weighted sum.",
            )
        },
    )


def _line(name: str) -> str:
    """The weights of a case, as the chapter's code prints them."""
    return code.printed(code.stable(np.array(_CASES[name])), 6)


@claim(
    "S3-20",
    says=Text(zh="均匀的一例打印 0.333333 三次", en="The uniform case prints 0.333333 three times"),
    quote="Softmax: [0.333333 0.333333 0.333333]",
    where="4.3 output, L174-176",
    experiment="extremes",
)
def _s3_20() -> Outcome:
    p, line = code.stable(np.array(_CASES["Uniform"])), _line("Uniform")
    return Outcome.of(
        {_NUMBERS: near(p, ["0.333333"] * 3), _CHARACTERS: line == _LISTING["Uniform"]},
        measured=line,
        because={
            "holds": Text(
                zh="相等的分数得到相等的权重，三个就是各 1/3；没有末尾的零，所以 NumPy 也逐字这样打印。",
                en="Equal scores get equal weights, for three of them 1/3 each; with no trailing zeros, NumPy prints just this.",
            )
        },
    )


@claim(
    "S3-21",
    says=Text(zh="[1, 5, 10] 打印 [0.000123 0.006693 0.993184]", en="[1, 5, 10] prints [0.000123 0.006693 0.993184]"),
    quote="Softmax: [0.000123 0.006693 0.993184]",
    where="4.3 output, L178-180",
    experiment="extremes",
)
def _s3_21() -> Outcome:
    p, line = code.stable(np.array(_CASES["Moderate"])), _line("Moderate")
    stated = ["0.000123", "0.006693", "0.993184"]
    wrong = sum(not near(x, digits) for x, digits in zip(p, stated, strict=True))
    return Outcome.of(
        {_NUMBERS: wrong == 0, _CHARACTERS: line == _LISTING["Moderate"]},
        measured=f"{listed(p, '.6f')} → {line}",
        because={
            "fails": Text(
                zh=f"{wrong} 个数的最后一位不对；并且最大与最小之比超过 1000 时，NumPy 用科学记数法打印。",
                en=f"The last digit of {wrong} numbers is wrong; also, when the largest is over 1000 times the smallest, "
                f"NumPy prints in scientific notation.",
            )
        },
        instead=Text(
            zh=f"[1, 5, 10] 得到 {listed(p, '.6f')}，打印为 {line}",
            en=f"[1, 5, 10] gives {listed(p, '.6f')}, which prints as {line}",
        ),
    )


@claim(
    "S3-22",
    says=Text(
        zh="[1, 500, 1000] 打印 [0.000000 0.000000 1.000000]，几乎 one-hot",
        en="[1, 500, 1000] prints [0.000000 0.000000 1.000000], almost one-hot",
    ),
    quote="Softmax: [0.000000 0.000000 1.000000]  ← 几乎 one-hot",
    where="4.3 output, L182-184",
    experiment="extremes",
)
def _s3_22() -> Outcome:
    p, line = code.stable(np.array(_CASES["Extreme"])), _line("Extreme")
    return Outcome.of(
        {
            Text(zh="几乎 one-hot", en="almost one-hot"): near(p, ["0.000000", "0.000000", "1.000000"]),
            _CHARACTERS: line == _LISTING["Extreme"],
        },
        measured=line,
        because={
            "fails": Text(
                zh="几乎 one-hot 是对的，但代码打印的不是这一行：NumPy 去掉末尾的零，整数值后面只剩一个点。",
                en="Almost one-hot is right, but this is not what the code prints: NumPy drops trailing zeros and leaves only a "
                "point behind whole values.",
            )
        },
        instead=Text(
            zh=f"[1, 500, 1000] 几乎是 one-hot，打印为 {line}",
            en=f"[1, 500, 1000] is almost one-hot and prints as {line}",
        ),
    )


@claim(
    "S3-23",
    says=Text(zh="输出示例就是代码打印的内容", en="The output example is what the code prints"),
    quote="输出示例 | Output Example",
    where="4.3 output, L172-184",
)
def _s3_23() -> Outcome:
    # Line by line, ignoring blank lines; an example may leave lines out, so those that are missing are only counted.
    same = {name: _line(name) == line for name, line in _LISTING.items()}
    wrong = ", ".join(f"{_CASES[name]}" for name, held in same.items() if not held) or "–"
    return Outcome.of(
        {f"{_CASES[name]}": held for name, held in same.items()},
        measured=Text(
            zh=f"列出 {len(same)} 个数组，其中 {sum(same.values())} 个与打印的一致；代码共有 {len(_CASES)} 例",
            en=f"{len(same)} arrays are listed, {sum(same.values())} of them as printed; the code has {len(_CASES)} cases",
        ),
        because={
            "fails": Text(
                zh=f"{wrong} 的数组不是 NumPy 的写法：它去掉末尾的零，数值悬殊时改用科学记数法；[1, 5, 10] 还有错的数字。",
                en=f"The arrays for {wrong} are not what NumPy writes: it drops trailing zeros, and changes to scientific notation when "
                "values are far apart; [1, 5, 10] has wrong digits as well.",
            )
        },
        instead=Text(
            zh=f"代码打印 {' / '.join(_line(name) for name in _LISTING)}，每例还打印最大值占比",
            en=f"The code prints {' / '.join(_line(name) for name in _LISTING)}, and each case's largest share as well",
        ),
    )
