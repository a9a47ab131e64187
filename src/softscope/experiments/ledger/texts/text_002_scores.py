"""Text 002, part VI: additive, plain and scaled dot-product scores."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator, off_by, paper, times
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts import recall_runs as recall
from softscope.experiments.ledger.texts.figures import by, listed


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
    where="VI, L148",
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
            "holds": Text(zh="这就是 Bahdanau 等人（2015）的形式。", en="This is the form of Bahdanau et al. (2015).")
        },
    )


@claim(
    "S2-33",
    says=Text(zh="加性注意力用前馈网络计算相似度", en="Additive attention computes scores with a feed-forward network"),
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
                zh="这说的是 tanh；分数 vᵀtanh(…) 只以 Σ|v_i| 为界。",
                en="This is about tanh; the score vᵀtanh(…) is bounded only by Σ|v_i|.",
            )
        },
    )


@functools.cache
def _additive_entropy(hidden: int, v_sd: float) -> Estimate:
    """Mean entropy over random networks, with 10 queries and 10 keys each."""
    found = []
    for trial in range(300):
        a = _additive(f"additive {hidden} {trial}", drawn.KEYS, 64, hidden, v_sd)
        found.append(float(ss.partition(_scores(a)).entropy.mean()))
    return estimate(found)


@claim(
    "S2-35",
    says=Text(zh="加性注意力不需要缩放", en="Additive attention needs no scaling"),
    where="VI, L152",
    experiment="scores",
)
def _s2_35() -> Outcome:
    widths = (16, 64, 256)
    small = {h: _additive_entropy(h, 1.0 / math.sqrt(h)) for h in widths}
    large = {h: _additive_entropy(h, 1.0) for h in widths}
    return Outcome.of(
        under={
            "v ~ N(0, 1/h)": all(x.agrees(small[64].mean, 0.1) for x in small.values()),
            "v ~ N(0, 1)": all(x.agrees(large[64].mean, 0.1) for x in large.values()),
        },
        measured=Text(
            zh=f"10 个键的熵（nat），v ~ N(0, 1/h)：{by(small, '.2f', 'h')}；v ~ N(0, 1)：{by(large, '.2f', 'h')}（h 为隐藏层宽度）",
            en=f"entropy over 10 keys in nats, v ~ N(0, 1/h): {by(small, '.2f', 'h')}; v ~ N(0, 1): {by(large, '.2f', 'h')} "
            f"(h hidden units)",
        ),
        because={
            "only-if": Text(
                zh="tanh 限制每一项的大小，不限制项数：v 的每个分量方差为 1 时，分数的标准差按 √h 增长。",
                en="Tanh bounds each term, not the number of terms: if the components of v have variance 1, the scores grow like √h.",
            )
        },
        only_if=Text(
            zh="v 的长度有界，例如以方差 1/h 初始化",
            en="the length of v is bounded, for example by initialising with variance 1/h",
        ),
    )


@claim(
    "S2-36",
    says=Text(zh="无缩放的点积简单，但数值不稳定", en="The plain dot product is simple but numerically unstable"),
    where="VI, L157",
    experiment="scores",
)
def _s2_36() -> Outcome:
    entropies = {d: drawn.plain(d).entropy for d in drawn.DIMENSIONS}
    scores = generator("S2-36").standard_normal((100, 10)) * math.sqrt(256.0)
    off = drawn.error_of_weights(scores)
    return Outcome.of(
        under={
            Text(zh="权重随 d 塌缩", en="the weights collapse as d grows"): entropies[256].below(
                0.5 * entropies[16].mean
            ),
            Text(zh="算出的权重不准确", en="the weights are computed inaccurately"): off > 1e-12,
        },
        measured=Text(
            zh=f"熵（nat）{by(entropies)}；d = 256 时权重的误差 {off:.1g}",
            en=f"entropy in nats {by(entropies)}; error of the weights at d = 256: {off:.1g}",
        ),
        because={
            "only-if": Text(
                zh="权重算得出，也算得准，只是饱和了：不稳定的是学习，不是数值计算。",
                en="The weights can be computed, and accurately; they are just saturated. Learning is unstable, not the arithmetic.",
            )
        },
        only_if=Text(zh="“不稳定”指的是权重饱和", en="“unstable” means that the weights saturate"),
    )


@functools.cache
def _speed(d: int, n: int = 256) -> float:
    """Time for additive scores as a multiple of the time for scaled dot products: n queries, n keys, one thread."""
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
        return times(additive, dot)
    finally:
        torch.set_num_threads(threads)


@claim(
    "S2-60",
    says=Text(zh="缩放点积比加性注意力快", en="Scaled dot-product attention is faster than additive attention"),
    where="Summary 4, L257; L272",
    experiment="cost",
)
def _s2_60() -> Outcome:
    found = {d: _speed(d) for d in (16, 64, 128)}
    return Outcome.of(
        {f"d = {d}": x > 2.0 for d, x in found.items()},
        measured=Text(
            zh=f"加性分数与点积的用时之比：{by(found, '.0f')}（256×256 个分数，单线程，取 7 次中最快的）",
            en=f"time for additive scores as a multiple of that for dot products: {by(found, '.0f')} (256×256 scores, one thread, best of 7)",
        ),
        because={
            "holds": Text(
                zh="每一对都要算一个隐藏层的 tanh，而点积只需一次矩阵乘法。",
                en="Every pair needs a tanh hidden layer, while dot products take a single matrix product.",
            )
        },
    )


@claim(
    "S2-38",
    says=Text(zh="缩放点积兼有效率和稳定", en="The scaled dot product combines efficiency and stability"),
    where="VI, L163",
    experiment="scores",
)
def _s2_38() -> Outcome:
    faster = _speed(64)
    entropies = {d: drawn.scaled(d).entropy for d in drawn.DIMENSIONS}
    return Outcome.of(
        {Text(zh="效率", en="efficiency"): faster > 2.0}
        | {
            Text(zh=f"稳定，d = {d}", en=f"stability, d = {d}"): x.agrees(entropies[64].mean, 0.03)
            for d, x in entropies.items()
        },
        measured=Text(
            zh=f"d = 64 时速度是加性的 {faster:.0f} 倍；熵（nat）{by(entropies, '.3f')}",
            en=f"{faster:.0f} times as fast as additive at d = 64; entropy in nats {by(entropies, '.3f')}",
        ),
        because={
            "holds": Text(
                zh="缩放只是一次除法，却使权重不随 d 变化。",
                en="Scaling is one division, yet it keeps the weights from changing with d.",
            )
        },
    )


@claim(
    "S2-39",
    says=Text(zh="缩放点积在所有 d_k 下都表现良好", en="The scaled dot product works well at every d_k"),
    where="VI, L164",
    experiment="learning",
    slow=True,
)
def _s2_39() -> Outcome:
    found = {4: recall.accuracies(4, True, "adam"), 16: recall.accuracies(16, True, "adam")}
    found[64] = recall.accuracies(64, True, "adam")
    plain = recall.accuracies(4, False, "adam")
    shown = ", ".join(f"d = {d}: {listed(x, '.2f')}" for d, x in found.items())
    bleu = {d: b for d, (_, b) in paper.TABLE_3_ROWS_B.items()}
    return Outcome.of(
        under={f"d = {d}": min(x) > 0.95 for d, x in found.items()}
        | {
            Text(zh="论文表 3：d_k = 16 与 64 一样好", en="the paper's Table 3: d_k = 16 is as good as 64"): bleu[16]
            >= bleu[64]
        },
        measured=Text(
            zh=f"16 个键的检索，{recall.STEPS} 步后的正确率：{shown}；论文的 BLEU {by(bleu, '.1f', 'd_k')}",
            en=f"recall of 16 keys, accuracy after {recall.STEPS} steps: {shown}; BLEU in the paper {by(bleu, '.1f', 'd_k')}",
        ),
        because={
            "only-if": Text(
                zh=f"缩放能防止饱和，但不能代替维度：d = 4 时不缩放也差不多（{listed(plain, '.2f')}）。",
                en=f"Scaling prevents saturation but is no substitute for dimensions: at d = 4, unscaled does about as well "
                f"({listed(plain, '.2f')}).",
            )
        },
        only_if=Text(zh="d_k 对任务而言足够大", en="d_k is large enough for the task"),
    )
