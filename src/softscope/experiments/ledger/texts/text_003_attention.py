"""Text 003, chapter 4.5: softmax in attention, and the chapter's own attention."""

from __future__ import annotations

import functools
import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, off_by
from softscope.experiments.ledger.texts import chapter_code as code


@functools.cache
def _example(*shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random Q, K and V, shaped as in the chapter's test unless another shape is given."""
    q, k, v = generator(f"chapter 4.5 {shape}").standard_normal((3, *(shape or (3, 4))))
    return q, k, v


@claim(
    "S3-37",
    says=Text(zh="注意力是 softmax(QKᵀ/√d)·V", en="Attention is softmax(QKᵀ/√d)·V"),
    where="4.5, L255/L267",
)
def _s3_37() -> Outcome:
    q, k, v = _example(10, 64)
    _, _, output = code.attention(q, k, v)
    off = off_by(ss.attention(q, k, v), output)
    return Outcome.of(
        {"softscope.attention": off < 1e-13},
        measured=Text(zh=f"最多相差 {off:.1g}", en=f"off by at most {off:.1g}"),
        because={"holds": Text(zh="这是论文的式 1。", en="This is the paper's equation 1.")},
    )


@claim(
    "S3-38",
    says=Text(zh="softmax 把分数变成概率分布", en="Softmax turns the scores into a probability distribution"),
    where="4.5, L259/L271",
    experiment="normalisers",
)
def _s3_38() -> Outcome:
    q, k, v = _example(10, 64)
    scores, weights, _ = code.attention(q, k, v)
    off = off_by(weights.sum(-1), 1.0)
    return Outcome.of(
        {
            Text(zh="非负", en="non-negative"): bool((weights >= 0.0).all()),
            Text(zh="每行和为 1", en="every row sums to 1"): off < 1e-14,
        },
        measured=Text(
            zh=f"分数 {scores.min():.1f} 到 {scores.max():.1f}；权重 {weights.min():.4f} 到 {weights.max():.4f}，行和与 1 相差 {off:.1g}",
            en=f"scores {scores.min():.1f} to {scores.max():.1f}; weights {weights.min():.4f} to {weights.max():.4f}, "
            f"row sums differ from 1 by {off:.1g}",
        ),
        because={
            "holds": Text(
                zh="取指数使权重为正，除以总和使权重归一。",
                en="The exponential makes the weights positive, and the division makes them sum to one.",
            )
        },
    )


@claim(
    "S3-39",
    says=Text(zh="所有 token 的注意力权重之和为 1", en="The attention weights of all tokens sum to 1"),
    where="4.5, L260/L272",
    experiment="normalisers",
)
def _s3_39() -> Outcome:
    q, k, v = _example(10, 64)
    _, weights, _ = code.attention(q, k, v)
    columns = weights.sum(0)
    return Outcome.of(
        under={
            Text(zh="一个查询，对所有键求和", en="one query, summed over all keys"): off_by(weights.sum(-1), 1.0)
            < 1e-14,
            Text(zh="一个键，对所有查询求和", en="one key, summed over all queries"): off_by(columns, 1.0) < 1e-3,
            Text(zh="整个矩阵", en="the whole matrix"): abs(float(weights.sum()) - 1.0) < 1e-3,
        },
        measured=Text(
            zh=f"10×10：行和 1，列和 {columns.min():.2f} 到 {columns.max():.2f}，总和 {weights.sum():.0f}",
            en=f"10×10: row sums 1, column sums {columns.min():.2f} to {columns.max():.2f}, total {weights.sum():.0f}",
        ),
        because={
            "only-if": Text(
                zh="归一化是逐行的，即逐个查询。", en="Normalisation is row by row, that is, query by query."
            )
        },
        only_if=Text(zh="说的是一个查询分给所有键的权重", en="it is about the weights one query gives to all keys"),
    )


@claim(
    "S3-40",
    says=Text(
        zh="softmax 的作用之一是除以 √d，防止分布过于极端",
        en="One of softmax's roles is to divide by √d and so prevent extremes",
    ),
    where="4.5, L261/L273",
    experiment="scores",
)
def _s3_40() -> Outcome:
    q, k, v = _example(10, 64)
    scores, weights, _ = code.attention(q, k, v)
    plain = code.stable(scores)
    return Outcome.of(
        {Text(zh="softmax 自身就做了除法", en="softmax does the division itself"): off_by(plain, weights) < 1e-6},
        measured=Text(
            zh=f"不先除以 √d 时，权重相差可达 {off_by(plain, weights):.2f}；行和与 1 仍只差 {off_by(plain.sum(-1), 1.0):.1g}",
            en=f"without dividing by √d first, the weights differ by up to {off_by(plain, weights):.2f}; rows still sum to 1 within "
            f"{off_by(plain.sum(-1), 1.0):.1g}",
        ),
        because={
            "fails": Text(
                zh="除法是 softmax 之前单独的一步，文中自己的代码也是如此。",
                en="The division is a separate step before softmax, in the text's own code too.",
            )
        },
    )


@claim("S3-46", says=Text(zh="每行的和都打印为 1", en="All row sums print as 1"), where="4.5 code, L315")
def _s3_46() -> Outcome:
    _, weights, _ = code.attention(*_example())
    line = code.printed(weights.sum(-1), 6)
    return Outcome.of(
        {"3×4": line == "[1. 1. 1.]"},
        measured=line,
        because={"holds": Text(zh="每行都归一化。", en="Every row is normalised.")},
    )


@claim(
    "S3-47",
    says=Text(
        zh="分数的形状是 (seq, seq)，输出是 (seq, dim)", en="The scores have shape (seq, seq) and the output (seq, dim)"
    ),
    where="4.5 code, L305/L318",
)
def _s3_47() -> Outcome:
    scores, weights, output = code.attention(*_example())
    return Outcome.of(
        {
            "Q @ K.T": scores.shape == (3, 3) and weights.shape == (3, 3),
            "weights @ V": output.shape == (3, 4),
        },
        measured=f"(3, 4) → {scores.shape} → {output.shape}",
        because={
            "holds": Text(
                zh="有 3 个查询、3 个键，V 有 4 维。", en="There are 3 queries and 3 keys, and V has 4 components."
            )
        },
    )


@claim(
    "S3-48",
    says=Text(zh="这是“完整的”单头注意力", en="This is a “complete” single-head attention"),
    where="4.5 code, L301",
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
        under=cases,
        measured=Text(
            zh=f"与真值相差：{', '.join(f'{s} {x}' for s, x in zip(cases, seen, strict=True))}",
            en=f"error: {', '.join(f'{s} {x}' for s, x in zip(cases, seen, strict=True))}",
        ),
        because={
            "only-if": Text(
                zh="K.T 颠倒所有的轴：成批的输入会报错，三个轴等长时甚至算错而不报错；也没有掩码。",
                en="K.T reverses all axes: a batch raises an error, or is silently wrong when all three axes have the same "
                "length; and there is no mask.",
            )
        },
        only_if=Text(
            zh="输入是矩阵，没有批次维，也不需要掩码",
            en="the inputs are matrices with no batch axis, and no mask is needed",
        ),
    )
