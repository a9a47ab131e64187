"""Text 002, part VIII: the size of ∂L/∂Q against d_k, with and without scaling."""

from __future__ import annotations

import math

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate
from softscope.experiments.ledger.texts import query_gradients as grads
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by, listed

_WIDTH = 64  # components of v: the same at every d, so the gradient reaching the weights does not change


def _mean(d: int, width: int, scaled: bool) -> Estimate:
    """The mean ‖∂L/∂q‖; its error counts matrices, since rows share their keys."""
    return estimate(grads.row_norms(d, width, scaled).mean(-1))


def _median(d: int, scaled: bool) -> float:
    return float(np.median(grads.row_norms(d, _WIDTH, scaled)))


def _powers(means: dict[int, Estimate]) -> list[float]:
    return grads.local_slopes({d: x.mean for d, x in means.items()})


@claim(
    "S2-49",
    says=Text(zh="未缩放时 ‖∂L/∂Q‖ ∝ 1/d_k", en="Unscaled, ‖∂L/∂Q‖ is proportional to 1/d_k"),
    where="VIII, L203",
    experiment="gradients",
)
def _s2_49() -> Outcome:
    means = {d: _mean(d, _WIDTH, False) for d in grads.DIMENSIONS}
    wider = {d: _mean(d, d, False) for d in grads.DIMENSIONS}
    medians = {d: _median(d, False) for d in grads.DIMENSIONS}
    powers = {
        Text(zh=f"平均值，v 有 {_WIDTH} 维", en=f"mean, v with {_WIDTH} components"): _powers(means),
        Text(zh="平均值，v 有 d 维", en="mean, v with d components"): _powers(wider),
        Text(zh="中位数", en="median"): grads.local_slopes(medians),
    }
    falling = grads.local_slopes(medians)
    largest = max(means)
    norms = np.sort(grads.row_norms(largest, _WIDTH, False).ravel())
    top = float(norms[-len(norms) // 10 :].sum() / norms.sum())
    return Outcome.of(
        {name: all(abs(power + 1.0) < 0.3 for power in found) for name, found in powers.items()},
        measured=Text(
            zh=f"每行 ‖∂L/∂q‖，v 有 {_WIDTH} 维：平均 {by(means, '.2f')}；中位数 {by(medians, '.2g')}；"
            f"v 有 d 维：平均 {by(wider, '.1f')}（{grads.MATRICES} 个矩阵，各 10 行）",
            en=f"‖∂L/∂q‖ per row, v with {_WIDTH} components: mean {by(means, '.2f')}; median {by(medians, '.2g')}; "
            f"v with d components: mean {by(wider, '.1f')} ({grads.MATRICES} matrices of 10 rows)",
        ),
        because={
            "fails": Text(
                zh=f"平均值不降反升，中位数先慢后快地下降（相邻两个 d 之间的幂指数 {listed(falling, '.1f')}）："
                f"d = {largest} 时，最大的 10% 的行占总和的 {100 * top:.0f}%。",
                en=f"If anything, the mean grows; the median falls slowly at first, then faster (exponents between neighbouring d: "
                f"{listed(falling, '.1f')}). At d = {largest} the largest 10% of rows hold {100 * top:.0f}% of the total.",
            )
        },
    )


@claim(
    "S2-50",
    says=Text(zh="缩放后 ‖∂L/∂Q‖ 大致是常数", en="Scaled, ‖∂L/∂Q‖ is roughly constant"),
    where="VIII, L204",
    experiment="gradients",
)
def _s2_50() -> Outcome:
    same = {d: _mean(d, _WIDTH, True) for d in grads.DIMENSIONS}
    wider = {d: _mean(d, d, True) for d in grads.DIMENSIONS}
    power = math.log(wider[1024].mean / wider[16].mean) / math.log(1024 / 16)
    return Outcome.of(
        under={
            Text(zh=f"v 有 {_WIDTH} 维", en=f"v has {_WIDTH} components"): all(
                x.agrees(same[64].mean, 0.3) for x in same.values()
            ),
            Text(zh="v 有 d 维", en="v has d components"): all(x.agrees(wider[64].mean, 0.3) for x in wider.values()),
        },
        measured=Text(
            zh=f"v 有 {_WIDTH} 维时 {by(same, '.2f')}；v 有 d 维时 {by(wider, '.2f')}",
            en=f"v with {_WIDTH} components {by(same, '.2f')}; v with d components {by(wider, '.2f')}",
        ),
        because={
            "only-if": Text(
                zh=f"缩放使 softmax 的导数不随 d 变化；若 v 也随 d 变宽，到达权重的梯度就变大，‖∂L/∂q‖ 按 d^{power:.2f} 增长。",
                en=f"Scaling makes the softmax's derivative independent of d; if v also widens with d, more gradient reaches the "
                f"weights and ‖∂L/∂q‖ grows like d^{power:.2f}.",
            )
        },
        only_if=Text(
            zh="到达权重的梯度本身不随 d 变化", en="the gradient reaching the weights does not itself change with d"
        ),
    )


@claim(
    "S2-58",
    says=Text(
        zh="缩放使梯度保持在合理范围，避免消失",
        en="Scaling keeps gradients in a reasonable range, so they do not vanish",
    ),
    where="Summary 2, L255",
    experiment="gradients",
)
def _s2_58() -> Outcome:
    medians = {d: _median(d, True) for d in grads.DIMENSIONS}
    plain = {d: _median(d, False) for d in grads.DIMENSIONS}
    traces = {d: drawn.scaled(d).trace for d in grads.DIMENSIONS}
    # q and k have four times the standard deviation: every score is 16 times as large, while √d stays the same.
    grown = drawn.sharpness(64, 16.0 / math.sqrt(64)).trace
    return Outcome.of(
        under={
            Text(zh=f"中位数，d = {d}", en=f"median, d = {d}"): 0.5 < x / medians[16] < 2.0 for d, x in medians.items()
        }
        | {f"Σs(1−s), d = {d}": x.above(0.7) for d, x in traces.items()}
        | {Text(zh="Σs(1−s)，q、k 的标准差为 4", en="Σs(1−s), q and k with standard deviation 4"): grown.above(0.7)},
        measured=Text(
            zh=f"‖∂L/∂q‖ 的中位数：缩放 {by(medians, '.2f')}；不缩放 {by(plain, '.2g')}；Σs(1−s)，q、k 的标准差为 4 时 {grown:.3f}",
            en=f"median ‖∂L/∂q‖: scaled {by(medians, '.2f')}; unscaled {by(plain, '.2g')}; Σs(1−s) when q and k have "
            f"standard deviation 4: {grown:.3f}",
        ),
        because={
            "only-if": Text(
                zh=f"q、k 的分量方差为 1 时，Σs(1−s) 在每个 d 下都是 {traces[64].mean:.2f} 左右，典型的行总有梯度；q、k 变大后，它又会变小。",
                en=f"When the components of q and k have variance 1, Σs(1−s) is about {traces[64].mean:.2f} at every d, and a "
                f"typical row always gets a gradient; once q and k grow, it shrinks again.",
            )
        },
        only_if=Text(zh="q 和 k 各分量的方差保持在 1 左右", en="the components of q and k keep a variance of about 1"),
    )
