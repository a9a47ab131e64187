"""Text 002, part VI: additive, plain and scaled dot-product scores."""

from __future__ import annotations

import functools
import math
import statistics
from typing import Any

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator, off_by, paper, times
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts import recall_runs as recall
from softscope.experiments.ledger.texts.figures import by
from softscope.experiments.recall import LEARNED


def _additive(seed: str, n: int, d: int, hidden: int, v_sd: float) -> dict[str, Any]:
    """Random arguments for additive attention: W keeps the variance at 1, and v_a has standard deviation v_sd."""
    rng = generator(seed)
    return {
        "q": rng.standard_normal((1, n, d)),
        "k": rng.standard_normal((1, n, d)),
        "w_q": rng.standard_normal((d, hidden)) / math.sqrt(2 * d),
        "w_k": rng.standard_normal((d, hidden)) / math.sqrt(2 * d),
        "v_a": v_sd * rng.standard_normal(hidden),
    }


def _scores(a: dict[str, Any]) -> Any:
    """vᵀtanh(W₁q + W₂k) for every query and key, written out."""
    hidden = (a["q"] @ a["w_q"])[..., :, None, :] + (a["k"] @ a["w_k"])[..., None, :, :]
    return np.tanh(hidden) @ a["v_a"]


@claim(
    "S2-32",
    says=Text(zh="加性注意力的分数是 vᵀtanh(W₁q + W₂k)", en="The additive score is vᵀtanh(W₁q + W₂k)"),
    quote="Additive Attention（Bahdanau Attention）",
    where="VI, L147-148",
    experiment="scores",
)
def _s2_32() -> Outcome:
    a = _additive("S2-32", 10, 16, 24, 1.0)
    v = generator("S2-32 v").standard_normal((1, 10, 3))
    off = off_by(ss.additive_attention(v=v, **a), ss.softmax(_scores(a)) @ v)
    return Outcome.of(
        {"softscope.additive_attention": off < 1e-12},
        measured=Text(zh=f"与公式最多相差 {off:.1g}", en=f"differs from the formula by at most {off:.1g}"),
        because={
            "holds": Text(
                zh="这就是 Bahdanau 等人（2015）的形式：两个线性映射相加，经过 tanh，再与 v 作点积；库中的实现算出的就是它。",
                en="This is the form of Bahdanau et al. (2015): add two linear maps, take tanh, and dot the result with v. The "
                "library's version computes just that.",
            )
        },
    )


@claim(
    "S2-33",
    says=Text(zh="加性注意力用前馈网络计算相似度", en="Additive attention computes scores with a feed-forward network"),
    quote="使用前馈网络计算相似度",
    where="VI, L150",
    experiment="scores",
)
def _s2_33() -> Outcome:
    import torch

    a = _additive("S2-33", 10, 16, 24, 1.0)
    network = torch.nn.Sequential(
        torch.nn.Linear(32, 24, bias=False), torch.nn.Tanh(), torch.nn.Linear(24, 1, bias=False)
    ).double()
    network[0].weight.data = torch.from_numpy(np.concatenate([a["w_q"], a["w_k"]]).T.copy())
    network[2].weight.data = torch.from_numpy(a["v_a"][None])
    q, k = a["q"][0], a["k"][0]
    pairs = np.concatenate([np.repeat(q, 10, axis=0), np.tile(k, (10, 1))], axis=-1)
    with torch.no_grad():
        off = off_by(network(torch.from_numpy(pairs)).reshape(10, 10), _scores(a)[0])
    return Outcome.of(
        {Text(zh="一个隐藏层的网络，输入 [q; k]", en="a network with one hidden layer, fed [q; k]"): off < 1e-12},
        measured=Text(
            zh=f"与 Linear–Tanh–Linear 最多相差 {off:.1g}", en=f"differs from Linear–Tanh–Linear by at most {off:.1g}"
        ),
        because={
            "holds": Text(
                zh="W₁q + W₂k 就是作用在 [q; k] 上的一个线性层。", en="W₁q + W₂k is one linear layer applied to [q; k]."
            )
        },
    )


@claim(
    "S2-34",
    says=Text(zh="tanh 自带饱和，输出在 [−1, 1]", en="Tanh saturates on its own, with outputs in [−1, 1]"),
    quote="函数自带饱和特性，输出范围 $[-1, 1]$",
    where="VI, L151",
    experiment="scores",
)
def _s2_34() -> Outcome:
    x = np.linspace(-50.0, 50.0, 100_001)
    y = np.tanh(x)
    slope = float(1.0 - np.tanh(10.0) ** 2)
    scores = np.abs(_scores(_additive("S2-34", 200, 64, 256, 1.0))).max()
    return Outcome.of(
        {Text(zh="范围", en="range"): bool((np.abs(y) <= 1.0).all()), Text(zh="饱和", en="saturation"): slope < 1e-7},
        measured=Text(
            zh=f"|tanh| ≤ {np.abs(y).max():g}，在 10 处的斜率 {slope:.1g}；隐藏层宽 256、v ~ N(0, 1) 时分数达 {scores:.0f}",
            en=f"|tanh| ≤ {np.abs(y).max():g}, slope {slope:.1g} at 10; with 256 hidden units and v ~ N(0, 1), scores reach {scores:.0f}",
        ),
        because={
            "holds": Text(
                zh="tanh x = (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ)，x 大时只剩一个指数，于是趋于 ±1，斜率趋于 0。这说的是 tanh；分数 vᵀtanh(…) 只以 Σ|v_i| 为界。",
                en="tanh x = (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ): for large x only one exponential counts, so it tends to ±1 and its slope to 0. This is "
                "about tanh; the score vᵀtanh(…) is bounded only by Σ|v_i|.",
            )
        },
    )


@functools.cache
def _additive_entropy(d: int, hidden: int, v_sd: float) -> Estimate:
    """Mean entropy over random networks, with 10 queries and 10 keys each."""
    found = []
    for trial in range(300):
        a = _additive(f"additive {d} {hidden} {trial}", drawn.KEYS, d, hidden, v_sd)
        found.append(float(ss.partition(_scores(a)).entropy.mean()))
    return estimate(found)


def _alike(entropies: dict[int, Estimate]) -> bool:
    """Whether the entropy does not depend on the size."""
    return all(x.agrees(entropies[64].mean, 0.1) for x in entropies.values())


@claim(
    "S2-35",
    says=Text(zh="加性注意力不需要缩放", en="Additive attention needs no scaling"),
    quote="不需要额外缩放",
    where="VI, L152",
    experiment="scores",
)
def _s2_35() -> Outcome:
    sizes = (16, 64, 256)
    small = {h: _additive_entropy(64, h, 1.0 / math.sqrt(h)) for h in sizes}
    large = {h: _additive_entropy(64, h, 1.0) for h in sizes}
    across = {d: _additive_entropy(d, 64, 1.0 / math.sqrt(64)) for d in sizes}
    return Outcome.of(
        under={
            Text(zh="v ~ N(0, 1/h)，h 变大", en="v ~ N(0, 1/h), growing h"): _alike(small),
            Text(zh="v ~ N(0, 1/h)，d 变大", en="v ~ N(0, 1/h), growing d"): _alike(across),
            Text(zh="v ~ N(0, 1)，h 变大", en="v ~ N(0, 1), growing h"): _alike(large),
        },
        measured=Text(
            zh=f"10 个键的熵（nat），v ~ N(0, 1/h)：{by(small, '.2f', 'h')}；{by(across, '.2f')}；v ~ N(0, 1)：{by(large, '.2f', 'h')}（h 为隐藏层宽度）",
            en=f"entropy over 10 keys in nats, v ~ N(0, 1/h): {by(small, '.2f', 'h')}; {by(across, '.2f')}; v ~ N(0, 1): "
            f"{by(large, '.2f', 'h')} (h hidden units)",
        ),
        because={
            "only-if": Text(
                zh="tanh 限制每一项的大小，所以 d 不起作用；但它不限制项数：v 的每个分量方差为 1 时，分数的标准差按 √h 增长。",
                en="Tanh bounds each term, so d does not matter; but it does not bound the number of terms: if the components of v have "
                "variance 1, the scores grow like √h.",
            )
        },
        only_if=Text(
            zh="v 的长度有界，例如以方差 1/h 初始化",
            en="the length of v is bounded, for example by initialising with variance 1/h",
        ),
    )


@claim(
    "S2-36",
    says=Text(zh="无缩放的点积计算简单，但数值不稳定", en="The plain dot product is simple but numerically unstable"),
    quote="计算简单，但数值不稳定",
    where="VI, L157",
    experiment="scores",
)
def _s2_36() -> Outcome:
    entropies = {d: drawn.plain(d).entropy for d in drawn.DIMENSIONS}
    off = {d: drawn.error_of_weights(d) for d in drawn.DIMENSIONS}
    coarse = {d: drawn.error_of_weights(d, "bfloat16") for d in drawn.DIMENSIONS}
    return Outcome.of(
        {
            Text(zh="比加性注意力省时", en="takes less time than additive attention"): min(_speed(64)) > _CLEARLY,
            Text(zh="float32 的权重误差超过 0.001", en="float32 weights off by over 0.001"): max(off.values()) > 1e-3,
        },
        measured=Text(
            zh=f"权重的误差，float32：{by(off, '.1g')}；bfloat16：{by(coarse, '.1g')}；熵（nat）{by(entropies)}",
            en=f"error of the weights, float32: {by(off, '.1g')}; bfloat16: {by(coarse, '.1g')}; entropy in nats {by(entropies)}",
        ),
        because={
            "fails": Text(
                zh="softmax 先减去最大值，再大的点积也不会溢出，float32 的权重也算得准（只有 16 位的分数才看得出舍入误差）；它们只是饱和了：难的是学习，不是数值计算。",
                en="Softmax subtracts the maximum first, so however large the dot products, nothing overflows and float32 weights "
                "are accurate (rounding shows only in 16-bit scores). They are just saturated: what gets hard is learning, not the "
                "arithmetic.",
            )
        },
        instead=Text(
            zh="无缩放的点积计算简单，数值上也准确，但 d 越大权重越饱和",
            en="The plain dot product is simple and numerically accurate, but its weights saturate as d grows",
        ),
    )


_CLEARLY = 2.0  # times faster, in every round: a margin that no busy machine bridges


@functools.cache
def _speed(d: int, n: int = 256, rounds: int = 7) -> tuple[float, ...]:
    """Time for additive scores as a multiple of the time for scaled dot products, one ratio per round.

    n queries, n keys, one thread.
    """
    import torch

    a = {name: torch.from_numpy(x).float() for name, x in _additive(f"speed {d}", n, d, d, 1.0).items()}

    def additive() -> Any:
        hidden = (a["q"] @ a["w_q"])[..., :, None, :] + (a["k"] @ a["w_k"])[..., None, :, :]
        return torch.tanh(hidden) @ a["v_a"]

    def dot() -> Any:
        return a["q"] @ a["k"].mT / math.sqrt(d)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return tuple(times(additive, dot, rounds=3) for _ in range(rounds))
    finally:
        torch.set_num_threads(threads)


def _spread(ratios: tuple[float, ...]) -> str:
    """The median and the range."""
    return f"{statistics.median(ratios):.0f}× ({min(ratios):.0f}–{max(ratios):.0f})"


@claim(
    "S2-60",
    says=Text(
        zh="计算效率：点积加缩放比加性注意力快",
        en="Efficiency: dot products with scaling are faster than additive attention",
    ),
    quote="计算效率：相比 Additive Attention，点积 + 缩放更快",
    where="Summary 4, L257",
    experiment="scores",
)
def _s2_60() -> Outcome:
    found = {d: _speed(d) for d in (16, 64, 128)}
    shown = ", ".join(f"d = {d}: {_spread(x)}" for d, x in found.items())
    return Outcome.of(
        {
            Text(
                zh=f"d = {d}：每一轮都快 {_CLEARLY:g} 倍以上",
                en=f"d = {d}: over {_CLEARLY:g} times faster in every round",
            ): min(x) > _CLEARLY
            for d, x in found.items()
        },
        measured=Text(
            zh=f"加性分数与点积的用时之比，中位数（最小–最大）：{shown}；256×256 个分数，单线程，{len(found[64])} 轮",
            en=f"time for additive scores as a multiple of that for dot products, median (range): {shown}; 256×256 scores, one "
            f"thread, {len(found[64])} rounds",
        ),
        because={
            "holds": Text(
                zh="加性注意力要为每一对查询和键算一个隐藏层的 tanh；点积只是一次矩阵乘法，正是硬件最擅长的。",
                en="Additive attention needs a tanh hidden layer for every pair of query and key; dot products are one matrix product, "
                "which is what hardware does best.",
            )
        },
    )


@claim(
    "S2-38",
    says=Text(
        zh="缩放点积结合了点积的计算效率和数值稳定性",
        en="The scaled dot product combines the dot product's efficiency with numerical stability",
    ),
    quote="结合了点积的计算效率和数值稳定性",
    where="VI, L163",
    experiment="scores",
)
def _s2_38() -> Outcome:
    faster = _speed(64)
    variances = {d: dots.scaled_variance(d) for d in (16, 64, 256, 512)}
    off = max(drawn.error_of_weights(d, scaled=True) for d in variances)
    return Outcome.of(
        {
            Text(zh="效率：每一轮都比加性快", en="efficiency: faster than additive in every round"): min(faster)
            > _CLEARLY,
            Text(zh="稳定：float32 的权重误差小于 0.001", en="stability: float32 weights off by less than 0.001"): off
            < 1e-3,
        }
        | {
            Text(zh=f"稳定：d = {d} 时分数的方差是 1", en=f"stability: scores of variance 1 at d = {d}"): x.agrees(
                1.0, 0.06
            )
            for d, x in variances.items()
        },
        measured=Text(
            zh=f"d = 64 时加性的用时是它的 {_spread(faster)}；分数的方差 {by(variances, '.2f')}；权重的误差 ≤ {off:.1g}",
            en=f"at d = 64 additive takes {_spread(faster)} its time; variance of the scores {by(variances, '.2f')}; error of the "
            f"weights ≤ {off:.1g}",
        ),
        because={
            "holds": Text(
                zh="它还是一次矩阵乘法，只多一次除法；这次除法使分数的分散程度不随 d 变化，softmax 就不会因为 d 大而饱和。",
                en="It is still one matrix product, with one division more; the division keeps the spread of the scores the same at every "
                "d, so that a large d does not saturate the softmax.",
            )
        },
    )


def _winners(keys: int = 16) -> int:
    """How many of these keys, of one component each, get the largest score from some query."""
    k = generator("S2-39").standard_normal(keys)
    queries = np.linspace(-3.0, 3.0, 1000)  # an even number: none is 0, which would tie them all
    return len(set(np.argmax(queries[:, None] * k, axis=-1).tolist()))


@claim(
    "S2-39",
    says=Text(zh="缩放点积在所有 d_k 下都表现良好", en="The scaled dot product works well at every d_k"),
    quote="在所有 $d_k$ 下都表现良好",
    where="VI, L164",
    slow=True,
)
def _s2_39() -> Outcome:
    found = {d: recall.accuracies(d, True, "adam") for d in (1, 2, 4, 8, 16, 64)}
    flip, winners = recall.flip_point(found), _winners()
    shown = ", ".join(f"d = {d}: {min(x):.2f}–{max(x):.2f}" for d, x in found.items())
    bleu = {d: b for d, (_, b) in paper.TABLE_3_ROWS_B.items()}
    return Outcome.of(
        {Text(zh="d_k = 1：16 个键个个都选得中", en="d_k = 1: each of 16 keys can be picked"): winners == 16}
        | {
            Text(zh=f"d = {d}：每个种子都学会", en=f"d = {d}: every seed learns"): min(x) >= LEARNED
            for d, x in found.items()
        },
        measured=Text(
            zh=f"16 个键的检索，{recall.STEPS} 步后的正确率，{len(recall.SEEDS)} 个种子的范围：{shown}；d_k = 1 时选得中的键：16 个中的 {winners} 个；论文表 3 的 BLEU：{by(bleu, '.1f', 'd_k')}",
            en=f"recall of 16 keys, accuracy after {recall.STEPS} steps, range over {len(recall.SEEDS)} seeds: {shown}; keys that can be picked at d_k = 1: {winners} of 16; BLEU in the paper's "
            f"Table 3: {by(bleu, '.1f', 'd_k')}",
        ),
        because={
            "fails": Text(
                zh="缩放能防止饱和，但不能代替维度：d_k = 1 时 q·k 是两个数之积，分数最大的总是最大或最小的键，别的键永远选不中。",
                en="Scaling prevents saturation but is no substitute for dimensions: at d_k = 1, q·k is a product of two numbers, so the "
                "largest or the smallest key always wins, and no other can ever be picked.",
            )
        },
        instead=Text(
            zh=f"缩放点积在足够大的 d_k 下表现良好：检索 16 个键时从 d_k = {flip.always} 起",
            en=f"The scaled dot product works well at every d_k that is large enough: to recall 16 keys, from d_k = {flip.always} on",
        ),
    )
