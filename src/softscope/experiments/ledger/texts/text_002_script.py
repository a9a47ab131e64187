"""Text 002, part IX: the script that prints the largest of 100 weights, and what it prints."""

from __future__ import annotations

import math

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator, half_unit, share
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by


def _tails(largest: np.ndarray, stated: str) -> tuple[Estimate, Estimate]:
    """The shares of runs that print this number or a smaller one, and this number or a larger one."""
    number, half = float(stated), half_unit(stated)
    return share(largest < number + half), share(largest > number - half)


def _sample(d: int, plain: str, scaled: str) -> Outcome:
    """Whether a run could plausibly print these two numbers: over 1 run in 100 goes that low, and as many that high."""
    runs = {"plain": (drawn.plain(d).largest, plain), "scaled": (drawn.scaled(d).largest, scaled)}
    tails = {name: _tails(*pair) for name, pair in runs.items()}
    low = {name: below for name, (below, _) in tails.items()}
    means = {name: estimate(x) for name, (x, _) in runs.items()}
    return Outcome.of(
        {
            Text(zh=f"未缩放 {plain}", en=f"unscaled {plain}"): all(x.above(0.01) for x in tails["plain"]),
            Text(zh=f"缩放后 {scaled}", en=f"scaled {scaled}"): all(x.above(0.01) for x in tails["scaled"]),
        },
        measured=Text(
            zh=f"平均打印 {means['plain']:.4f} 与 {means['scaled']:.3f}（{drawn.matrices(d)} 次）",
            en=f"prints {means['plain']:.4f} and {means['scaled']:.3f} on average ({drawn.matrices(d)} runs)",
        ),
        because={
            "fails": Text(
                zh=f"脚本打印的是 100 个权重中最大的：10 行里总有一行，某个分数遥遥领先。{100 * low['plain'].mean:.2f}% 的运行打印 ≤ {plain}，"
                f"{100 * low['scaled'].mean:.2f}% 打印 ≤ {scaled}。",
                en=f"The script prints the largest of 100 weights, and in one of 10 rows some score is always far ahead. "
                f"{100 * low['plain'].mean:.2f}% of runs print {plain} or less, and {100 * low['scaled'].mean:.2f}% print {scaled} or less.",
            )
        },
        instead=Text(
            zh=f"脚本在 d_k = {d} 平均打印 {means['plain'].mean:.3f} 与 {means['scaled'].mean:.2f}",
            en=f"At d_k = {d} the script prints {means['plain'].mean:.3f} and {means['scaled'].mean:.2f} on average",
        ),
    )


@claim(
    "S2-51",
    says=Text(zh="脚本在 d_k = 16 打印 0.342 与 0.289", en="At d_k = 16 the script prints 0.342 and 0.289"),
    quote="# d_k= 16 | 未缩放最大值: 0.342 | 缩放后最大值: 0.289",
    where="IX, L238-239",
    experiment="entropy",
)
def _s2_51() -> Outcome:
    return _sample(16, "0.342", "0.289")


@claim(
    "S2-52",
    says=Text(zh="脚本在 d_k = 64 打印 0.891 与 0.276", en="At d_k = 64 the script prints 0.891 and 0.276"),
    quote="# d_k= 64 | 未缩放最大值: 0.891 | 缩放后最大值: 0.276",
    where="IX, L240",
    experiment="entropy",
)
def _s2_52() -> Outcome:
    return _sample(64, "0.891", "0.276")


@claim(
    "S2-53",
    says=Text(zh="脚本在 d_k = 256 打印 0.998 与 0.301", en="At d_k = 256 the script prints 0.998 and 0.301"),
    quote="# d_k=256 | 未缩放最大值: 0.998 | 缩放后最大值: 0.301",
    where="IX, L241",
    experiment="entropy",
)
def _s2_53() -> Outcome:
    return _sample(256, "0.998", "0.301")


def _shapes(d: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of Q and of the scores, as the script computes them."""
    import torch

    q, k = torch.from_numpy(generator("S2-54").standard_normal((2, 1, 10, d)))
    return tuple(q.shape), tuple(torch.matmul(q, k.transpose(-2, -1)).shape)


@claim(
    "S2-54",
    says=Text(
        zh="Q 的形状是 (1, 10, d_k)，分数的形状是 (1, 10, 10)", en="Q has shape (1, 10, d_k) and the scores (1, 10, 10)"
    ),
    quote="scores = torch.matmul(Q, K.transpose(-2, -1))  # (1, 10, 10)",
    where="IX, L220-224",
)
def _s2_54() -> Outcome:
    shapes = {d: _shapes(d) for d in drawn.DIMENSIONS}
    return Outcome.of(
        {f"d = {d}": pair == ((1, 10, d), (1, 10, 10)) for d, pair in shapes.items()},
        measured=", ".join(f"{q} → {s}" for q, s in shapes.values()),
        because={
            "holds": Text(
                zh="10 个查询各与 10 个键作点积，d 这一维经求和消去。",
                en="Each of 10 queries is dotted with 10 keys, and d is summed out.",
            )
        },
    )


@claim(
    "S2-55",
    says=Text(
        zh="未缩放时 d_k 越大，最大权重越接近 1", en="Unscaled, the largest weight gets closer to 1 as d_k grows"
    ),
    quote="$d_k$ 越大，最大权重越接近 1（one-hot）",
    where="IX, L245",
    experiment="entropy",
)
def _s2_55() -> Outcome:
    gap = {d: estimate(1.0 - drawn.plain(d).largest) for d in drawn.DIMENSIONS}
    return Outcome.of(
        {f"{a} → {b}": gap[b].below(gap[a].mean) for a, b in ((16, 64), (64, 256))},
        measured=Text(zh=f"1 − 最大权重：{by(gap, '.2g')}", en=f"1 − largest weight: {by(gap, '.2g')}"),
        because={
            "holds": Text(
                zh="分数越分散，最大的分数领先越多；但 d_k = 16 时最大权重就已接近 1。",
                en="The more the scores spread, the further the largest leads; but at d_k = 16 the largest weight is already close to 1.",
            )
        },
    )


@claim(
    "S2-56",
    says=Text(zh="缩放后最大权重保持稳定", en="Scaled, the largest weight stays stable"),
    quote="缩放：最大权重保持稳定（分布平滑）",
    where="IX, L246",
    experiment="entropy",
)
def _s2_56() -> Outcome:
    found = {d: estimate(drawn.scaled(d).largest) for d in drawn.DIMENSIONS}
    middle = math.fsum(x.mean for x in found.values()) / len(found)
    return Outcome.of(
        {f"d = {d}": x.agrees(middle, 0.03) for d, x in found.items()},
        measured=by(found, ".3f"),
        because={
            "holds": Text(
                zh=f"缩放后分数的分散程度不随 d_k 变化，100 个权重中最大的也就不变：它稳定在 {middle:.2f} 左右，而不是文中的 0.28–0.30。",
                en=f"Scaled scores spread alike at every d_k, and so does the largest of 100 weights: it stays at about "
                f"{middle:.2f}, not at the text's 0.28–0.30.",
            )
        },
    )
