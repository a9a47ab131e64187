"""SS012: the run went NaN; readings taken since then mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Check, Fired, Judgement, unseen
from softscope.doctor.judge.thresholds import NOT_A_NUMBER

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, site: Head) -> Judgement:
    if not view.history.snapshots:
        return unseen("sharpness")
    since = view.broken(site.site)
    if since is None:
        return None
    return Fired(
        Text(
            zh=f"从第 {since} 步起，损失或这里的读数是 NaN 或无穷，此后无法判断",
            en=f"since step {since} the loss or the readings here have been NaN or infinite; nothing can be "
            f"judged after that",
        ),
        {"since": float(since)},
    )


CHECK = Check(
    code="SS012",
    title=Text(zh="出现 NaN 或无穷", en="NaN or infinite values"),
    severity="finding",
    asks=Text(zh="损失和读数还是有限的数吗？", en="Are the loss and the readings still finite?"),
    thresholds=(NOT_A_NUMBER,),
    remedy=Text(
        zh="回到那一步之前的检查点；检查输入和权重里有没有 NaN，降低学习率或裁剪梯度；半精度下看 SS008",
        en="go back to a checkpoint before that step; look for NaN in the inputs and weights, and lower the "
        "learning rate or clip gradients; in half precision, see SS008",
    ),
    judge=_judge,
    of_sites=True,
)
