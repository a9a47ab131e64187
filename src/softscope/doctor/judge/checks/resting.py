"""SS002: all blocked rows of a head look at one key. The head is parked, which is common and not a disease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.states import NO_LOSS
from softscope.doctor.judge.thresholds import MANY, SINK

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, head: Head) -> Judgement:
    found = view.states[head]
    if found.state == "unjudged":
        return Absent("not-applicable", found.why or NO_LOSS)
    if found.state != "resting":
        return None
    if found.trial is not None:
        return Fired(
            Text(
                zh=f"{found.blocked:.0%} 的行被阻断，其权重的 {found.mass:.0%} 落在同一种 token 上，不管它在哪里；"
                f"试过，损失不需要它：这个头在停歇",
                en=f"{found.blocked:.0%} of its rows are blocked, with {found.mass:.0%} of their weight on one kind of "
                f"token, wherever it stands; a trial shows that the loss does not need it: the head is resting",
            ),
            {"blocked": found.blocked, "blocked_token_mass": found.mass},
        )
    column = view.value("sink_column", head)
    where = "" if column is None else f" {column:.0f}"
    return Fired(
        Text(
            zh=f"{found.blocked:.0%} 的行被阻断，其权重的 {found.mass:.0%} 落在同一个键{where} 上：这个头在停歇",
            en=f"{found.blocked:.0%} of its rows are blocked, with {found.mass:.0%} of their weight on the same "
            f"key{where}: the head is resting",
        ),
        {"blocked": found.blocked, "blocked_mass": found.mass},
    )


CHECK = Check(
    code="SS002",
    title=Text(zh="停在 sink 上的头", en="Head resting on a sink"),
    severity="informative",
    asks=Text(
        zh="哪些头把权重停在一个不携带信息的键上？",
        en="Which heads park their weight on a key that carries no information?",
    ),
    thresholds=(MANY, SINK),
    remedy=Text(
        zh="不必处理。若不想让真实的键充当 sink，可以给每个头一个 sink 分数",
        en="nothing to do. To keep real keys from serving as a sink, give each head a sink logit",
    ),
    judge=_judge,
)
