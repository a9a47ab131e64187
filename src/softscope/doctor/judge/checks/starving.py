"""SS001: a head that is sharp on the wrong keys and cut off from the gradient that would move it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.states import NO_LOSS
from softscope.doctor.judge.thresholds import IN_A_ROW, MANY, OFFSET, RIGHT, SATISFIED, SINK

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, head: Head) -> Judgement:
    found = view.states[head]
    if found.state == "unjudged":
        return Absent("not-applicable", found.why or NO_LOSS)
    if found.state != "starving":
        return None
    figures = f"{found.advantage:.2f} ± {found.error:.2f}".replace("-", "−")
    tried = Text(zh="", en="")
    if found.trial is not None:
        effect = f"{found.trial.softened.change:+.3g} ± {found.trial.softened.error:.2g}".replace("-", "−")
        tried = Text(zh=f"；试着变柔和，损失变化 {effect}", en=f"; made softer, the loss changes by {effect}")
    return Fired(
        Text(
            zh=f"{found.blocked:.0%} 的行被阻断（自第 {found.since} 步起），读的键不比任取一个好："
            f"优势 {figures}{tried.zh}",
            en=f"{found.blocked:.0%} of its rows are blocked (since step {found.since}), and the keys they read "
            f"are no better than any other: advantage {figures}{tried.en}",
        ),
        {"blocked": found.blocked, "advantage": found.advantage, "advantage_error": found.error},
    )


CHECK = Check(
    code="SS001",
    title=Text(zh="饥饿的头", en="Starving head"),
    severity="finding",
    asks=Text(
        zh="有没有头卡在错误的键上，梯度又到不了它？",
        en="Is a head stuck on the wrong keys, with no gradient to move it?",
    ),
    thresholds=(MANY, IN_A_ROW, RIGHT, SATISFIED, SINK, OFFSET),
    remedy=Text(
        zh="让分数的标准差回到 1 左右：乘以 1/√d，或从头训练并用单位长的 QK 归一化，或减小初始化",
        en="bring the standard deviation of the logits back to about 1: scale by 1/√d, train from scratch with "
        "unit QK-norm, or use a smaller initialisation",
    ),
    judge=_judge,
)
