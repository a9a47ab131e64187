"""SS014: tokens see later tokens where they should see only the past."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.thresholds import EXACT, MOST_ROWS

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView

INVERTED = 0.95  # of the weight on later tokens: the past is hidden


def _judge(view: HistoryView, site: Head) -> Judgement:
    here = view.site(site)
    rows, weight = view.of_site("sees_ahead", site.site), view.of_site("ahead", site.site)
    if not len(rows) or not len(weight):
        return Absent(
            "not-applicable",
            Text(zh="查询和键不是同一个序列", en="its queries and keys are not positions of one sequence"),
        )
    share, most = float(np.nanmax(rows)), float(np.nanmax(weight))
    if here.expects != "causal":
        return _siblings(view, site, share, most)
    if share <= EXACT.value or most <= EXACT.value:
        return None
    told = Text(
        zh=f"{share:.0%} 的行看得到后面的 token，后面的 token 占 {most:.2f} 的权重",
        en=f"{share:.0%} of its rows see later tokens, which hold {most:.2f} of the weight",
    )
    if most >= INVERTED:
        told = Text(zh=told.zh + "：掩码像是反了", en=told.en + ", as if the mask were inverted")
    return Fired(told, {"sees_ahead": share, "ahead": most}, None if share >= MOST_ROWS.value else "informative")


def _siblings(view: HistoryView, site: Head, share: float, most: float) -> Judgement:
    """Where nothing says what the mask should be: layers of one stack should agree."""
    others = siblings(view, site.site)
    blind = [x for x in others if _of(view, x) == 0.0]
    # Most of the stack must see only the past: of two layers, nobody knows which is wrong.
    if share < MOST_ROWS.value or 2 * len(blind) <= len(others) + 1 or view.site(site).expects == "all":
        return None
    other = view.history.sites[blind[0]].name
    return Fired(
        Text(
            zh=f"它的行看得到后面的 token（占 {most:.2f} 的权重），而同一组的 {other} 看不到",
            en=f"its rows see later tokens (with {most:.2f} of the weight), while {other} of the same stack does not",
        ),
        {"sees_ahead": share, "ahead": most},
    )


def siblings(view: HistoryView, site: int) -> list[int]:
    """The other sites of the same stack: those whose names differ in one number only, the layer's."""
    mine = re.split(r"(\d+)", view.history.sites[site].name)
    found = []
    for i, one in enumerate(view.history.sites):
        theirs = re.split(r"(\d+)", one.name)
        if len(theirs) == len(mine) and sum(a != b for a, b in zip(mine, theirs, strict=True)) == 1:
            found += [i] if mine[::2] == theirs[::2] else []
    return found


def _of(view: HistoryView, site: int) -> float | None:
    found = view.of_site("sees_ahead", site)
    return float(np.nanmax(found)) if len(found) else None


CHECK = Check(
    code="SS014",
    title=Text(zh="看得到后面的 token", en="Later tokens are visible"),
    severity="finding",
    asks=Text(
        zh="该只看过去的行，有没有看到后面的 token？",
        en="Do rows that should see only the past see later tokens?",
    ),
    thresholds=(EXACT, MOST_ROWS),
    remedy=Text(
        zh="检查因果掩码：有没有传进去、有没有反、有没有错开一位。泄漏会让训练损失变好，真正使用时却变差",
        en="check the causal mask: is it passed on, is it inverted, is it off by one? A leak makes the training loss "
        "better and the model worse in use",
    ),
    judge=_judge,
    of_sites=True,
)
