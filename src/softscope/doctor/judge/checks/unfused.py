"""SS010: attention that materialises every logit where a fused kernel would not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.history_view import Head
from softscope.doctor.judge.thresholds import FEW_KEYS

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import HistoryView


def _judge(view: HistoryView, site: Head) -> Judgement:
    here = view.site(site)
    if here.fused:
        return None
    keys = max((view.value("count", Head(site.site, j)) or 0.0 for j in range(here.heads)), default=0.0)
    if keys < FEW_KEYS.value:
        return Absent(
            "not-applicable",
            Text(
                zh=f"键不到 {FEW_KEYS.value} 个，把分数写进内存花费不大",
                en=f"with fewer than {FEW_KEYS.value} keys, materialising the logits costs little",
            ),
        )
    return Fired(
        Text(
            zh=f"每个分数都写进了内存（平均 {keys:.0f} 个可见的键）",
            en=f"every logit is written to memory ({keys:.0f} visible keys on average)",
        ),
        {"keys": keys},
    )


CHECK = Check(
    code="SS010",
    title=Text(zh="注意力没有融合", en="Unfused attention"),
    severity="tip",
    asks=Text(zh="注意力有没有把整个分数矩阵写进内存？", en="Does attention materialise its whole score matrix?"),
    thresholds=(FEW_KEYS,),
    remedy=Text(
        zh="用 scaled_dot_product_attention；nn.MultiheadAttention 传 need_weights=False；Hugging Face 用 "
        'attn_implementation="sdpa"',
        en="use scaled_dot_product_attention; in nn.MultiheadAttention, pass need_weights=False; in Hugging "
        'Face, set attn_implementation="sdpa"',
    ),
    judge=_judge,
    of_sites=True,
)
