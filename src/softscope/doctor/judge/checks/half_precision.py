"""SS008: logits that overflow float16, or rows that become NaN in a half-precision backward pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement, unseen
from softscope.doctor.judge.thresholds import HALF_LARGEST, HALF_NEAR, LSE_LOWEST

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView

HALVES = ("float16", "bfloat16")


def _judge(view: HistoryView, head: Head) -> Judgement:
    site = view.site(head)
    dtype = site.dtype.removeprefix("torch.")
    if dtype not in HALVES:
        return Absent("not-applicable", Text(zh=f"这里用 {dtype} 计算", en=f"it computes in {dtype}"))
    logits, lowest = view.curve("max_logit", head)[1], view.curve("lse_min", head)[1]
    if not len(logits) and not len(lowest):
        return unseen("max_logit", "lse_min")
    if len(lowest) and lowest.min() < LSE_LOWEST.value:
        low = float(lowest.min())
        return Fired(
            Text(
                zh=f"有一行的 log-sum-exp 是 {low:.1f}，低于 {LSE_LOWEST.value:.1f}：反向传播可能得到 NaN",
                en=f"one row's log-sum-exp is {low:.1f}, below {LSE_LOWEST.value:.1f}: the backward pass may give NaN",
            ),
            {"lse_min": low},
        )
    if dtype != "float16" or math.isnan(site.scale) or site.scale == 0.0 or not len(logits):
        return None  # bfloat16 has the range of float32
    raw = float(logits.max()) / abs(site.scale)
    if raw <= HALF_NEAR * HALF_LARGEST.value:
        return None
    return Fired(
        Text(
            zh=f"缩放前的 q·k 到了 {raw:.0f}，float16 最大是 {HALF_LARGEST.value:.0f}",
            en=f"q·k before its scale reaches {raw:.0f}; float16 ends at {HALF_LARGEST.value:.0f}",
        ),
        {"raw_logit": raw},
        None if raw > HALF_LARGEST.value else "tip",
    )


CHECK = Check(
    code="SS008",
    title=Text(zh="半精度上溢或下溢", en="Half-precision overflow or underflow"),
    severity="finding",
    asks=Text(zh="float16 或 bfloat16 装得下分数吗？", en="Can float16 or bfloat16 hold the logits?"),
    thresholds=(HALF_LARGEST, LSE_LOWEST),
    remedy=Text(
        zh="先缩放 q 再做乘积，或改用 bfloat16；分数太大本身要治：QK 归一化或 QK-clip",
        en="scale q before the product, or use bfloat16; and cure the large logits themselves: QK-norm or QK-clip",
    ),
    judge=_judge,
)
