"""Text 001, part 1: how softmax makes the important stand out, and whether attention must use it."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, near, off_by, opinion
from softscope.experiments.ledger.texts import recall
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.rivals import MAPS

A = np.array([2.0, 2.1, 2.2])
DIVIDED = MAPS["x/Σx"]


@claim(
    "S1-01",
    says=Text(zh="注意力机制必须使用 softmax", en="Attention must use softmax"),
    quote="为什么注意力机制必须使用 Softmax？",
    where="title, L3",
    experiment="normalisers",
    slow=True,
)
def _s1_01() -> Outcome:
    found, measured = recall.compared(("softmax", "sigmoid − ln n", "x/n", "x/Σx"))
    learned = [name for name, x in found.items() if x.learned and name != "softmax"]
    return Outcome.of(
        {Text(zh="没有别的加权方式学得会", en="no other kind of weights learns the task"): not learned},
        measured=measured,
        because={
            "fails": Text(
                zh=f"查找只需要对的键得到最大的份量，不需要概率：{'、'.join(learned)} 也学会了。",
                en=f"To look something up, the right key must weigh most; the weights need not be probabilities: {' and '.join(learned)} learn it too.",
            ),
            "holds": Text(
                zh="试过的其他加权方式，没有一种在每次训练中都学会。",
                en="None of the other kinds of weights that we tried learns the task in every run.",
            ),
        },
        instead=Text(
            zh="注意力通常使用 softmax；别的加权方式也能学会查找",
            en="Attention usually uses softmax; other kinds of weights can learn to look things up, too",
        ),
    )


@claim(
    "S1-02",
    says=Text(zh="softmax 就是指数放大加归一化", en="Softmax is exponential amplification plus normalisation"),
    quote="Softmax = 指数放大 + 概率归一化",
    where="L5, L197",
)
def _s1_02() -> Outcome:
    x = 3.0 * generator("S1-02").standard_normal((1_000, 12))
    error = off_by(ss.softmax(x), np.exp(x) / np.exp(x).sum(-1, keepdims=True))
    return Outcome.of(
        {Text(zh="先取指数再除以总和", en="exponentials divided by their sum"): error < 1e-12},
        measured=Text(
            zh=f"最大误差 {error:.1g}（n = {len(x)} 行）", en=f"largest error {error:.1g} (n = {len(x)} rows)"
        ),
        because={
            "holds": Text(
                zh="这就是定义：取指数把差变成比，除以总和让权重加起来是 1。",
                en="That is the definition: exp turns differences into ratios, and dividing by the sum makes the weights add up to 1.",
            )
        },
    )


@claim(
    "S1-03",
    says=Text(
        zh="[2.0, 2.1, 2.2] 除以总和是 [0.326, 0.342, 0.358]",
        en="[2.0, 2.1, 2.2] divided by its sum is [0.326, 0.342, 0.358]",
    ),
    quote="= [0.326, 0.342, 0.358]",
    where="Part 1, L21-22",
    experiment="normalisers",
)
def _s1_03() -> Outcome:
    p, stated = DIVIDED(A), ["0.326", "0.342", "0.358"]
    total = sum(map(float, stated))
    return Outcome.of(
        {"[2.0, 2.1, 2.2]": near(p, stated)},
        measured=listed(p, ".4f"),
        because={
            "fails": Text(
                zh=f"除以总和之后，三个数加起来必须是 1；文中的三个数加起来是 {total:.3f}。",
                en=f"After dividing by the sum, the three must add up to 1; the text's three add up to {total:.3f}.",
            )
        },
        instead=Text(
            zh=f"[2.0, 2.1, 2.2] 除以总和是 {listed(p, '.3f')}",
            en=f"[2.0, 2.1, 2.2] divided by its sum is {listed(p, '.3f')}",
        ),
    )


@claim(
    "S1-04",
    says=Text(
        zh="直接除以总和，三个权重差不多一样，不利于聚焦",
        en="Dividing by the sum makes the three weights nearly equal, which does not help to focus",
    ),
    quote="差不多一样，不利于注意力“聚焦”。",
    where="Part 1, L25",
    experiment="normalisers",
)
def _s1_04() -> Outcome:
    p, soft = DIVIDED(A), ss.softmax(A)
    away = off_by(p, np.full(3, 1 / 3))
    return Outcome.of(
        {Text(zh="与 1/3 相差不到 0.02", en="within 0.02 of 1/3"): away < 0.02},
        measured=Text(
            zh=f"最大与最小之比 {p.max() / p.min():.3f}；与 1/3 最多差 {away:.4f}",
            en=f"largest to smallest {p.max() / p.min():.3f}; at most {away:.4f} from 1/3",
        ),
        because={
            "holds": Text(
                zh=f"除以总和时，权重之比就是分数之比，而分数之比接近 1。softmax 在这里也只拉开到 {soft[2] / soft[0]:.2f}。",
                en=f"Divided by the sum, weights have the ratios of the scores, and these are close to 1. Even softmax only widens the ratio to {soft[2] / soft[0]:.2f} here.",
            )
        },
    )


@claim(
    "S1-05",
    says=Text(zh="[2.0, 2.1, 2.2] 的指数是 [7.39, 8.17, 9.03]", en="exp([2.0, 2.1, 2.2]) is [7.39, 8.17, 9.03]"),
    quote="exp(A) = [7.39, 8.17, 9.03]",
    where="Part 1, L32",
)
def _s1_05() -> Outcome:
    e = np.exp(A)
    return Outcome.of(
        {"exp": near(e, ["7.39", "8.17", "9.03"])},
        measured=listed(e, ".4f"),
        because={
            "holds": Text(
                zh=f"分数每加 0.1，指数就乘以 e^0.1 ≈ {e[1] / e[0]:.3f}；三个数都与文中一致。",
                en=f"Each 0.1 added to the score multiplies its exponential by e^0.1 ≈ {e[1] / e[0]:.3f}; all three figures are as the text prints them.",
            )
        },
    )


@claim(
    "S1-06",
    says=Text(zh="取指数把差距从 0.2 放大到“1.64 倍”", en="exp widens the gap from 0.2 to “1.64 times”"),
    quote="差距从 0.2 → 1.64 倍 被放大了！",
    where="Part 1, L35",
)
def _s1_06() -> Outcome:
    e = np.exp(A)
    difference, ratio, growth = e[2] - e[0], e[2] / e[0], (e[2] - e[0]) / (A[2] - A[0])
    return Outcome.of(
        {Text(zh="差距变为原来的 1.64 倍", en="the gap becomes 1.64 times as wide"): near(growth, "1.64")},
        measured=Text(
            zh=f"差距从 {A[2] - A[0]:.1f} 变为 {difference:.3f}，是原来的 {growth:.2f} 倍；两个指数之比 {ratio:.3f}",
            en=f"the gap goes from {A[2] - A[0]:.1f} to {difference:.3f}, {growth:.2f} times as wide; the ratio of the two exponentials is {ratio:.3f}",
        ),
        because={
            "fails": Text(
                zh=f"{difference:.2f} 是取指数之后的差，不是倍数：差距是原来的 {growth:.1f} 倍，因为 exp 在 2 附近的斜率约为 e² ≈ {e[0]:.1f}，越往上越陡。",
                en=f"{difference:.2f} is the difference after exp, not a factor: the gap is {growth:.1f} times as wide, since the slope of exp is about e² ≈ {e[0]:.1f} at 2 and grows from there.",
            )
        },
        instead=Text(
            zh=f"取指数把差距从 0.2 放大到 {difference:.2f}，即 {growth:.1f} 倍",
            en=f"exp widens the gap from 0.2 to {difference:.2f}, that is {growth:.1f} times",
        ),
    )


@claim(
    "S1-07",
    says=Text(zh="softmax([2.0, 2.1, 2.2]) 是 [0.30, 0.33, 0.37]", en="softmax([2.0, 2.1, 2.2]) is [0.30, 0.33, 0.37]"),
    quote="softmax = [0.30, 0.33, 0.37]",
    where="Part 1, L40",
    experiment="normalisers",
)
def _s1_07() -> Outcome:
    p = ss.softmax(A)
    return Outcome.of(
        {"[2.0, 2.1, 2.2]": near(p, ["0.30", "0.33", "0.37"])},
        measured=listed(p, ".4f"),
        because={
            "holds": Text(
                zh=f"相邻两个权重之比是 e^0.1 ≈ {p[1] / p[0]:.3f}，三个权重加起来是 1；这样就定下了三个数。",
                en=f"Neighbouring weights have the ratio e^0.1 ≈ {p[1] / p[0]:.3f}, and the three add up to 1; that fixes them.",
            )
        },
    )


@claim(
    "S1-08",
    says=Text(
        zh="在这三个分数上用 softmax，差距变大，更有选择性",
        en="With softmax, the gap between these three is wider, so it is more selective",
    ),
    quote="差距变大，更有“选择性”。",
    where="Part 1, L43",
    experiment="normalisers",
)
def _s1_08() -> Outcome:
    soft, plain, tenth = np.ptp(ss.softmax(A)), np.ptp(DIVIDED(A)), np.ptp(ss.softmax(A / 10))
    return Outcome.of(
        {"[2.0, 2.1, 2.2]": bool(soft > plain)},
        measured=Text(
            zh=f"最大减最小：softmax {soft:.4f}，除以总和 {plain:.4f}；分数都除以 10 时 softmax 为 {tenth:.4f}，除以总和不变",
            en=f"largest minus smallest: softmax {soft:.4f}, division by the sum {plain:.4f}; with scores a tenth the size, softmax {tenth:.4f}, division by the sum the same",
        ),
        because={
            "holds": Text(
                zh="softmax 看分数之差，除以总和看分数之比；对这三个数，差的作用更大。分数小得多时正好相反。",
                en="Softmax looks at the differences of the scores, division by the sum at their ratios; for these three, the differences matter more. With much smaller scores it is the other way round.",
            )
        },
    )


@claim(
    "S1-09",
    says=Text(
        zh="让权重向更相关的一方倾斜，softmax 是最自然的做法",
        en="Softmax is the most natural way to tilt the weights towards what is more relevant",
    ),
    quote="Softmax 最自然地做到这一点。",
    where="Part 1, L49",
)
def _s1_09() -> Outcome:
    return opinion(
        Text(
            zh="“自然”没有衡量标准；能说的是：在平均分数给定的分布中，softmax 的熵最大。",
            en="“Natural” has no measure; what can be said is that of all distributions with a given mean score, softmax has the largest entropy.",
        )
    )
