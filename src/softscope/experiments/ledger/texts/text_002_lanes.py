"""Text 002, part IV and the summary: the two lanes, unscaled and scaled, from scores to training."""

from __future__ import annotations

import functools
import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts import recall_runs as recall
from softscope.experiments.ledger.texts.figures import by, listed
from softscope.experiments.ledger.texts.scores import frobenius


def _peaks(found: drawn.Sharpness) -> Text:
    """How sharp the rows are, in words."""
    return Text(
        zh=f"一行的最大权重 {found.peak:.3f}；它超过 0.5 的行所占比例 {found.over_half:.3f}（10 个键，{found.peak.n} 个矩阵）",
        en=f"largest weight in a row {found.peak:.3f}; share of rows where it exceeds 0.5: {found.over_half:.3f} "
        f"(10 keys, {found.peak.n} matrices)",
    )


@claim(
    "S2-23",
    says=Text(
        zh="未缩放、d_k = 64：分数在 [−24, 24]，softmax 很极端",
        en="Unscaled at d_k = 64: scores in [−24, 24] and an extreme softmax",
    ),
    where="IV mermaid, L113-114",
    experiment="entropy",
)
def _s2_23() -> Outcome:
    found = drawn.plain(64)
    return Outcome.of(
        {
            Text(zh="平均最大权重超过 0.8", en="largest weight above 0.8 on average"): found.peak.above(0.8),
            Text(
                zh="10 行中至少有 9 行，某个键的权重超过其余之和",
                en="in at least 9 of 10 rows, one key outweighs the rest combined",
            ): found.over_half.above(0.9),
        },
        measured=_peaks(found),
        because={
            "holds": Text(
                zh=f"分数的标准差为 8，最大的分数比第二大的高 {found.median_lead:.1f}（中位数），权重是后者的 {math.exp(found.median_lead):.0f} 倍。",
                en=f"The scores have standard deviation 8: the largest leads the second by {found.median_lead:.1f} (median) and "
                f"gets {math.exp(found.median_lead):.0f} times its weight.",
            )
        },
    )


@claim(
    "S2-24",
    says=Text(
        zh="未缩放、d_k = 64：梯度接近 0，训练困难",
        en="Unscaled at d_k = 64: the gradient is near 0 and training is hard",
    ),
    where="IV mermaid, L115",
    experiment="learning",
    slow=True,
)
def _s2_24() -> Outcome:
    slopes = ss.partition(np.array([-24.0, -10.0, 0.0, 10.0, 24.0])).jacobian_trace
    plain, scaled = drawn.plain(64), drawn.scaled(64)
    runs = {name: recall.accuracies(64, False, name) for name in recall.RATES}
    best = {name: recall.accuracies(64, True, name) for name in recall.RATES}
    return Outcome.of(
        under={
            Text(zh="梯度，文中的五个分数", en="gradient, the text's five scores"): bool(slopes < 1e-3),
            Text(zh="梯度，随机行", en="gradient, random rows"): plain.median_trace < 0.01 * scaled.median_trace,
        }
        | {
            Text(zh=f"训练，{name}", en=f"training, {name}"): max(runs[name]) < 0.7 and min(best[name]) > 0.9
            for name in recall.RATES
        },
        measured=Text(
            zh=f"Σs(1−s)：文中的例子 {slopes:.1g}；随机行，中位数 {plain.median_trace:.2f}，缩放后 {scaled.median_trace:.2f}；"
            f"{recall.STEPS} 步后的正确率，不缩放 adam {listed(runs['adam'], '.2f')}、sgd {listed(runs['sgd'], '.2f')}，"
            f"缩放 {listed(best['adam'], '.2f')}、{listed(best['sgd'], '.2f')}",
            en=f"Σs(1−s): the text's example {slopes:.1g}; random rows, median {plain.median_trace:.2f}, scaled "
            f"{scaled.median_trace:.2f}; accuracy after {recall.STEPS} steps, unscaled adam "
            f"{listed(runs['adam'], '.2f')}, sgd {listed(runs['sgd'], '.2f')}, scaled {listed(best['adam'], '.2f')}, "
            f"{listed(best['sgd'], '.2f')}",
        ),
        because={
            "only-if": Text(
                zh=f"训练确实会卡住，两种优化器都如此（每个序列都是同样的 {recall.PAIRS} 个键；键更多时会学得晚一些）；但随机行的梯"
                f"度只是变小，饱和的行才接近 0。",
                en=f"Training does get stuck, with either optimizer (on sequences that always show the same {recall.PAIRS} "
                f"keys; with more keys in all, it learns late). But a random row's gradient is only smaller; it is near 0 "
                f"only when the row is saturated.",
            )
        },
        only_if=Text(
            zh="说的是训练，或者是已饱和的行的梯度", en="it is about training, or about the gradient of saturated rows"
        ),
    )


@claim(
    "S2-25",
    says=Text(zh="缩放后：分数在 [−3, 3]，softmax 平滑", en="Scaled: scores in [−3, 3] and a smooth softmax"),
    where="IV mermaid, L118-119",
    experiment="entropy",
)
def _s2_25() -> Outcome:
    found = drawn.scaled(64)
    return Outcome.of(
        {
            Text(zh="平均最大权重低于 0.4", en="largest weight below 0.4 on average"): found.peak.below(0.4),
            Text(
                zh="10 行中至少有 9 行，没有哪个键的权重超过其余之和",
                en="in at least 9 of 10 rows, no key outweighs the rest combined",
            ): found.over_half.below(0.1),
        },
        measured=_peaks(found),
        because={
            "holds": Text(
                zh=f"熵是 {found.entropy.mean:.2f} nat，最大可能值是 {math.log(10):.2f}。",
                en=f"Entropy is {found.entropy.mean:.2f} nats; the maximum is {math.log(10):.2f}.",
            )
        },
    )


@claim(
    "S2-26",
    says=Text(zh="缩放后：梯度健康，训练稳定", en="Scaled: a healthy gradient and stable training"),
    where="IV mermaid, L120",
    experiment="learning",
    slow=True,
)
def _s2_26() -> Outcome:
    traces = {d: drawn.scaled(d).trace for d in (4, 16, 64, 256, 1024)}
    runs = {16: recall.accuracies(16, True, "sgd"), 64: recall.accuracies(64, True, "sgd")}
    runs[256] = recall.accuracies(256, True, "sgd", seeds=(0, 1))
    shown = ", ".join(f"d = {d}: {listed(x, '.2f')}" for d, x in runs.items())
    return Outcome.of(
        {Text(zh=f"Σs(1−s)，d = {d}", en=f"Σs(1−s), d = {d}"): x.above(0.7) for d, x in traces.items()}
        | {Text(zh=f"训练，d = {d}", en=f"training, d = {d}"): min(x) > 0.9 for d, x in runs.items()},
        measured=Text(
            zh=f"Σs(1−s)：{by(traces, '.3f')}；{recall.STEPS} 步后的正确率，{shown}",
            en=f"Σs(1−s): {by(traces, '.3f')}; accuracy after {recall.STEPS} steps, {shown}",
        ),
        because={
            "holds": Text(
                zh="缩放后的分数在每个 d 下都同样分散，所以梯度和训练也都一样。",
                en="Scaled scores have the same spread at every d, so gradients and training behave the same.",
            )
        },
    )


@claim(
    "S2-57",
    says=Text(
        zh="缩放防止分数过大，避免 softmax 饱和",
        en="Scaling keeps scores from growing too large and softmax from saturating",
    ),
    where="Summary 1, L254",
    experiment="entropy",
)
def _s2_57() -> Outcome:
    found = {d: drawn.scaled(d).peak for d in (16, 64, 256, 1024)}
    # q and k have twice the standard deviation: every score is four times as large, while √d stays the same.
    grown = drawn.sharpness(64, 4.0 / math.sqrt(64)).peak
    return Outcome.of(
        under={f"d = {d}": x.below(0.5) for d, x in found.items()}
        | {Text(zh="d = 64，q、k 的标准差为 2", en="d = 64, q and k with standard deviation 2"): grown.below(0.5)},
        measured=Text(
            zh=f"一行的最大权重，{by(found, '.3f')}；q、k 的标准差为 2 时 {grown:.3f}",
            en=f"largest weight in a row, {by(found, '.3f')}; when q and k have standard deviation 2: {grown:.3f}",
        ),
        because={
            "only-if": Text(
                zh="√d 抵消的是维度的影响，不是 q 和 k 自身在训练中的增长。",
                en="√d compensates for the dimension, not for q and k themselves growing during training.",
            )
        },
        only_if=Text(zh="q 和 k 各分量的方差保持在 1 左右", en="the components of q and k keep a variance of about 1"),
    )


@functools.cache
def _norms(n: int) -> dict[float, Estimate]:
    """The mean Frobenius norm ‖J‖ with n keys, for each standard deviation of the scores."""
    z = generator("S2-62").standard_normal((100_000 // n, n))
    found = {}
    for sd in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0):
        found[sd] = estimate(frobenius(ss.softmax(sd * z)))
    return found


@claim(
    "S2-62",
    says=Text(
        zh="标准正态的分数使 softmax 处于最优工作区间",
        en="Standard normal scores put softmax in its optimal working range",
    ),
    where="Essence, L262",
    experiment="saturation",
)
def _s2_62() -> Outcome:
    best = {n: max(_norms(n), key=lambda sd, n=n: _norms(n)[sd].mean) for n in (10, 100, 1000)}  # type: ignore[misc]
    ratio = {n: Estimate(x[1.0].mean / x[best[n]].mean, x[1.0].error / x[best[n]].mean, x[1.0].n)
             for n, x in ((n, _norms(n)) for n in best)}  # fmt: skip
    return Outcome.of(
        under={Text(zh=f"{n} 个键", en=f"{n} keys"): x.above(0.9) for n, x in ratio.items()},
        measured=Text(
            zh=f"标准差为 1 时的平均 ‖J‖ 与最大值之比：{by(ratio, '.2f', 'n')}；最大值所在的标准差：{by(best, 'g', 'n')}",
            en=f"mean ‖J‖ at standard deviation 1, as a share of the maximum: {by(ratio, '.2f', 'n')}; "
            f"the maximum is at standard deviation {by(best, 'g', 'n')}",
        ),
        because={
            "only-if": Text(
                zh="“最优”没有定义；若以平均 ‖J‖ 最大为最优，则最优的分散程度随键的个数增大。",
                en="“Optimal” is not defined; if it means the largest mean ‖J‖, the best spread grows with the number of keys.",
            )
        },
        only_if=Text(
            zh="键只有 10 个左右，并以平均 ‖J‖ 为准", en="there are only about 10 keys and mean ‖J‖ is the criterion"
        ),
    )


@claim(
    "S2-64",
    says=Text(zh="层归一化有类似的作用", en="Layer normalisation plays a similar role"),
    where="Related, L273",
    experiment="initialisation",
)
def _s2_64() -> Outcome:
    rng, n = generator("S2-64"), 4000
    spread = {}
    for d in (64, 256):
        w_q, w_k = rng.standard_normal((2, d, d)) / math.sqrt(d)
        x, y = rng.standard_normal((2, n, d))
        for size in (1.0, 10.0):
            a, b = (_layer_norm(size * tokens) for tokens in (x, y))
            scores = np.einsum("ij,ij->i", a @ w_q, b @ w_k)
            spread[d, size] = float(scores.std())
    inputs = spread[64, 10.0] / spread[64, 1.0]
    dimension = spread[256, 1.0] / spread[64, 1.0]
    scaled = float(np.sqrt(dots.scaled_variance(256).mean / dots.scaled_variance(64).mean))
    return Outcome.of(
        under={
            Text(zh="输入放大到 10 倍", en="inputs 10 times as large"): abs(inputs - 1.0) < 0.1,
            Text(zh="d 从 64 增大到 256", en="d from 64 to 256"): abs(dimension - 1.0) < 0.2,
        },
        measured=Text(
            zh=f"层归一化后 q·k 的标准差：输入放大到 10 倍时变为 {inputs:.3f} 倍，d 从 64 增大到 256 时变为 {dimension:.2f} 倍"
            f"（除以 √d 则为 {scaled:.2f} 倍；{n} 个样本）",
            en=f"standard deviation of q·k after layer norm: multiplied by {inputs:.3f} for inputs 10 times as large, by "
            f"{dimension:.2f} for d from 64 to 256 (by {scaled:.2f} when divided by √d; {n} samples)",
        ),
        because={
            "only-if": Text(
                zh="层归一化消除输入大小的影响，√d 消除维度的影响：目的相同，原因不同。",
                en="Layer norm handles the size of the inputs, √d handles the dimension: same purpose, different causes.",
            )
        },
        only_if=Text(zh="说的是输入的大小，而不是维度", en="it is about the size of the inputs, not the dimension"),
    )


def _layer_norm(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5))
