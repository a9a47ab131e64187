"""Text 003, chapter 4.6 and its summary: log-softmax and sparsemax."""

from __future__ import annotations

import itertools

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, off_by, share
from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by, listed

_X = np.array([1.0, 2.0, 3.0])


@claim(
    "S3-49",
    says=Text(zh="log-softmax 数值更稳定", en="Log-softmax is numerically stable"),
    quote="Numerically stable, often used in loss",
    where="4.6, L347",
    experiment="overflow",
)
def _s3_49() -> Outcome:
    x = np.array([0.0, -1000.0])
    with np.errstate(divide="ignore"):
        logged = np.log(code.stable(x))
    direct = ss.log_softmax(x)
    return Outcome.of(
        {
            Text(zh="log(softmax) 失败", en="log(softmax) fails"): not np.isfinite(logged).all(),
            Text(zh="log-softmax 正确", en="log-softmax is right"): off_by(direct, [0.0, -1000.0]) < 1e-12,
            Text(zh="文中的代码正确", en="the text's code is right"): off_by(code.log_weights(x), [0.0, -1000.0])
            < 1e-12,
        },
        measured=f"[0, −1000]: log(softmax) {listed(logged, 'g')}, log_softmax {listed(direct, 'g')}",
        because={
            "holds": Text(
                zh="先算 softmax，很小的权重会下溢为 0，而 0 的对数是 −∞；log-softmax 直接用分数相减，不经过那个 0。",
                en="With softmax first, tiny weights underflow to 0, whose logarithm is −∞; log-softmax subtracts scores directly and "
                "never meets that 0.",
            )
        },
    )


def _has_zero(scale: float) -> np.ndarray:
    x = scale * generator("S3-51").standard_normal((4000, 10))
    return np.asarray((ss.sparsemax(x) == 0.0).any(-1))


@claim(
    "S3-51",
    says=Text(
        zh="sparsemax 输出稀疏的概率分布，可能有精确的 0",
        en="Sparsemax gives a sparse probability distribution and may output exact zeros",
    ),
    quote="Sparsemax may output exact zeros",
    where="4.6, L353/L369",
    experiment="normalisers",
)
def _s3_51() -> Outcome:
    p = ss.sparsemax(_X)
    found, small = share(_has_zero(1.0)), share(_has_zero(0.02))
    rows = ss.sparsemax(generator("S3-51").standard_normal((4000, 10)))
    return Outcome.of(
        {
            Text(zh="是概率分布", en="a probability distribution"): bool((rows >= 0.0).all())
            and off_by(rows.sum(-1), 1.0) < 1e-14,
            "[1, 2, 3]": bool((p == 0.0).any()),
            Text(zh="10 个 N(0, 1) 的分数", en="10 scores from N(0, 1)"): found.above(0.9),
            Text(zh="softmax 没有", en="softmax gives none"): bool((ss.softmax(_X) > 0.0).all()),
        },
        measured=Text(
            zh=f"[1, 2, 3] → {listed(p, 'g')}；10 个 N(0, 1) 的分数：含零的行占 {found.mean:.3f}，分数缩小到 1/50 后占 {small.mean:.3f}",
            en=f"[1, 2, 3] → {listed(p, 'g')}; 10 scores from N(0, 1): share of rows with a zero: {found.mean:.3f}; with scores 1/50 as large: {small.mean:.3f}",
        ),
        because={
            "holds": Text(
                zh="它从每个分数减去同一个阈值，把负的截为 0，所以低分恰好得到 0；分数彼此很接近时没有一个低于阈值，正如文中说“可能”。",
                en="It subtracts one threshold from all scores and cuts what is negative at 0, so low scores get exactly 0. When all "
                "are close together none is below the threshold: hence the text's “may”.",
            )
        },
    )


def _projected(x: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by bisection on the threshold; no sorting."""
    low, high = x.max(-1, keepdims=True) - 1.0, x.max(-1, keepdims=True)
    for _ in range(80):
        middle = (low + high) / 2
        above = np.maximum(x - middle, 0.0).sum(-1, keepdims=True) > 1.0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.maximum(x - (low + high) / 2, 0.0)


@claim(
    "S3-52",
    says=Text(zh="文中的 sparsemax 代码是简化的概念", en="The text's sparsemax code is a simplified concept"),
    quote="Simplified sparsemax concept",
    where="4.6, L354",
)
def _s3_52() -> Outcome:
    x = 2.0 * generator("S3-52").standard_normal((2000, 10))
    theirs = np.stack([code.sparse(vector) for vector in x])
    off, ours = off_by(theirs, _projected(x)), off_by(ss.sparsemax(x), _projected(x))
    return Outcome.of(
        {Text(zh="与真正的投影不同", en="it differs from the true projection"): off > 1e-12},
        measured=Text(
            zh=f"2000 个向量：与投影最多相差 {off:.1g}（softscope.sparsemax 为 {ours:.1g}）",
            en=f"2000 vectors: differs from the projection by at most {off:.1g} (softscope.sparsemax: {ours:.1g})",
        ),
        because={
            "fails": Text(
                zh="它找到的阈值正是使结果和为 1 的那个，与用另一种方法求出的单纯形投影一致；没有什么被简化，只是一次处理一个向量。",
                en="The threshold it finds is the very one that makes the result sum to 1, and it agrees with the projection onto the "
                "simplex found by other means; nothing is simplified, except that it takes one vector at a time.",
            )
        },
        instead=Text(
            zh="文中的代码就是完整的 sparsemax（排序算法），一次处理一个向量",
            en="The text's code is sparsemax in full (the sorting algorithm), for one vector at a time",
        ),
    )


@claim(
    "S3-53",
    says=Text(zh="log-softmax 是 log(p)，所以值为负数", en="Log-softmax is log(p), so its values are negative"),
    quote="Log Softmax is log(p), so values are negative",
    where="4.6, L367",
)
def _s3_53() -> Outcome:
    trials = {
        "[1, 2, 3]": _X,
        Text(zh="1000 个随机数", en="1000 random numbers"): generator("S3-53").standard_normal(1000),
        "[5]": np.array([5.0]),
        "[0, −1000]": np.array([0.0, -1000.0]),
    }
    largest = {name: float(code.log_weights(x).max()) for name, x in trials.items()}
    return Outcome.of(
        under={name: x < 0.0 for name, x in largest.items()},
        measured=Text(
            zh=f"最大值：{', '.join(f'{x:.3g}' for x in largest.values())}",
            en=f"largest values: {', '.join(f'{x:.3g}' for x in largest.values())}",
        ),
        because={
            "only-if": Text(
                zh="p < 1 时 log(p) 才是负数。只有一项时 p 恰为 1，对数为 0；领先很多时 p 在 float64 中舍入为 1，也得 0。从不为正。",
                en="log(p) is negative only where p < 1. A single entry has p = 1, whose logarithm is 0; with a large lead p rounds to "
                "1 in float64 and gives 0 too. It is never positive.",
            )
        },
        only_if=Text(
            zh="至少有两项，并且没有哪一项的权重舍入为 1", en="there are at least two entries and no weight rounds to 1"
        ),
    )


@claim(
    "S3-54",
    says=Text(
        zh="小结：先减去最大值再算指数；温度控制尖锐或平滑；softmax 把分数变成注意力权重；除以 √d 防止维度高时分数过于极端",
        en="Summary: subtract the maximum before the exponential; temperature controls sharpness; softmax turns scores into attention "
        "weights; division by √d prevents scores from becoming too extreme in high dimensions",
    ),
    quote="Division by √d prevents scores from becoming too extreme with high dimensions",
    where="Summary, L378-381/L386-389",
)
def _s3_54() -> Outcome:
    big = code.stable(np.array([1000.0, 1001.0, 1002.0]))
    entropies = [float(ss.partition(_X, temperature=T).entropy) for T in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)]
    plain, scaled = ({d: at(d).peak for d in (16, 64, 256)} for at in (drawn.plain, drawn.scaled))
    return Outcome.of(
        {
            Text(zh="减最大值", en="subtracting the maximum"): bool(np.isfinite(big).all()),
            Text(zh="温度", en="temperature"): all(a < b for a, b in itertools.pairwise(entropies)),
            Text(zh="权重", en="weights"): abs(float(big.sum()) - 1.0) < 1e-14,
            Text(zh="不除以 √d：越来越极端", en="without √d: more and more extreme"): all(
                plain[b].above(plain[a].mean) for a, b in ((16, 64), (64, 256))
            ),
            Text(zh="除以 √d：不随 d 变", en="with √d: no change with d"): all(
                x.agrees(scaled[64].mean, 0.02) for x in scaled.values()
            ),
        },
        measured=Text(
            zh=f"熵从 T = 0.1 到 10：{listed(entropies, '.3f')} nat；10 个键的最大权重，不缩放 {by(plain, '.3f')}，缩放后 {by(scaled, '.3f')}",
            en=f"entropy from T = 0.1 to 10: {listed(entropies, '.3f')} nats; largest weight of 10 keys, unscaled {by(plain, '.3f')}, "
            f"scaled {by(scaled, '.3f')}",
        ),
        because={
            "holds": Text(
                zh="减最大值使指数不超过 1；除以 T 缩放所有差值；分数的标准差按 √d 增长，除以 √d 正好抵消，所以尖锐程度不再随 d 变。",
                en="Subtracting the maximum keeps the powers at 1 or below; dividing by T scales all differences; scores spread like √d, "
                "which dividing by √d cancels, so that sharpness no longer depends on d.",
            )
        },
    )
