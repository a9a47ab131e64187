"""Text 001, part 4, second half: the table of ReLU, sigmoid and division by the sum."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, estimate, generator, off_by, share
from softscope.experiments.ledger.texts import recall
from softscope.experiments.ledger.texts.figures import by, listed
from softscope.experiments.ledger.texts.rivals import MAPS

RELU, SIGMOID, LINEAR = MAPS["ReLU"], MAPS["sigmoid"], MAPS["x/Σx"]


@claim(
    "S1-21",
    says=Text(zh="ReLU 在 0 处不可微", en="ReLU is not differentiable at 0"),
    quote="在0不可微",
    where="Part 4 table, L131",
)
def _s1_21() -> Outcome:
    step = 1e-6
    left, right = float((RELU(0.0) - RELU(-step)) / step), float((RELU(step) - RELU(0.0)) / step)
    return Outcome.of(
        {Text(zh="0 处左右斜率不同", en="the left and right slopes at 0 differ"): abs(left - right) > 0.5},
        measured=Text(zh=f"左斜率 {left:g}，右斜率 {right:g}", en=f"left slope {left:g}, right slope {right:g}"),
        because={
            "holds": Text(
                zh="ReLU 在 0 的左边是平的，右边以 45° 上升，在 0 处有折点。不可微的只有这一个点；训练时，框架在那里取其中一个斜率。",
                en="ReLU is flat to the left of 0 and rises at 45° to the right, so it has a kink at 0. This one point is the only exception; in training, frameworks pick one of the two slopes there.",
            )
        },
    )


@claim(
    "S1-22",
    says=Text(zh="ReLU 带来稀疏性，但会丢失信息", en="ReLU gives sparsity but loses information"),
    quote="会产生稀疏但会丢信息",
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
            "holds": Text(
                zh="ReLU 把所有负分数都变成 0：权重因此稀疏，而负分数之间的差别也全部丢失。",
                en="ReLU turns every negative score into 0: that makes the weights sparse, and loses all differences between negative scores.",
            )
        },
    )


@claim(
    "S1-23",
    says=Text(zh="ReLU 不能得到概率", en="ReLU cannot give probabilities"),
    quote="（且不能得到概率）",
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
                zh="单用 ReLU，什么也不保证和为 1。但像 softmax 那样再除以总和，只要有一个正分数就是分布；先减去合适的阈值 τ 则总是分布，那就是 sparsemax。",
                en="Nothing makes ReLU alone sum to 1. But divide it by its sum, as softmax does with exp, and it is a distribution wherever some score is positive; subtract the right threshold τ first, and it always is: that is sparsemax.",
            )
        },
        only_if=Text(
            zh="ReLU 单独使用，前面不减阈值，后面不除以总和",
            en="ReLU is used alone, with no threshold before it and no division by the sum after it",
        ),
    )


@claim(
    "S1-24",
    says=Text(zh="sigmoid 的权重加起来不等于 1", en="Sigmoid weights do not sum to 1"),
    quote="权重加起来不等于 1",
    where="Part 4 table, L132",
    experiment="normalisers",
)
def _s1_24() -> Outcome:
    sums = {n: SIGMOID(generator(f"S1-24 {n}").standard_normal((20_000, n))).sum(-1) for n in (2, 10, 100)}
    means = {n: estimate(x) for n, x in sums.items()}
    shown = by(means, name="n")
    return Outcome.of(
        {
            Text(zh=f"{n} 个键：没有一行的和是 1", en=f"{n} keys: no row sums to 1"): bool(
                (np.abs(x - 1.0) > 1e-9).all()
            )
            for n, x in sums.items()
        },
        measured=Text(
            zh=f"n 个权重之和的平均：{shown}；n = 2 时从 {sums[2].min():.2f} 到 {sums[2].max():.2f}（各 {len(sums[2])} 行）",
            en=f"mean sum of n weights: {shown}; for n = 2 from {sums[2].min():.2f} to {sums[2].max():.2f} ({len(sums[2])} rows each)",
        ),
        because={
            "holds": Text(
                zh="每个权重只看自己的分数，没有什么让它们相加为 1；平均每个约 0.5，所以和约为 n/2。只有两个键时平均恰好是 1，但每一行都不是。",
                en="Each weight looks at its own score only, and nothing makes them sum to 1; on average each is about 0.5, so the sum is about n/2. With two keys the mean happens to be 1, but no row is.",
            )
        },
    )


@claim(
    "S1-25",
    says=Text(zh="sigmoid 不适合注意力", en="Sigmoid does not suit attention"),
    quote="不适合注意力",
    where="Part 4 table, L132",
    experiment="normalisers",
    slow=True,
)
def _s1_25() -> Outcome:
    rivals = ("sigmoid", "sigmoid − ln n")
    found, measured = recall.compared(("softmax", *rivals))
    return Outcome.of(
        {Text(zh=f"{name} 学不会", en=f"{name} does not learn"): not found[name].learned for name in rivals},
        measured=measured,
        because={
            "fails": Text(
                zh="sigmoid 同样给分数高的键更大的权重，训练让对的键脱颖而出：在这个小任务上它和 softmax 一样好。Ramapuram 等（2024）用它训练了大模型。",
                en="Sigmoid, too, gives a higher score a larger weight, and training lifts the right key above the others: on this small task it does as well as softmax. Ramapuram et al. (2024) trained large models with it.",
            ),
            "holds": Text(
                zh="用 sigmoid 作权重，没有学会查找。", en="With sigmoid weights, looking things up is not learned."
            ),
        },
        instead=Text(
            zh="sigmoid 的权重之和不为 1，但也能用作注意力，而且学得会",
            en="Sigmoid weights do not sum to 1, but they can serve as attention, and learn",
        ),
    )


@claim(
    "S1-26",
    says=Text(zh="除以总和没有指数放大的能力", en="Dividing by the sum does not amplify exponentially"),
    quote="没有指数放大能力",
    where="Part 4 table, L133",
    experiment="normalisers",
)
def _s1_26() -> Outcome:
    x = np.array([2.0, 2.1, 2.2])
    linear = off_by(LINEAR(10 * x), LINEAR(x))
    soft = ss.softmax(10 * x)
    return Outcome.of(
        {
            Text(zh="分数乘 10，除以总和的权重不变", en="scores times 10, same weights by the sum"): linear < 1e-12,
            Text(zh="softmax 的权重变得更尖锐", en="softmax's weights get sharper"): bool(
                soft.max() > ss.softmax(x).max()
            ),
        },
        measured=Text(
            zh=f"分数乘 10：除以总和变动 {linear:.1g}，softmax 变为 {listed(soft, '.3f')}",
            en=f"scores × 10: division by the sum changes by {linear:.1g}, softmax becomes {listed(soft, '.3f')}",
        ),
        because={
            "holds": Text(
                zh="除以总和时公因子约去，权重只取决于分数之比；softmax 看分数之差，差放大 10 倍，权重之比就成了原来的 10 次方。",
                en="Dividing by the sum cancels a common factor: only the ratios of the scores count. Softmax looks at their differences, and ten times the difference takes the ratio of two weights to the power of 10.",
            )
        },
    )


@claim(
    "S1-27",
    says=Text(zh="除以总和不够突出重要的信息", en="Dividing by the sum does not make the important stand out enough"),
    quote="不够突出重要信息",
    where="Part 4 table, L133",
    experiment="normalisers",
)
def _s1_27() -> Outcome:
    rows = ([2.0, 2.1, 2.2], [1.0, 1.0, 1.9], [1.0, 1.0, 2.1], [0.01, 0.01, 10.0])
    largest = {listed(row, "g"): float(LINEAR(np.array(row)).max()) for row in rows}
    return Outcome.of(
        under={label: weight < 0.5 for label, weight in largest.items()},
        measured=Text(zh="最大的权重：{}", en="largest weight: {}").format(
            "; ".join(f"{label} → {weight:.3f}" for label, weight in largest.items())
        ),
        because={
            "only-if": Text(
                zh="它照搬分数的比例：最大的分数超过其余之和时，它的权重就过半，重要的一项同样突出。",
                en="It keeps the proportions of the scores: once the largest exceeds the sum of the others, it gets over half of the weight and stands out here, too.",
            )
        },
        only_if=Text(
            zh="没有一个分数超过其余之和（突出：权重过半）",
            en="no score exceeds the sum of the others (standing out: over half of the weight)",
        ),
    )
