"""The ranks of a run on the terminal: how many are read, and which are behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope.doctor.ranks.read_ranks import FACT, of_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope.cli.console import Console

_MOST = 3  # ranks to name


def sentence(facts: Mapping[str, Any], console: Console) -> tuple[str, bool]:
    """Say how many ranks are read, and whether some are behind; "" if the run has only one, or does not say."""
    ranks = of_facts(facts.get(FACT))
    if ranks is None or ranks.size == 1:
        return "", False
    text = console.say("watch.ranks", read=ranks.size - len(ranks.behind), size=ranks.size)
    for rank in sorted(ranks.behind)[:_MOST]:
        step = ranks.behind[rank]
        text = (
            console.say("watch.ranks.never", told=text, rank=rank)
            if step is None
            else console.say("watch.ranks.behind", told=text, rank=rank, step=step)
        )
    if len(ranks.behind) > _MOST:
        text = console.say("watch.ranks.more", told=text, count=len(ranks.behind) - _MOST)
    return text, bool(ranks.behind)
