"""SS015: tokens read padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.thresholds import EXACT

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView

INVERTED = 0.95  # of the weight: the tokens are hidden


def _judge(view: HistoryView, site: Head) -> Judgement:
    found = view.of_site("padding", site.site)
    if not len(found):
        return Absent(
            "not-applicable",
            Text(
                zh="批次没有填充，或没有用 attention_mask 说明",
                en="the batch has no padding, or no attention_mask that says so",
            ),
        )
    weight = float(np.nanmax(found))
    if weight <= EXACT.value:
        return None
    told = Text(zh=f"填充占 {weight:.2g} 的权重", en=f"padding holds {weight:.2g} of the weight")
    if weight >= INVERTED:
        told = Text(zh=told.zh + "：掩码像是反了", en=told.en + ", as if the mask were inverted")
    return Fired(told, {"padding": weight})


CHECK = Check(
    code="SS015",
    title=Text(zh="读到了填充", en="Padding is read"),
    severity="finding",
    asks=Text(zh="有没有权重落在填充上？", en="Does any weight lie on padding?"),
    thresholds=(EXACT,),
    remedy=Text(
        zh="把 attention_mask 传到每一层；检查它的形状（批次、1、1、键）和约定（1 是 token，还是 True 是填充）",
        en="pass the attention_mask on to every layer; check its shape (batch, 1, 1, keys) and its convention (1 for "
        "tokens, or True for padding)",
    ),
    judge=_judge,
    of_sites=True,
)
