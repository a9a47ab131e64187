"""Text 000, part three: large dot products in attention, the division by √d, and the summary."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import (
    Outcome,
    claim,
    cut,
    generator,
    near,
    off_by,
    opinion,
    paper,
    share,
    variance_of,
)
from softscope.experiments.ledger.texts.blocks import gradient_norms
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.scores import dot_products

SCORES = [-30.0, 60.0, -10.0]
SCALED = [x / math.sqrt(512) for x in SCORES]


@claim(
    "S0-20",
    says=Text(zh="注意力权重是 softmax(QKᵀ/√d)", en="Attention weights are softmax(QKᵀ/√d)"),
    where="III, L84",
    experiment="scores",
)
def _s0_20() -> Outcome:
    q, k = generator("S0-20").standard_normal((2, 6, 8))
    e = np.exp(q @ k.T / math.sqrt(8))
    error = off_by(ss.attention(q[None], k[None], np.eye(6)[None])[0], e / e.sum(-1, keepdims=True))
    return Outcome.of(
        {
            Text(zh="本库的注意力", en="this library's attention"): error < 1e-12,
            paper.NAME: paper.EQUATION_1.startswith("softmax(QKᵀ/√d"),
        },
        measured=Text(
            zh=f"与公式相差 {error:.1g}；论文公式 (1)：{paper.EQUATION_1}",
            en=f"off from the formula by {error:.1g}; equation (1) of the paper: {paper.EQUATION_1}",
        ),
        because={
            "holds": Text(
                zh="这就是论文的公式 (1)，只差乘以 V。",
                en="This is the paper's equation (1), without the product with V.",
            )
        },
    )


@claim(
    "S0-21",
    says=Text(
        zh="分量为标准正态、d = 512 时，点积的方差是 512",
        en="With standard normal components and d = 512, the dot product has variance 512",
    ),
    where="III.1, L88-92",
    experiment="variance",
)
def _s0_21() -> Outcome:
    found = variance_of(dot_products(512))
    return Outcome.of(
        {Text(zh="方差在 512 的 3% 以内", en="the variance is within 3% of 512"): found.agrees(512.0, 0.03 * 512)},
        measured=Text(zh=f"方差 {found:.1f}（n = {found.n}）", en=f"variance {found:.1f} (n = {found.n})"),
        because={
            "holds": Text(
                zh="d 个乘积互不相关，方差各为 1；和的方差等于方差之和。",
                en="The d products are uncorrelated, each with variance 1, and their variances add up.",
            )
        },
    )


@claim(
    "S0-22",
    says=Text(
        zh="点积的方差随维度增长，就是“维度的诅咒”",
        en="The growth of the dot product's variance with d is the “curse of dimensionality”",
    ),
    where="III.1, L86",
)
def _s0_22() -> Outcome:
    return opinion(
        Text(
            zh="这是用词问题：这个词通常指体积随维度指数增长，而这里的标准差只按 √d 增长。",
            en="A matter of terms: this one usually means volume growing exponentially with d; here a standard deviation grows only as √d.",
        )
    )


@claim(
    "S0-23",
    says=Text(
        zh="d = 512 时可能出现 [−30, 60, −10] 这样的分数", en="Scores such as [−30, 60, −10] can occur at d = 512"
    ),
    where="III.2, L96",
    experiment="variance",
)
def _s0_23() -> Outcome:
    x = dot_products(512)
    rare = share(np.abs(x) >= 60.0)
    return Outcome.of(
        {
            Text(
                zh="绝对值不低于 60 的分数多于千分之一",
                en="more than one score in a thousand has absolute value 60 or more",
            ): rare.above(0.001)
        },
        measured=Text(
            zh=f"标准差 {x.std():.1f}；|分数| ≥ 60 的占 {rare:.4f}（n = {rare.n}）",
            en=f"standard deviation {x.std():.1f}; share with |score| ≥ 60: {rare:.4f} (n = {rare.n})",
        ),
        because={
            "holds": Text(
                zh=f"60 是 {60 / x.std():.2f} 个标准差，约每 {1 / rare.mean:.0f} 个分数里出现一个；−30 和 −10 都很常见。",
                en=f"60 is {60 / x.std():.2f} standard deviations, reached by about one score in {1 / rare.mean:.0f}; −30 and −10 are common.",
            )
        },
    )


@claim(
    "S0-24",
    says=Text(zh="e⁶⁰ 是天文数字，e⁻³⁰ 接近 0", en="e⁶⁰ is astronomically large and e⁻³⁰ is close to 0"),
    where="III.3, L100",
    experiment="extremes",
)
def _s0_24() -> Outcome:
    large, small = math.exp(60), math.exp(-30)
    return Outcome.of(
        {"e⁶⁰ > 10²⁰": large > 1e20, "e⁻³⁰ < 10⁻¹⁰": small < 1e-10},
        measured=f"e⁶⁰ = {large:.2e}, e⁻³⁰ = {small:.1e}",
        because={
            "holds": Text(zh="指数每增加 2.3，结果就多一位数字。", en="Every 2.3 in the exponent adds one digit.")
        },
    )


@claim(
    "S0-25",
    says=Text(zh="softmax([−30, 60, −10]) 约为 [0, 1, 0]", en="softmax([−30, 60, −10]) is about [0, 1, 0]"),
    where="III.3, L102",
    experiment="extremes",
)
def _s0_25() -> Outcome:
    p = ss.softmax(SCORES)
    return Outcome.of(
        {"[−30, 60, −10]": off_by(p, [0.0, 1.0, 0.0]) < 1e-6},
        measured=listed(p, ".2g"),
        because={"holds": Text(zh="第二名落后 70，只剩 e⁻⁷⁰。", en="The runner-up is 70 behind and keeps only e⁻⁷⁰.")},
    )


@claim(
    "S0-26",
    says=Text(zh="√512 约等于 22", en="√512 is about 22"),
    where="III fix, L107",
    experiment="variance",
)
def _s0_26() -> Outcome:
    root = math.sqrt(512)
    return Outcome.of(
        under={
            Text(zh="四舍五入", en="rounded"): near(root, "22"),
            Text(zh="舍去小数", en="truncated"): cut(root, "22"),
        },
        measured=f"√512 = {root:.3f}",
        because={
            "only-if": Text(zh=f"四舍五入到整数是 {root:.0f}。", en=f"Rounded to a whole number, it is {root:.0f}.")
        },
        only_if=Text(zh="小数直接舍去，而不是四舍五入", en="it is truncated, not rounded"),
    )


@claim(
    "S0-27",
    says=Text(zh="除以 √512 后，60 变成 2.7", en="Divided by √512, 60 becomes 2.7"),
    where="III fix, L109",
    experiment="variance",
)
def _s0_27() -> Outcome:
    return Outcome.of(
        {"60/√512": near(SCALED[1], "2.7")},
        measured=f"{SCALED[1]:.4f}",
        because={"holds": Text(zh="舍入到文中的一位小数，两者一致。", en="They agree to the one decimal printed.")},
    )


@claim(
    "S0-28",
    says=Text(zh="除以 √512 后，−30 变成 −1.3", en="Divided by √512, −30 becomes −1.3"),
    where="III fix, L111",
    experiment="variance",
)
def _s0_28() -> Outcome:
    return Outcome.of(
        {"−30/√512": near(SCALED[0], "-1.3")},
        measured=f"{SCALED[0]:.4f}",
        because={"holds": Text(zh="舍入到文中的一位小数，两者一致。", en="They agree to the one decimal printed.")},
    )


@claim(
    "S0-29",
    says=Text(zh="缩放之后 softmax 重新变得平滑", en="After scaling, softmax is smooth again"),
    where="III fix, L113",
    experiment="entropy",
)
def _s0_29() -> Outcome:
    before, after = ss.partition(SCORES), ss.partition(SCALED)
    p = ss.softmax(SCALED)
    return Outcome.of(
        under={
            Text(zh="比缩放前平滑", en="smoother than before"): bool(after.entropy > before.entropy + 0.1),
            Text(
                zh="比 one-hot 更接近均匀（熵超过最大值的一半）",
                en="closer to uniform than to one-hot (over half the maximum entropy)",
            ): bool(after.sharpness < 0.5),
        },
        measured=Text(
            zh=f"缩放后 {listed(p, '.3f')}，熵 {after.entropy:.2f} nat（最大 {math.log(3):.2f}），尖锐度 {after.sharpness:.2f}",
            en=f"after scaling {listed(p, '.3f')}, entropy {after.entropy:.2f} nats (maximum {math.log(3):.2f}), sharpness {after.sharpness:.2f}",
        ),
        because={
            "only-if": Text(
                zh=f"60 是少见的大值，缩放后仍为 {SCALED[1]:.2f}，最大权重仍有 {p.max():.2f}。",
                en=f"60 is unusually large: even scaled it is {SCALED[1]:.2f}, and the largest weight is still {p.max():.2f}.",
            )
        },
        only_if=Text(zh="“平滑”是与缩放之前相比", en="“smooth” means smoother than before scaling"),
    )


@claim(
    "S0-30",
    says=Text(
        zh="缩放之后梯度恢复流动，S(1−S) 不再为 0", en="After scaling, gradients flow again and S(1−S) is no longer 0"
    ),
    where="III fix, L113",
    experiment="gradients",
)
def _s0_30() -> Outcome:
    before, after = (np.diagonal(ss.jacobian(ss.softmax(x))) for x in (SCORES, SCALED))
    return Outcome.of(
        {
            Text(zh="每一项的 S(1−S) 都超过 0.01", en="every S(1−S) exceeds 0.01"): bool(
                (after > 0.01).all() and (before < 0.01).all()
            )
        },
        measured=Text(
            zh=f"缩放前 {listed(before, '.0e')}，缩放后 {listed(after, '.3f')}",
            en=f"before {listed(before, '.0e')}, after {listed(after, '.3f')}",
        ),
        because={
            "holds": Text(
                zh="三项都回到了抛物线可用的部分。", en="All three are back on the usable part of the parabola."
            )
        },
    )


@claim(
    "S0-31",
    says=Text(
        zh="因为输入数值过大，输出落在抛物线 S(1−S) 的两端",
        en="Because the inputs are too large, the outputs land at the two ends of the parabola S(1−S)",
    ),
    where="Summary, L120",
    experiment="saturation",
)
def _s0_31() -> Outcome:
    apart, together = (float(ss.jacobian(ss.softmax(x))[0, 0]) for x in ([200.0, 250.0], [1e6, 1e6 + 0.5]))
    return Outcome.of(
        under={
            Text(zh="大而相差很远：[200, 250]", en="large and far apart: [200, 250]"): apart < 1e-6,
            Text(zh="更大但相差 0.5：[10⁶, 10⁶ + 0.5]", en="larger, 0.5 apart: [10⁶, 10⁶ + 0.5]"): together < 1e-6,
        },
        measured=Text(zh=f"S(1−S)：{apart:.1e}；{together:.3f}", en=f"S(1−S): {apart:.1e}; {together:.3f}"),
        because={
            "only-if": Text(
                zh="起决定作用的是分数之差，不是分数的大小：softmax 不受平移影响。",
                en="Differences between scores decide, not their size: softmax ignores a common shift.",
            )
        },
        only_if=Text(zh="大的是分数之间的差", en="it is the differences between scores that are large"),
    )


@claim(
    "S0-32",
    says=Text(
        zh="源头的梯度为 0，上游整条河就断流", en="With zero gradient at the source, the whole river upstream runs dry"
    ),
    where="Summary, L120",
    experiment="gradients",
)
def _s0_32() -> Outcome:
    healthy, stuck = gradient_norms(1.0), gradient_norms(1e6)
    left = {name: stuck[name] / healthy[name] for name in ("input, scores", "input", "input, residual")}
    return Outcome.of(
        under={
            Text(zh="只经过 q 和 k 的路径", en="the path through q and k only"): left["input, scores"] < 1e-6,
            Text(zh="整个注意力块（含 V）", en="the whole attention block, including V"): left["input"] < 1e-6,
            Text(zh="整个块加残差", en="the whole block plus its residual"): left["input, residual"] < 1e-6,
        },
        measured=Text(
            zh=f"块输入处的梯度范数，饱和时与正常时之比：经 q、k {left['input, scores']:.2g}，整个块 {left['input']:.2f}，含残差 {left['input, residual']:.2f}",
            en=f"gradient norm at the block's input, saturated relative to healthy: through q, k {left['input, scores']:.2g}, whole block {left['input']:.2f}, with residual {left['input, residual']:.2f}",
        ),
        because={
            "only-if": Text(
                zh="梯度还可以经过 V 和残差连接到达上游。",
                en="The gradient still gets upstream through V and the residual connection.",
            )
        },
        only_if=Text(zh="梯度只能经过分数回传", en="the gradient can flow back only through the scores"),
    )
