"""Text 001, parts 5 and 6: attention as a probability, and the size of raw scores."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator, off_by, opinion, share
from softscope.experiments.ledger.texts import rivals, scores
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.properties import DISTRIBUTION


@claim(
    "S1-29",
    says=Text(
        zh="注意力是查询 Q 在键 K 上的概率分布",
        en="Attention is a probability distribution of the query Q over the keys K",
    ),
    quote="查询 Q 当前想从键 K 中择取信息的概率分布。",
    where="Part 5, L142-144",
)
def _s1_29() -> Outcome:
    import torch

    rng = generator("S1-29")
    q, k = rng.standard_normal((2, 1, 200, 16))
    p = ss.attention(q, k, np.eye(200)[None])[0]
    torch.manual_seed(0)
    dropped = torch.nn.functional.dropout(torch.from_numpy(p), 0.1).numpy()
    off, off_dropped = (off_by(x.sum(-1), np.ones(200)) for x in (p, dropped))
    lowest = float(min(p.min(), dropped.min()))
    return Outcome.of(
        {Text(zh="没有负权重", en="no weight is negative"): lowest >= 0.0},
        under={
            Text(zh="评估时", en="at evaluation"): off < 1e-9,
            Text(zh="训练时对权重做 dropout 0.1", en="in training, with dropout 0.1 on the weights"): off_dropped
            < 1e-9,
        },
        measured=Text(
            zh=f"行和与 1 最多相差 {off:.1g}；dropout 之后 {off_dropped:.2f}（n = {len(p)} 行）",
            en=f"row sums off from 1 by at most {off:.1g}; after dropout {off_dropped:.2f} (n = {len(p)} rows)",
        ),
        because={
            "only-if": Text(
                zh="softmax 的每一行都是分布；但 dropout 把一部分权重置为 0，其余放大，和就不再是 1。",
                en="Every row of a softmax is a distribution; but dropout sets some weights to 0 and scales up the rest, so the sum is no longer 1.",
            )
        },
        only_if=Text(
            zh="权重来自 softmax，其上没有 dropout", en="the weights come from softmax, with no dropout on them"
        ),
    )


@claim(
    "S1-30",
    says=Text(
        zh="softmax 得到 [0.1, 0.7, 0.2, 0.0]，表示不关注第 4 个 token",
        en="Softmax gives [0.1, 0.7, 0.2, 0.0], which means no attention to token 4",
    ),
    quote="不关注 token4",
    where="Part 5, L146-157",
    experiment="weights",
)
def _s1_30() -> Outcome:
    wanted = [0.1, 0.7, 0.2, 0.0]
    fourth = {"−5": -5.0, "−50": -50.0, Text(zh="−∞（掩码）", en="−∞ (masked)"): -math.inf}
    rows = {label: ss.softmax([*np.log(wanted[:3]), score]) for label, score in fourth.items()}
    seen, far, _ = rows.values()
    return Outcome.of(
        {
            Text(zh="保留一位小数就是这一行", en="to one decimal, it is this row"): all(
                row.round(1).tolist() == wanted for row in rows.values()
            )
        },
        under={
            Text(zh="第 4 个分数 {}", en="a fourth score of {}").format(label): float(row[3]) == 0.0
            for label, row in rows.items()
        },
        measured=Text(
            zh=f"第 4 个分数为 −5 时 {listed(seen, '.4f')}；为 −50 时第 4 个权重 {far[3]:.0e}",
            en=f"a fourth score of −5 gives {listed(seen, '.4f')}; one of −50, a fourth weight of {far[3]:.0e}",
        ),
        because={
            "only-if": Text(
                zh=f"指数永不为 0：印成 0.0 的权重可能是 {seen[3]:.4f}，这个 token 仍得到一点注意。要得到真正的零，分数须为 −∞（掩码），或改用 sparsemax、entmax。",
                en=f"An exponential is never 0: a weight printed as 0.0 may be {seen[3]:.4f}, and the token still gets a little attention. A true zero takes a score of −∞ (a mask), or sparsemax or entmax instead.",
            )
        },
        only_if=Text(
            zh="第 4 个 token 被掩码（分数为 −∞，或低到浮点数下溢）",
            en="token 4 is masked (its score is −∞, or so low that the weight underflows)",
        ),
    )


@claim(
    "S1-31",
    says=Text(
        zh="概率解释让注意力既易懂又严谨",
        en="Reading attention as probabilities makes it both easy to understand and rigorous",
    ),
    quote="这个概率解释让注意力既易理解，也数学严谨。",
    where="Part 5, L159",
)
def _s1_31() -> Outcome:
    return opinion(
        Text(
            zh="易懂与否由读者判断；权重能不能算解释，文献中有争论（Jain 与 Wallace 2019）。",
            en="How easy it is, readers must judge; whether weights are explanations is disputed in the literature (Jain and Wallace 2019).",
        )
    )


@claim(
    "S1-32",
    says=Text(zh="不用 softmax 就没有概率意义", en="Without softmax there is no probabilistic meaning"),
    quote="如果不用 softmax，就没有这种概率意义。",
    where="Part 5, L161",
    experiment="normalisers",
)
def _s1_32() -> Outcome:
    names = ("entmax 1.5", "sparsemax", "(eˣ + e²ˣ)/Σ")
    row = [1.0, 2.0, 3.0]
    shown = "; ".join(f"{name} {listed(rivals.MAPS[name](np.array(row)), '.3f')}" for name in names)
    return Outcome.of(
        {
            Text(zh=f"{name} 不是概率分布", en=f"{name} is not a distribution"): not rivals.marks(name)[
                DISTRIBUTION
            ].held
            for name in names
        },
        measured=f"{listed(row, 'g')}: {shown}",
        because={
            "fails": Text(
                zh="权重只要非负、和为 1，就能读作概率；这三种映射对任何有限的分数都是这样。",
                en="Weights that are non-negative and sum to 1 can be read as probabilities, whatever made them; these three maps give such weights for all finite scores.",
            )
        },
        instead=Text(
            zh="任何让权重非负、和为 1 的映射都有概率意义；softmax 是其中之一",
            en="Any map whose weights are non-negative and sum to 1 has a probabilistic meaning; softmax is one of them",
        ),
    )


def _largest(d: int, std: float) -> Estimate:
    """Mean largest |q·k| over 1024 keys, with components of this standard deviation."""
    rng = generator(f"S1-33 {d} {std}")
    k = std * rng.standard_normal((1024, d), dtype=np.float32)
    return estimate(np.abs(std * rng.standard_normal((100, d), dtype=np.float32) @ k.T).max(-1))


@claim(
    "S1-33",
    says=Text(zh="原始分数 Q·Kᵀ 可以达到几十，甚至上百", en="Raw scores Q·Kᵀ can reach tens, even over a hundred"),
    quote="点积可能很大",
    where="Part 6, L167-176",
    experiment="variance",
)
def _s1_33() -> Outcome:
    small, wide, large = _largest(64, 1.0), _largest(64, 2.0), _largest(1024, 1.0)
    return Outcome.of(
        {
            Text(zh="几十（d = 64）", en="tens (d = 64)"): small.above(20.0) and small.below(100.0),
            Text(
                zh="上百（d = 64，分量的标准差为 2）", en="over a hundred (d = 64, components of standard deviation 2)"
            ): (wide.above(100.0)),
            Text(zh="上百（d = 1024）", en="over a hundred (d = 1024)"): large.above(100.0),
        },
        measured=Text(
            zh=f"1024 个键中最大的 |q·k| 平均：d = 64 为 {small:.1f}，分量的标准差为 2 时 {wide:.0f}；d = 1024 为 {large:.1f}（n = {small.n} 个查询，正态分量）",
            en=f"mean largest |q·k| over 1024 keys: {small:.1f} at d = 64, {wide:.0f} with components of standard deviation 2; {large:.1f} at d = 1024 (n = {small.n} queries, normal components)",
        ),
        because={
            "holds": Text(
                zh=f"分量的标准差为 σ 时，分数的标准差是 σ²√d；1024 个里最大的是它的 {small.mean / 8:.1f} 倍。",
                en=f"With components of standard deviation σ, the scores have σ²√d, and the largest of 1024 is {small.mean / 8:.1f} times that.",
            )
        },
    )


@claim(
    "S1-34",
    says=Text(
        zh="分数达到几十、上百，直接使用会不稳定：softmax 饱和、梯度消失",
        en="Scores of tens or hundreds, used directly, are unstable: softmax saturates and the gradient vanishes",
    ),
    quote="直接使用会导致数值不稳定（softmax 饱和，梯度消失）。",
    where="Part 6, L173-178",
    experiment="gradients",
)
def _s1_34() -> Outcome:
    widths, few, many = {64: 8.0, 512: 22.6}, 10, 1_000
    base = {n: scores.jacobian_norms(1.0, n).mean for n in (few, many)}
    found = {(n, d): scores.jacobian_norms(std, n) for n in base for d, std in widths.items()}
    shown = {n: f"{base[n]:.3f} → {', '.join(f'{found[n, d]:.3f} (d = {d})' for d in widths)}" for n in base}
    middle = [float(np.median(scores.jacobian_sizes(std, many))) for std in (1.0, *widths.values())]
    flips = {d: scores.reverses_above(std) for d, std in widths.items()}
    sharp = share(ss.softmax(22.6 * generator("S1-34").standard_normal((20_000, few))).max(-1) > 0.9)
    return Outcome.of(
        under={
            Text(zh=f"{n} 个键，d = {d}", en=f"{n} keys, d = {d}"): x.below(0.5 * base[n])
            for (n, d), x in found.items()
        },
        measured=Text(
            zh=f"平均 ‖J‖，缩放 → 不缩放：{few} 个键 {shown[few]}；{many} 个键 {shown[many]}，中位数 {middle[0]:.3f} → {middle[1]:.3f}、{middle[2]:.3f}；{few} 个键、d = 512 时 {sharp.mean:.0%} 的行有一个权重超过 0.9",
            en=f"mean ‖J‖, scaled → unscaled: {few} keys {shown[few]}; {many} keys {shown[many]}, median {middle[0]:.3f} → {middle[1]:.3f}, {middle[2]:.3f}; with {few} keys and d = 512, {sharp.mean:.0%} of the rows have a weight above 0.9",
        ),
        because={
            "only-if": Text(
                zh=f"键少时，最高分遥遥领先，权重接近 one-hot，梯度消失。键多时，最高的几个分数常常接近，仍有梯度，而缩放后的权重摊得太薄：多于约 {flips[64]} 个键（d = 64）或 {flips[512]} 个键（d = 512）时，不缩放的平均梯度反而更大，尽管在 d = 512 时它集中在少数行。",
                en=f"With few keys, the highest score is far ahead, the weights are nearly one-hot and the gradient vanishes. With many keys, the highest scores are often close, which leaves gradient, while scaled weights are spread thin: above about {flips[64]} keys (d = 64) or {flips[512]} (d = 512), the mean gradient is larger without scaling, though at d = 512 a minority of the rows holds it.",
            ),
            "fails": Text(
                zh="不缩放的分数留下的梯度不比缩放的少。", en="Unscaled scores leave no less gradient than scaled ones."
            ),
        },
        only_if=Text(
            zh=f"键很少（{few} 个左右）；多于约 {flips[64]} 个（d = 64）或 {flips[512]} 个（d = 512）时反过来",
            en=f"there are few keys (some {few}); above about {flips[64]} (d = 64) or {flips[512]} (d = 512) it is the other way round",
        ),
        instead=Text(
            zh="直接使用大的分数，softmax 会饱和，但平均梯度未必变小",
            en="With large scores used directly, softmax saturates, but the mean gradient need not shrink",
        ),
    )


@claim(
    "S1-35",
    says=Text(zh="softmax 配合 1/√d 保持稳定", en="Softmax with 1/√d stays stable"),
    quote="Softmax（配合缩放 / sqrt(d_head)）保持稳定：",
    where="Part 6, L180-185",
    experiment="entropy",
)
def _s1_35() -> Outcome:
    unit = {
        10: {d: scores.entropies(d) for d in (16, 64, 256, 1024)},
        100: {d: scores.entropies(d, keys=100, n=500) for d in (16, 64, 256)},
    }
    wide = scores.entropies(64, std=2.0)
    shown = {n: ", ".join(f"d = {d}: {x:.2f}" for d, x in found.items()) for n, found in unit.items()}
    steady = {n: all(x.agrees(found[64].mean, 0.1) for x in found.values()) for n, found in unit.items()}
    return Outcome.of(
        under={
            **{
                Text(zh=f"分量的方差为 1，{n} 个键", en=f"components of variance 1, {n} keys"): held
                for n, held in steady.items()
            },
            Text(zh="分量的标准差为 2，10 个键", en="components of standard deviation 2, 10 keys"): wide.agrees(
                unit[10][64].mean, 0.1
            ),
        },
        measured=Text(
            zh=f"平均熵（nat）：10 个键 {shown[10]}；100 个键 {shown[100]}；10 个键、标准差 2、d = 64：{wide:.2f}",
            en=f"mean entropy in nats: 10 keys {shown[10]}; 100 keys {shown[100]}; 10 keys, standard deviation 2, d = 64: {wide:.2f}",
        ),
        because={
            "only-if": Text(
                zh="1/√d 只抵消维度的影响：分量的方差为 1 时，每个 d 的熵都一样；分量的方差为 σ² 时，分数的标准差就是 σ²，softmax 照样饱和。",
                en="1/√d cancels only the dimension: with components of variance 1, the entropy is the same at every d; with variance σ², the scores have standard deviation σ², and softmax saturates all the same.",
            )
        },
        only_if=Text(zh="q 和 k 的分量方差保持为 1", en="the components of q and k keep variance 1"),
    )


@claim(
    "S1-36",
    says=Text(zh="这是目前最成熟、验证过的机制", en="This is the most mature and proven mechanism so far"),
    quote="这是目前最成熟、验证过的机制。",
    where="Part 6, L187",
)
def _s1_36() -> Outcome:
    return opinion(
        Text(
            zh="“最成熟”是一种评价；它用得最多，这倒可以查证。",
            en="“Most mature” is a judgement; that it is the most used could be checked.",
        )
    )
