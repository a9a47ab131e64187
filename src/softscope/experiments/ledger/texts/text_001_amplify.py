"""Text 001, part 1: how softmax makes the important stand out, and whether attention must use it."""

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
        {Text(zh="没有别的加权方式学得会", en="no other kind of weights learns the task"): not learned},
        measured=Text(zh=f"{TASK.zh}：{shown}", en=f"{TASK.en}: {shown}"),
        because={
            "fails": Text(
                zh=f"{'、'.join(learned)} 不用 softmax 也学会了同一个任务。",
                en=f"{' and '.join(learned)} learn the same task without softmax.",
            )
        },
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
        {Text(zh="先取指数再除以总和", en="exponentials divided by their sum"): error < 1e-12},
        measured=Text(
            zh=f"最大误差 {error:.1g}（n = {len(x)} 行）", en=f"largest error {error:.1g} (n = {len(x)} rows)"
        ),
        because={"holds": Text(zh="这就是定义。", en="That is the definition.")},
    )


@claim(
    "S1-03",
    says=Text(
        zh="[2.0, 2.1, 2.2] 除以总和是 [0.326, 0.342, 0.358]",
        en="[2.0, 2.1, 2.2] divided by its sum is [0.326, 0.342, 0.358]",
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
        because={
            "fails": Text(
                zh=f"文中三个数之和是 {total:.3f}，而不是 1。",
                en=f"The text's three figures sum to {total:.3f}, not 1.",
            )
        },
    )


@claim(
    "S1-04",
    says=Text(
        zh="直接除以总和，三个权重差不多一样，不聚焦",
        en="Dividing by the sum makes the three weights nearly equal: there is no focus",
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
            en=f"largest to smallest {p.max() / p.min():.3f}; at most {away:.4f} from 1/3",
        ),
        because={
            "holds": Text(
                zh=f"比值与分数的比值相同；softmax 在这里也只有 {ss.softmax(A).max() / ss.softmax(A).min():.2f}。",
                en=f"The ratios are those of the scores; even softmax reaches only {ss.softmax(A).max() / ss.softmax(A).min():.2f} here.",
            )
        },
    )


@claim(
    "S1-05",
    says=Text(zh="[2.0, 2.1, 2.2] 的指数是 [7.39, 8.17, 9.03]", en="exp([2.0, 2.1, 2.2]) is [7.39, 8.17, 9.03]"),
    where="Part 1, L32",
    experiment="normalisers",
)
def _s1_05() -> Outcome:
    e = np.exp(A)
    return Outcome.of(
        {"exp": near(e, ["7.39", "8.17", "9.03"])},
        measured=listed(e, ".4f"),
        because={
            "holds": Text(zh="舍入到文中的两位小数，三个数都一致。", en="All three agree to the two decimals printed.")
        },
    )


@claim(
    "S1-06",
    says=Text(zh="取指数把差距从 0.2 放大到“1.64 倍”", en="exp widens the gap from 0.2 to “1.64 times”"),
    where="Part 1, L35",
    experiment="normalisers",
)
def _s1_06() -> Outcome:
    e = np.exp(A)
    difference, ratio, growth = e[2] - e[0], e[2] / e[0], (e[2] - e[0]) / (A[2] - A[0])
    return Outcome.of(
        under={
            Text(zh="差", en="the difference"): near(difference, "1.64"),
            Text(zh="两者之比", en="the ratio"): near(ratio, "1.64"),
            Text(zh="差距放大的倍数", en="the factor by which the gap grows"): near(growth, "1.64"),
        },
        measured=Text(
            zh=f"差 {difference:.3f}；比 {ratio:.3f}；差距放大 {growth:.2f} 倍",
            en=f"difference {difference:.3f}; ratio {ratio:.3f}; gap grown by a factor of {growth:.2f}",
        ),
        because={
            "only-if": Text(
                zh=f"{difference:.2f} 是差，不是倍数。", en=f"{difference:.2f} is a difference, not a factor."
            )
        },
        only_if=Text(zh="1.64 读作差，而不是倍数", en="1.64 is read as a difference, not as a factor"),
    )


@claim(
    "S1-07",
    says=Text(zh="softmax([2.0, 2.1, 2.2]) 是 [0.30, 0.33, 0.37]", en="softmax([2.0, 2.1, 2.2]) is [0.30, 0.33, 0.37]"),
    where="Part 1, L40",
    experiment="normalisers",
)
def _s1_07() -> Outcome:
    p = ss.softmax(A)
    return Outcome.of(
        {"[2.0, 2.1, 2.2]": near(p, ["0.30", "0.33", "0.37"])},
        measured=listed(p, ".4f"),
        because={
            "holds": Text(zh="舍入到文中的两位小数，三个数都一致。", en="All three agree to the two decimals printed.")
        },
    )


@claim(
    "S1-08",
    says=Text(zh="用了 softmax，差距变大，更有选择性", en="With softmax the gap is wider, so it is more selective"),
    where="Part 1, L43",
    experiment="normalisers",
)
def _s1_08() -> Outcome:
    soft, plain, tenth = np.ptp(ss.softmax(A)), np.ptp(A / A.sum()), np.ptp(ss.softmax(A / 10))
    return Outcome.of(
        {"[2.0, 2.1, 2.2]": bool(soft > 1.5 * plain)},
        measured=Text(
            zh=f"最大减最小：softmax {soft:.4f}，除以总和 {plain:.4f}",
            en=f"largest minus smallest: softmax {soft:.4f}, division by the sum {plain:.4f}",
        ),
        because={
            "holds": Text(
                zh=f"这三个数确实如此；但分数缩小到十分之一时，softmax 的差距只有 {tenth:.4f}，比除以总和还小。",
                en=f"True for these three; but with scores a tenth the size, softmax's gap is only {tenth:.4f}, narrower than with division by the sum.",
            )
        },
    )


@claim(
    "S1-09",
    says=Text(
        zh="让权重向更相关的一方倾斜，softmax 是最自然的做法",
        en="Softmax is the most natural way to tilt the weights towards what is more relevant",
    ),
    where="Part 1, L49",
)
def _s1_09() -> Outcome:
    return opinion(
        Text(
            zh="“自然”没有衡量标准；能说的是：在平均分数给定的分布中，softmax 的熵最大。",
            en="“Natural” has no measure; what can be said is that of all distributions with a given mean score, softmax has the largest entropy.",
        )
    )
