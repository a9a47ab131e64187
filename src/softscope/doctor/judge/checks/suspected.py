"""SS013: a head whose readings look stuck, but that no trial has decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.checks.starving import told
from softscope.doctor.judge.states import NO_LOSS, NOT_TRIED
from softscope.doctor.judge.thresholds import ENOUGH_ROWS, ERRORS, IN_A_ROW, MANY, OFFSET, RIGHT, SATISFIED, SINK

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.judge.states import HeadState


def _judge(view: HistoryView, head: Head) -> Judgement:
    found = view.states[head]
    if found.state == "unjudged":
        return Absent("not-applicable", found.why or NO_LOSS)
    if found.state != "suspected":
        return None
    keys, why = reads(found), found.why or NOT_TRIED
    tried = None if found.trial is None else told(found.trial)
    figures = Text(zh="", en="") if tried is None else Text(zh=f"：{tried.zh}", en=f": {tried.en}")
    return Fired(
        Text(
            zh=f"{found.blocked:.0%} 的行被阻断（自第 {found.since} 步起），{keys.zh}；{why.zh}{figures.zh}",
            en=f"{found.blocked:.0%} of its rows are blocked (since step {found.since}), and {keys.en}; "
            f"{why.en}{figures.en}",
        ),
        {"blocked": found.blocked, "advantage": found.advantage, "advantage_error": found.error},
    )


def reads(found: HeadState) -> Text:
    """How good the keys are that the blocked rows read, in words that the advantage bears out."""
    figures = f"{found.advantage:.2f} ± {found.error:.2f}".replace("-", "−")
    if found.advantage - ERRORS * found.error > 0.0:
        return Text(
            zh=f"它们读的键只比任取一个好一点：优势 {figures}",
            en=f"the keys they read are only a little better than any other: advantage {figures}",
        )
    return Text(
        zh=f"看不出它们读的键比任取一个好：优势 {figures}",
        en=f"the keys they read are not seen to be better than any other: advantage {figures}",
    )


CHECK = Check(
    code="SS013",
    title=Text(zh="可疑的头", en="Suspected head"),
    severity="tip",
    asks=Text(
        zh="有没有头看上去卡住了，却没有试过，或试了仍说不准？",
        en="Does a head look stuck that was not tried, or that the trial left open?",
    ),
    thresholds=(MANY, IN_A_ROW, ENOUGH_ROWS, RIGHT, SATISFIED, SINK, OFFSET),
    remedy=Text(
        zh="试一试：scope.trial(批次)，或用 softscope checkup 给出模型、批次和损失；说不准就用更大的批次。"
        "学习率高的模型里，这样的头常常是有用的",
        en="try it: scope.trial(batch), or softscope checkup with model, batch and loss; if that leaves it open, use a "
        "larger batch. In models trained at a high rate, such heads are often useful",
    ),
    judge=_judge,
)
