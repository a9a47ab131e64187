"""Candidate treatments for a group of heads, with a dose for each head; which of them helps, a trial must show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softscope.doctor.treat.code import round_up
from softscope.doctor.treat.treatment import REST, Treatment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from softscope.doctor.judge.history_view import Head, HistoryView

LESS = 3.0  # the second dose of a temperature is that much lower: a head that once learned should not lose all of it
CLIP = 100.0  # the bound of Kimi K2
ALIKE = 1.3  # doses closer than this are tried once


def temperatures(
    view: HistoryView, heads: Sequence[Head], *, missing: bool = False, to: float = REST
) -> Treatment | None:
    """Temperatures that bring the largest logit down; if 1/√d is missing, at least the missing factor."""
    doses: dict[str, dict[int, float]] = {}
    for head in heads:
        site = view.site(head)
        dose = (view.value("max_logit", head) or 0.0) / to
        if missing and site.head_size and site.scale > 0:
            dose = max(dose, site.scale * math.sqrt(site.head_size))
        if not view.value("max_logit", head):  # an explicit softmax shows no q and k, only how far its logits spread
            dose = max(dose, (view.value("logit_spread", head) or 0.0) * REST / to)
        if head.head is not None and dose > 1.0 and math.isfinite(dose):
            doses.setdefault(site.name, {})[head.head] = round_up(dose)
    return Treatment("temperature", doses) if doses else None


def clip(view: HistoryView, heads: Sequence[Head], tau: float | None) -> Treatment | None:
    """QK-clip to `tau`, or to the largest logit of the site's other heads."""
    tops: dict[str, dict[int, float]] = {}
    bounds: dict[str, float] = {}
    beside: dict[int, float] = {}
    clipped = set(heads)
    for other in view.heads:
        if other not in clipped:
            beside[other.site] = max(beside.get(other.site, -math.inf), view.value("max_logit", other) or -math.inf)
    for head in heads:
        top = view.value("max_logit", head)
        bound = beside.get(head.site, 0.0) if tau is None else tau
        if head.head is not None and top is not None and math.isfinite(top) and bound > 0 and top > bound:
            tops.setdefault(view.site(head).name, {})[head.head] = round_up(top, 4)
            bounds[view.site(head).name] = round_up(bound)
    return Treatment("qk-clip", tops, bounds) if tops else None


def anew(view: HistoryView, heads: Sequence[Head]) -> Treatment | None:
    """Draw the heads anew, with logits of standard deviation 1."""
    found: dict[str, dict[int, float]] = {}
    for head in heads:
        if head.head is not None:
            found.setdefault(view.site(head).name, {})[head.head] = 1.0
    return Treatment("reinitialise", found) if found else None


def unit_norm(view: HistoryView, heads: Sequence[Head]) -> Treatment | None:
    """Unit QK-norm, which treats whole sites: only where every head of the site is in the group."""
    given = {(head.site, head.head) for head in heads}
    sites = dict.fromkeys(head.site for head in heads)
    whole = [i for i in sites if all((i, j) in given for j in range(view.history.sites[i].heads))]
    if not whole or len(whole) < len(sites):
        return None
    every = {view.history.sites[i].name: dict.fromkeys(range(view.history.sites[i].heads), 1.0) for i in whole}
    return Treatment("unit-qk-norm", every)


def reviving(view: HistoryView, heads: Sequence[Head], *, missing: bool = False) -> tuple[Treatment, ...]:
    """What may revive heads that are frozen, the surest first."""
    return distinct(
        temperatures(view, heads, missing=missing),
        anew(view, heads),
        clip(view, heads, REST),
        unit_norm(view, heads),
        temperatures(view, heads, to=LESS * REST),
    )


def distinct(*found: Treatment | None) -> tuple[Treatment, ...]:
    """The treatments there are, without temperatures that are nearly another's."""
    kept: list[Treatment] = []
    for one in found:
        if one is not None and not any(_alike(one, other) for other in kept):
            kept.append(one)
    return tuple(kept)


def _alike(one: Treatment, other: Treatment) -> bool:
    if one.remedy != other.remedy or _places(one.heads.items()) != _places(other.heads.items()):
        return False
    pairs = [(dose, other.heads[site][head]) for site, doses in one.heads.items() for head, dose in doses.items()]
    return one.tau == other.tau and all(max(a, b) <= ALIKE * min(a, b) for a, b in pairs)


def _places(items: Iterable[tuple[str, object]]) -> set[tuple[str, int]]:
    return {(site, head) for site, doses in items for head in doses}  # type: ignore[attr-defined]
