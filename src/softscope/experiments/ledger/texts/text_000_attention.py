"""Text 000, part three: large dot products in attention, the division by √d, and the summary."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import (
    Outcome,
    claim,
    generator,
    near,
    off_by,
    opinion,
    paper,
    share,
    variance_of,
)
from softscope.experiments.ledger.texts.blocks import gradient_norms
from softscope.experiments.ledger.texts.dot_products import outside
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.scores import dot_products

SCORES = [-30.0, 60.0, -10.0]
SMOOTH = [2.0, 2.5]  # the text's own example of a smooth softmax


def _root() -> float:
    return math.sqrt(512.0)


def _scaled() -> list[float]:
    return [x / _root() for x in SCORES]


@claim(
    "S0-20",
    says=Text(zh="注意力权重是 softmax(QKᵀ/√d)", en="Attention weights are softmax(QKᵀ/√d)"),
    quote="这就回到了上一节提到的 缩放点积注意力 (Scaled Dot-Product Attention)",
    where="III, L82-84",
    experiment="attention",
)
def _s0_20() -> Outcome:
    q, k = generator("S0-20").standard_normal((2, 6, 8))
    e = np.exp(q @ k.T / math.sqrt(8))
    error = off_by(ss.attention(q[None], k[None], np.eye(6)[None])[0], e / e.sum(-1, keepdims=True))
    return Outcome.of(
        {
            Text(zh="论文的公式 (1) 如此", en="the paper's equation (1) says so"): paper.EQUATION_1.startswith(
                "softmax(QKᵀ/√d"
            ),
            Text(zh="本库的注意力也这样计算", en="this library's attention computes it"): error < 1e-12,
        },
        measured=Text(
            zh=f"论文公式 (1)：{paper.EQUATION_1}；本库的注意力与公式相差 {error:.1g}",
            en=f"equation (1) of the paper: {paper.EQUATION_1}; this library's attention is within {error:.1g} of it",
        ),
        because={
            "holds": Text(
                zh="这就是论文的公式 (1)，只差乘以 V。",
                en="This is the paper's equation (1), without the product with V.",
            )
        },
        evidence="quoted",
        source=f"{paper.NAME}, equation (1)",
    )


@claim(
    "S0-21",
    says=Text(
        zh="分量为标准正态、d = 512 时，点积的方差是 512",
        en="With standard normal components and d = 512, the dot product has variance 512",
    ),
    quote="点积的方差会变成 $d$（也就是 512）",
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
    quote="维度的诅咒",
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
    quote="可能出现 [-30, 60, -10, ...] 这样的数值",
    where="III.2, L96",
    experiment="variance",
)
def _s0_23() -> Outcome:
    x = dot_products(512)
    high, low, common = share(x >= 60.0), share(x <= -30.0), share(x <= -10.0)
    either = outside(512, 60.0 / math.sqrt(512.0))  # exact, for normal components
    return Outcome.of(
        {
            Text(
                zh=f"{name} 或更{further[0]}的分数多于千分之一",
                en=f"more than one score in a thousand is {name} or {further[1]}",
            ): found.above(0.001)
            for name, further, found in (
                ("60", ("大", "more"), high),
                ("−30", ("小", "less"), low),
                ("−10", ("小", "less"), common),
            )
        },
        measured=Text(
            zh=f"标准差 {x.std():.1f}；≥ 60 的占 {high:.4f}，≤ −30 的占 {low:.3f}，≤ −10 的占 {common:.3f}（n = {high.n}）",
            en=f"standard deviation {x.std():.1f}; share ≥ 60: {high:.4f}, ≤ −30: {low:.3f}, ≤ −10: {common:.3f} (n = {high.n})",
        ),
        because={
            "holds": Text(
                zh=f"60 是 {60 / x.std():.2f} 个标准差，约每 {2 / either:.0f} 个分数里出现一个（连 −60 也算，每 {1 / either:.0f} 个里一个）；−30 和 −10 都很常见。",
                en=f"60 is {60 / x.std():.2f} standard deviations: about one score in {2 / either:.0f} is that large (one in {1 / either:.0f} if −60 counts too). −30 and −10 are common.",
            )
        },
    )


@claim(
    "S0-24",
    says=Text(zh="e⁶⁰ 是天文数字，e⁻³⁰ 接近 0", en="e⁶⁰ is astronomically large and e⁻³⁰ is close to 0"),
    quote="是一个天文数字，而 $e^{-30}$ 接近于 0",
    where="III.3, L100",
    experiment="lanes",
)
def _s0_24() -> Outcome:
    large, small = math.exp(60), math.exp(-30)
    return Outcome.of(
        {"e⁶⁰ > 10²⁰": large > 1e20, "e⁻³⁰ < 10⁻¹⁰": small < 1e-10},
        measured=f"e⁶⁰ = {large:.2e}, e⁻³⁰ = {small:.1e}",
        because={
            "holds": Text(
                zh="指数每增加 2.3，结果就多一位数字；每减少 2.3，小数点后就多一个零。",
                en="Every 2.3 added to the exponent adds one digit; every 2.3 taken off adds one zero after the point.",
            )
        },
    )


@claim(
    "S0-25",
    says=Text(zh="softmax([−30, 60, −10]) 约为 [0, 1, 0]", en="softmax([−30, 60, −10]) is about [0, 1, 0]"),
    quote="这会导致 Softmax 的分布瞬间变成 [0, 1, 0, ...] 这种极度尖锐的状态",
    where="III.3, L102",
    experiment="lanes",
)
def _s0_25() -> Outcome:
    p = ss.softmax(SCORES)
    return Outcome.of(
        {
            Text(zh="与 [0, 1, 0] 相差不到百万分之一", en="it is within a millionth of [0, 1, 0]"): off_by(
                p, [0.0, 1.0, 0.0]
            )
            < 1e-6
        },
        measured=listed(p, ".2g"),
        because={"holds": Text(zh="第二名落后 70，只剩 e⁻⁷⁰。", en="The runner-up is 70 behind and keeps only e⁻⁷⁰.")},
    )


@claim(
    "S0-26",
    says=Text(zh="√512 约等于 22", en="√512 is about 22"),
    quote="(比如 $\\sqrt{512} \\approx 22$)",
    where="III fix, L107",
    experiment="lanes",
)
def _s0_26() -> Outcome:
    root = _root()
    return Outcome.of(
        {Text(zh="√512 四舍五入到整数是 22", en="√512 rounds to 22"): near(root, "22")},
        measured=f"√512 = {root:.3f}",
        because={
            "fails": Text(
                zh=f"22² = {22**2}，23² = {23**2}：512 离后者近得多。文中把小数直接舍去了。",
                en=f"22² = {22**2} and 23² = {23**2}: 512 is much closer to the latter. The text cut the decimals off.",
            )
        },
        instead=Text(zh=f"√512 约等于 {root:.1f}", en=f"√512 is about {root:.1f}"),
    )


@claim(
    "S0-27",
    says=Text(zh="除以 √512 后，60 变成 2.7", en="Divided by √512, 60 becomes 2.7"),
    quote="把 60 变成 2.7",
    where="III fix, L109",
    experiment="lanes",
)
def _s0_27() -> Outcome:
    large = _scaled()[1]
    return Outcome.of(
        {"60/√512 ≈ 2.7": near(large, "2.7")},
        measured=f"60/√512 = {large:.4f}",
        because={
            "holds": Text(
                zh=f"60 是 {large:.2f} 个标准差：除以 √512 就是换用标准差作单位。",
                en=f"60 is {large:.2f} standard deviations: dividing by √512 makes the standard deviation the unit.",
            )
        },
    )


@claim(
    "S0-28",
    says=Text(zh="除以 √512 后，−30 变成 −1.3", en="Divided by √512, −30 becomes −1.3"),
    quote="把 -30 变成 -1.3",
    where="III fix, L111",
    experiment="lanes",
)
def _s0_28() -> Outcome:
    low = _scaled()[0]
    return Outcome.of(
        {"−30/√512 ≈ −1.3": near(low, "-1.3")},
        measured=f"−30/√512 = {low:.4f}",
        because={
            "holds": Text(
                zh=f"除数是 √512 = {_root():.2f}，不是文中写的 22，否则会得到 {-30 / 22:.2f}。",
                en=f"The divisor is √512 = {_root():.2f}, not the text's 22, which would give {-30 / 22:.2f}.",
            )
        },
    )


@claim(
    "S0-29",
    says=Text(
        zh="缩放之后，数值拉回舒适区，softmax 重新变得平滑",
        en="Scaling brings the values back to a comfortable range, and softmax is smooth again",
    ),
    quote="数值拉回了舒适区，Softmax 重新变得平滑",
    where="III fix, L109-113",
    experiment="lanes",
)
def _s0_29() -> Outcome:
    scaled = _scaled()
    p, left = ss.softmax(scaled), ss.partition(scaled)
    smooth = ss.partition(SMOOTH)
    rows = dot_products(512)[: 26_000 * 3].reshape(-1, 3) / _root()
    typical = share(ss.partition(rows).sharpness < 0.5)
    return Outcome.of(
        {
            Text(
                zh="文中的分数缩放后，离均匀比离 one-hot 近（熵超过最大值的一半）",
                en="the text's own scores, scaled, are closer to uniform than to one-hot (over half the maximum entropy)",
            ): bool(left.sharpness < 0.5)
        },
        measured=Text(
            zh=f"缩放后 {listed(p, '.3f')}，熵为最大值的 {1 - left.sharpness:.2f}；文中平滑的例子 [2.0, 2.5] 是 {1 - smooth.sharpness:.2f}；随机的三个分数缩放后，熵超过最大值一半的占 {typical:.2f}（n = {typical.n}）",
            en=f"after scaling {listed(p, '.3f')}, entropy {1 - left.sharpness:.2f} of its maximum; the text's smooth example [2.0, 2.5] has {1 - smooth.sharpness:.2f}; share of random rows of three that keep over half of it when scaled {typical:.2f} (n = {typical.n})",
        ),
        because={
            "fails": Text(
                zh=f"60 是少见的大值，缩放后仍领先第二名 {scaled[1] - scaled[2]:.1f}，拿走 {p.max():.2f} 的权重：比缩放前平滑，但仍然尖锐。",
                en=f"60 is unusually large: even scaled, it leads the runner-up by {scaled[1] - scaled[2]:.1f} and takes {p.max():.2f} of the weight. That is smoother than before, but still sharp.",
            )
        },
        instead=Text(
            zh=f"缩放之后 softmax 变得平滑一些：这些分数的最大权重从 {ss.softmax(SCORES).max():.2f} 降到 {p.max():.2f}；没有 60 这样的大值，多半就平滑了",
            en=f"Scaling makes softmax smoother: the largest weight of these scores falls from {ss.softmax(SCORES).max():.2f} to {p.max():.2f}; without a score as rare as 60, it is mostly smooth",
        ),
    )


@claim(
    "S0-30",
    says=Text(
        zh="缩放之后梯度恢复流动，S(1−S) 不再为 0", en="After scaling, gradients flow again and S(1−S) is no longer 0"
    ),
    quote="梯度恢复流动，$S_i(1-S_i)$ 不再为 0",
    where="III fix, L113",
    experiment="lanes",
)
def _s0_30() -> Outcome:
    scaled = _scaled()
    weights = ss.softmax(scaled)
    before, after = (np.diagonal(ss.jacobian(ss.softmax(x))) for x in (SCORES, scaled))
    return Outcome.of(
        {
            Text(zh="缩放前每一项的 S(1−S) 几乎为 0", en="before scaling, every S(1−S) is practically 0"): bool(
                (before < 1e-9).all()
            ),
            Text(zh="缩放后每一项的 S(1−S) 都超过 0.01", en="after scaling, every S(1−S) exceeds 0.01"): bool(
                (after > 0.01).all()
            ),
        },
        measured=Text(
            zh=f"S(1−S)：缩放前 {listed(before, '.0e')}，缩放后 {listed(after, '.3f')}",
            en=f"S(1−S): before scaling {listed(before, '.0e')}, after {listed(after, '.3f')}",
        ),
        because={
            "holds": Text(
                zh=f"权重变成 {listed(weights, '.3f')}，离 0 和 1 仍不远，但已有距离：S(1−S) 至少是 {after.min():.3f}，而抛物线的最高点是 0.25。",
                en=f"The weights become {listed(weights, '.3f')}: not far from 0 and 1, but no longer there. S(1−S) is at least {after.min():.3f}, where the parabola's top is 0.25.",
            )
        },
    )


@claim(
    "S0-31",
    says=Text(
        zh="因为输入数值过大，输出落在抛物线 S(1−S) 的两端，局部梯度消失",
        en="Because the inputs are too large, the outputs land at the two ends of the parabola S(1−S), and the local gradient vanishes",
    ),
    quote="由于输入数值过大，Softmax 的输出落在了 $S_i(1-S_i)$ 抛物线的两端",
    where="Summary, L120",
    experiment="saturation",
)
def _s0_31() -> Outcome:
    apart, together = (float(ss.jacobian(ss.softmax(x))[0, 0]) for x in ([200.0, 250.0], [1e6, 1e6 + 0.5]))
    return Outcome.of(
        under={
            Text(zh="大而相差很远：[200, 250]", en="large and far apart: [200, 250]"): apart < 1e-6,
            Text(zh="更大但只差 0.5：[10⁶, 10⁶ + 0.5]", en="larger, but 0.5 apart: [10⁶, 10⁶ + 0.5]"): together < 1e-6,
        },
        measured=Text(zh=f"S(1−S)：{apart:.1e}；{together:.3f}", en=f"S(1−S): {apart:.1e}; {together:.3f}"),
        because={
            "only-if": Text(
                zh="起决定作用的是分数之差，不是分数的大小：各项同加一个数，softmax 不变。",
                en="Differences between scores decide, not their size: adding the same number to all of them changes nothing.",
            )
        },
        only_if=Text(zh="输入之间的差也很大", en="the inputs are far apart, too"),
    )


@claim(
    "S0-32",
    says=Text(
        zh="源头的梯度为 0，上游整条河就断流", en="With zero gradient at the source, the whole river upstream runs dry"
    ),
    quote="源头干涸了（梯度为0），整条河也就断流了",
    where="Summary, L120",
)
def _s0_32() -> Outcome:
    healthy, stuck = gradient_norms(1.0), gradient_norms(1e6)
    paths = {
        "input, scores": Text(zh="只有经过 q 和 k 的路径", en="the only path is through q and k"),
        "input": Text(zh="还有经过 V 的路径", en="there is a path through V, too"),
        "input, residual": Text(zh="还有 V 和残差连接", en="there are V and a residual connection, too"),
    }
    return Outcome.of(
        under={label: stuck[name] <= 1e-6 * healthy[name] for name, label in paths.items()},
        measured=Text(
            zh="块输入处的梯度范数（正常 → 分数放大 10⁶ 倍）："
            + "；".join(f"{label.zh} {healthy[name]:.3g} → {stuck[name]:.3g}" for name, label in paths.items()),
            en="gradient norm at the block's input (healthy → scores × 10⁶): "
            + "; ".join(f"{label.en} {healthy[name]:.3g} → {stuck[name]:.3g}" for name, label in paths.items()),
        ),
        because={
            "only-if": Text(
                zh="链式法则中的零只堵住它所在的那条路；在注意力块里，梯度还能经过 V 和残差连接到达上游。",
                en="A zero in the chain rule blocks only the path it lies on; in an attention block, the gradient also gets upstream through V and the residual connection.",
            )
        },
        only_if=Text(
            zh="没有别的支流：梯度只能经过分数回传",
            en="no other stream joins it: the gradient can flow back only through the scores",
        ),
    )
