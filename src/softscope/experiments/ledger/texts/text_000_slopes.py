"""Text 000, part one: the smooth softmax is a slope, the sharp one a cliff."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope.experiments.ledger import Outcome, claim, listed, near, off_by, t

SMOOTH, SHARP = [2.0, 2.5], [200.0, 250.0]


def _slope(logits: list[float], entry: int) -> float:
    """∂s/∂x of one entry by its own logit, exact also next to one-hot, where 1 − s would cancel."""
    others = np.delete(np.array(logits), entry)
    return float(ss.softmax(logits)[entry] * np.exp(ss.logsumexp(others) - ss.logsumexp(logits)))


@claim(
    "S0-01",
    says=t(
        "尖锐的 softmax 像一个硬逻辑门，不再是可微函数",
        "A sharp softmax acts like a hard logic gate and is no longer a differentiable function",
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
        {
            t("输出像门：与 0/1 相差不到百万分之一", "the output is a gate's: within a millionth of 0 and 1"): gate
            < 1e-6,
            t("导数不存在", "there is no derivative"): not exists,
        },
        measured=t(f"与 [0, 1] 相差 {gate:.1e}；导数 {slope:.3e}", f"{gate:.1e} from [0, 1]; derivative {slope:.3e}"),
        because=t(
            f"指数函数处处光滑：在 [200, 250] 处导数是 {slope:.1e}，极小，但存在且不为零。",
            f"The exponential is smooth everywhere: at [200, 250] the derivative is {slope:.1e}, tiny but there.",
        ),
        only_if=t("说的是输出的形状，而不是可微性", "it is said of the output's shape, not of its derivative"),
    )


@claim(
    "S0-02",
    says=t("softmax([2.0, 2.5]) 是 [0.38, 0.62]", "softmax of [2.0, 2.5] is [0.38, 0.62]"),
    where="I.1, L13-15",
    experiment="extremes",
)
def _s0_02() -> Outcome:
    p = ss.softmax(SMOOTH)
    return Outcome.of(
        {"[2.0, 2.5]": near(p, ["0.38", "0.62"])},
        measured=listed(p, ".4f"),
        because=t("按印出的两位小数舍入，两者一致。", "Rounded to the two printed decimals they agree."),
    )


@claim(
    "S0-03",
    says=t("把 2.0 改成 2.1，概率会明显变动", "Changing 2.0 to 2.1 visibly moves the probabilities"),
    where="I.1, L17",
    experiment="saturation",
)
def _s0_03() -> Outcome:
    before, after = ss.softmax(SMOOTH), ss.softmax([2.1, 2.5])
    moved = off_by(before, after)
    return Outcome.of(
        {t("印出的两位小数变了", "the two printed decimals change"): bool(np.all(before.round(2) != after.round(2)))},
        measured=t(
            f"{listed(before, '.4f')} 变为 {listed(after, '.4f')}，移动 {moved:.4f}",
            f"{listed(before, '.4f')} becomes {listed(after, '.4f')}: moved by {moved:.4f}",
        ),
        because=t(
            f"移动量约为斜率 {_slope(SMOOTH, 0):.3f} 乘以步长，在两位小数里看得见。",
            f"The move is about the slope, {_slope(SMOOTH, 0):.3f}, times the step, and shows in two decimals.",
        ),
    )


@claim(
    "S0-04",
    says=t("有坡度就有梯度，模型就能学习", "Where there is slope there is gradient, and the model can learn"),
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
            t("斜率不为零", "the slope is not 0"): slope > 0.1,
            t("梯度下降能把权重移到想要的一边", "descent moves the weight to the wanted entry"): end > 0.9,
        },
        measured=t(
            f"斜率 {slope:.3f}；{steps} 步之后权重由 {start:.2f} 变为 {end:.2f}",
            f"slope {slope:.3f}; {steps} steps move the weight from {start:.2f} to {end:.2f}",
        ),
        because=t("从这里出发，普通的梯度下降就能到达目标。", "From here plain gradient descent reaches the goal."),
    )


@claim(
    "S0-05",
    says=t("softmax([200, 250]) 是 [0.0000, 1.0000]", "softmax of [200, 250] is [0.0000, 1.0000]"),
    where="I.2, L24-26",
    experiment="extremes",
)
def _s0_05() -> Outcome:
    p = ss.softmax(SHARP)
    return Outcome.of(
        {"[200, 250]": near(p, ["0.0000", "1.0000"])},
        measured=listed(p, ".3g"),
        because=t("差距 50 使较小的一项只剩 e⁻⁵⁰。", "A gap of 50 leaves the smaller entry e⁻⁵⁰."),
    )


@claim(
    "S0-06",
    says=t(
        "softmax 变尖锐，是因为差距变大，或者数值整体变大",
        "The softmax becomes sharp because the gap grew, or because the values grew as a whole",
    ),
    where="I.2, L24",
    experiment="extremes",
)
def _s0_06() -> Outcome:
    gap, whole = ss.softmax([2.0, 52.0]), ss.softmax([200.0, 200.5])
    plain = ss.softmax(SMOOTH)
    return Outcome.of(
        {
            t("只有差距变大：[2, 52]", "only the gap grew: [2, 52]"): float(gap.max()) > 0.99,
            t("只有数值整体变大：[200, 200.5]", "only the values grew: [200, 200.5]"): float(whole.max()) > 0.99,
        },
        measured=t(
            f"最大权重：[2, 2.5] 为 {plain.max():.4f}，[2, 52] 为 {gap.max():.4f}，[200, 200.5] 为 {whole.max():.4f}",
            f"largest weight: [2, 2.5] {plain.max():.4f}, [2, 52] {gap.max():.4f}, [200, 200.5] {whole.max():.4f}",
        ),
        because=t(
            f"softmax 不受平移影响：整体变大而差距不变，权重只相差 {off_by(plain, whole):.1g}。",
            f"Softmax ignores a shift: larger values with the same gap move the weights by {off_by(plain, whole):.1g}.",
        ),
        only_if=t("差距变大", "the gap grows"),
    )


@claim(
    "S0-07",
    says=t("尖锐的 softmax 是一堵垂直的墙加平坦的屋顶", "The sharp softmax is a vertical wall with a flat roof"),
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
        {
            t("屋顶是平的", "the roof is flat"): roof < 1e-9,
            t("墙是垂直的（对 logit 而言）", "the wall is vertical, over the logits"): steepest > 10.0,
            t("墙很陡（对被放大 100 倍的输入而言）", "the wall is steep, over an input with gain 100"): wall > 10.0,
        },
        measured=t(
            f"屋顶斜率 {roof:.1e}；对 logit 的最大斜率 {steepest:.2f}；输入放大 {gain:.0f} 倍后 {wall:.1f}",
            f"slope of the roof {roof:.1e}; steepest over the logits {steepest:.2f}, with gain {gain:.0f} {wall:.1f}",
        ),
        because=t(
            f"对 logit 的斜率是 s(1−s)，从不超过 {steepest:.2f}；只有把输入放大 k 倍，墙才会变陡到 k/4。",
            f"Over the logits the slope is s(1−s), never above {steepest:.2f}; a gain of k makes the wall k/4 steep.",
        ),
        only_if=t("横轴是被放大的输入，而不是 logit", "the axis is an input that a gain multiplies, not the logits"),
    )


@claim(
    "S0-08",
    says=t(
        "在输出为 1.0 的地方，怎么推输入都还是 1.0，变化率为 0",
        "At the entry of 1.0, however the input is pushed it stays 1.0: the rate of change is 0",
    ),
    where="I.2, L30",
    experiment="saturation",
)
def _s0_08() -> Outcome:
    up, down = (float(ss.softmax([200.0, x])[1]) for x in (260.0, 200.5))
    rate = _slope(SHARP, 1)
    return Outcome.of(
        {
            t("向上推 10（float64）", "pushed up by 10, float64"): up == float(ss.softmax(SHARP)[1]),
            t("向下推 49.5", "pushed down by 49.5"): abs(down - 1.0) < 1e-6,
            t("精确的变化率为 0", "the exact rate is 0"): rate == 0.0,
        },
        measured=t(
            f"推到 260：{up:g}；推到 200.5：{down:.3f}；精确变化率 {rate:.2e}",
            f"pushed to 260: {up:g}; to 200.5: {down:.3f}; exact rate {rate:.2e}",
        ),
        because=t(
            f"变化率是 s(1−s) = {rate:.1e}，float64 的 16 位数字看不见它；但往回推得够远，权重还是会变。",
            f"The rate is s(1−s) = {rate:.1e}, below float64's 16 digits; pushed back far enough, the weight moves.",
        ),
        only_if=t("在浮点数里，向上推，或只推一点", "in floating point, and pushed up or only a little"),
    )


@claim(
    "S0-09",
    says=t(
        "在输出为 0.0 的地方，稍微动一下输入，输出几乎不动",
        "At the entry of 0.0 a small change of the input barely moves the output",
    ),
    where="I.2, L32",
    experiment="saturation",
)
def _s0_09() -> Outcome:
    before, after = (float(ss.softmax([x, 250.0])[0]) for x in (200.0, 201.0))
    return Outcome.of(
        {"200 → 201": after - before < 1e-9},
        measured=t(f"{before:.2e} 变为 {after:.2e}", f"{before:.2e} becomes {after:.2e}"),
        because=t(
            f"相对值乘了 {after / before:.2f}（即 e），绝对值只动了 {after - before:.1g}。",
            f"It grows {after / before:.2f}-fold, by e, yet moves by only {after - before:.1g}.",
        ),
    )


@claim(
    "S0-10",
    says=t("没有坡度就是零梯度，模型学不动", "No slope means zero gradient, and the model cannot learn"),
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
        {
            t("损失直接作用在权重上（注意力）", "the loss acts on the weights, as in attention"): through_weights
            < 1e-9,
            t(
                "权重先取对数（交叉熵），正确的一项是 200", "the log comes between (cross-entropy), entry 200 is right"
            ): through_loss < 1e-9,
        },
        measured=t(
            f"梯度范数：直接 {through_weights:.1e}，经交叉熵 {through_loss:.3f}",
            f"norm of the gradient: straight {through_weights:.1e}, through cross-entropy {through_loss:.3f}",
        ),
        because=t(
            f"对数抵消了 s(1−s)：又错又自信时，交叉熵的梯度 p − y 的范数达到最大值 {through_loss:.2f}。",
            f"The log cancels s(1−s): wrong and confident, the gradient p − y has its largest norm, {through_loss:.2f}.",
        ),
        only_if=t(
            "softmax 的输出不是直接进入交叉熵",
            "the softmax does not feed a cross-entropy, as that of an output layer does",
        ),
    )
