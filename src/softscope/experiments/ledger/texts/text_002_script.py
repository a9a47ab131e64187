"""Text 002, part IX: the script that prints the largest of 100 weights, and what it prints."""

from __future__ import annotations

import math

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator, half_unit, share
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by


def _as_low_as(largest: np.ndarray, stated: str) -> Estimate:
    """The share of runs that print this number or a smaller one."""
    return share(largest < float(stated) + half_unit(stated))


def _sample(d: int, plain: str, scaled: str) -> Outcome:
    """Whether a run could plausibly print these two numbers: more than 1 run in 100 goes that low."""
    runs = {"plain": (drawn.plain(d).largest, plain), "scaled": (drawn.scaled(d).largest, scaled)}
    low = {name: _as_low_as(*pair) for name, pair in runs.items()}
    means = {name: estimate(x) for name, (x, _) in runs.items()}
    return Outcome.of(
        {
            Text(zh=f"未缩放 {plain}", en=f"unscaled {plain}"): low["plain"].above(0.01),
            Text(zh=f"缩放后 {scaled}", en=f"scaled {scaled}"): low["scaled"].above(0.01),
        },
        measured=Text(
            zh=f"平均打印 {means['plain']:.4f} 与 {means['scaled']:.3f}（{drawn.matrices(d)} 次）",
            en=f"prints {means['plain']:.4f} and {means['scaled']:.3f} on average ({drawn.matrices(d)} runs)",
        ),
        because={
            "fails": Text(
                zh=f"{100 * low['plain'].mean:.2f}% 的运行打印 ≤ {plain}，{100 * low['scaled'].mean:.2f}% 打印 ≤ {scaled}：这段脚本几乎从不打印这么小的数。",
                en=f"{100 * low['plain'].mean:.2f}% of runs print {plain} or less, and {100 * low['scaled'].mean:.2f}% print {scaled} or "
                f"less: the script hardly ever prints numbers this low.",
            )
        },
    )


@claim(
    "S2-51",
    says=Text(zh="脚本在 d_k = 16 打印 0.342 与 0.289", en="At d_k = 16 the script prints 0.342 and 0.289"),
    where="IX, L238-239",
    experiment="entropy",
)
def _s2_51() -> Outcome:
    return _sample(16, "0.342", "0.289")


@claim(
    "S2-52",
    says=Text(zh="脚本在 d_k = 64 打印 0.891 与 0.276", en="At d_k = 64 the script prints 0.891 and 0.276"),
    where="IX, L240",
    experiment="entropy",
)
def _s2_52() -> Outcome:
    return _sample(64, "0.891", "0.276")


@claim(
    "S2-53",
    says=Text(zh="脚本在 d_k = 256 打印 0.998 与 0.301", en="At d_k = 256 the script prints 0.998 and 0.301"),
    where="IX, L241",
    experiment="entropy",
)
def _s2_53() -> Outcome:
    return _sample(256, "0.998", "0.301")


@claim(
    "S2-54",
    says=Text(
        zh="Q 的形状是 (1, 10, d_k)，分数的形状是 (1, 10, 10)", en="Q has shape (1, 10, d_k) and the scores (1, 10, 10)"
    ),
    where="IX, L220-224",
)
def _s2_54() -> Outcome:
    import torch

    shapes = {}
    for d in drawn.DIMENSIONS:
        q, k = torch.from_numpy(generator("S2-54").standard_normal((2, 1, 10, d)))
        shapes[d] = tuple(q.shape), tuple(torch.matmul(q, k.transpose(-2, -1)).shape)
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
                zh=f"它稳定在 {middle:.2f} 左右，而不是文中的 0.28–0.30。",
                en=f"It stays at about {middle:.2f}, not at the text's 0.28–0.30.",
            )
        },
    )
