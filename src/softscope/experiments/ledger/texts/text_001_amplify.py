"""Text 001, part 1: softmax makes the important stand out; and whether attention must use it."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, near, off_by, opinion
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.recall import PAIRS, SEEDS, STEPS, D, accuracy
from softscope.experiments.recall import LEARNED

A = np.array([2.0, 2.1, 2.2])
TASK = Text(
    zh=f"联想回忆，{PAIRS} 对，d = {D}，{STEPS} 步，{SEEDS} 个种子中最差的准确率",
    en=f"associative recall, {PAIRS} pairs, d = {D}, {STEPS} steps, worst accuracy of {SEEDS} seeds",
)


@claim(
    "S1-01",
    says=Text(zh="注意力机制必须使用 softmax", en="Attention must use softmax"),
    where="title, L3",
    experiment="normalisers",
    slow=True,
)
def _s1_01() -> Outcome:
    found = {name: accuracy(name) for name in ("softmax", "sigmoid − ln n", "x/n", "x/Σx")}
    shown = ", ".join(f"{name} {a:.2f}" for name, a in found.items())
    learned = [name for name, a in found.items() if a > LEARNED and name != "softmax"]
    return Outcome.of(
        {Text(zh="没有别的加权方式学得会", en="no other way of weighing learns the task"): not learned},
        measured=Text(zh=f"{TASK.zh}：{shown}", en=f"{TASK.en}: {shown}"),
        because=Text(
            zh=f"{'、'.join(learned)} 不用 softmax 也学会了同一个任务。",
            en=f"{' and '.join(learned)} learn the same task without a softmax.",
        ),
    )


@claim(
    "S1-02",
    says=Text(zh="softmax 就是指数放大加归一化", en="Softmax is exponential amplification plus normalisation"),
    where="L5, L197",
    experiment="normalisers",
)
def _s1_02() -> Outcome:
    x = 3.0 * generator("S1-02").standard_normal((1_000, 12))
    error = off_by(ss.softmax(x), np.exp(x) / np.exp(x).sum(-1, keepdims=True))
    return Outcome.of(
        {Text(zh="先取指数再除以总和", en="exp, then divided by the sum"): error < 1e-12},
        measured=Text(
            zh=f"最大误差 {error:.1g}（n = {len(x)} 行）", en=f"largest error {error:.1g} (n = {len(x)} rows)"
        ),
        because=Text(zh="这就是定义。", en="It is the definition."),
    )


@claim(
    "S1-03",
    says=Text(
        zh="[2.0, 2.1, 2.2] 除以总和是 [0.326, 0.342, 0.358]",
        en="[2.0, 2.1, 2.2] over its sum is [0.326, 0.342, 0.358]",
    ),
    where="Part 1, L21-22",
    experiment="normalisers",
)
def _s1_03() -> Outcome:
    p, stated = A / A.sum(), ["0.326", "0.342", "0.358"]
    total = sum(map(float, stated))
    return Outcome.of(
        {"[2.0, 2.1, 2.2]": near(p, stated)},
        measured=listed(p, ".4f"),
        because=Text(
            zh=f"文中三个数之和是 {total:.3f}，而不是 1。",
            en=f"The three figures of the text sum to {total:.3f}, not to 1.",
        ),
    )


@claim(
    "S1-04",
    says=Text(
        zh="直接除以总和，三个权重差不多一样，不聚焦",
        en="Divided by the sum, the three weights are nearly equal and focus on nothing",
    ),
    where="Part 1, L25",
    experiment="normalisers",
)
def _s1_04() -> Outcome:
    p = A / A.sum()
    away = off_by(p, np.full(3, 1 / 3))
    return Outcome.of(
        {Text(zh="与 1/3 相差不到 0.02", en="within 0.02 of 1/3"): away < 0.02},
        measured=Text(
            zh=f"最大与最小之比 {p.max() / p.min():.3f}；与 1/3 最多差 {away:.4f}",
            en=f"largest over smallest {p.max() / p.min():.3f}; at most {away:.4f} from 1/3",
        ),
        because=Text(
            zh=f"比值与分数的比值相同；softmax 在这里也只有 {ss.softmax(A).max() / ss.softmax(A).min():.2f}。",
            en=f"The ratios are those of the scores; softmax itself gets to only {ss.softmax(A).max() / ss.softmax(A).min():.2f} here.",
        ),
    )


@claim(
    "S1-05",
    says=Text(zh="[2.0, 2.1, 2.2] 的指数是 [7.39, 8.17, 9.03]", en="exp of [2.0, 2.1, 2.2] is [7.39, 8.17, 9.03]"),
    where="Part 1, L32",
    experiment="normalisers",
)
def _s1_05() -> Outcome:
    e = np.exp(A)
    return Outcome.of(
        {"exp": near(e, ["7.39", "8.17", "9.03"])},
        measured=listed(e, ".4f"),
        because=Text(
            zh="按印出的两位小数舍入，三个数都一致。", en="Rounded to the two printed decimals all three agree."
        ),
    )


@claim(
    "S1-06",
    says=Text(zh="取指数把差距从 0.2 放大到“1.64 倍”", en="exp enlarges the gap from 0.2 to “1.64 times”"),
    where="Part 1, L35",
    experiment="normalisers",
)
def _s1_06() -> Outcome:
    e = np.exp(A)
    difference, ratio, growth = e[2] - e[0], e[2] / e[0], (e[2] - e[0]) / (A[2] - A[0])
    return Outcome.of(
        {
            Text(zh="差", en="the difference"): near(difference, "1.64"),
            Text(zh="两者之比", en="the ratio of the two"): near(ratio, "1.64"),
            Text(zh="差距放大的倍数", en="the growth of the gap"): near(growth, "1.64"),
        },
        measured=Text(
            zh=f"差 {difference:.3f}；比 {ratio:.3f}；差距放大 {growth:.2f} 倍",
            en=f"difference {difference:.3f}; ratio {ratio:.3f}; the gap grows {growth:.2f}-fold",
        ),
        because=Text(
            zh=f"{difference:.2f} 是差，不是倍数。", en=f"{difference:.2f} is a difference, not a number of times."
        ),
        only_if=Text(zh="1.64 读作差，而不是倍数", en="1.64 is read as a difference and not as a multiple"),
    )


@claim(
    "S1-07",
    says=Text(
        zh="softmax([2.0, 2.1, 2.2]) 是 [0.30, 0.33, 0.37]", en="softmax of [2.0, 2.1, 2.2] is [0.30, 0.33, 0.37]"
    ),
    where="Part 1, L40",
    experiment="normalisers",
)
def _s1_07() -> Outcome:
    p = ss.softmax(A)
    return Outcome.of(
        {"[2.0, 2.1, 2.2]": near(p, ["0.30", "0.33", "0.37"])},
        measured=listed(p, ".4f"),
        because=Text(
            zh="按印出的两位小数舍入，三个数都一致。", en="Rounded to the two printed decimals all three agree."
        ),
    )


@claim(
    "S1-08",
    says=Text(zh="用 softmax，差距变大了，更有选择性", en="With softmax the gap became larger, more selective"),
    where="Part 1, L43",
    experiment="normalisers",
)
def _s1_08() -> Outcome:
    soft, plain, tenth = np.ptp(ss.softmax(A)), np.ptp(A / A.sum()), np.ptp(ss.softmax(A / 10))
    return Outcome.of(
        {"[2.0, 2.1, 2.2]": bool(soft > 1.5 * plain)},
        measured=Text(
            zh=f"最大减最小：softmax {soft:.4f}，除以总和 {plain:.4f}",
            en=f"largest minus smallest: softmax {soft:.4f}, over the sum {plain:.4f}",
        ),
        because=Text(
            zh=f"在这三个数上如此；分数缩小到十分之一时，softmax 的差距只有 {tenth:.4f}，比除以总和还小。",
            en=f"For these three it is so; at a tenth of the scores softmax's gap is {tenth:.4f}, below that of the sum.",
        ),
    )


@claim(
    "S1-09",
    says=Text(
        zh="softmax 最自然地做到让权重向更相关的倾斜",
        en="Softmax tilts the weights to the relevant in the most natural way",
    ),
    where="Part 1, L49",
)
def _s1_09() -> Outcome:
    return opinion(
        Text(
            zh="“自然”没有尺度；能说的是：在给定平均分数的分布里，softmax 的熵最大。",
            en="There is no measure of natural; what can be said is that softmax has the most entropy for its mean score.",
        )
    )
