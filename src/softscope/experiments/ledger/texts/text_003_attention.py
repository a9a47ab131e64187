"""Text 003, chapter 4.5: softmax in attention, and the chapter's own attention."""

from __future__ import annotations

import functools
import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, off_by, paper
from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts import random_attention as drawn


@functools.cache
def _example(*shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random Q, K and V, shaped as in the chapter's test unless another shape is given."""
    q, k, v = generator(f"chapter 4.5 {shape}").standard_normal((3, *(shape or (3, 4))))
    return q, k, v


@claim(
    "S3-37",
    says=Text(zh="注意力是 softmax(QKᵀ/√d)·V", en="Attention is softmax(QKᵀ/√d)·V"),
    quote="Attention(Q, K, V) = softmax(QK^T / √d) @ V",
    where="4.5, L255/L267",
    experiment="attention",
)
def _s3_37() -> Outcome:
    q, k, v = _example(10, 64)
    _, _, output = code.attention(q, k, v)
    off = off_by(ss.attention(q, k, v), output)
    return Outcome.of(
        {
            Text(zh="论文的式 1", en="the paper's equation 1"): paper.EQUATION_1.replace("d_k", "d")
            == "softmax(QKᵀ/√d)V",
            "softscope.attention": off < 1e-13,
        },
        measured=Text(
            zh=f"论文：{paper.EQUATION_1}；文中的代码与 softscope.attention 最多相差 {off:.1g}",
            en=f"the paper: {paper.EQUATION_1}; the text's code and softscope.attention differ by at most {off:.1g}",
        ),
        because={
            "holds": Text(
                zh="这就是论文里缩放点积注意力的定义，文中的 d 即论文的 d_k。",
                en="This is how the paper defines scaled dot-product attention; the text's d is the paper's d_k.",
            )
        },
        evidence="quoted",
        source=f"{paper.NAME}, equation 1",
    )


@claim(
    "S3-38",
    says=Text(
        zh="softmax 把相似度分数（任意实数）变成注意力权重（概率分布）",
        en="Softmax turns similarity scores (any real numbers) into attention weights (a probability distribution)",
    ),
    quote="Transform similarity scores (any real numbers) → attention weights (probability distribution)",
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
                zh="取指数使负的分数也得到正的权重，除以总和使一行的权重加起来是 1：这就是概率分布。",
                en="The exponential gives even negative scores a positive weight, and the division makes a row add up to one: a "
                "probability distribution.",
            )
        },
    )


@claim(
    "S3-39",
    says=Text(
        zh="softmax 保证所有 token 的注意力权重之和为 1",
        en="Softmax ensures that the attention weights for all tokens sum to 1",
    ),
    quote="Ensure attention weights for all tokens sum to 1",
    where="4.5, L260/L272",
    experiment="normalisers",
)
def _s3_39() -> Outcome:
    q, k, v = _example(10, 64)
    _, weights, _ = code.attention(q, k, v)
    _, single, _ = code.attention(q[:1], k, v)
    columns = weights.sum(0)
    return Outcome.of(
        under={
            Text(zh="1 个查询", en="1 query"): abs(float(single.sum()) - 1.0) < 1e-14,
            Text(zh="10 个查询", en="10 queries"): abs(float(weights.sum()) - 1.0) < 1e-3,
        },
        measured=Text(
            zh=f"10 个键。1 个查询：总和 {single.sum():.0f}；10 个查询：总和 {weights.sum():.0f}，每行 1，每列 {columns.min():.2f} 到 {columns.max():.2f}",
            en=f"10 keys. 1 query: total {single.sum():.0f}; 10 queries: total {weights.sum():.0f}, every row 1, columns "
            f"{columns.min():.2f} to {columns.max():.2f}",
        ),
        because={
            "only-if": Text(
                zh="softmax 逐个查询归一化：每个查询有总和为 1 的权重分给所有 token。所以 n 个查询的权重总和是 n，一个 token 从所有查询得到的（一列）也不必是 1。",
                en="Softmax normalises query by query: each query has a total of 1 to give to all tokens. So the weights of n queries "
                "sum to n, and what one token gets from all queries (a column) need not be 1.",
            )
        },
        only_if=Text(
            zh="只有一个查询；有多个查询时，各自的权重之和为 1",
            en="there is one query; with several, each has weights of its own that sum to 1",
        ),
    )


def _own_temperature(scores: np.ndarray) -> float:
    """The temperature that softmax itself applies to these scores: score differences over log-weight differences."""
    logs = np.log(ss.softmax(scores))
    logs, scores = logs - logs.mean(-1, keepdims=True), scores - scores.mean(-1, keepdims=True)
    return float((scores * scores).sum() / (scores * logs).sum())


@claim(
    "S3-40",
    says=Text(
        zh="softmax 的作用之一：通过除以 √d 控制分数尺度，防止极端化",
        en="One of softmax's roles: division by √d controls the score scale, preventing extremes",
    ),
    quote="Division by √d controls score scale, preventing extremization",
    where="4.5, L261/L273",
    experiment="entropy",
)
def _s3_40() -> Outcome:
    q, k, _ = _example(10, 64)
    divisor, root = _own_temperature(q @ k.T), math.sqrt(64.0)
    plain, scaled = drawn.plain(64).peak, drawn.scaled(64).peak
    return Outcome.of(
        {
            Text(zh="除以 √d 防止极端化", en="dividing by √d prevents extremes"): scaled.below(0.5)
            and plain.above(0.5),
            Text(zh="做这个除法的是 softmax", en="it is softmax that divides"): abs(divisor - root) < 0.1,
        },
        measured=Text(
            zh=f"d = 64：softmax 自己把分数除以 {divisor:.3f}，√d 是 {root:g}；最大权重 {plain:.3f}，先除以 √d 则是 {scaled:.3f}",
            en=f"d = 64: softmax itself divides the scores by {divisor:.3f}, √d is {root:g}; largest weight {plain:.3f}, after "
            f"dividing by √d {scaled:.3f}",
        ),
        because={
            "fails": Text(
                zh="除法确实防止极端化，但它不是 softmax 的作用：softmax 只看到分数，不知道 d；文中自己的代码也先除，再调用 softmax。",
                en="The division does prevent extremes, but it is no role of softmax, which sees only scores and does not know d; "
                "the text's own code divides first and then calls softmax.",
            )
        },
        instead=Text(
            zh="在 softmax 之前除以 √d，控制分数尺度，防止极端化",
            en="Dividing by √d, before softmax, controls the score scale and prevents extremes",
        ),
    )


@claim(
    "S3-46",
    says=Text(zh="每行的和应全为 1", en="The row sums should all be 1"),
    quote="应全为 1",
    where="4.5 code, L315",
    experiment="attention",
)
def _s3_46() -> Outcome:
    _, weights, _ = code.attention(*_example())
    sums = weights.sum(-1)
    return Outcome.of(
        {Text(zh="3 行", en="3 rows"): off_by(sums, 1.0) < 1e-14},
        measured=code.printed(sums, 6),
        because={
            "holds": Text(
                zh="代码沿最后一个轴求和并相除，所以每行（每个查询）各自归一化。",
                en="The code sums and divides along the last axis, so every row (every query) is normalised on its own.",
            )
        },
    )


@claim(
    "S3-47",
    says=Text(
        zh="分数的形状是 (seq, seq)，输出是 (seq, dim)", en="The scores have shape (seq, seq) and the output (seq, dim)"
    ),
    quote="(seq, seq) @ (seq, dim) = (seq, dim)",
    where="4.5 code, L305/L318",
    experiment="attention",
)
def _s3_47() -> Outcome:
    seen = {(n, d): [x.shape for x in code.attention(*_example(n, d))] for n, d in ((3, 4), (5, 2))}
    return Outcome.of(
        {f"({n}, {d})": shapes == [(n, n), (n, n), (n, d)] for (n, d), shapes in seen.items()},
        measured=", ".join(f"{shape} → {scores} → {output}" for shape, (scores, _, output) in seen.items()),
        because={
            "holds": Text(
                zh="每个查询与每个键各有一个分数，d 在点积里求和消失了；加权和又回到 V 的维数。",
                en="Each query has one score for each key, and d is summed away in the dot product; the weighted sum brings back the "
                "width of V.",
            )
        },
    )


@claim(
    "S3-48",
    says=Text(zh="这是“完整的”单头注意力", en="This is a “complete” single-head attention"),
    quote="Complete single-head attention (with Softmax)",
    where="4.5 code, L301",
)
def _s3_48() -> Outcome:
    trials = {
        Text(zh="矩阵 (3, 4)", en="matrices (3, 4)"): ((3, 4), False),
        Text(zh="矩阵 (10, 64)", en="matrices (10, 64)"): ((10, 64), False),
        Text(zh="成批 (2, 3, 4)", en="a batch (2, 3, 4)"): ((2, 3, 4), False),
        Text(zh="成批 (3, 3, 3)", en="a batch (3, 3, 3)"): ((3, 3, 3), False),
        Text(zh="因果掩码 (3, 4)", en="a causal mask (3, 4)"): ((3, 4), True),
    }
    errors = {}
    for name, (shape, causal) in trials.items():
        q, k, v = _example(*shape)
        try:
            with np.errstate(all="ignore"):
                wanted = ss.attention(q[None], k[None], v[None], causal=causal)[0]
                errors[name] = off_by(code.attention(q, k, v)[2], wanted)
        except ValueError:
            errors[name] = math.inf
    shown = {name: "ValueError" if math.isinf(x) else f"{x:.1g}" for name, x in errors.items()}
    return Outcome.of(
        under={name: x < 1e-13 for name, x in errors.items()},
        measured=Text(
            zh="误差：" + "，".join(f"{name.zh} {x}" for name, x in shown.items()),
            en="error: " + ", ".join(f"{name.en} {x}" for name, x in shown.items()),
        ),
        because={
            "only-if": Text(
                zh="K.T 颠倒所有的轴：成批的输入会报错，三个轴等长时甚至算错而不报错；函数也没有掩码参数，解码器要的因果掩码加不进去。",
                en="K.T reverses all axes: a batch raises an error, or is silently wrong when all three axes have the same length. "
                "And without a mask argument, a decoder's causal mask cannot be applied.",
            )
        },
        only_if=Text(
            zh="输入是矩阵，没有批次维，也不需要掩码",
            en="the inputs are matrices with no batch axis, and no mask is needed",
        ),
    )
