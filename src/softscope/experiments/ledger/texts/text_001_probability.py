"""Text 001, parts 5 and 6: attention as a probability, and the size of raw scores."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, estimate, generator, off_by, opinion, share
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.rivals import MAPS, report
from softscope.experiments.ledger.texts.scores import entropies, jacobian_norms


@claim(
    "S1-29",
    says=Text(
        zh="注意力是查询 Q 在键 K 上的概率分布",
        en="Attention is a probability distribution of the query Q over the keys K",
    ),
    where="Part 5, L142-144",
    experiment="normalisers",
)
def _s1_29() -> Outcome:
    import torch

    rng = generator("S1-29")
    q, k = rng.standard_normal((2, 1, 200, 16))
    p = ss.attention(q, k, np.eye(200)[None])[0]
    torch.manual_seed(0)
    dropped = torch.nn.functional.dropout(torch.from_numpy(p), 0.1).numpy()
    off, off_dropped = (off_by(x.sum(-1), np.ones(200)) for x in (p, dropped))
    return Outcome.of(
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
                zh="dropout 把一部分权重置为 0，其余放大，和就不再是 1。",
                en="Dropout sets some weights to 0 and scales up the rest, so the sum is no longer 1.",
            )
        },
        only_if=Text(zh="权重上没有 dropout", en="there is no dropout on the weights"),
    )


@claim(
    "S1-30",
    says=Text(
        zh="softmax 可以得到 [0.1, 0.7, 0.2, 0.0]，即不关注第 4 个 token",
        en="Softmax can give [0.1, 0.7, 0.2, 0.0], paying no attention to token 4",
    ),
    where="Part 5, L146-157",
    experiment="extremes",
)
def _s1_30() -> Outcome:
    wanted = np.array([0.1, 0.7, 0.2])
    near_zero = ss.softmax([*np.log(wanted), -5.0])
    masked = ss.softmax([*np.log(wanted), -math.inf])
    log_weight = float(ss.log_softmax([*np.log(wanted), -1000.0])[3])
    return Outcome.of(
        under={
            Text(zh="保留一位小数", en="printed to one decimal"): near_zero.round(1).tolist() == [0.1, 0.7, 0.2, 0.0],
            Text(zh="精确的 0，分数有限", en="exactly 0 from finite scores"): log_weight == -math.inf,
            Text(zh="精确的 0，分数为 −∞（掩码）", en="exactly 0 from a score of −∞ (mask)"): float(masked[3]) == 0.0,
        },
        measured=Text(
            zh=f"分数 −5 得 {listed(near_zero, '.4f')}；分数 −1000 得权重 e^{log_weight:.0f}，不为零",
            en=f"a score of −5 gives {listed(near_zero, '.4f')}; a score of −1000, a weight of e^{log_weight:.0f}, not 0",
        ),
        because={
            "only-if": Text(
                zh="指数永不为 0；要得到精确的零，需要掩码，或 sparsemax、entmax。",
                en="An exponential is never 0; exact zeros take a mask, sparsemax or entmax.",
            )
        },
        only_if=Text(
            zh="0.0 是舍入的结果，或该 token 被掩码", en="0.0 is the result of rounding, or the token is masked"
        ),
    )


@claim(
    "S1-31",
    says=Text(
        zh="概率解释让注意力既易懂又严谨",
        en="Reading attention as probabilities makes it both easy to understand and rigorous",
    ),
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
    where="Part 5, L161",
    experiment="normalisers",
)
def _s1_32() -> Outcome:
    names = ("entmax 1.5", "sparsemax", "(eˣ + e²ˣ)/Σ")
    broken = {
        name: [p for p in ("finite", "non_negative", "sums_to_one") if report(name)[p].status == "broken"]
        for name in names
    }
    row = [1.0, 2.0, 3.0]
    shown = "; ".join(f"{name} {listed(MAPS[name](np.array(row)), '.3f')}" for name in names)
    return Outcome.of(
        {
            Text(zh=f"{name} 不是概率分布", en=f"{name} is not a distribution"): bool(found)
            for name, found in broken.items()
        },
        measured=f"{listed(row, 'g')}: {shown}",
        because={
            "fails": Text(
                zh="这三种映射也总是非负、和为 1。", en="These three maps, too, are always non-negative and sum to 1."
            )
        },
    )


@claim(
    "S1-33",
    says=Text(zh="原始分数 Q·Kᵀ 可以达到几十，甚至上百", en="Raw scores Q·Kᵀ can reach tens, even over a hundred"),
    where="Part 6, L167-176",
    experiment="variance",
)
def _s1_33() -> Outcome:
    largest = {}
    for d in (64, 2048):
        rng = generator(f"S1-33 {d}")
        k = rng.standard_normal((1024, d), dtype=np.float32)
        largest[d] = estimate(np.abs(rng.standard_normal((100, d), dtype=np.float32) @ k.T).max(-1))
    return Outcome.of(
        {
            Text(zh="几十（d = 64）", en="tens (d = 64)"): largest[64].above(20.0),
            Text(zh="上百（d = 2048）", en="over a hundred (d = 2048)"): largest[2048].above(100.0),
        },
        measured=Text(
            zh=f"1024 个键中最大的 |q·k| 平均：d = 64 为 {largest[64]:.1f}，d = 2048 为 {largest[2048]:.1f}（n = {largest[64].n}，分量为标准正态）",
            en=f"mean largest |q·k| over 1024 keys: {largest[64]:.1f} at d = 64, {largest[2048]:.1f} at d = 2048 (n = {largest[64].n}, standard normal components)",
        ),
        because={
            "holds": Text(
                zh="标准差是 √d，1024 个里最大的是它的三倍多。",
                en="The standard deviation is √d, and the largest of 1024 is a little over three times that.",
            )
        },
    )


@claim(
    "S1-34",
    says=Text(
        zh="直接使用原始分数会不稳定：softmax 饱和、梯度消失",
        en="Using raw scores directly is unstable: softmax saturates and the gradient vanishes",
    ),
    where="Part 6, L178",
    experiment="saturation",
)
def _s1_34() -> Outcome:
    base = jacobian_norms(1.0).mean
    found = {64: jacobian_norms(8.0), 512: jacobian_norms(22.6)}
    sharp = share(ss.softmax(22.6 * generator("S1-34").standard_normal((20_000, 10))).max(-1) > 0.9)
    with np.errstate(over="ignore"):
        naive = float(np.exp(np.float32(100.0)))
    return Outcome.of(
        {f"d = {d}": x.below(0.5 * base) for d, x in found.items()},
        measured=Text(
            zh=f"10 项，平均 ‖J‖：缩放后 {base:.3f}，不缩放 d = 64 为 {found[64]:.3f}，d = 512 为 {found[512]:.3f}（n = {found[64].n}）",
            en=f"10 entries, mean ‖J‖: scaled {base:.3f}, unscaled {found[64]:.3f} at d = 64, {found[512]:.3f} at d = 512 (n = {found[64].n})",
        ),
        because={
            "holds": Text(
                zh=f"d = 512 时 {sharp.mean:.0%} 的行有一项超过 0.9；此外，float32 的 exp(100) 是 {naive}。",
                en=f"At d = 512, {sharp.mean:.0%} of the rows have an entry above 0.9; besides, exp(100) in float32 is {naive}.",
            )
        },
    )


@claim(
    "S1-35",
    says=Text(zh="softmax 配合 1/√d 保持稳定", en="Softmax with 1/√d stays stable"),
    where="Part 6, L180-185",
    experiment="entropy",
)
def _s1_35() -> Outcome:
    unit = {d: entropies(d) for d in (16, 64, 256, 1024)}
    wide = entropies(64, std=2.0)
    middle = unit[64].mean
    shown = ", ".join(f"d = {d}: {x:.2f}" for d, x in unit.items())
    return Outcome.of(
        under={
            Text(zh="q、k 的分量方差为 1", en="components of q and k have variance 1"): all(
                x.agrees(middle, 0.1) for x in unit.values()
            ),
            Text(zh="q、k 的分量标准差为 2", en="components of q and k have standard deviation 2"): wide.agrees(
                middle, 0.1
            ),
        },
        measured=Text(
            zh=f"10 个键，平均熵（nat）：{shown}；标准差 2、d = 64：{wide:.2f}（n = {wide.n}）",
            en=f"10 keys, mean entropy in nats: {shown}; standard deviation 2, d = 64: {wide:.2f} (n = {wide.n})",
        ),
        because={
            "only-if": Text(
                zh="1/√d 只抵消维度的影响；分量的方差为 σ² 时，分数的标准差就是 σ²。",
                en="1/√d cancels only the dimension: with components of variance σ², the scores have standard deviation σ².",
            )
        },
        only_if=Text(zh="q 和 k 的分量方差保持为 1", en="the components of q and k keep variance 1"),
    )


@claim(
    "S1-36",
    says=Text(zh="这是目前最成熟、验证过的机制", en="This is the most mature and proven mechanism so far"),
    where="Part 6, L187",
)
def _s1_36() -> Outcome:
    return opinion(
        Text(
            zh="“最成熟”是一种评价；它用得最多，这倒可以查证。",
            en="“Most mature” is a judgement; that it is the most used could be checked.",
        )
    )
