"""Text 001, parts 2 and 3: weights as probabilities, and why they should not be negative."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator
from softscope.experiments.ledger.texts import recall


@claim(
    "S1-10",
    says=Text(
        zh="注意力要输出一个分布，因此权重必须在 [0, 1] 内、总和为 1、可以看作概率",
        en="Attention has to give a distribution, so weights must lie in [0, 1], sum to 1 and make sense as probabilities",
    ),
    quote="因此权重必须满足：",
    where="Part 2, L55-66",
    experiment="normalisers",
    slow=True,
)
def _s1_10() -> Outcome:
    found, measured = recall.compared(("sigmoid", "x/n"))
    sigmoid, plain = found["sigmoid"], found["x/n"]
    return Outcome.of(
        {
            Text(zh="没有负权重才学得会", en="learning takes weights without negative ones"): not plain.learned,
            Text(zh="权重之和为 1 才学得会", en="learning takes weights that sum to 1"): not sigmoid.learned,
        },
        measured=Text(
            zh=f"{measured.zh}；训练后 sigmoid 的权重之和与 1 平均相差 {sigmoid.off_one:.2f}，x/n 的权重有 {plain.negative[1]:.0%} 为负",
            en=f"{measured.en}; after training, sigmoid weights sum to {sigmoid.off_one:.2f} off from 1 on average, and {plain.negative[1]:.0%} of the x/n weights are negative",
        ),
        because={
            "fails": Text(
                zh="下一层只需要从加权和里认出对的值；sigmoid 的权重之和不为 1，x/n 的权重还有负数，两者都不是概率，却都学会了查找。",
                en="The next layer only has to recognise the right value in the weighted sum. Sigmoid weights do not sum to 1, and some x/n weights are even negative: neither are probabilities, yet both learn to look things up.",
            ),
            "holds": Text(
                zh="权重不是概率的两种做法都没有学会查找。",
                en="Neither of the two kinds of weights that are not probabilities learns to look things up.",
            ),
        },
        instead=Text(
            zh="要把权重读作概率，它们才必须在 [0, 1] 内、总和为 1；注意力不这样也能工作",
            en="Weights must lie in [0, 1] and sum to 1 to be read as probabilities; attention works without that",
        ),
    )


@claim(
    "S1-11",
    says=Text(zh="指数不会是负数：exp(x) ≥ 0", en="An exponential is never negative: exp(x) ≥ 0"),
    quote="exp(xi) >= 0",
    where="Part 2, L71; Part 3, L105",
)
def _s1_11() -> Outcome:
    x = np.linspace(-1000.0, 700.0, 170_001)
    with np.errstate(under="ignore"):
        lowest = float(np.exp(x).min())
        single = float(np.exp(x[x < 80].astype(np.float32)).min())
    return Outcome.of(
        {"float64": lowest >= 0.0, "float32": single >= 0.0},
        measured=Text(
            zh=f"最小值 {lowest:g}（float64）、{single:g}（float32），x 从 −1000 到 700",
            en=f"smallest {lowest:g} (float64), {single:g} (float32), x from −1000 to 700",
        ),
        because={
            "holds": Text(
                zh="x 每减 1，指数就除以 e，越来越小但始终为正；用浮点数计算可能下溢为 0，不会为负。",
                en="Each step of −1 divides it by e: it gets ever smaller but stays positive. In floating point it can underflow to 0, but never go negative.",
            )
        },
    )


@claim(
    "S1-12",
    says=Text(zh="指数之和总大于 0", en="The sum of exponentials is always above 0"),
    quote="sum(exp(x)) > 0",
    where="Part 2, L72",
    experiment="overflow",
)
def _s1_12() -> Outcome:
    rows = {"[1, 2]": [1.0, 2.0], "[−800, −801]": [-800.0, -801.0], "[−∞, −∞]": [-math.inf, -math.inf]}
    with np.errstate(under="ignore"):
        sums = {label: float(np.exp(np.array(row)).sum()) for label, row in rows.items()}
    edge = f"−{math.log(2.0) - math.log(math.ulp(0.0)):.0f}"  # half the smallest number rounds to 0
    shown = "; ".join(f"{label}: {total:.4g}" for label, total in sums.items())
    return Outcome.of(
        under={label: total > 0.0 for label, total in sums.items()},
        measured=f"float64: {shown}",
        because={
            "only-if": Text(
                zh=f"精确的指数总大于 0，但低于 {edge} 时，float64 会把它舍入为 0；一行全是这样的分数（或全被掩码，即 −∞），和就是 0，相除得 0/0。所以代码先减去最大值，让最大的一项成为 exp(0) = 1。",
                en=f"The exact exponential is always above 0, but below {edge} float64 rounds it to 0. In a row with only such scores (or all masked, that is −∞), the sum is 0 and the division 0/0. That is why code subtracts the maximum first: the largest term becomes exp(0) = 1.",
            ),
            "holds": Text(zh="每一项都大于 0。", en="Every term is above 0."),
        },
        only_if=Text(
            zh=f"至少有一个分数高于 {edge}（float64）",
            en=f"at least one score is above {edge} (in float64)",
        ),
    )


@claim(
    "S1-13",
    says=Text(zh="softmax 的输出在 [0, 1] 内", en="The outputs of softmax lie in [0, 1]"),
    quote="softmax(x) ∈ [0,1]",
    where="Part 2, L73",
    experiment="normalisers",
)
def _s1_13() -> Outcome:
    rng = generator("S1-13")
    rows = np.concatenate([10.0**e * rng.standard_normal((2_000, 16)) for e in (-3, 0, 3, 30)])
    ranges = {}
    for dtype in (np.float32, np.float64):
        p = ss.softmax(rows.astype(dtype))
        ranges[np.dtype(dtype).name] = (float(p.min()), float(p.max()))
    return Outcome.of(
        {name: low >= 0.0 and high <= 1.0 for name, (low, high) in ranges.items()},
        measured=Text(
            zh=f"{'；'.join(f'{name}：{low:g} 到 {high:g}' for name, (low, high) in ranges.items())}（{len(rows)} 行，分数大到 10³⁰）",
            en=f"{'; '.join(f'{name}: {low:g} to {high:g}' for name, (low, high) in ranges.items())} ({len(rows)} rows, scores up to 10³⁰)",
        ),
        because={
            "holds": Text(
                zh="每一项是一个非负数除以包含它的总和，所以不小于 0，也不大于 1。",
                en="Each entry is a non-negative number divided by a sum that contains it, so it is neither below 0 nor above 1.",
            )
        },
    )


@claim(
    "S1-14",
    says=Text(zh="softmax 的输出之和为 1", en="The outputs of softmax sum to 1"),
    quote="sum(softmax(x)) = 1",
    where="Part 2, L74",
    experiment="normalisers",
)
def _s1_14() -> Outcome:
    rows = 4.0 * generator("S1-14").standard_normal((20_000, 128))
    errors = {}
    for dtype in (np.float32, np.float64):
        sums = ss.softmax(rows.astype(dtype)).astype(np.float64).sum(-1)
        errors[np.dtype(dtype).name] = float(np.abs(sums - 1.0).max()), 8.0 * float(np.finfo(dtype).eps)
    return Outcome.of(
        {name: error < room for name, (error, room) in errors.items()},
        measured=Text(
            zh=f"与 1 最多相差 {'、'.join(f'{error:.1g}（{name}）' for name, (error, _) in errors.items())}；{len(rows)} 行，每行 {rows.shape[1]} 项",
            en=f"off from 1 by at most {', '.join(f'{error:.1g} ({name})' for name, (error, _) in errors.items())}; {len(rows)} rows of {rows.shape[1]} entries",
        ),
        because={
            "holds": Text(
                zh="每一项都除以它们的总和，所以加起来是 1；计算中只有舍入误差。",
                en="Every entry is divided by the sum of all, so together they make 1; in computation, 1 up to rounding.",
            )
        },
    )


@claim(
    "S1-15",
    says=Text(
        zh="语言中没有“负注意力”，所以注意力权重不能是负数",
        en="There is no “negative attention” in language, so attention weights cannot be negative",
    ),
    quote="所以权重必须 ≥ 0。",
    where="Part 3, L81-100",
    slow=True,
)
def _s1_15() -> Outcome:
    found, measured = recall.compared(("x/n",))
    start, end = found["x/n"].negative
    return Outcome.of(
        {
            Text(zh="带负权重学不会查找", en="with negative weights, looking things up is not learned"): not (
                found["x/n"].learned and min(start, end) > 0.1
            )
        },
        measured=Text(
            zh=f"{measured.zh}；模型中为负的权重：训练前 {start:.2f}，训练后 {end:.2f}",
            en=f"{measured.en}; share of negative weights in the model: {start:.2f} before training, {end:.2f} after",
        ),
        because={
            "fails": Text(
                zh="直接用分数除以 n 作权重，训练前后都有约一半为负，却学会了：负权重表示“减去这个值”，而不是“注意得比零还少”。Differential Transformer（Ye 等 2024）等工作有意使用负权重。",
                en="With the scores over n as weights, about half are negative before and after training, yet it learns: a negative weight means “take this value away”, not “attend less than not at all”. Work such as the Differential Transformer (Ye et al. 2024) uses negative weights on purpose.",
            ),
            "holds": Text(
                zh="权重可以为负的模型没有学会查找。",
                en="The model whose weights may be negative does not learn to look things up.",
            ),
        },
        instead=Text(
            zh="softmax 的权重不会是负数，但注意力可以用负权重，也学得会",
            en="Softmax's weights are never negative, but attention may use negative ones, and learns with them",
        ),
    )


def _kept(values_of_one_sign: bool) -> Estimate:
    """Size of the output as a share of the total size of its terms α·v; 1 if nothing cancels."""
    rng = generator(f"S1-16 {values_of_one_sign}")
    p, v = ss.softmax(rng.standard_normal((5_000, 10))), rng.standard_normal((5_000, 10))
    v = np.abs(v) if values_of_one_sign else v
    return estimate(np.abs((p * v).sum(-1)) / np.abs(p * v).sum(-1))


@claim(
    "S1-16",
    says=Text(
        zh="权重非负，保证不会反向扣减信息", en="Non-negative weights guarantee that no information is subtracted"
    ),
    quote="保证注意力不会反向“扣减”信息。",
    where="Part 3, L102-108",
    experiment="weights",
)
def _s1_16() -> Outcome:
    one, both = _kept(True), _kept(False)
    cancelled = float(ss.softmax([1.0, 1.0]) @ np.array([1.0, -1.0]))
    return Outcome.of(
        under={
            Text(zh="值全部同号", en="values all of one sign"): one.mean > 1.0 - 1e-9,
            Text(zh="值有正有负", en="values of either sign"): both.above(0.99),
        },
        measured=Text(
            zh=f"输出的大小是各项大小之和的多少：值同号 {one.mean:.2f}，值有正有负 {both:.2f}（n = {both.n}）；v 与 −v 各半得 {cancelled:g}",
            en=f"size of the output as a share of its terms' total: {one.mean:.2f} with values of one sign, {both:.2f} with either sign (n = {both.n}); half v and half −v give {cancelled:g}",
        ),
        because={
            "only-if": Text(
                zh="正的权重不会把任何一个值反过来，但值本身有正有负：相加时一个值会扣掉另一个。",
                en="A positive weight never reverses a value, but the values have signs of their own: in the sum, one takes away from another.",
            )
        },
        only_if=Text(zh="各个值在同一分量上符号相同", en="the values have the same sign in each component"),
    )
