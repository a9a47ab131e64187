"""SS009: no gradient reaches q and k, because the loss does not reach the head or nothing passes the softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement, unseen
from softscope.doctor.judge.states import MEANINGS, NO_LOSS, NO_ROWS, SETTLED
from softscope.doctor.judge.thresholds import IN_A_ROW, NOTHING

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, head: Head) -> Judgement:
    if not view.has_loss:
        return Absent("not-applicable", NO_LOSS)
    wanted = int(IN_A_ROW.value)
    demand = view.last("demand", head, wanted)
    if not demand:
        return unseen("demand")
    if len(demand) < wanted:
        return Absent(
            "not-applicable",
            Text(zh=f"带损失的读数不到 {wanted} 次", en=f"fewer than {wanted} readings have a loss"),
        )
    found = view.states[head]
    if max(demand) == 0.0:
        reached = view.last("reached", head, wanted)
        if reached and max(reached) > 0.0:  # the loss looks at other rows: a classifier reads one token
            return Absent("not-applicable", found.why or NO_ROWS)
        if found.state == "empty":
            return Absent("not-applicable", MEANINGS["empty"])
        return Fired(
            Text(
                zh="损失与它读哪个键无关：没有梯度到达它的输出",
                en="the loss does not depend on what it reads: no gradient reaches its output",
            ),
            {"demand": 0.0},
        )
    passed = view.last("transmission:median", head, wanted) or view.last("transmission", head, wanted)
    if not passed or max(passed) >= NOTHING.value or found.state in SETTLED:
        return None
    most = max(passed)
    return Fired(
        Text(
            zh=f"至少半数的行传导率不超过 {most:.1e}" if most else "至少半数的行传导率为 0",
            en=f"at least half of its rows have a transmission of {f'{most:.1e} or less' if most else '0'}",
        ),
        {"transmission": most},
        None if found.state == "starving" else "tip",
    )


CHECK = Check(
    code="SS009",
    title=Text(zh="q 和 k 几乎得不到梯度", en="Little or no gradient reaches q and k"),
    severity="finding",
    asks=Text(zh="有没有头几乎得不到梯度？", en="Does a head get almost no gradient?"),
    thresholds=(NOTHING, IN_A_ROW),
    remedy=Text(
        zh="损失到不了：检查计算图是否断开（detach、no_grad），输出是否没有用到或乘了 0。梯度被 softmax 挡住：见 SS001",
        en="if the loss does not reach it, look for a cut graph (detach, no_grad) or an output that is unused "
        "or multiplied by 0. If the softmax stops the gradient, see SS001",
    ),
    judge=_judge,
)
