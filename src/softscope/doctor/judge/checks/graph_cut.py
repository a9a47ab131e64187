"""SS017: a backward pass went through the model and did not arrive here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.states import NO_LOSS
from softscope.doctor.judge.thresholds import TWICE

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, site: Head) -> Judgement:
    wanted = int(TWICE.value)
    # In all readings: a model may be trained in turns, and regular readings may meet the same turn again and again.
    found = view.of_site("cut", site.site, len(view.steps))
    if not len(found):
        return Absent("not-applicable", NO_LOSS)
    names = [i for i, one in enumerate(view.history.sites) if _module(one.name) == _module(view.site(site).name)]
    if any(not view.of_site("cut", i, len(view.steps)).all() for i in names):
        return None  # it arrives in another call of the same module
    if len(found) < wanted:
        return Absent(
            "not-applicable", Text(zh=f"读数不到 {wanted} 次", en=f"fewer than {wanted} readings have a backward pass")
        )
    return Fired(
        Text(
            zh="模型有反向传播，但没有到达这里：它的参数学不到东西",
            en="a backward pass went through the model and did not arrive here: its parameters learn nothing",
        ),
        {"cut": 1.0},
    )


def _module(name: str) -> str:
    return name.partition("#")[0]


CHECK = Check(
    code="SS017",
    title=Text(zh="计算图断开", en="The graph is cut"),
    severity="finding",
    asks=Text(
        zh="模型有反向传播时，梯度有没有到达这里？",
        en="When a backward pass goes through the model, does it arrive here?",
    ),
    thresholds=(TWICE,),
    remedy=Text(
        zh="找 detach、no_grad、.data、numpy 往返，或没有用到的输出。参数都不要梯度的模块（如教师模型）不报",
        en="look for detach, no_grad, .data, a round trip through NumPy, or an output that is not used. Modules whose "
        "parameters need no gradient, such as a teacher, are not reported",
    ),
    judge=_judge,
    of_sites=True,
)
