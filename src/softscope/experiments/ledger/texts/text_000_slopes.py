"""Text 000, part one: a smooth softmax is a slope, a sharp one a cliff."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, near, off_by
from softscope.experiments.ledger.texts.figures import listed

SMOOTH, SHARP = [2.0, 2.5], [200.0, 250.0]


def _slope(logits: list[float], entry: int) -> float:
    """∂s/∂x of one entry with respect to its own logit, exact even near one-hot, where 1 − s would cancel."""
    others = np.delete(np.array(logits), entry)
    return float(ss.softmax(logits)[entry] * np.exp(ss.logsumexp(others) - ss.logsumexp(logits)))


@claim(
    "S0-01",
    says=Text(
        zh="尖锐的 softmax 像一个硬逻辑门，不再是可微函数",
        en="A sharp softmax acts like a hard logic gate and is no longer a differentiable function",
    ),
    where="intro, L3",
    experiment="saturation",
)
def _s0_01() -> Outcome:
    gate = off_by(ss.softmax(SHARP), [0.0, 1.0])
    slope, step = _slope(SHARP, 0), 1e-3
    moved = float(ss.softmax([SHARP[0] + step, SHARP[1]])[0] - ss.softmax([SHARP[0] - step, SHARP[1]])[0])
    exists = slope > 0.0 and abs(moved / (2 * step) / slope - 1.0) < 1e-3
    return Outcome.of(
        under={
            Text(
                zh="输出像门：与 0/1 相差不到百万分之一", en="the output is like a gate's: within a millionth of 0 or 1"
            ): gate < 1e-6,
            Text(zh="导数不存在", en="the derivative does not exist"): not exists,
        },
        measured=Text(
            zh=f"与 [0, 1] 相差 {gate:.1e}；导数 {slope:.3e}",
            en=f"off from [0, 1] by {gate:.1e}; derivative {slope:.3e}",
        ),
        because={
            "only-if": Text(
                zh=f"指数函数处处光滑：在 [200, 250] 处导数是 {slope:.1e}，极小，但存在且不为零。",
                en=f"The exponential is smooth everywhere: at [200, 250] the derivative is {slope:.1e}, tiny, but it exists and is not zero.",
            )
        },
        only_if=Text(
            zh="说的是输出的形状，而不是可微性", en="it is about the shape of the output, not about differentiability"
        ),
    )


@claim(
    "S0-02",
    says=Text(zh="softmax([2.0, 2.5]) 是 [0.38, 0.62]", en="softmax([2.0, 2.5]) is [0.38, 0.62]"),
    where="I.1, L13-15",
    experiment="extremes",
)
def _s0_02() -> Outcome:
    p = ss.softmax(SMOOTH)
    return Outcome.of(
        {"[2.0, 2.5]": near(p, ["0.38", "0.62"])},
        measured=listed(p, ".4f"),
        because={"holds": Text(zh="舍入到文中的两位小数，两者一致。", en="They agree to the two decimals printed.")},
    )


@claim(
    "S0-03",
    says=Text(zh="把 2.0 改成 2.1，概率会明显变动", en="Changing 2.0 to 2.1 visibly moves the probabilities"),
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
                zh=f"变动约为斜率 {_slope(SMOOTH, 0):.3f} 乘以步长，在两位小数里看得见。",
                en=f"The change is about the slope, {_slope(SMOOTH, 0):.3f}, times the step: visible at two decimals.",
            )
        },
    )


@claim(
    "S0-04",
    says=Text(
        zh="有坡度就有梯度，模型就能学习", en="Where there is a slope there is a gradient, and the model can learn"
    ),
    where="I.1, L19",
    experiment="saturation",
)
def _s0_04() -> Outcome:
    slope, x, steps = _slope(SMOOTH, 0), np.array(SMOOTH), 100
    start = float(ss.softmax(x)[0])
    for _ in range(steps):  # the loss is −s_1: the less likely entry is the right one
        x = x + ss.jacobian_product(ss.softmax(x), np.array([1.0, 0.0]))
    end = float(ss.softmax(x)[0])
    return Outcome.of(
        {
            Text(zh="斜率不为零", en="the slope is not 0"): slope > 0.1,
            Text(zh="梯度下降能把权重移到想要的一项", en="gradient descent moves the weight to the entry we want"): end
            > 0.9,
        },
        measured=Text(
            zh=f"斜率 {slope:.3f}；{steps} 步之后权重由 {start:.2f} 变为 {end:.2f}",
            en=f"slope {slope:.3f}; {steps} steps move the weight from {start:.2f} to {end:.2f}",
        ),
        because={
            "holds": Text(
                zh="从这里出发，普通的梯度下降就能到达目标。", en="From here, plain gradient descent reaches the goal."
            )
        },
    )


@claim(
    "S0-05",
    says=Text(zh="softmax([200, 250]) 是 [0.0000, 1.0000]", en="softmax([200, 250]) is [0.0000, 1.0000]"),
    where="I.2, L24-26",
    experiment="extremes",
)
def _s0_05() -> Outcome:
    p = ss.softmax(SHARP)
    return Outcome.of(
        {"[200, 250]": near(p, ["0.0000", "1.0000"])},
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
    where="I.2, L24",
    experiment="extremes",
)
def _s0_06() -> Outcome:
    gap, whole = ss.softmax([2.0, 52.0]), ss.softmax([200.0, 200.5])
    plain = ss.softmax(SMOOTH)
    return Outcome.of(
        under={
            Text(zh="只有差距变大：[2, 52]", en="only the gap grew: [2, 52]"): float(gap.max()) > 0.99,
            Text(zh="只有数值整体变大：[200, 200.5]", en="only the values grew: [200, 200.5]"): float(whole.max())
            > 0.99,
        },
        measured=Text(
            zh=f"最大权重：[2, 2.5] 为 {plain.max():.4f}，[2, 52] 为 {gap.max():.4f}，[200, 200.5] 为 {whole.max():.4f}",
            en=f"largest weight: [2, 2.5] {plain.max():.4f}, [2, 52] {gap.max():.4f}, [200, 200.5] {whole.max():.4f}",
        ),
        because={
            "only-if": Text(
                zh=f"softmax 不受平移影响：整体变大而差距不变，权重相差 {off_by(plain, whole):.1g}。",
                en=f"Softmax ignores a common shift: larger values with the same gap change the weights by {off_by(plain, whole):.1g}.",
            )
        },
        only_if=Text(zh="差距变大", en="the gap grows"),
    )


@claim(
    "S0-07",
    says=Text(zh="尖锐的 softmax 是一堵垂直的墙加平坦的屋顶", en="A sharp softmax is a vertical wall with a flat roof"),
    where="I.2, L28",
    experiment="saturation",
)
def _s0_07() -> Outcome:
    roof = _slope(SHARP, 1)
    gaps = np.linspace(-60.0, 60.0, 2401)
    steepest = max(_slope([g, 0.0], 0) for g in gaps)
    gain = 100.0
    wall = float((ss.softmax([gain * 1e-4, 0.0])[0] - ss.softmax([-gain * 1e-4, 0.0])[0]) / 2e-4)
    return Outcome.of(
        under={
            Text(zh="屋顶是平的", en="the roof is flat"): roof < 1e-9,
            Text(zh="墙是垂直的（横轴为 logit）", en="the wall is vertical (plotted against the logit)"): steepest
            > 10.0,
            Text(
                zh="墙很陡（横轴为放大 100 倍之前的输入）",
                en="the wall is steep (plotted against the input before a gain of 100)",
            ): wall > 10.0,
        },
        measured=Text(
            zh=f"屋顶斜率 {roof:.1e}；对 logit 的最大斜率 {steepest:.2f}；输入放大 {gain:.0f} 倍后 {wall:.1f}",
            en=f"slope of the roof {roof:.1e}; steepest slope against the logit {steepest:.2f}; with an input gain of {gain:.0f}, {wall:.1f}",
        ),
        because={
            "only-if": Text(
                zh=f"对 logit 的斜率是 s(1−s)，从不超过 {steepest:.2f}；只有把输入放大 k 倍，墙才会变陡到 k/4。",
                en=f"Against the logit, the slope is s(1−s), never above {steepest:.2f}; only an input gain of k makes the wall as steep as k/4.",
            )
        },
        only_if=Text(
            zh="横轴是放大之前的输入，而不是 logit", en="the axis is the input before the gain, not the logit"
        ),
    )


@claim(
    "S0-08",
    says=Text(
        zh="在输出为 1.0 的地方，怎么推输入都还是 1.0，变化率为 0",
        en="Where the output is 1.0, it stays 1.0 however you push the input: the rate of change is 0",
    ),
    where="I.2, L30",
    experiment="saturation",
)
def _s0_08() -> Outcome:
    up, down = (float(ss.softmax([200.0, x])[1]) for x in (260.0, 200.5))
    rate = _slope(SHARP, 1)
    return Outcome.of(
        under={
            Text(zh="向上推 10（float64）", en="pushed up by 10 (float64)"): up == float(ss.softmax(SHARP)[1]),
            Text(zh="向下推 49.5", en="pushed down by 49.5"): abs(down - 1.0) < 1e-6,
            Text(zh="精确的变化率为 0", en="the exact rate is 0"): rate == 0.0,
        },
        measured=Text(
            zh=f"推到 260：{up:g}；推到 200.5：{down:.3f}；精确变化率 {rate:.2e}",
            en=f"pushed to 260: {up:g}; to 200.5: {down:.3f}; exact rate {rate:.2e}",
        ),
        because={
            "only-if": Text(
                zh=f"变化率是 s(1−s) = {rate:.1e}，float64 的 16 位数字看不出来；但往回推得够远，权重还是会变。",
                en=f"The rate is s(1−s) = {rate:.1e}, too small to show in float64's 16 digits; but push back far enough, and the weight moves.",
            )
        },
        only_if=Text(
            zh="用浮点数计算，并且向上推或只推一点", en="we compute in floating point, and push up or only a little"
        ),
    )


@claim(
    "S0-09",
    says=Text(
        zh="在输出为 0.0 的地方，稍微动一下输入，输出几乎不动",
        en="Where the output is 0.0, a small change in the input barely moves it",
    ),
    where="I.2, L32",
    experiment="saturation",
)
def _s0_09() -> Outcome:
    before, after = (float(ss.softmax([x, 250.0])[0]) for x in (200.0, 201.0))
    return Outcome.of(
        {"200 → 201": after - before < 1e-9},
        measured=Text(zh=f"{before:.2e} 变为 {after:.2e}", en=f"{before:.2e} becomes {after:.2e}"),
        because={
            "holds": Text(
                zh=f"它变为原来的 {after / before:.2f} 倍（即 e 倍），绝对量却只变了 {after - before:.1g}。",
                en=f"It grows by a factor of {after / before:.2f}, that is e, yet by only {after - before:.1g} in absolute terms.",
            )
        },
    )


@claim(
    "S0-10",
    says=Text(zh="没有坡度就是零梯度，模型学不动", en="No slope means zero gradient, and the model cannot learn"),
    where="I.2, L34",
    experiment="saturation",
)
def _s0_10() -> Outcome:
    import torch

    through_weights = float(np.linalg.norm(ss.jacobian_product(ss.softmax(SHARP), np.array([1.0, -1.0]))))
    x = torch.tensor([SHARP], dtype=torch.float64, requires_grad=True)
    ss.cross_entropy(x, torch.tensor([0])).backward()
    assert x.grad is not None
    through_loss = float(x.grad.norm())
    return Outcome.of(
        under={
            Text(
                zh="损失直接作用在权重上（注意力）", en="the loss acts directly on the weights (attention)"
            ): through_weights < 1e-9,
            Text(
                zh="权重先取对数（交叉熵），正确的一项是 200",
                en="the log comes first (cross-entropy), and the correct entry is 200",
            ): through_loss < 1e-9,
        },
        measured=Text(
            zh=f"梯度范数：直接 {through_weights:.1e}，经交叉熵 {through_loss:.3f}",
            en=f"gradient norm: direct {through_weights:.1e}, through cross-entropy {through_loss:.3f}",
        ),
        because={
            "only-if": Text(
                zh=f"对数抵消了 s(1−s)：预测错误而又自信时，交叉熵的梯度 p − y 的范数达到最大值 {through_loss:.2f}。",
                en=f"The log cancels s(1−s): when the model is confidently wrong, cross-entropy's gradient p − y has its largest norm, {through_loss:.2f}.",
            )
        },
        only_if=Text(
            zh="softmax 的输出不直接进入交叉熵（输出层的 softmax 会）",
            en="the softmax does not feed straight into a cross-entropy, as an output layer's does",
        ),
    )
