"""SS007: a head that still attends to all keys equally after a long training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement, unseen
from softscope.doctor.judge.states import NO_LOSS, stays_uniform
from softscope.doctor.judge.thresholds import ENOUGH_STEPS, UNIFORM

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, head: Head) -> Judgement:
    if not view.has_loss:
        return Absent("not-applicable", NO_LOSS)
    steps, sharpness = view.curve("sharpness", head)
    if not len(steps):
        return unseen("sharpness")
    length = int(steps[-1] - steps[0])
    if length < ENOUGH_STEPS.value:
        few = int(ENOUGH_STEPS.value)
        return Absent(
            "not-applicable",
            Text(zh=f"训练不到 {few} 步，均匀是正常的", en=f"fewer than {few} steps: uniform is normal this early"),
        )
    if not stays_uniform(view, head):
        return None
    top = float(sharpness[2 * (steps - steps[0]) >= length].max())
    return Fired(
        Text(
            zh=f"训练了 {length} 步，后半段里尖锐度从未超过 {top:.4f}",
            en=f"its sharpness never exceeded {top:.4f} in the second half of {length} steps",
        ),
        {"sharpness": top},
    )


CHECK = Check(
    code="SS007",
    title=Text(zh="始终均匀的头", en="Head that stays uniform"),
    severity="tip",
    asks=Text(
        zh="训练了很久，有没有头仍对所有的键一视同仁？",
        en="After long training, does a head still read all keys equally?",
    ),
    thresholds=(UNIFORM, ENOUGH_STEPS),
    remedy=Text(
        zh="求平均可能有用；如果没有用，检查缩放是否太小，键很多时用可伸缩 softmax（s·log n），或剪掉这个头",
        en="averaging can be useful; if it is not, check whether the scale is too small, use scalable softmax "
        "(s·log n) if there are very many keys, or prune the head",
    ),
    judge=_judge,
)
