"""Text 002, part IV and the summary: the two lanes, unscaled and scaled, from scores to training."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator, share
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts import recall_runs as recall
from softscope.experiments.ledger.texts import scores as rows
from softscope.experiments.ledger.texts.figures import by
from softscope.experiments.recall import LEARNED

_KEYS = {2: 4000, 10: 4000, 100: 1000, 1000: 200}  # number of keys, and rows drawn with each


def _evenness(scale: float | None) -> dict[int, Estimate]:
    """Entropy at d = 64 as a share of its maximum log n, for several numbers of keys n: 0 for one-hot, 1 for uniform."""
    found = {n: rows.entropies(64, scale, keys=n, n=count) for n, count in _KEYS.items()}
    return {n: Estimate(x.mean / math.log(n), x.error / math.log(n), x.n) for n, x in found.items()}


def _in_range(limit: str, divisor: float) -> Estimate:
    return share(np.abs(dots.sampled(64)) / divisor <= float(limit))


@claim(
    "S2-23",
    says=Text(
        zh="未缩放、d_k = 64：点积在 [−24, 24]，softmax 的分布极端",
        en="Unscaled at d_k = 64: dot products in [−24, 24] and an extreme softmax",
    ),
    quote="Softmax<br/>极端分布",
    where="IV mermaid, L113-114",
    experiment="entropy",
)
def _s2_23() -> Outcome:
    found, inside, lead = _evenness(1.0), _in_range("24", 1.0), drawn.plain(64).median_lead
    return Outcome.of(
        {Text(zh="99% 以上的点积在 [−24, 24]", en="over 99% of the dot products in [−24, 24]"): inside.above(0.99)}
        | {
            Text(
                zh=f"{n} 个键：熵不到最大值的四分之一", en=f"{n} keys: entropy under a quarter of its maximum"
            ): x.below(0.25)
            for n, x in found.items()
        },
        measured=Text(
            zh=f"熵与最大值之比：{by(found, '.3f', 'n')}（n 个键）；[−24, 24] 之内 {100 * inside.mean:.2f}%",
            en=f"entropy as a share of its maximum: {by(found, '.3f', 'n')} (n keys); within [−24, 24]: {100 * inside.mean:.2f}%",
        ),
        because={
            "holds": Text(
                zh=f"点积的标准差为 8：10 个键中，最大的比第二大的高 {lead:.1f}（中位数），权重是后者的 {math.exp(lead):.0f} 倍。",
                en=f"The dot products have standard deviation 8: of 10 keys, the largest leads the second by {lead:.1f} (median) and gets "
                f"{math.exp(lead):.0f} times its weight.",
            )
        },
    )


def _starves(accuracies: list[float], misled: list[float]) -> bool:
    """Whether no seed learns, and nearly all rows that are not right are blocked on a wrong key, without a gradient."""
    stuck = max(accuracies) < LEARNED
    return stuck and all(blocked > 0.8 * (1.0 - right) for blocked, right in zip(misled, accuracies, strict=True))


@claim(
    "S2-24",
    says=Text(
        zh="未缩放、d_k = 64：梯度接近 0，训练困难",
        en="Unscaled at d_k = 64: the gradient is near 0 and training is hard",
    ),
    quote="梯度接近 0<br/>训练困难",
    where="IV mermaid, L113-115",
    experiment="learning",
    slow=True,
)
def _s2_24() -> Outcome:
    tried: dict[Text, dict[str, Any]] = {
        Text(zh="共 16 个键，每个序列都是它们；adam", en="16 keys in all, in every sequence; adam"): {"keys": 16},
        Text(zh="共 16 个键，每个序列都是它们；sgd", en="16 keys in all, in every sequence; sgd"): {
            "keys": 16,
            "optimizer": "sgd",
        },
        Text(zh="共 8 个键，每个序列都是它们", en="8 keys in all, in every sequence"): {"keys": 8, "pairs": 8},
        Text(zh="共 64 个键，总是同样的 16 个在一起", en="64 keys in all, always in the same groups of 16"): {
            "keys": 64,
            "company": "fixed",
        },
        Text(zh="共 64 个键，每个序列抽 16 个；adam", en="64 keys in all, 16 drawn for each sequence; adam"): {
            "keys": 64
        },
        Text(zh="共 64 个键，每个序列抽 16 个；sgd", en="64 keys in all, 16 drawn for each sequence; sgd"): {
            "keys": 64,
            "optimizer": "sgd",
        },
        Text(zh="共 32 个键，每个序列抽 8 个", en="32 keys in all, 8 drawn for each sequence"): {
            "keys": 32,
            "pairs": 8,
        },
    }
    held = {}
    for label, setting in tried.items():
        others = {name: value for name, value in setting.items() if name != "keys"}
        (right,) = recall.sweep(64, keys=(setting["keys"],), **others).values()
        held[label] = _starves(right, recall.misled(64, **setting))
    found = recall.sweep(64)
    flip, more = recall.flip_point(found), recall.gained(64, keys=16)
    shown = ", ".join(f"{n}: {min(x):.2f}–{max(x):.2f}" for n, x in found.items())
    scaled = recall.accuracies(64, True, "adam")
    blocked = recall.misled(64, keys=16)
    return Outcome.of(
        under=held,
        measured=Text(
            zh=f"{recall.LONG} 步后的正确率，{len(blocked)} 个种子的范围，按键的总数（每个序列 {recall.PAIRS} 个，adam）：{shown}；缩放、16 个键："
            f"{min(scaled):.2f}–{max(scaled):.2f}；16 个键时卡在错误的键上的行：{min(blocked):.2f}–{max(blocked):.2f}，后一半步数使正确率最多增加 {max(more):.2f}",
            en=f"accuracy after {recall.LONG} steps, range over {len(blocked)} seeds, by number of keys in all ({recall.PAIRS} per sequence, "
            f"adam): {shown}; scaled, 16 keys: {min(scaled):.2f}–{max(scaled):.2f}; rows blocked on a wrong key with 16 keys: "
            f"{min(blocked):.2f}–{max(blocked):.2f}, where the second half of the steps adds at most {max(more):.2f}",
        ),
        because={
            "only-if": Text(
                zh="卡在错误的键上的行没有梯度，只有在缺了那个键的序列里才会松开。每个序列的键都相同，就永远没有这样的序列：它一直学不会。"
                "键每次重抽，它迟早会松开：只是学得晚。",
                en="A row that is stuck on a wrong key gets no gradient, and opens only in sequences that lack this key. If every sequence "
                "shows the same keys, there are none, and it starves for good. If they are drawn anew, it opens sooner or later: "
                "training is only slower.",
            )
        },
        only_if=Text(
            zh=f"每个序列的键都相同；抽自更多的键时会反转：{recall.LONG} 步后，到 {flip.never} 个为止没有种子学会（正确率 {LEARNED}），从 {flip.always} 个起全都学会",
            en=f"every sequence shows the same keys; drawn from more, it reverses: after {recall.LONG} steps, up to {flip.never} keys no seed "
            f"has learned (accuracy {LEARNED}), from {flip.always} on all have",
        ),
    )


@claim(
    "S2-25",
    says=Text(
        zh="缩放后：点积在 [−3, 3]，softmax 的分布平滑", en="Scaled: dot products in [−3, 3] and a smooth softmax"
    ),
    quote="Softmax<br/>平滑分布",
    where="IV mermaid, L118-119",
    experiment="entropy",
)
def _s2_25() -> Outcome:
    found, inside, peak = _evenness(None), _in_range("3", 8.0), drawn.scaled(64).peak
    return Outcome.of(
        {Text(zh="99% 以上的点积在 [−3, 3]", en="over 99% of the dot products in [−3, 3]"): inside.above(0.99)}
        | {
            Text(
                zh=f"{n} 个键：熵超过最大值的四分之三", en=f"{n} keys: entropy over three quarters of its maximum"
            ): x.above(0.75)
            for n, x in found.items()
        },
        measured=Text(
            zh=f"d_k = 64，熵与最大值之比：{by(found, '.3f', 'n')}（n 个键）；[−3, 3] 之内 {100 * inside.mean:.2f}%",
            en=f"d_k = 64, entropy as a share of its maximum: {by(found, '.3f', 'n')} (n keys); within [−3, 3]: {100 * inside.mean:.2f}%",
        ),
        because={
            "holds": Text(
                zh=f"点积的标准差为 1，没有哪个键能遥遥领先：10 个键时，一行的最大权重平均只有 {peak.mean:.2f}。",
                en=f"The dot products have standard deviation 1, so no key is far ahead: with 10 keys, the largest weight in a row averages "
                f"only {peak.mean:.2f}.",
            )
        },
    )


@claim(
    "S2-26",
    says=Text(
        zh="缩放后（点积在 [−3, 3]）：梯度健康，训练稳定",
        en="Scaled, with dot products in [−3, 3]: a healthy gradient and stable training",
    ),
    quote="梯度健康<br/>训练稳定",
    where="IV mermaid, L118-120",
    experiment="learning",
    slow=True,
)
def _s2_26() -> Outcome:
    traces = {d: drawn.scaled(d).trace for d in (4, 16, 64, 256, 1024)}
    tried = {16: (16, 64), 64: (16, 64), 256: (16,)}
    runs = {
        (d, n): x
        for d, keys in tried.items()
        for n, x in recall.sweep(d, optimizer="sgd", scaled=True, keys=keys).items()
    }
    lowest = {f"{d}, {n}": min(x) for (d, n), x in runs.items()}
    return Outcome.of(
        {Text(zh=f"Σs(1−s)，d = {d}", en=f"Σs(1−s), d = {d}"): x.above(0.7) for d, x in traces.items()}
        | {
            Text(zh=f"训练，d = {d}，共 {n} 个键，每个种子", en=f"training, d = {d}, {n} keys in all, every seed"): min(
                x
            )
            >= LEARNED
            for (d, n), x in runs.items()
        },
        measured=Text(
            zh=f"Σs(1−s)：{by(traces, '.3f')}；{recall.STEPS} 步（sgd）后 {len(recall.SEEDS)} 个种子中最低的正确率，{by(lowest, '.2f', '(d, n)')}（n 为键的总数）",
            en=f"Σs(1−s): {by(traces, '.3f')}; lowest accuracy of {len(recall.SEEDS)} seeds after {recall.STEPS} steps of sgd, "
            f"{by(lowest, '.2f', '(d, n)')} (n keys in all)",
        ),
        because={
            "holds": Text(
                zh="缩放后，分数起初在每个 d 下都同样分散，没有行一开始就饱和；每一行都有梯度，所以每个种子都学得会。",
                en="Scaled scores start with the same spread at every d, so no row is saturated from the start: every row gets a gradient, "
                "and every seed learns.",
            )
        },
    )


@claim(
    "S2-57",
    says=Text(
        zh="缩放防止分数过大，避免 softmax 饱和",
        en="Scaling keeps scores from growing too large and softmax from saturating",
    ),
    quote="防止点积值过大，避免 Softmax 饱和",
    where="Summary 1, L254",
    experiment="entropy",
)
def _s2_57() -> Outcome:
    found = {d: drawn.scaled(d).peak for d in (16, 64, 256, 1024)}
    # q and k have twice the standard deviation: every score is four times as large, while √d stays the same.
    grown = drawn.sharpness(64, 4.0 / math.sqrt(64)).peak
    flip = drawn.size_where(lambda x: x.peak.mean, 0.5)
    return Outcome.of(
        under={
            Text(zh=f"q、k 的标准差为 1，d = {d}", en=f"q and k with standard deviation 1, d = {d}"): x.below(0.5)
            for d, x in found.items()
        }
        | {Text(zh="q、k 的标准差为 2，d = 64", en="q and k with standard deviation 2, d = 64"): grown.below(0.5)},
        measured=Text(
            zh=f"一行的最大权重（10 个键），{by(found, '.3f')}；q、k 的标准差为 2 时 {grown:.3f}；标准差到 {flip:.1f} 时达到 0.5",
            en=f"largest weight in a row of 10 keys, {by(found, '.3f')}; when q and k have standard deviation 2: {grown:.3f}; it reaches "
            f"0.5 at {flip:.1f}",
        ),
        because={
            "only-if": Text(
                zh="√d 抵消的是维度的影响，不是 q 和 k 自身在训练中的增长：它们的标准差变为 2 倍，分数就变为 4 倍。",
                en="√d compensates for the dimension, not for q and k themselves growing during training: twice their standard deviation "
                "makes the scores 4 times as large.",
            )
        },
        only_if=Text(
            zh=f"q 和 k 各分量的标准差保持在 1 左右；超过 {flip:.1f}，一个键就超过其余之和",
            en=f"the components of q and k keep a standard deviation of about 1; above {flip:.1f}, one key outweighs the rest",
        ),
    )


_COUNTS = (2, 3, 4, 6, 10, 14, 20, 50, 100, 1000)


@functools.cache
def _norms(n: int) -> dict[float, Estimate]:
    """The mean Frobenius norm ‖J‖ with n keys, for each standard deviation of the scores."""
    z = generator("S2-62").standard_normal((400_000 // n, n))
    found = {}
    for sd in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0):
        found[sd] = estimate(rows.frobenius(ss.softmax(sd * z)))
    return found


def _best_spread(n: int) -> tuple[float, Estimate]:
    """The standard deviation of the scores with the largest mean ‖J‖, and ‖J‖ at 1 as a share of that."""
    found = _norms(n)
    best = max(found, key=lambda sd: found[sd].mean)
    most, one = found[best].mean, found[1.0]
    return best, Estimate(one.mean / most, one.error / most, one.n)


@claim(
    "S2-62",
    says=Text(
        zh="标准正态的分数使 softmax 处于最优工作区间",
        en="Standard normal scores put softmax in its optimal working range",
    ),
    quote="使 Softmax 在最优工作区间",
    where="Essence, L262",
    experiment="saturation",
)
def _s2_62() -> Outcome:
    found = {n: _best_spread(n) for n in _COUNTS}
    best = {n: sd for n, (sd, _) in found.items()}
    ratio = {n: x for n, (_, x) in found.items()}
    few = {n: best[n] for n in (6, 10, 100, 1000)}
    good = [n for n, x in ratio.items() if x.above(0.9)]
    span = f"{good[0]}–{good[-1]}" if good else "–"
    return Outcome.of(
        under={Text(zh=f"{n} 个键", en=f"{n} keys"): n in good for n in ratio},
        measured=Text(
            zh=f"标准差为 1 时的平均 ‖J‖ 与最大值之比：{by(ratio, '.2f', 'n')}；最大值所在的标准差：{by(few, 'g', 'n')}（n 个键）",
            en=f"mean ‖J‖ at standard deviation 1, as a share of the maximum: {by(ratio, '.2f', 'n')}; "
            f"the maximum is at standard deviation {by(few, 'g', 'n')} (n keys)",
        ),
        because={
            "only-if": Text(
                zh="文中没有说“最优”是什么；以通过 softmax 的梯度（平均 ‖J‖）最大为最优，最优的分散程度随键的个数增大：键多了，分数要拉得更开，才有键能突出。",
                en="The text does not say what is optimal. If it is the most gradient through softmax (mean ‖J‖), the best spread grows "
                "with the number of keys: among many, scores must lie further apart for any key to stand out.",
            )
        },
        only_if=Text(
            zh=f"键的个数合适：试过的个数中，{span} 个键时达到最大值的 90% 以上",
            en=f"the number of keys is right: of those tried, {span} keys reach over 90% of the maximum",
        ),
    )


@claim(
    "S2-64",
    says=Text(zh="层归一化有与 1/√d_k 类似的作用", en="Layer normalisation plays a role similar to that of 1/√d_k"),
    quote="Layer Normalization 的类似作用",
    where="Related, L273",
    experiment="initialisation",
)
def _s2_64() -> Outcome:
    rng, n = generator("S2-64"), 4000
    spread = {}
    for d in (64, 256):
        w_q, w_k = rng.standard_normal((2, d, d)) / math.sqrt(d)
        x, y = rng.standard_normal((2, n, d))
        for size in (1.0, 10.0):
            normed = np.einsum("ij,ij->i", _layer_norm(size * x) @ w_q, _layer_norm(size * y) @ w_k)
            scaled = np.einsum("ij,ij->i", size * x @ w_q, size * y @ w_k) / math.sqrt(d)
            spread[d, size] = float(normed.std()), float(scaled.std())
    inputs, dimension = (
        [after / before for after, before in zip(spread[key], spread[64, 1.0], strict=True)]
        for key in ((64, 10.0), (256, 1.0))
    )
    return Outcome.of(
        {
            Text(zh="d 从 64 增大到 256，分散程度不变", en="the same spread when d goes from 64 to 256"): abs(
                dimension[0] - 1.0
            )
            < 0.2
        },
        measured=Text(
            zh=f"分数的标准差变为几倍，d 从 64 增大到 256：层归一化 {dimension[0]:.2f}，除以 √d {dimension[1]:.2f}；输入放大到 10 倍：层归一化 "
            f"{inputs[0]:.2f}，除以 √d {inputs[1]:.0f}（{n} 个样本）",
            en=f"factor on the standard deviation of the scores, d from 64 to 256: layer norm {dimension[0]:.2f}, dividing by √d "
            f"{dimension[1]:.2f}; inputs 10 times as large: layer norm {inputs[0]:.2f}, dividing by √d {inputs[1]:.0f} ({n} samples)",
        ),
        because={
            "fails": Text(
                zh="层归一化使每个分量的大小固定，但 d 个分量相加，分数还是按 √d 增长；反过来，√d 不管输入有多大。两者防的是两种不同的原因。",
                en="Layer norm fixes the size of each component, but d of them still add up to scores that grow like √d; and √d does not "
                "care how large the inputs are. They guard against two different causes.",
            )
        },
        instead=Text(
            zh="层归一化消除输入大小的影响，1/√d_k 消除维度的影响；谁也代替不了谁",
            en="Layer normalisation removes the effect of the inputs' size, 1/√d_k that of the dimension; neither replaces the other",
        ),
    )


def _layer_norm(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5))
