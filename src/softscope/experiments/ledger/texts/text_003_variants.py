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
    says=Text(zh="log-softmax 在数值上更稳定", en="Log-softmax is numerically more stable"),
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
                zh="先算 softmax 会下溢为 0，而 0 的对数是 −∞。",
                en="Taking softmax first underflows to 0, whose logarithm is −∞.",
            )
        },
    )


def _has_zero(scale: float) -> np.ndarray:
    x = scale * generator("S3-51").standard_normal((4000, 10))
    return np.asarray((ss.sparsemax(x) == 0.0).any(-1))


@claim(
    "S3-51",
    says=Text(
        zh="sparsemax 输出稀疏分布，可能有精确的零",
        en="Sparsemax gives sparse distributions, possibly with exact zeros",
    ),
    where="4.6, L353/L369",
    experiment="normalisers",
)
def _s3_51() -> Outcome:
    p = ss.sparsemax(_X)
    found, small = share(_has_zero(1.0)), share(_has_zero(0.02))
    return Outcome.of(
        {
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
                zh="低于阈值的分数恰好得到 0；分数彼此很接近时，则一个 0 也没有。",
                en="Scores below the threshold get exactly 0; when all scores are close together, none do.",
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
    says=Text(zh="文中的 sparsemax 代码只是概念上的简化", en="The text's sparsemax code is only a simplified concept"),
    where="4.6, L354",
    experiment="normalisers",
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
                zh="它就是完整的排序算法，结果精确；简化之处只是一次处理一个向量。",
                en="It is the full sorting algorithm, and it is exact; the only simplification is that it takes one vector at a time.",
            )
        },
    )


@claim(
    "S3-53",
    says=Text(zh="log-softmax 的值是负数", en="Log-softmax values are negative"),
    where="4.6, L367",
    experiment="overflow",
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
                zh="从不为正；只有一项时恰为 0，最大项领先很多时在 float64 中也是 0。",
                en="They are never positive; a single entry gives exactly 0, and a large lead also gives 0 in float64.",
            )
        },
        only_if=Text(
            zh="至少有两项，并且没有哪一项的权重舍入为 1", en="there are at least two entries and no weight rounds to 1"
        ),
    )


@claim(
    "S3-54",
    says=Text(
        zh="小结：先减去最大值；温度控制尖锐程度；除以 √d 防止维度高时过于极端",
        en="Summary: subtract the maximum; temperature controls sharpness; dividing by √d prevents extremes in high dimensions",
    ),
    where="Summary, L378-381/L386-389",
)
def _s3_54() -> Outcome:
    big = code.stable(np.array([1000.0, 1001.0, 1002.0]))
    entropies = [float(ss.partition(_X, temperature=T).entropy) for T in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)]
    peaks = {d: drawn.scaled(d).peak for d in (16, 64, 256)}
    return Outcome.of(
        {
            Text(zh="减最大值", en="subtracting the maximum"): bool(np.isfinite(big).all()),
            Text(zh="温度", en="temperature"): all(a < b for a, b in itertools.pairwise(entropies)),
            "√d": all(x.below(0.5) for x in peaks.values()),
        },
        measured=Text(
            zh=f"熵从 T = 0.1 到 10：{listed(entropies, '.3f')} nat；缩放后的最大权重 {by(peaks, '.3f')}",
            en=f"entropy from T = 0.1 to 10: {listed(entropies, '.3f')} nats; largest weight when scaled {by(peaks, '.3f')}",
        ),
        because={"holds": Text(zh="前面的测量支持这三点。", en="The measurements above bear out all three.")},
    )
