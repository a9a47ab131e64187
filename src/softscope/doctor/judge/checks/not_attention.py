"""SS020: the weights are not softmax(scale·q·k + mask)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.thresholds import MOST_ROWS, ZEROS

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, site: Head) -> Judgement:
    twice, dropped = view.of_site("twice", site.site), view.of_site("dropped", site.site)
    if not len(twice) and not len(dropped):
        return Absent(
            "not-applicable",
            Text(zh="融合的算子里看不到权重", en="the weights of a fused operator are not visible"),
        )
    share = float(np.nanmax(twice)) if len(twice) else 0.0
    if share >= MOST_ROWS.value:
        return Fired(
            Text(
                zh=f"{share:.0%} 的行进入 softmax 之前已经是权重（非负，和为 1）：softmax 做了两次",
                en=f"{share:.0%} of its rows are weights before the softmax (none negative, with a sum of 1): it is "
                "applied twice",
            ),
            {"twice": share},
        )
    zeros = float(np.nanmax(dropped)) if len(dropped) else 0.0
    if zeros > ZEROS.value:
        return Fired(
            Text(
                zh=f"{zeros:.0%} 的分数正好是 0 而 q·k 不是：softmax 之前有 dropout",
                en=f"{zeros:.0%} of its logits are exactly 0 where q·k is not: there is a dropout before the softmax",
            ),
            {"dropped": zeros},
        )
    return None


CHECK = Check(
    code="SS020",
    title=Text(zh="权重不是 q·k 的 softmax", en="Weights that are not the softmax of q·k"),
    severity="finding",
    asks=Text(
        zh="看得到权重的地方，它们是 softmax(scale·q·k + 掩码) 吗？",
        en="Where the weights are visible, are they softmax(scale·q·k + mask)?",
    ),
    thresholds=(ZEROS, MOST_ROWS),
    remedy=Text(
        zh="dropout 放在 softmax 之后；softmax 只做一次",
        en="put the dropout after the softmax, and apply the softmax once",
    ),
    judge=_judge,
    of_sites=True,
)
