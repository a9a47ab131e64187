"""SS004: one head far from its siblings. Needs no loss: it only compares heads."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement, unseen
from softscope.doctor.judge.history_view import Head
from softscope.doctor.judge.thresholds import OUTLIER, REACH, SIBLINGS

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import HistoryView


def _judge(view: HistoryView, head: Head) -> Judgement:
    if view.site(head).heads < SIBLINGS:
        return Absent(
            "not-applicable",
            Text(
                zh=f"这一层不到 {SIBLINGS} 个头，无从比较",
                en=f"the layer has fewer than {SIBLINGS} heads, so there is nothing to compare with",
            ),
        )
    mine = reach(view, head)
    count, middle = _middle(view, head.site, "reach")
    if mine is None or count < SIBLINGS:
        return unseen("q_norm", "k_norm", "scale")
    times = _times(mine, middle)
    if times < OUTLIER.value or mine < REACH.value:
        return None
    parts = {
        name: _times(view.value(name, head) or 0.0, _middle(view, head.site, name)[1]) for name in ("q_norm", "k_norm")
    }
    trial = view.trials.get((view.site(head).name, head.head))
    useful = trial is not None and trial.verdict == "useful"
    which = ", ".join(f"{name[0]} ×{x:.0f}" for name, x in parts.items() if x >= OUTLIER.value / 2) or "q, k"
    return Fired(
        Text(
            zh=f"|q|·|k| 是同层各头中位数的 {times:.0f} 倍（{which}），scale·|q|·|k| 平均为 {mine:.0f}",
            en=f"its |q|·|k| is {times:.0f} times the median of the layer's heads ({which}); scale·|q|·|k| is "
            f"{mine:.0f} on average",
        ),
        {"times": times, "reach": mine, **parts},
        "informative" if useful else None,  # a trial has shown that the model needs it as it is
    )


def reach(view: HistoryView, head: Head) -> float | None:
    """scale·|q|·|k| from mean norms: how large logits can get. A product, because q·30 with k/30 is the same head."""
    q, k, scale = view.value("q_norm", head), view.value("k_norm", head), view.site(head).scale
    return None if q is None or k is None or math.isnan(scale) else abs(scale) * q * k


def _middle(view: HistoryView, site: int, name: str) -> tuple[int, float]:
    """How many heads of a site have this reading, and their median."""
    if (name, site) not in view.known:
        heads = (Head(site, j) for j in range(view.history.sites[site].heads))
        found = [x for h in heads if (x := reach(view, h) if name == "reach" else view.value(name, h)) is not None]
        view.known[name, site] = len(found), statistics.median(found) if found else 0.0
    count, middle = view.known[name, site]
    return count, middle


def _times(mine: float, middle: float) -> float:
    return mine / middle if middle > 0.0 else 0.0


CHECK = Check(
    code="SS004",
    title=Text(zh="与同层其他头相差悬殊", en="Outlier among its siblings"),
    severity="finding",
    asks=Text(
        zh="有没有头的 q、k 比同层其他头大得多？",
        en="Does a head have far larger q and k than the other heads in its layer?",
    ),
    thresholds=(OUTLIER, REACH),
    remedy=Text(
        zh="检查这个头的 W_Q、W_K：加载或合并时有没有出错？没有就用 QK-clip 把它缩回来，或单独给它一个温度",
        en="check this head's W_Q and W_K: were they loaded or merged wrongly? If not, shrink it with QK-clip "
        "or give it a temperature of its own",
    ),
    judge=_judge,
)
