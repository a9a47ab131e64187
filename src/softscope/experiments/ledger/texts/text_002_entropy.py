"""Text 002, part VIII: entropy of the weights against d_k, with 10 random keys as in the text's script."""

from __future__ import annotations

import itertools
import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, half_unit, off_by
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by

_UNIFORM = math.log(drawn.KEYS)


@claim(
    "S2-42", says=Text(zh="熵 H = −Σ p·log p", en="Entropy is H = −Σ p·log p"), where="VIII, L190", experiment="entropy"
)
def _s2_42() -> Outcome:
    x = generator("S2-42").standard_normal((200, drawn.KEYS))
    p = ss.softmax(x)
    off = off_by(ss.partition(x).entropy, -(p * np.log(p)).sum(-1))
    return Outcome.of(
        {Text(zh="200 行随机分数", en="200 random rows"): off < 1e-13},
        measured=Text(zh=f"与定义最多相差 {off:.1g} nat", en=f"differs from the definition by at most {off:.1g} nats"),
        because={
            "holds": Text(
                zh="这是定义；库用等价的 log z − u/z 来计算，以避免 0·log 0。",
                en="This is the definition; the library computes the equivalent log z − u/z, which avoids 0·log 0.",
            )
        },
    )


def _unscaled(d: int, stated: str) -> Outcome:
    """One row of the table's unscaled column."""
    entropy = drawn.plain(d).entropy
    held = entropy.agrees(float(stated), half_unit(stated))
    return Outcome.of(
        {f"d = {d}": held},
        measured=Text(
            zh=f"{entropy:.3f} nat（{entropy.n} 个随机 10×10 矩阵）",
            en=f"{entropy:.3f} nats ({entropy.n} random 10×10 matrices)",
        ),
        because={
            "fails": Text(
                zh=f"分数的标准差是 √{d} = {math.sqrt(d):g}，一行中的最大权重平均为 {drawn.plain(d).peak:.3f}。",
                en=f"The scores have standard deviation √{d} = {math.sqrt(d):g}, and the largest weight in a row "
                f"averages {drawn.plain(d).peak:.3f}.",
            )
        },
    )


@claim(
    "S2-43",
    says=Text(zh="d_k = 16：未缩放的熵是 2.1", en="d_k = 16: unscaled entropy 2.1"),
    where="VIII table, L194",
    experiment="entropy",
)
def _s2_43() -> Outcome:
    return _unscaled(16, "2.1")


@claim(
    "S2-44",
    says=Text(zh="d_k = 64：未缩放的熵是 0.8", en="d_k = 64: unscaled entropy 0.8"),
    where="VIII table, L195",
    experiment="entropy",
)
def _s2_44() -> Outcome:
    return _unscaled(64, "0.8")


@claim(
    "S2-45",
    says=Text(zh="d_k = 256：未缩放的熵是 0.2", en="d_k = 256: unscaled entropy 0.2"),
    where="VIII table, L196",
    experiment="entropy",
)
def _s2_45() -> Outcome:
    return _unscaled(256, "0.2")


@claim(
    "S2-46",
    says=Text(zh="d_k = 16、64、256：缩放后的熵都是 2.3", en="d_k = 16, 64, 256: scaled entropy 2.3 in every case"),
    where="VIII table, L194-196",
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
    )


@claim(
    "S2-47",
    says=Text(zh="未缩放时熵随 d_k 降低", en="Unscaled, entropy falls as d_k grows"),
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
                zh="分数的标准差按 √d 增长，softmax 越来越尖锐。",
                en="The spread of the scores grows like √d, so the softmax sharpens.",
            )
        },
    )


@claim(
    "S2-48",
    says=Text(zh="缩放后熵保持稳定", en="Scaled, entropy stays stable"),
    where="VIII, L199",
    experiment="entropy",
)
def _s2_48() -> Outcome:
    found = {d: drawn.scaled(d).entropy for d in (16, 64, 256, 1024)}
    return Outcome.of(
        {f"d = {d}": x.agrees(found[64].mean, 0.03) for d, x in found.items()},
        measured=Text(zh=f"{by(found, '.3f')} nat", en=f"{by(found, '.3f')} nats"),
        because={
            "holds": Text(
                zh=f"缩放后分数的方差总是 1；熵稳定在 {found[64].mean:.2f}，是最大值 {_UNIFORM:.2f} 的 {100 * found[64].mean / _UNIFORM:.0f}%。",
                en=f"Scaled scores always have variance 1; entropy stays at {found[64].mean:.2f}, "
                f"{100 * found[64].mean / _UNIFORM:.0f}% of the maximum {_UNIFORM:.2f}.",
            )
        },
    )
