"""Text 001, part 4, second half: the table of ReLU, sigmoid and division by the sum."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, estimate, generator, off_by, share
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.recall import accuracy
from softscope.experiments.ledger.texts.rivals import MAPS
from softscope.experiments.ledger.texts.text_001_amplify import TASK
from softscope.experiments.recall import LEARNED

RELU, SIGMOID, LINEAR = MAPS["ReLU"], MAPS["sigmoid"], MAPS["x/Σx"]


@claim(
    "S1-21",
    says=Text(zh="ReLU 在 0 处不可微", en="ReLU is not differentiable at 0"),
    where="Part 4 table, L131",
    experiment="normalisers",
)
def _s1_21() -> Outcome:
    step = 1e-6
    left, right = float((RELU(0.0) - RELU(-step)) / step), float((RELU(step) - RELU(0.0)) / step)
    return Outcome.of(
        {Text(zh="0 处左右斜率不同", en="the left and right slopes at 0 differ"): abs(left - right) > 0.5},
        measured=Text(zh=f"左斜率 {left:g}，右斜率 {right:g}", en=f"left slope {left:g}, right slope {right:g}"),
        because={
            "holds": Text(
                zh="不可微的只有这一个点；训练时，框架在那里取其中一个斜率。",
                en="This one point is the only exception; in training, frameworks pick one of the two slopes there.",
            )
        },
    )


@claim(
    "S1-22",
    says=Text(zh="ReLU 带来稀疏性，但会丢失信息", en="ReLU gives sparsity but loses information"),
    where="Part 4 table, L131",
    experiment="normalisers",
)
def _s1_22() -> Outcome:
    zero = share(RELU(generator("S1-22").standard_normal(50_000)) == 0.0)
    same = off_by(RELU(np.array([1.0, -1.0])), RELU(np.array([1.0, -5.0]))) == 0.0
    return Outcome.of(
        {
            Text(zh="有精确的零", en="there are exact zeros"): zero.above(0.1),
            Text(zh="不同的分数得到相同的权重", en="different scores get the same weights"): same,
        },
        measured=Text(
            zh=f"服从 N(0, 1) 的分数中，变成 0 的占 {zero:.3f}（n = {zero.n}）；[1, −1] 与 [1, −5] 得到一样的结果",
            en=f"share of N(0, 1) scores that become 0: {zero:.3f} (n = {zero.n}); [1, −1] and [1, −5] give the same result",
        ),
        because={
            "holds": Text(zh="负分数之间的差别全部丢失。", en="All differences between negative scores are lost.")
        },
    )


@claim(
    "S1-23",
    says=Text(zh="ReLU 不能得到概率", en="ReLU cannot give probabilities"),
    where="Part 4 table, L131",
    experiment="normalisers",
)
def _s1_23() -> Outcome:
    rows = generator("S1-23").standard_normal((2_000, 10))
    plain = RELU(rows)
    tau = (rows - ss.sparsemax(rows)).max(-1, where=ss.sparsemax(rows) > 0, initial=-np.inf, keepdims=True)
    shifted = RELU(rows - tau)
    some = plain.max(-1) > 0.0  # without a positive score, ReLU(x)/Σ is 0/0

    def distribution(p: np.ndarray) -> bool:
        return bool((p >= 0.0).all()) and off_by(p.sum(-1), np.ones(len(p))) < 1e-9

    return Outcome.of(
        under={
            "ReLU(x)": not distribution(plain),
            Text(zh="ReLU(x)/Σ，有正的分数", en="ReLU(x)/Σ, with some positive score"): not distribution(
                plain[some] / plain[some].sum(-1, keepdims=True)
            ),
            "ReLU(x − τ)": not distribution(shifted),
        },
        measured=Text(
            zh=f"平均总和：ReLU(x) {plain.sum(-1).mean():.2f}，ReLU(x − τ) {shifted.sum(-1).mean():.6f}；{int((~some).sum())} 行没有正的分数（n = {len(rows)} 行）",
            en=f"mean sum: ReLU(x) {plain.sum(-1).mean():.2f}, ReLU(x − τ) {shifted.sum(-1).mean():.6f}; {int((~some).sum())} rows have no positive score (n = {len(rows)} rows)",
        ),
        because={
            "only-if": Text(
                zh="sparsemax 就是减去阈值 τ 之后的 ReLU，结果总是概率分布。",
                en="Sparsemax is ReLU after subtracting a threshold τ, and always gives a distribution.",
            )
        },
        only_if=Text(zh="既不除以总和，也不减去阈值", en="it is neither divided by its sum nor shifted by a threshold"),
    )


@claim(
    "S1-24",
    says=Text(zh="sigmoid 的权重加起来不等于 1", en="Sigmoid weights do not sum to 1"),
    where="Part 4 table, L132",
    experiment="normalisers",
)
def _s1_24() -> Outcome:
    sums = SIGMOID(generator("S1-24").standard_normal((20_000, 10))).sum(-1)
    near_one = float((np.abs(sums - 1.0) < 0.01).mean())
    mean = estimate(sums)
    return Outcome.of(
        {
            Text(
                zh="和与 1 相差不到 0.01 的行不到千分之一",
                en="fewer than one row in a thousand sums to within 0.01 of 1",
            ): near_one < 0.001
        },
        measured=Text(
            zh=f"10 项之和平均 {mean:.2f}，从 {sums.min():.2f} 到 {sums.max():.2f}（n = {mean.n}）",
            en=f"sum of 10 weights: mean {mean:.2f}, from {sums.min():.2f} to {sums.max():.2f} (n = {mean.n})",
        ),
        because={
            "holds": Text(
                zh="每一项各算各的，没有什么让它们相加为 1。",
                en="Each entry is computed on its own, and nothing makes them sum to 1.",
            )
        },
    )


@claim(
    "S1-25",
    says=Text(zh="sigmoid 不适合注意力", en="Sigmoid does not suit attention"),
    where="Part 4 table, L132",
    experiment="normalisers",
    slow=True,
)
def _s1_25() -> Outcome:
    found = {name: accuracy(name) for name in ("softmax", "sigmoid", "sigmoid − ln n")}
    shown = ", ".join(f"{name} {a:.2f}" for name, a in found.items())
    return Outcome.of(
        {
            Text(zh=f"{name} 学不会", en=f"{name} does not learn"): found[name] < LEARNED
            for name in ("sigmoid", "sigmoid − ln n")
        },
        measured=Text(zh=f"{TASK.zh}：{shown}", en=f"{TASK.en}: {shown}"),
        because={
            "fails": Text(
                zh="在这个小任务上它和 softmax 一样好；Ramapuram 等（2024）用它训练了大模型。",
                en="On this small task it does as well as softmax; Ramapuram et al. (2024) trained large models with it.",
            )
        },
    )


@claim(
    "S1-26",
    says=Text(zh="除以总和没有指数放大的能力", en="Dividing by the sum does not amplify exponentially"),
    where="Part 4 table, L133",
    experiment="normalisers",
)
def _s1_26() -> Outcome:
    x = np.array([2.0, 2.1, 2.2])
    linear = off_by(LINEAR(10 * x), LINEAR(x))
    soft = ss.softmax(10 * x)
    return Outcome.of(
        {Text(zh="分数乘 10，权重不变", en="scores times 10, same weights"): linear < 1e-12 and bool(soft.max() > 0.5)},
        measured=Text(
            zh=f"分数乘 10：除以总和变动 {linear:.1g}，softmax 变为 {listed(soft, '.3f')}",
            en=f"scores × 10: division by the sum changes by {linear:.1g}, softmax becomes {listed(soft, '.3f')}",
        ),
        because={"holds": Text(zh="公因子在相除时约去了。", en="The common factor cancels in the division.")},
    )


@claim(
    "S1-27",
    says=Text(zh="除以总和不能突出重要的信息", en="Dividing by the sum cannot make the important stand out"),
    where="Part 4 table, L133",
    experiment="normalisers",
)
def _s1_27() -> Outcome:
    close, far = LINEAR(np.array([2.0, 2.1, 2.2])), LINEAR(np.array([0.01, 0.01, 10.0]))
    return Outcome.of(
        under={"[2.0, 2.1, 2.2]": bool(close.max() < 0.9), "[0.01, 0.01, 10]": bool(far.max() < 0.9)},
        measured=Text(
            zh=f"最大权重 {close.max():.3f}；[0.01, 0.01, 10] 得 {far.max():.3f}",
            en=f"largest weight {close.max():.3f}; [0.01, 0.01, 10] gets {far.max():.3f}",
        ),
        because={
            "only-if": Text(
                zh="它照搬分数的比例：比例悬殊时，重要的一项同样突出。",
                en="It keeps the proportions of the scores: where one dominates, it stands out here too.",
            )
        },
        only_if=Text(zh="分数之间的比例接近 1", en="the ratios between the scores are near 1"),
    )
