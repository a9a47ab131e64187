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
        return Absent("not-applicable", Text(zh=f"这一层用 {dtype} 计算", en=f"this layer computes in {dtype}"))
    logits, lowest = view.curve("max_logit", head)[1], view.curve("lse_min", head)[1]
    if not len(logits) and not len(lowest):
        return unseen("max_logit", "lse_min")
    if len(lowest) and lowest.min() < LSE_LOWEST.value:
        low = float(lowest.min())
        return Fired(
            Text(
                zh=f"有一行的 log-sum-exp 是 {low:.1f}，低于 {LSE_LOWEST.value:.1f}：反向传播可能出现 NaN",
                en=f"one row has a log-sum-exp of {low:.1f}, below {LSE_LOWEST.value:.1f}: the backward pass may "
                f"give NaN",
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
            zh=f"缩放前的 q·k 达到 {raw:.0f}，而 float16 最大是 {HALF_LARGEST.value:.0f}",
            en=f"q·k reaches {raw:.0f} before scaling; the float16 maximum is {HALF_LARGEST.value:.0f}",
        ),
        {"raw_logit": raw},
        None if raw > HALF_LARGEST.value else "tip",
    )


CHECK = Check(
    code="SS008",
    title=Text(zh="半精度溢出风险", en="Half-precision overflow risk"),
    severity="finding",
    asks=Text(
        zh="用 float16 或 bfloat16 计算，前向或反向会溢出吗？",
        en="In float16 or bfloat16, can the forward or backward pass overflow?",
    ),
    thresholds=(HALF_LARGEST, LSE_LOWEST),
    remedy=Text(
        zh="先缩放 q 再相乘，或改用 bfloat16；还要用 QK 归一化或 QK-clip 把过大的分数降下来",
        en="scale q before the product, or use bfloat16; also bring large logits down with QK-norm or QK-clip",
    ),
    judge=_judge,
)
