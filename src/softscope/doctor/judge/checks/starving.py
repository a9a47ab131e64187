"""SS001: a head that is stuck, and that a trial has shown to be of no use as it is and better softer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.states import NO_LOSS
from softscope.doctor.judge.thresholds import ENOUGH_ROWS, IN_A_ROW, MANY, OFFSET, RIGHT, SATISFIED, SINK, TRIED

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.read.head_trial import HeadTrial


def _judge(view: HistoryView, head: Head) -> Judgement:
    found = view.states[head]
    if found.state == "unjudged":
        return Absent("not-applicable", found.why or NO_LOSS)
    if found.state == "suspected":
        return Absent("not-applicable", Text(zh="没有试出结果，见 SS013", en="no trial has decided it; see SS013"))
    if found.state != "starving" or found.trial is None:
        return None
    tried = told(found.trial)
    return Fired(
        Text(
            zh=f"{found.blocked:.0%} 的行被阻断（自第 {found.since} 步起）。试过：{tried.zh}",
            en=f"{found.blocked:.0%} of its rows are blocked (since step {found.since}). Tried: {tried.en}",
        ),
        {
            "blocked": found.blocked, "advantage": found.advantage, "advantage_error": found.error,
            "uniform": found.trial.uniform.change, "uniform_error": found.trial.uniform.error,
            "softened": found.trial.softened.change, "softened_error": found.trial.softened.error,
        },
    )  # fmt: skip


def told(trial: HeadTrial) -> Text:
    """The figures of a trial in words."""
    uniform, softened = trial.uniform.text.en, trial.softened.text.en
    found = Text(
        zh=f"变均匀，损失变化 {uniform}；变柔和，变化 {softened}",
        en=f"made uniform, the loss changes by {uniform}; made softer, by {softened}",
    )
    if trial.slope is None:
        return found
    slope = trial.slope.text.en
    if trial.would_learn:
        more = Text(
            zh=f"；变柔和之后，它的梯度使损失下降（斜率 {slope}）",
            en=f"; once softer, its gradient points the loss down (slope {slope})",
        )
    else:
        more = Text(
            zh=f"；变柔和之后，它的梯度也没有明确的方向（斜率 {slope}）",
            en=f"; once softer, its gradient has no clear direction (slope {slope})",
        )
    return Text(zh=found.zh + more.zh, en=found.en + more.en)


CHECK = Check(
    code="SS001",
    title=Text(zh="饥饿的头", en="Starving head"),
    severity="finding",
    asks=Text(
        zh="有没有头卡住了，而且试过之后确认：它现在没有用，放松之后会更好？",
        en="Is a head stuck, and did a trial show that it is of no use as it is and better, or able to learn, softer?",
    ),
    thresholds=(MANY, IN_A_ROW, ENOUGH_ROWS, RIGHT, SATISFIED, SINK, OFFSET, TRIED),
    remedy=Text(
        zh="让分数的标准差回到 1 左右：乘以 1/√d，给它一个温度，或重新初始化它的 W_Q 和 W_K；处方试过才给",
        en="bring the standard deviation of the logits back to about 1: scale by 1/√d, give the head a temperature, or "
        "initialise its W_Q and W_K anew; what is prescribed was tried first",
    ),
    judge=_judge,
)
