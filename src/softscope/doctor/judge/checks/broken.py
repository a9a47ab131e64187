"""SS012: the run went NaN; readings taken since then mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Check, Fired, Judgement, unseen
from softscope.doctor.judge.nan_cause import nan_cause
from softscope.doctor.judge.thresholds import HALF_LARGEST, NOT_A_NUMBER

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, site: Head) -> Judgement:
    if not view.history.snapshots:
        return unseen("sharpness")
    since = view.broken(site.site)
    if since is None:
        return None
    why, values = nan_cause(view, site.site)
    return Fired(
        Text(
            zh=f"从第 {since} 步起，损失或这里的读数是 NaN 或无穷，此后无法判断；{why.zh}",
            en=f"since step {since} the loss or the readings here have been NaN or infinite; nothing can be "
            f"judged after that; {why.en}",
        ),
        {"since": float(since), **values},
    )


CHECK = Check(
    code="SS012",
    title=Text(zh="出现 NaN 或无穷", en="NaN or infinite values"),
    severity="finding",
    asks=Text(zh="损失和读数还是有限的数吗？", en="Are the loss and the readings still finite?"),
    thresholds=(NOT_A_NUMBER, HALF_LARGEST),
    remedy=Text(
        zh="回到那一步之前的检查点。float16 溢出：先缩放 q 再相乘，或改用 bfloat16。其他情形：检查输入和权重里有没有 "
        "NaN，降低学习率或裁剪梯度",
        en="go back to a checkpoint before that step. If float16 overflowed, scale q before the product or use "
        "bfloat16. Otherwise look for NaN in the inputs and weights, and lower the learning rate or clip gradients",
    ),
    judge=_judge,
    of_sites=True,
)
