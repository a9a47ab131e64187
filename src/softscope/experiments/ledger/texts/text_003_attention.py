"""Text 003, chapter 4.5: softmax in attention, and why the scores are divided by √d."""

from __future__ import annotations

import functools
import math

import numpy as np

import softscope as ss
from softscope.experiments.ledger import Outcome, claim, estimate, generator, off_by, t
from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by, row


@functools.cache
def _example(*shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random Q, K and V of the chapter's test, or of another shape."""
    q, k, v = generator(f"chapter 4.5 {shape}").standard_normal((3, *(shape or (3, 4))))
    return q, k, v


@claim(
    "S3-37",
    says=t("Attention(Q, K, V) = softmax(QKᵀ/√d)·V", "Attention(Q, K, V) = softmax(QKᵀ/√d)·V"),
    where="4.5, L255/L267",
)
def _s3_37() -> Outcome:
    q, k, v = _example(10, 64)
    _, _, output = code.attention(q, k, v)
    off = off_by(ss.attention(q, k, v), output)
    return Outcome.of(
        {"softscope.attention": off < 1e-13},
        measured=t(f"最多相差 {off:.0e}", f"off by at most {off:.0e}"),
        because=t("这是论文的式 1", "it is the paper's equation 1"),
    )


@claim(
    "S3-38",
    says=t("softmax 把分数变成概率分布", "softmax turns the scores into a probability distribution"),
    where="4.5, L259/L271",
    experiment="normalisers",
)
def _s3_38() -> Outcome:
    q, k, v = _example(10, 64)
    scores, weights, _ = code.attention(q, k, v)
    off = off_by(weights.sum(-1), 1.0)
    return Outcome.of(
        {t("非负", "non-negative"): bool((weights >= 0.0).all()), t("每行和为 1", "every row sums to 1"): off < 1e-14},
        measured=t(
            f"分数 {scores.min():.1f} 到 {scores.max():.1f}；权重 {weights.min():.4f} 到 {weights.max():.4f}，行和与 1 相差 {off:.0e}",
            f"scores {scores.min():.1f} to {scores.max():.1f}; weights {weights.min():.4f} to {weights.max():.4f}, "
            f"row sums off 1 by {off:.0e}",
        ),
        because=t("指数使它为正，除以和使它归一", "the exponential makes it positive and the division sums it to 1"),
    )


@claim(
    "S3-39",
    says=t("所有 token 的注意力权重之和为 1", "the attention weights of all tokens sum to 1"),
    where="4.5, L260/L272",
    experiment="normalisers",
)
def _s3_39() -> Outcome:
    q, k, v = _example(10, 64)
    _, weights, _ = code.attention(q, k, v)
    columns = weights.sum(0)
    return Outcome.of(
        {
            t("一个查询对所有键", "one query, over all keys"): off_by(weights.sum(-1), 1.0) < 1e-14,
            t("一个键从所有查询", "one key, from all queries"): off_by(columns, 1.0) < 1e-3,
            t("整个矩阵", "the whole matrix"): abs(float(weights.sum()) - 1.0) < 1e-3,
        },
        measured=t(
            f"10×10：行和 1，列和 {columns.min():.2f} 到 {columns.max():.2f}，总和 {weights.sum():.0f}",
            f"10×10: row sums 1, column sums {columns.min():.2f} to {columns.max():.2f}, all together {weights.sum():.0f}",
        ),
        because=t("归一化按行进行，即对每个查询", "the normalisation goes row by row, that is query by query"),
        only_if=t("说的是一个查询分给所有键的权重", "it is about the weights that one query gives to all keys"),
    )


@claim(
    "S3-40",
    says=t("softmax 的作用之一是除以 √d，防止极端", "one of softmax's roles is the division by √d, against extremes"),
    where="4.5, L261/L273",
    experiment="scores",
)
def _s3_40() -> Outcome:
    q, k, v = _example(10, 64)
    scores, weights, _ = code.attention(q, k, v)
    plain = code.stable(scores)
    return Outcome.of(
        {t("softmax 自己就做了除法", "softmax does the division itself"): off_by(plain, weights) < 1e-6},
        measured=t(
            f"不先除以 √d 时，权重相差达 {off_by(plain, weights):.2f}；行和仍与 1 只差 {off_by(plain.sum(-1), 1.0):.0e}",
            f"without dividing by √d first, weights differ by up to {off_by(plain, weights):.2f}; rows still sum to 1 within "
            f"{off_by(plain.sum(-1), 1.0):.0e}",
        ),
        because=t("除法在 softmax 之前单独进行，文中自己的代码也是这样", "the division is a step of its own before softmax, in the text's own code too"),
    )


@claim(
    "S3-41",
    says=t("d 大时 QKᵀ 的数值也大：方差随 d 增长", "for large d the values of QKᵀ are large: their variance grows with d"),
    where="4.5, L277-281",
    experiment="variance",
)
def _s3_41() -> Outcome:
    sizes = {d: float(np.abs(dots.sampled(d)).mean()) for d in (1, 16, 64, 256)}
    variances = {d: dots.scaled_variance(d) for d in sizes}
    pairs = list(zip(sizes, list(sizes)[1:], strict=False))
    return Outcome.of(
        {t(f"大小，{a} → {b}", f"size, {a} → {b}"): sizes[b] > 1.5 * sizes[a] for a, b in pairs}
        | {t(f"方差，d = {d}", f"variance, d = {d}"): x.agrees(1.0, 0.06) for d, x in variances.items()},
        measured=t(f"平均 |q·k|：{by(sizes, '.2f')}", f"mean |q·k|: {by(sizes, '.2f')}"),
        because=t("方差是 d，典型的大小像 √d 那样增长", "the variance is d, so the typical size grows like √d"),
    )


@claim(
    "S3-42",
    says=t("E[(q·k)²] = d × 方差", "E[(q·k)²] = d × variance"),
    where="4.5, L283",
    experiment="variance",
)
def _s3_42() -> Outcome:
    d = 64
    second = estimate(dots.sampled(d) ** 2)
    sd = 2.0
    grown = estimate((sd * sd * dots.sampled(d)) ** 2)  # both q and k with standard deviation 2
    return Outcome.of(
        {
            t("分量方差 1", "components of variance 1"): second.agrees(d * 1.0, 0.06 * d),
            t("分量方差 4，“方差”指 q_i·k_i 的", "components of variance 4, “variance” that of q_i·k_i"): grown.agrees(
                d * sd**4, 0.06 * d * sd**4
            ),
            t("分量方差 4，“方差”指分量的", "components of variance 4, “variance” that of a component"): grown.agrees(
                d * sd**2, 0.06 * d * sd**2
            ),
        },
        measured=t(
            f"d = {d}：分量方差 1 时 {second:.1f}，方差 4 时 {grown:.0f}（{second.n} 个样本）",
            f"d = {d}: {second:.1f} for components of variance 1, {grown:.0f} for variance 4 ({second.n} samples)",
        ),
        because=t(
            f"一项 q_i·k_i 的方差是两个方差之积：4·4 = {sd**4:g}，不是 {sd**2:g}",
            f"the variance of one q_i·k_i is the product of both: 4·4 = {sd**4:g}, not {sd**2:g}",
        ),
        only_if=t("“方差”指 q_i·k_i 的方差，或者分量方差为 1", "“variance” is that of q_i·k_i, or the components have variance 1"),
    )


@claim(
    "S3-43",
    says=t("d = 64 的方差是 d = 1 的 64 倍", "the variance at d = 64 is 64 times that at d = 1"),
    where="4.5, L285-286",
    experiment="variance",
)
def _s3_43() -> Outcome:
    one, many = dots.scaled_variance(1), dots.scaled_variance(64)
    ratio = 64.0 * many.mean / one.mean
    error = ratio * math.hypot(one.error / one.mean, many.error / many.mean)
    return Outcome.of(
        {"64 / 1": abs(ratio - 64.0) < 4.0 and error < 1.0},
        measured=t(f"{ratio:.1f} ± {error:.1f} 倍（{many.n} 与 {one.n} 个样本）", f"{ratio:.1f} ± {error:.1f} times ({many.n} and {one.n} samples)"),
        because=t("方差是 d", "the variance is d"),
    )


@claim(
    "S3-44",
    says=t("因此 d = 64 时 softmax 比 d = 1 时更极端", "so softmax is more extreme at d = 64 than at d = 1"),
    where="4.5, L285-286",
    experiment="entropy",
)
def _s3_44() -> Outcome:
    one, many = drawn.plain(1), drawn.plain(64)
    return Outcome.of(
        {
            t("最大权重", "largest weight"): many.peak.above(one.peak.mean),
            t("熵", "entropy"): many.entropy.below(one.entropy.mean),
        },
        measured=t(
            f"10 个键，不缩放：最大权重 {one.peak:.3f} → {many.peak:.3f}，熵 {one.entropy:.2f} → {many.entropy:.2f} nat",
            f"10 keys, unscaled: largest weight {one.peak:.3f} → {many.peak:.3f}, entropy {one.entropy:.2f} → {many.entropy:.2f} nats",
        ),
        because=t("分数越分散，第一名领先越多", "the wider the scores, the further the first one leads"),
    )


@claim(
    "S3-45",
    says=t("除以 √d 使方差回到约 1", "dividing by √d brings the variance back to about 1"),
    where="4.5, L288-289",
    experiment="variance",
)
def _s3_45() -> Outcome:
    found = {d: dots.scaled_variance(d) for d in dots.DIMENSIONS}
    return Outcome.of(
        {f"d = {d}": x.agrees(1.0, 0.06) for d, x in found.items()},
        measured=by(found, ".3f"),
        because=t("除以 √d 使方差除以 d", "dividing by √d divides the variance by d"),
    )


@claim("S3-46", says=t("每行的和都打印为 1", "all row sums print as 1"), where="4.5, L315")
def _s3_46() -> Outcome:
    _, weights, _ = code.attention(*_example())
    line = code.printed(weights.sum(-1), 6)
    return Outcome.of(
        {"3×4": line == "[1. 1. 1.]"},
        measured=line,
        because=t("每行都归一化", "every row is normalised"),
    )


@claim(
    "S3-47",
    says=t("分数的形状是 (seq, seq)，输出是 (seq, dim)", "the scores have shape (seq, seq) and the output (seq, dim)"),
    where="4.5, L305/L318",
)
def _s3_47() -> Outcome:
    scores, weights, output = code.attention(*_example())
    return Outcome.of(
        {
            "Q @ K.T": scores.shape == (3, 3) and weights.shape == (3, 3),
            "weights @ V": output.shape == (3, 4),
        },
        measured=f"(3, 4) → {scores.shape} → {output.shape}",
        because=t("3 个查询与 3 个键，V 有 4 维", "3 queries meet 3 keys, and V has 4 components"),
    )


@claim(
    "S3-48",
    says=t("这是“完整的”单头注意力", "this is a “complete” single-head attention"),
    where="4.5, L301",
    experiment="scores",
)
def _s3_48() -> Outcome:
    cases, seen = {}, []
    for shape in ((3, 4), (2, 3, 4), (3, 3, 3)):
        q, k, v = _example(*shape)
        try:
            with np.errstate(all="ignore"):
                off = off_by(code.attention(q, k, v)[2], ss.attention(q[None], k[None], v[None])[0])
        except ValueError:
            off = math.inf
        cases[f"{shape}"] = off < 1e-13
        seen.append("ValueError" if math.isinf(off) else f"{off:.1g}")
    return Outcome.of(
        cases,
        measured=t(f"与真值相差：{', '.join(f'{s} {x}' for s, x in zip(cases, seen, strict=True))}", f"off by: {', '.join(f'{s} {x}' for s, x in zip(cases, seen, strict=True))}"),
        because=t(
            "K.T 颠倒所有的轴：成批的输入会出错，三个轴等长时甚至不声不响地算错；也没有掩码",
            "K.T reverses all axes: a batch raises, or where all three axes are equally long is silently wrong; and there "
            "is no mask",
        ),
        only_if=t("输入是矩阵，没有批次，也不需要掩码", "the inputs are matrices, without a batch and without a mask"),
    )
