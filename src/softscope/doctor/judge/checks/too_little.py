"""SS016: rows see less than they should: nothing, not themselves, only themselves, or only the past in an encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.checks.base import Check, Fired, Judgement, unseen
from softscope.doctor.judge.thresholds import EXACT, MOST_ROWS
from softscope.doctor.listen.site_names import reads_another

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView


def _judge(view: HistoryView, site: Head) -> Judgement:
    expects = view.site(site).expects
    blind, own, ahead, alone = (
        _most(view, name, site.site) for name in ("blind", "own", "sees_ahead", "alone")
    )  # fmt: skip
    if blind is None:
        return unseen("blind")
    if blind > EXACT.value:
        return Fired(
            Text(zh=f"{blind:.0%} 的 token 一个键也看不到", en=f"{blind:.0%} of the tokens see no key at all"),
            {"blind": blind},
        )
    crosses = any(reads_another(one.name) for one in view.history.sites)  # then other tokens help by another way
    if alone is not None and alone >= MOST_ROWS.value and not crosses:
        return Fired(
            Text(
                zh=f"带损失的行里 {alone:.0%} 只看得到一个键，别的 token 帮不上忙",
                en=f"{alone:.0%} of the rows with loss see a single key, so no other token can help",
            ),
            {"alone": alone},
        )
    if expects == "causal" and own is not None and own <= 1.0 - MOST_ROWS.value:
        return Fired(
            Text(
                zh=f"只有 {own:.0%} 的行看得到自己：掩码错开了一位",
                en=f"only {own:.0%} of its rows see themselves: the mask is off by one",
            ),
            {"own": own},
        )
    if ahead != 0.0:
        return None
    if expects == "all":
        return Fired(
            Text(
                zh="没有一行看得到后面的 token：编码器里有因果掩码",
                en="no row sees a later token: there is a causal mask in an encoder",
            ),
            {"sees_ahead": 0.0},
        )
    return None


def _most(view: HistoryView, name: str, site: int) -> float | None:
    found = view.of_site(name, site)
    return float(np.nanmax(found)) if len(found) else None


CHECK = Check(
    code="SS016",
    title=Text(zh="看到的键太少", en="Too few keys are visible"),
    severity="finding",
    asks=Text(
        zh="有没有行看不到该看的键？",
        en="Do rows miss keys that they should see?",
    ),
    thresholds=(EXACT, MOST_ROWS),
    remedy=Text(
        zh="检查掩码：是否全部藏住，是否反了，是否错开一位，编码器里是否多了因果掩码",
        en="check the mask: does it hide everything, is it inverted, is it off by one, is there a causal mask in an "
        "encoder?",
    ),
    judge=_judge,
    of_sites=True,
)
