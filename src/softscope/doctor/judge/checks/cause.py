"""SS011: why a sick head has large logits: the scale, the norms of q and k, or their alignment."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks import growing, outlier, starving, suspected
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement, unseen
from softscope.doctor.judge.thresholds import ALIGNED, SCALE, freezing

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView

SICK = (starving.CHECK, suspected.CHECK, growing.CHECK, outlier.CHECK)
CAUSES: dict[str, Text] = {
    "scale": Text(zh="缩放", en="the scale"),
    "norms": Text(zh="q、k 的长度", en="the norms of q and k"),
    "alignment": Text(zh="q、k 方向一致", en="the alignment of q and k"),
}


def _judge(view: HistoryView, head: Head) -> Judgement:
    if not any(isinstance(check.judge(view, head), Fired) for check in SICK):
        return Absent("not-applicable", Text(zh="这个头没有需要解释的问题", en="this head has no problem to explain"))
    site = view.site(head)
    q, k, cosine = (view.value(name, head) for name in ("q_norm", "k_norm", "cosine"))
    if q is None or k is None or cosine is None or math.isnan(site.scale) or not site.head_size:
        return unseen("q_norm, k_norm, cosine, scale")
    found = causes(site.scale, site.head_size, q, k, cosine, view.value("count", head) or 2.0)
    if not found:
        return None
    figures = (
        f"|q| {q:.1f}, |k| {k:.1f}, √d {math.sqrt(site.head_size):.1f}, |cos| {cosine:.3f}, scale {site.scale:.3g}"
    )
    return Fired(
        Text(
            zh=f"分数大的原因：{'、'.join(CAUSES[name].zh for name in found)}（{figures}）",
            en=f"its logits are large because of {' and '.join(CAUSES[name].en for name in found)} ({figures})",
        ),
        {"q_norm": q, "k_norm": k, "cosine": cosine, **dict.fromkeys(found, 1.0)},
    )


def causes(scale: float, d: int, q: float, k: float, cosine: float, n: float) -> list[str]:
    """Which of the three factors of a logit, scale · |q||k| · cos, is outside its ordinary range.

    Ordinary values are 1/√d for the scale, √d for each norm, and the |cos| of random directions. A factor is a cause if
    it alone would freeze the head with the other factors ordinary.

    >>> causes(1.0, 256, 16.0, 16.0, 0.05, 16), causes(1 / 16, 256, 480.0, 16.0, 0.05, 16)
    (['scale'], ['norms'])
    """
    found = []
    if scale * math.sqrt(d) > SCALE.value:
        found.append("scale")
    if q * k / d > freezing(n):  # the spread of scaled logits for random directions
        found.append("norms")
    if cosine > ALIGNED.value * math.sqrt(2.0 / (math.pi * d)):
        found.append("alignment")
    return found


CHECK = Check(
    code="SS011",
    title=Text(zh="分数为什么大", en="Why the logits are large"),
    severity="informative",
    asks=Text(
        zh="分数大，是因为缩放、q 和 k 的长度，还是它们的方向？",
        en="Are the logits large because of the scale, the norms of q and k, or their alignment?",
    ),
    thresholds=(SCALE, ALIGNED),
    remedy=Text(
        zh="缩放：乘以 1/√d。长度：用 QK 归一化、QK-clip 或降低学习率。方向：给这个头一个温度",
        en="scale: multiply by 1/√d. Norms: use QK-norm, QK-clip or a lower learning rate. Alignment: give this "
        "head a temperature",
    ),
    judge=_judge,
)
