"""Text 002, part VIII: entropy of the weights against d_k, with 10 random keys as in the text's script."""

from __future__ import annotations

import itertools
import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, half_unit, off_by
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by, listed

_UNIFORM = math.log(drawn.KEYS)


@claim(
    "S2-42",
    says=Text(
        zh="信息熵 H = −Σ p·log p 衡量分布有多平滑", en="Entropy, H = −Σ p·log p, measures how smooth a distribution is"
    ),
    quote="信息熵衡量分布的平滑程度：",
    where="VIII, L189-190",
    experiment="entropy",
)
def _s2_42() -> Outcome:
    x = generator("S2-42").standard_normal((200, drawn.KEYS))
    p = ss.softmax(x)
    off = off_by(ss.partition(x).entropy, -(p * np.log(p)).sum(-1))
    # The same scores, ever flatter: from one-hot to uniform.
    flatter = np.stack([ss.partition(x * gain).entropy for gain in (100.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.0)])
    return Outcome.of(
        {
            Text(zh="公式，200 行随机分数", en="the formula, 200 random rows"): off < 1e-13,
            Text(zh="越平滑，熵越大", en="the smoother, the larger"): bool((np.diff(flatter, axis=0) > 0.0).all()),
        },
        measured=Text(
            zh=f"与公式最多相差 {off:.1g} nat；同一行从最尖到均匀：{listed(flatter[:, 0], '.2f')}",
            en=f"differs from the formula by at most {off:.1g} nats; one row from sharpest to uniform: {listed(flatter[:, 0], '.2f')}",
        ),
        because={
            "holds": Text(
                zh="这是定义。权重全在一个键上时 H = 0，均匀时最大，为 log n；把分数拉近，它就变大。",
                en="This is the definition. H is 0 with all weight on one key and largest, log n, when uniform; it grows as the scores "
                "move together.",
            )
        },
    )


def _unscaled(d: int, stated: str) -> Outcome:
    """One row of the table's unscaled column."""
    entropy, peak = drawn.plain(d).entropy, drawn.plain(d).peak
    return Outcome.of(
        {f"d = {d}": entropy.agrees(float(stated), half_unit(stated))},
        measured=Text(
            zh=f"{entropy:.3f} nat（{entropy.n} 个随机 10×10 矩阵）",
            en=f"{entropy:.3f} nats ({entropy.n} random 10×10 matrices)",
        ),
        because={
            "fails": Text(
                zh=f"{stated} 是最大值 log 10 = {_UNIFORM:.2f} 的 {100 * float(stated) / _UNIFORM:.0f}%；而分数的标准差是 √{d} = {math.sqrt(d):g}，"
                f"一行中的最大权重平均已达 {peak:.3f}，分布要尖锐得多。",
                en=f"{stated} is {100 * float(stated) / _UNIFORM:.0f}% of the maximum, log 10 = {_UNIFORM:.2f}; but the scores have standard "
                f"deviation √{d} = {math.sqrt(d):g}, and the largest weight in a row averages {peak:.3f}: far sharper.",
            ),
            "holds": Text(
                zh=f"分数的标准差是 √{d} = {math.sqrt(d):g}，一行中的最大权重平均为 {peak:.3f}，剩下的那点权重只够这么小的熵。",
                en=f"The scores have standard deviation √{d} = {math.sqrt(d):g}: the largest weight in a row averages {peak:.3f}, and what "
                f"is left makes no more entropy than this.",
            ),
        },
        instead=Text(
            zh=f"d_k = {d}、10 个随机的键：未缩放的熵平均是 {entropy.mean:.2f} nat",
            en=f"d_k = {d} with 10 random keys: the unscaled entropy averages {entropy.mean:.2f} nats",
        ),
    )


@claim(
    "S2-43",
    says=Text(zh="d_k = 16：未缩放的熵是 2.1", en="d_k = 16: unscaled entropy 2.1"),
    quote="| 16    | 2.1     | 2.3     |",
    where="VIII table, L194",
    experiment="entropy",
)
def _s2_43() -> Outcome:
    return _unscaled(16, "2.1")


@claim(
    "S2-44",
    says=Text(zh="d_k = 64：未缩放的熵是 0.8", en="d_k = 64: unscaled entropy 0.8"),
    quote="| 64    | 0.8     | 2.3     |",
    where="VIII table, L195",
    experiment="entropy",
)
def _s2_44() -> Outcome:
    return _unscaled(64, "0.8")


@claim(
    "S2-45",
    says=Text(zh="d_k = 256：未缩放的熵是 0.2", en="d_k = 256: unscaled entropy 0.2"),
    quote="| 256   | 0.2     | 2.3     |",
    where="VIII table, L196",
    experiment="entropy",
)
def _s2_45() -> Outcome:
    return _unscaled(256, "0.2")


@claim(
    "S2-46",
    says=Text(zh="d_k = 16、64、256：缩放后的熵都是 2.3", en="d_k = 16, 64, 256: scaled entropy 2.3 in every case"),
    quote="| $d_k$ | 未缩放熵 | 缩放后熵 |",
    where="VIII table, L192-196",
    experiment="entropy",
)
def _s2_46() -> Outcome:
    found = {d: drawn.scaled(d).entropy for d in drawn.DIMENSIONS}
    return Outcome.of(
        {f"d = {d}": x.agrees(2.3, half_unit("2.3")) for d, x in found.items()},
        measured=Text(zh=f"{by(found, '.3f')} nat", en=f"{by(found, '.3f')} nats"),
        because={
            "fails": Text(
                zh=f"2.3 是 log 10 = {_UNIFORM:.3f}，只有 10 个权重完全相等时才能达到；方差为 1 的分数不会给出相等的权重。",
                en=f"2.3 is log 10 = {_UNIFORM:.3f}, which only 10 equal weights reach; scores of variance 1 do not give equal weights.",
            )
        },
        instead=Text(
            zh=f"d_k = 16、64、256：缩放后的熵都是 {found[64].mean:.2f} nat 左右",
            en=f"d_k = 16, 64, 256: scaled entropy about {found[64].mean:.2f} nats in every case",
        ),
    )


@claim(
    "S2-47",
    says=Text(zh="未缩放时熵随 d_k 降低", en="Unscaled, entropy falls as d_k grows"),
    quote="未缩放：熵随 $d_k$ 降低（分布越来越尖锐）",
    where="VIII, L198",
    experiment="entropy",
)
def _s2_47() -> Outcome:
    found = {d: drawn.plain(d).entropy for d in (1, 4, 16, 64, 256, 1024)}
    sizes = list(found)
    return Outcome.of(
        {
            f"{a} → {b}": found[b].mean + 4 * found[b].error < found[a].mean - 4 * found[a].error
            for a, b in itertools.pairwise(sizes)
        },
        measured=Text(zh=f"{by(found)} nat", en=f"{by(found)} nats"),
        because={
            "holds": Text(
                zh="分数的标准差按 √d 增长，最大的分数领先得越来越多，权重就越来越集中到一个键上。",
                en="The spread of the scores grows like √d, so the largest leads by more and more, and the weight gathers on one key.",
            )
        },
    )


@claim(
    "S2-48",
    says=Text(zh="缩放后熵保持稳定", en="Scaled, entropy stays stable"),
    quote="缩放：熵保持稳定（分布始终平滑）",
    where="VIII, L199",
    experiment="entropy",
)
def _s2_48() -> Outcome:
    found = {d: drawn.scaled(d).entropy for d in (1, 4, 16, 64, 256, 1024)}
    return Outcome.of(
        {
            Text(zh=f"d = {d}：与 d = 64 相差不到 5%", en=f"d = {d}: within 5% of d = 64"): x.agrees(
                found[64].mean, 0.05 * found[64].mean
            )
            for d, x in found.items()
        },
        measured=Text(zh=f"{by(found, '.3f')} nat", en=f"{by(found, '.3f')} nats"),
        because={
            "holds": Text(
                zh=f"缩放后分数的方差总是 1；熵稳定在 {found[64].mean:.2f}，是最大值 {_UNIFORM:.2f} 的 {100 * found[64].mean / _UNIFORM:.0f}%。",
                en=f"Scaled scores always have variance 1; entropy stays at {found[64].mean:.2f}, "
                f"{100 * found[64].mean / _UNIFORM:.0f}% of the maximum {_UNIFORM:.2f}.",
            )
        },
    )
