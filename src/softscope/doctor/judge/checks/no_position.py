"""SS021: equal tokens have equal keys wherever they stand, so position does not enter the first layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.thresholds import IN_A_ROW, SAME_KEYS

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView

ALL = 0.99  # of the pairs


def _judge(view: HistoryView, site: Head) -> Judgement:
    wanted = int(IN_A_ROW.value)
    found = view.of_site("same_keys", site.site, wanted)
    hidden = view.of_site("blind", site.site)
    if len(found) < wanted or (len(hidden) and np.nanmax(hidden) > 0.0):
        return Absent(
            "not-applicable",
            Text(
                zh="不是第一层，看不到 token 或键，没有重复的 token，或有 dropout、位置偏置",
                en="not the first layer, or no tokens or keys to see, none that repeats, a dropout, or a bias by "
                "position",
            ),
        )
    share = float(np.nanmin(found))
    if not share > SAME_KEYS.value:
        return None
    if share >= ALL:
        told = Text(
            zh="相同的 token 无论在哪里都有相同的键：位置没有到达第一层的键",
            en="equal tokens have equal keys wherever they stand: no position reaches the keys of the first layer",
        )
    else:
        told = Text(
            zh=f"{share:.0%} 的相同 token 在不同位置有相同的键：一部分位置被当成同一个",
            en=f"{share:.0%} of the equal tokens have equal keys at different positions: some positions are taken "
            "for one",
        )
    return Fired(told, {"same_keys": share})


CHECK = Check(
    code="SS021",
    title=Text(zh="缺少位置", en="Position is missing"),
    severity="tip",
    asks=Text(
        zh="第一层的键取决于 token 的位置吗？",
        en="Do the keys of the first layer depend on where a token stands?",
    ),
    thresholds=(SAME_KEYS, IN_A_ROW),
    remedy=Text(
        zh="检查位置编码是否加上、是否为 0、是否截断；有意不用位置编码的模型可以静音这项检查",
        en="check whether the position embedding is added, zero, or cut off; if the model is meant to have none, "
        "mute this check",
    ),
    judge=_judge,
    of_sites=True,
)
