"""SS003: the largest logit is too large, or is growing towards that without a plateau."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.checks.base import Check, Fired, Judgement, unseen
from softscope.doctor.judge.thresholds import GROWTH_READINGS, LOGIT_HIGH, LOGIT_UNSTABLE, STEADY

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.read.snapshot import Array


def _judge(view: HistoryView, head: Head) -> Judgement:
    steps, logits = view.curve("max_logit", head)
    if not len(logits):
        return unseen("max_logit")
    level = float(logits[-1])
    rate = steady_rate(steps, logits)
    values = {"max_logit": level} | ({} if rate is None else {"rate": rate})
    if level > LOGIT_UNSTABLE.value:
        return Fired(
            Text(
                zh=f"最大分数是 {level:.0f}，超过 {LOGIT_UNSTABLE.value:.0f}：训练会不稳定",
                en=f"its largest logit is {level:.0f}, above {LOGIT_UNSTABLE.value:.0f}: training is unstable at "
                f"this level",
            ),
            values,
        )
    if rate is not None:
        left = LOGIT_HIGH.value - level
        length = float(steps[-1] - steps[0])
        if left <= 0.0:
            return Fired(
                Text(
                    zh=f"最大分数是 {level:.0f}，仍以每百步 {100 * rate:.2g} 的速度增长，没有平台",
                    en=f"its largest logit is {level:.0f} and still grows by {100 * rate:.2g} per 100 steps, "
                    f"with no plateau",
                ),
                values,
            )
        if left / rate <= length:
            at = int(steps[-1] + left / rate)
            return Fired(
                Text(
                    zh=f"最大分数是 {level:.0f}，每百步增长 {100 * rate:.2g}，没有平台；照此约在第 {at} 步超过 "
                    f"{LOGIT_HIGH.value:.0f}",
                    en=f"its largest logit is {level:.0f} and grows by {100 * rate:.2g} per 100 steps with no "
                    f"plateau; at this rate it will pass {LOGIT_HIGH.value:.0f} around step {at}",
                ),
                values,
            )
    if level > LOGIT_HIGH.value:
        return Fired(
            Text(
                zh=f"最大分数是 {level:.0f}，超过 {LOGIT_HIGH.value:.0f}，但没有看到它持续增长",
                en=f"its largest logit is {level:.0f}, above {LOGIT_HIGH.value:.0f}, but no steady growth was seen",
            ),
            values,
            "tip",
        )
    return None


def steady_rate(steps: Array, logits: Array) -> float | None:
    """Growth per step late in the run (second half, last third); None if it has slowed or readings are too few.

    >>> import numpy as np
    >>> steady_rate(np.arange(8), 2.0 * np.arange(8)), steady_rate(np.arange(8), np.sqrt(np.arange(8.0)))
    (2.0, None)
    """
    if len(logits) < GROWTH_READINGS.value or not np.isfinite(logits).all():
        return None
    half, third = len(logits) // 2, len(logits) * 2 // 3
    parts = (slice(half), slice(half, None), slice(third, None))  # one jump in the second half is not steady growth
    early, *late = (float(np.polyfit(steps[part], logits[part], 1)[0]) for part in parts)
    rate = round(min(late), 9)  # absorbs the rounding error of a straight line
    return rate if rate > 0.0 and rate >= STEADY.value * early else None


CHECK = Check(
    code="SS003",
    title=Text(zh="分数过大或持续增长", en="Large or growing logits"),
    severity="finding",
    asks=Text(
        zh="最大的分数是不是过大，或者一直在增长？", en="Is the largest logit too large, or growing without a plateau?"
    ),
    thresholds=(LOGIT_HIGH, LOGIT_UNSTABLE, STEADY, GROWTH_READINGS),
    remedy=Text(
        zh="从头训练：用 QK 归一化；训练途中：用 QK-clip 或降低学习率",
        en="when training from scratch, use QK-norm; mid-run, use QK-clip or a lower learning rate",
    ),
    judge=_judge,
)
