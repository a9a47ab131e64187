"""SS006: the entropy drops suddenly, and not because the head has found its target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.checks.suspected import reads
from softscope.doctor.judge.states import SETTLED, reads_right
from softscope.doctor.judge.thresholds import COLLAPSE, COLLAPSED, IN_A_ROW

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, head: Head) -> Judgement:
    steps, sharpness = view.curve("sharpness", head)
    window = int(IN_A_ROW.value)
    if len(sharpness) <= window:
        return Absent(
            "not-applicable",
            Text(zh=f"读数不超过 {window} 次，看不出快慢", en=f"{window} readings or fewer: too few to measure a rate"),
        )
    entropy = 1.0 - sharpness.clip(0.0, 1.0)
    if entropy[-1] > COLLAPSED:
        return None
    falls = entropy[:-window] - entropy[window:]
    worst = int(falls.argmax())
    if falls[worst] < COLLAPSE.value:
        return None
    found = view.states[head]
    if found.state in SETTLED or (found.state == "learning" and reads_right(found.advantage, found.error)):
        return None
    start, end = int(steps[worst]), int(steps[worst + window])
    figures = f"{entropy[worst]:.2f} → {entropy[worst + window]:.2f}"
    values = {"fall": float(falls[worst]), "entropy": float(entropy[-1])}
    told = Text(
        zh=f"归一化的熵在第 {start}–{end} 步之间骤降（{figures}）",
        en=f"its normalised entropy fell between steps {start} and {end} ({figures})",
    )
    if found.state == "unjudged":
        return Fired(
            Text(
                zh=told.zh + "；没有损失，分不清是学会了还是坏了",
                en=told.en + "; without a loss, learning and breaking look the same",
            ),
            values,
            "tip",
        )
    if found.state == "starving":
        return Fired(Text(zh=told.zh + "，而且它在挨饿", en=told.en + ", and the head starves"), values)
    keys = reads(found)
    return Fired(Text(zh=f"{told.zh}，{keys.zh}", en=f"{told.en}, and {keys.en}"), values, "tip")


CHECK = Check(
    code="SS006",
    title=Text(zh="熵骤降", en="Entropy collapse"),
    severity="finding",
    asks=Text(
        zh="有没有头的熵突然骤降，却不是因为学会了？",
        en="Did a head's entropy fall suddenly, for a reason other than learning?",
    ),
    thresholds=(COLLAPSE, IN_A_ROW),
    remedy=Text(
        zh="退回骤降之前的检查点，降低学习率或加长预热；从头训练则用 QK 归一化",
        en="go back to a checkpoint before the fall, and lower the learning rate or lengthen the warm-up; when "
        "training from scratch, use QK-norm",
    ),
    judge=_judge,
)
