"""Text 000, part one: a smooth softmax is a slope, a sharp one a cliff."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, near, off_by
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.saturated import cross_entropy_gradient, slope

SMOOTH, SHARP = [2.0, 2.5], [200.0, 250.0]


def _quotient(logits: list[float], step: float, gain: float = 1.0) -> float:
    """How fast the first weight rises with its input x, if the logits are gain·x: a difference quotient around x."""
    first, *others = logits
    up, down = (float(ss.softmax([first + sign * gain * step, *others])[0]) for sign in (1.0, -1.0))
    return (up - down) / (2.0 * step)


@claim(
    "S0-01",
    says=Text(
        zh="尖锐的 softmax 像一个硬逻辑门，而不是一个可微函数",
        en="A sharp softmax acts like a hard logic gate rather than a differentiable function",
    ),
    quote="它变得像一个硬逻辑门（Hard Logic Gate），而不是一个可微函数",
    where="intro, L3",
    experiment="saturation",
)
def _s0_01() -> Outcome:
    gate = off_by(ss.softmax(SHARP), [0.0, 1.0])
    # A gate jumps where its inputs tie: there its quotient grows without bound as the step shrinks.
    quotients = [_quotient([250.0, 250.0], step) for step in (1e-3, 1e-4)]
    jumps = abs(quotients[1] - quotients[0]) > 0.01 * abs(quotients[0])
    return Outcome.of(
        {
            Text(
                zh="输出像门：与 0/1 相差不到百万分之一", en="the output is like a gate's: within a millionth of 0 or 1"
            ): gate < 1e-6,
            Text(zh="在 [250, 250] 处不可微", en="it has no derivative at [250, 250]"): jumps,
        },
        measured=Text(
            zh=f"[200, 250] 的输出与 [0, 1] 相差 {gate:.1e}，导数 {slope(SHARP, 0):.1e}；两项相等时的差商：步长 0.001 为 {quotients[0]:.4f}，步长 0.0001 为 {quotients[1]:.4f}",
            en=f"at [200, 250] the output is {gate:.1e} away from [0, 1] and the derivative {slope(SHARP, 0):.1e}; difference quotient at a tie: {quotients[0]:.4f} with step 0.001, {quotients[1]:.4f} with step 0.0001",
        ),
        because={
            "fails": Text(
                zh=f"门在两项相等时会跳变，softmax 不会：步长缩小，差商稳定在 {quotients[1]:.2f}。在 [200, 250] 处，导数极小，但仍然存在。",
                en=f"A gate jumps where its two inputs tie. Softmax does not: as the step shrinks, the quotient settles at {quotients[1]:.2f}. At [200, 250] the derivative is tiny, but it exists.",
            )
        },
        instead=Text(
            zh="尖锐的 softmax 输出像硬逻辑门，但仍处处可微，只是导数极小",
            en="A sharp softmax gives outputs like a hard logic gate's, yet it is differentiable everywhere, with a tiny derivative",
        ),
    )


@claim(
    "S0-02",
    says=Text(zh="softmax([2.0, 2.5]) 是 [0.38, 0.62]", en="softmax([2.0, 2.5]) is [0.38, 0.62]"),
    quote="Softmax输出：[0.38, 0.62]",
    where="I.1, L13-15",
    experiment="saturation",
)
def _s0_02() -> Outcome:
    p = ss.softmax(SMOOTH)
    return Outcome.of(
        {"softmax([2.0, 2.5]) ≈ [0.38, 0.62]": near(p, ["0.38", "0.62"])},
        measured=listed(p, ".4f"),
        because={
            "holds": Text(
                zh=f"差距 0.5 使第二项的权重是第一项的 e^0.5 = {p[1] / p[0]:.2f} 倍，两项之和为 1。",
                en=f"A gap of 0.5 makes the second weight e^0.5 = {p[1] / p[0]:.2f} times the first, and the two add up to 1.",
            )
        },
    )


@claim(
    "S0-03",
    says=Text(zh="把 2.0 改成 2.1，概率会明显变动", en="Changing 2.0 to 2.1 visibly moves the probabilities"),
    quote="比如把 2.0 变成 2.1），输出的概率会发生明显的变动",
    where="I.1, L17",
    experiment="saturation",
)
def _s0_03() -> Outcome:
    before, after = ss.softmax(SMOOTH), ss.softmax([2.1, 2.5])
    moved = off_by(before, after)
    return Outcome.of(
        {
            Text(zh="文中的两位小数变了", en="the two printed decimals change"): bool(
                np.all(before.round(2) != after.round(2))
            )
        },
        measured=Text(
            zh=f"{listed(before, '.4f')} 变为 {listed(after, '.4f')}，变动 {moved:.4f}",
            en=f"{listed(before, '.4f')} becomes {listed(after, '.4f')}, a change of {moved:.4f}",
        ),
        because={
            "holds": Text(
                zh=f"变动约为斜率 {slope(SMOOTH, 0):.3f} 乘以步长 0.1，在两位小数里看得见。",
                en=f"The change is about the slope, {slope(SMOOTH, 0):.3f}, times the step of 0.1: visible at two decimals.",
            )
        },
    )


@claim(
    "S0-04",
    says=Text(
        zh="有坡度就有梯度，模型就能学习", en="Where there is a slope there is a gradient, and the model can learn"
    ),
    quote="有坡度 = 有梯度 = 模型能学到东西",
    where="I.1, L19",
    experiment="saturation",
)
def _s0_04() -> Outcome:
    x, steps = np.array(SMOOTH), 100
    wanted = np.array([1.0, 0.0])  # the loss is −s_1: the less likely entry is the right one
    start, gradient = float(ss.softmax(x)[0]), float(ss.jacobian_product(ss.softmax(x), wanted)[0])
    for _ in range(steps):
        x = x + ss.jacobian_product(ss.softmax(x), wanted)
    end = float(ss.softmax(x)[0])
    return Outcome.of(
        {
            Text(zh="梯度不为零", en="the gradient is not 0"): gradient > 0.1,
            Text(zh="梯度下降能把权重移到想要的一项", en="gradient descent moves the weight to the entry we want"): end
            > 0.9,
        },
        measured=Text(
            zh=f"[2.0, 2.5] 处的梯度 {gradient:.3f}；{steps} 步之后，第一项的权重由 {start:.2f} 变为 {end:.2f}",
            en=f"gradient at [2.0, 2.5] {gradient:.3f}; {steps} steps move the first weight from {start:.2f} to {end:.2f}",
        ),
        because={
            "holds": Text(
                zh="斜率说明往哪边走权重会变大；沿着它一步步走，错的一项就让位给对的一项。",
                en="The slope says which way the weight rises. Following it step by step, the wrong entry gives way to the right one.",
            )
        },
    )


@claim(
    "S0-05",
    says=Text(zh="softmax([200, 250]) 是 [0.0000…, 1.0000…]", en="softmax([200, 250]) is [0.0000…, 1.0000…]"),
    quote="Softmax输出：[0.0000..., 1.0000...]",
    where="I.2, L24-26",
    experiment="saturation",
)
def _s0_05() -> Outcome:
    p = ss.softmax(SHARP)
    return Outcome.of(
        {"softmax([200, 250]) ≈ [0.0000, 1.0000]": near(p, ["0.0000", "1.0000"])},
        measured=listed(p, ".3g"),
        because={
            "holds": Text(zh="差距 50 使较小的一项只剩 e⁻⁵⁰。", en="A gap of 50 leaves the smaller entry only e⁻⁵⁰.")
        },
    )


@claim(
    "S0-06",
    says=Text(
        zh="softmax 变尖锐，是因为差距变大，或者数值整体变大",
        en="Softmax becomes sharp because the gap grew, or because all the values grew",
    ),
    quote="注意差距变大了，或者数值整体变大了",
    where="I.2, L22-24",
    experiment="saturation",
)
def _s0_06() -> Outcome:
    rows = {"plain": SMOOTH, "gap": [2.0, 52.0], "times 100": SHARP, "plus 198": [200.0, 200.5]}
    peaks = {name: float(ss.softmax(row).max()) for name, row in rows.items()}
    moved = off_by(ss.softmax(rows["plain"]), ss.softmax(rows["plus 198"]))
    return Outcome.of(
        {Text(zh="差距变大，就变尖锐：[2, 52]", en="sharp if the gap grows: [2, 52]"): peaks["gap"] > 0.99},
        under={
            Text(
                zh="数值整体变大，差距也变大：[200, 250]", en="all the values grow, and the gap with them: [200, 250]"
            ): peaks["times 100"] > 0.99,
            Text(
                zh="数值整体变大，差距不变：[200, 200.5]", en="all the values grow, but not the gap: [200, 200.5]"
            ): peaks["plus 198"] > 0.99,
        },
        measured=Text(
            zh=f"最大权重：[2, 2.5] 为 {peaks['plain']:.4f}，[2, 52] 为 {peaks['gap']:.4f}，[200, 250] 为 {peaks['times 100']:.4f}，[200, 200.5] 为 {peaks['plus 198']:.4f}",
            en=f"largest weight: [2, 2.5] {peaks['plain']:.4f}, [2, 52] {peaks['gap']:.4f}, [200, 250] {peaks['times 100']:.4f}, [200, 200.5] {peaks['plus 198']:.4f}",
        ),
        because={
            "only-if": Text(
                zh=f"softmax 只看差距：各项同加一个数，分子分母同乘一个因子，权重不变（相差 {moved:.1g}）。",
                en=f"Softmax sees only gaps: adding the same number to every entry multiplies numerator and denominator alike and leaves the weights as they were (off by {moved:.1g}).",
            )
        },
        only_if=Text(zh="数值变大时，差距也跟着变大", en="the gap grows along with the values"),
    )


@claim(
    "S0-07",
    says=Text(zh="尖锐的 softmax 是一堵垂直的墙加平坦的屋顶", en="A sharp softmax is a vertical wall with a flat roof"),
    quote="这变成了一堵垂直的墙和一个平坦的屋顶",
    where="I.2, L28",
    experiment="saturation",
)
def _s0_07() -> Outcome:
    roof = slope(SHARP, 1)
    # The slope is steepest where the two inputs tie.
    steepest = {gain: _quotient([0.0, 0.0], 1e-4, gain) for gain in (1.0, 100.0)}
    return Outcome.of(
        {Text(zh="屋顶是平的", en="the roof is flat"): roof < 1e-9},
        under={
            Text(
                zh="墙很陡（斜率大于 10），横轴是 logit", en="the wall is steep (slope above 10) against the logit"
            ): steepest[1.0] > 10.0,
            Text(
                zh="墙很陡（斜率大于 10），横轴是 x，logit = 100x",
                en="the wall is steep (slope above 10) against x, with logit = 100x",
            ): steepest[100.0] > 10.0,
        },
        measured=Text(
            zh=f"屋顶斜率 {roof:.1e}；最大斜率：横轴为 logit 时 {steepest[1.0]:.2f}，横轴为 x、logit = 100x 时 {steepest[100.0]:.1f}",
            en=f"slope of the roof {roof:.1e}; steepest slope {steepest[1.0]:.2f} against the logit, {steepest[100.0]:.1f} against x with logit = 100x",
        ),
        because={
            "only-if": Text(
                zh=f"对 logit 的斜率是 s(1−s)，从不超过 {steepest[1.0]:.2f}：曲线的形状不变，大的分数只是落在它平坦的一端。若 logit = kx，对 x 的斜率可达 k/4，k 越大墙越陡。",
                en=f"Against the logit, the slope is s(1−s), never above {steepest[1.0]:.2f}: the curve keeps its shape, and large scores just sit on its flat end. With logit = kx, the slope against x reaches k/4: the larger k, the steeper the wall.",
            )
        },
        only_if=Text(
            zh="输入 x 先乘以很大的 k 再送入 softmax，坡度对 x 而言",
            en="the input x is multiplied by a large k before softmax, and the slope is taken against x",
        ),
    )


def _lead_that_rounds_to_one() -> int:
    """The smallest whole lead of one logit over another whose weight is exactly 1 in float64; 1000 if none is."""
    return next((lead for lead in range(1, 1000) if ss.softmax([0.0, float(lead)])[1] == 1.0), 1000)


@claim(
    "S0-08",
    says=Text(
        zh="在输出为 1.0 的地方，怎么推输入都还是 1.0，变化率为 0",
        en="Where the output is 1.0, it stays 1.0 however you push the input: the rate of change is 0",
    ),
    quote="你再怎么推它，它也还是 1.0（变化率为 0）",
    where="I.2, L30",
    experiment="saturation",
)
def _s0_08() -> Outcome:
    rate, least = slope(SHARP, 1), _lead_that_rounds_to_one()
    pushed = {x: float(ss.softmax([200.0, x])[1]) for x in (260.0, 249.0, 200.5)}
    stays = {x: s == 1.0 and s * (1.0 - s) == 0.0 for x, s in pushed.items()}
    return Outcome.of(
        under={
            Text(zh="float64，推到 260", en="float64, pushed to 260"): stays[260.0],
            Text(zh="float64，推到 249", en="float64, pushed to 249"): stays[249.0],
            Text(zh="float64，推到 200.5", en="float64, pushed to 200.5"): stays[200.5],
            Text(zh="没有舍入", en="without rounding"): rate == 0.0,
        },
        measured=Text(
            zh=f"float64 的输出：推到 260 为 {pushed[260.0]:g}，249 为 {pushed[249.0]:g}，200.5 为 {pushed[200.5]:.3f}；没有舍入时变化率 {rate:.2e}",
            en=f"output in float64: pushed to 260 {pushed[260.0]:g}, to 249 {pushed[249.0]:g}, to 200.5 {pushed[200.5]:.3f}; rate without rounding {rate:.2e}",
        ),
        because={
            "only-if": Text(
                zh=f"真正的变化率是 s(1−s) = {rate:.1e}，float64 的 16 位数字看不出来。往回推到领先不足 {least}，权重就动了。",
                en=f"The true rate is s(1−s) = {rate:.1e}, too small to show in float64's 16 digits. Push back until the lead is below {least}, and the weight moves.",
            )
        },
        only_if=Text(
            zh=f"用 float64 计算，并且这一项始终领先 {least} 以上",
            en=f"we compute in float64 and the entry keeps a lead of {least} or more",
        ),
    )


@claim(
    "S0-09",
    says=Text(
        zh="在输出为 0.0 的地方，稍微动一下输入，输出几乎不动",
        en="Where the output is 0.0, a small change in the input barely moves it",
    ),
    quote="你稍微动一下输入，它因为被指数函数压制得太死，几乎纹丝不动",
    where="I.2, L32",
    experiment="saturation",
)
def _s0_09() -> Outcome:
    before, after = (float(ss.softmax([x, 250.0])[0]) for x in (200.0, 201.0))
    return Outcome.of(
        {
            Text(zh="200 → 201，变动不到十亿分之一", en="200 → 201 moves it by less than a billionth"): abs(
                after - before
            )
            < 1e-9
        },
        measured=Text(zh=f"{before:.2e} 变为 {after:.2e}", en=f"{before:.2e} becomes {after:.2e}"),
        because={
            "holds": Text(
                zh=f"它变为原来的 {after / before:.2f} 倍（即 e 倍），但起点只有 {before:.1e}，绝对量几乎不变。",
                en=f"It grows {after / before:.2f}-fold, that is e-fold, but from {before:.1e}: in absolute terms next to nothing.",
            )
        },
    )


@claim(
    "S0-10",
    says=Text(zh="没有坡度就是零梯度，模型学不动", en="No slope means zero gradient, and the model cannot learn"),
    quote="没坡度（平地） = 梯度为 0 = 模型学不动",
    where="I.2, L34",
    experiment="saturation",
)
def _s0_10() -> Outcome:
    through_weights = float(np.linalg.norm(ss.jacobian_product(ss.softmax(SHARP), np.array([1.0, -1.0]))))
    through_loss = float(np.linalg.norm(cross_entropy_gradient(SHARP, target=0)))
    return Outcome.of(
        under={
            Text(
                zh="损失直接作用在权重上（注意力）：梯度为零",
                en="the loss acts directly on the weights (attention): the gradient is 0",
            ): through_weights < 1e-9,
            Text(
                zh="后面是交叉熵，正确的一项是 200：梯度为零",
                en="a cross-entropy follows, and the correct entry is 200: the gradient is 0",
            ): through_loss < 1e-9,
        },
        measured=Text(
            zh=f"[200, 250] 处的梯度范数：直接 {through_weights:.1e}，经交叉熵 {through_loss:.3f}",
            en=f"gradient norm at [200, 250]: direct {through_weights:.1e}, through cross-entropy {through_loss:.3f}",
        ),
        because={
            "only-if": Text(
                zh=f"交叉熵对权重取对数，导数里的 1/s 抵消了 s(1−s)：自信却答错时，梯度 p − y 的范数达到最大值 {through_loss:.2f}。",
                en=f"Cross-entropy takes the log of the weight, and its 1/s cancels s(1−s): when the model is confidently wrong, the gradient p − y has its largest norm, {through_loss:.2f}.",
            )
        },
        only_if=Text(
            zh="softmax 的输出不直接进入交叉熵（输出层的 softmax 会）",
            en="the softmax does not feed straight into a cross-entropy, as an output layer's does",
        ),
    )
