"""Text 002, part VIII: the size of ∂L/∂Q against d_k, with and without scaling."""

from __future__ import annotations

import math

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate
from softscope.experiments.ledger.texts import query_gradients as grads
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by

_WIDTH = 64  # components of v: the same at every d, so the gradient reaching the weights does not change


def _mean(d: int, width: int, scaled: bool) -> Estimate:
    """The mean ‖∂L/∂q‖; its error counts matrices, since rows share their keys."""
    return estimate(grads.row_norms(d, width, scaled).mean(-1))


def _median(d: int, scaled: bool) -> float:
    return float(np.median(grads.row_norms(d, _WIDTH, scaled)))


def _powers(means: dict[int, Estimate]) -> list[float]:
    return grads.local_slopes({d: x.mean for d, x in means.items()})


_CLOSE = 2.0  # nats: the second key still has over a tenth of the weight that the first has


def _close_rows(d: int) -> tuple[float, float]:
    """The share of rows whose two largest scores are close, and the share of the gradient that these rows get."""
    norms, close = grads.row_norms(d, _WIDTH, False), grads.leads(d, _WIDTH) < _CLOSE
    return float(close.mean()), float(norms[close].sum() / norms.sum())


@claim(
    "S2-49",
    says=Text(zh="未缩放时 ‖∂L/∂Q‖ ∝ 1/d_k", en="Unscaled, ‖∂L/∂Q‖ is proportional to 1/d_k"),
    quote="未缩放：∂L/∂Q 范数 ∝ 1/d_k  （梯度消失）",
    where="VIII, L203",
    experiment="gradients",
)
def _s2_49() -> Outcome:
    means = {d: _mean(d, _WIDTH, False) for d in grads.DIMENSIONS}
    whole = {d: float(np.linalg.norm(grads.row_norms(d, _WIDTH, False), axis=-1).mean()) for d in grads.DIMENSIONS}
    wider = {d: _mean(d, d, False) for d in grads.DIMENSIONS}
    medians = {d: _median(d, False) for d in grads.DIMENSIONS}
    powers = {
        Text(zh="整个 Q", en="the whole of Q"): grads.local_slopes(whole),
        Text(zh=f"每行，平均值，v 有 {_WIDTH} 维", en=f"per row, mean, v with {_WIDTH} components"): _powers(means),
        Text(zh="每行，平均值，v 有 d 维", en="per row, mean, v with d components"): _powers(wider),
        Text(zh="每行，中位数", en="per row, median"): grads.local_slopes(medians),
    }
    first, last = min(means), max(means)
    close = {d: _close_rows(d) for d in (first, last)}
    rarer = {d: 100 * share for d, (share, _) in close.items()}
    return Outcome.of(
        {name: all(abs(power + 1.0) < 0.3 for power in found) for name, found in powers.items()},
        measured=Text(
            zh=f"每行 ‖∂L/∂q‖，v 有 {_WIDTH} 维：平均 {by(means, '.2f')}；中位数 {by(medians, '.2g')}；整个 Q {by(whole, '.0f')}；"
            f"v 有 d 维：平均 {by(wider, '.1f')}（{grads.MATRICES} 个矩阵，各 10 行）；前两名相差不到 {_CLOSE:g} 的行（%）：{by(rarer, '.0f')}",
            en=f"‖∂L/∂q‖ per row, v with {_WIDTH} components: mean {by(means, '.2f')}; median {by(medians, '.2g')}; the whole of Q "
            f"{by(whole, '.0f')}; v with d components: mean {by(wider, '.1f')} ({grads.MATRICES} matrices of 10 rows); rows whose "
            f"two largest scores are less than {_CLOSE:g} apart (%): {by(rarer, '.0f')}",
        ),
        because={
            "fails": Text(
                zh=f"只有前两名分数接近的行才让梯度通过；这样的行按 1/√d 变少（{rarer[first]:.0f}% → {rarer[last]:.0f}%，在 d = {last} 时占有全部梯度的 "
                f"{100 * close[last][1]:.0f}%），而键的长度按 √d 增长。两者相抵：平均值不降，典型的（中位数）行却没有了梯度。",
                en=f"Only rows whose two largest scores are close let gradient through. They become rarer like 1/√d ({rarer[first]:.0f}% → "
                f"{rarer[last]:.0f}%, holding {100 * close[last][1]:.0f}% of all gradient at d = {last}), while keys get longer like √d. The "
                f"two cancel: the mean stays, and the median row dies.",
            )
        },
        instead=Text(
            zh=f"未缩放时，‖∂L/∂Q‖ 的平均值不随 d_k 下降，只是集中到少数行：d_k 从 {first} 到 {last}，中位数的行从 {medians[first]:.2g} 降到 {medians[last]:.1g}",
            en=f"Unscaled, the mean ‖∂L/∂Q‖ does not fall with d_k but gathers in a few rows: from d_k = {first} to {last}, the median row "
            f"falls from {medians[first]:.2g} to {medians[last]:.1g}",
        ),
    )


@claim(
    "S2-50",
    says=Text(zh="缩放后 ‖∂L/∂Q‖ 大致是常数", en="Scaled, ‖∂L/∂Q‖ is roughly constant"),
    quote="缩放：  ∂L/∂Q 范数 ≈ 常数   （梯度稳定）",
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
        only_if=Text(zh="v 的维数不随 d 变化", en="v does not get wider with d"),
    )


@claim(
    "S2-58",
    says=Text(
        zh="缩放使梯度保持在合理范围，避免消失",
        en="Scaling keeps gradients in a reasonable range, so they do not vanish",
    ),
    quote="保持梯度在合理范围，避免梯度消失",
    where="Summary 2, L255",
    experiment="gradients",
)
def _s2_58() -> Outcome:
    medians = {d: _median(d, True) for d in grads.DIMENSIONS}
    plain = {d: _median(d, False) for d in grads.DIMENSIONS}
    traces = {d: drawn.scaled(d).trace for d in grads.DIMENSIONS}
    half = 0.5 * traces[64].mean
    # q and k have four times the standard deviation: every score is 16 times as large, while √d stays the same.
    grown = drawn.sharpness(64, 16.0 / math.sqrt(64)).trace
    flip = drawn.size_where(lambda x: -x.trace.mean, -half)
    return Outcome.of(
        under={
            Text(zh=f"q、k 的标准差为 1，d = {d}", en=f"q and k with standard deviation 1, d = {d}"): traces[d].above(
                half
            )
            and 0.5 < medians[d] / medians[16] < 2.0
            for d in grads.DIMENSIONS
        }
        | {Text(zh="q、k 的标准差为 4，d = 64", en="q and k with standard deviation 4, d = 64"): grown.above(half)},
        measured=Text(
            zh=f"‖∂L/∂q‖ 的中位数：缩放 {by(medians, '.2f')}；不缩放 {by(plain, '.2g')}；Σs(1−s)：标准差为 1 时 {traces[64]:.3f}，为 4 时 {grown:.3f}；"
            f"标准差到 {flip:.1f} 时减半",
            en=f"median ‖∂L/∂q‖: scaled {by(medians, '.2f')}; unscaled {by(plain, '.2g')}; Σs(1−s): {traces[64]:.3f} at standard deviation "
            f"1, {grown:.3f} at 4; halved at {flip:.1f}",
        ),
        because={
            "only-if": Text(
                zh=f"√d 是常数：分量的方差为 1 时，Σs(1−s) 在每个 d 下都是 {traces[64].mean:.2f} 左右，典型的行总有梯度；q、k 一变大，分数又会拉开，梯度又会变小。",
                en=f"√d is a constant: while the components have variance 1, Σs(1−s) is about {traces[64].mean:.2f} at every d and a typical "
                f"row gets a gradient; once q and k grow, the scores spread again and the gradient shrinks.",
            )
        },
        only_if=Text(
            zh=f"q 和 k 各分量的标准差保持在 1 左右；超过 {flip:.1f} 就减半",
            en=f"the components of q and k keep a standard deviation of about 1; above {flip:.1f} it is halved",
        ),
    )
