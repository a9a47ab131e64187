"""Events on the terminal: one line each, and few of a kind."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from softscope.cli.layout import wrap
from softscope.doctor.alerts import line as place_and_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.cli.console import Console
    from softscope.doctor.events import Event

_MOST = 3  # lines for one check and kind in one reading: if a whole model breaks, its heads need not all be listed


def lines(events: Sequence[Event], console: Console, width: int | None = None) -> list[str]:
    """Format events, each as one line; on a terminal, wrap them to its width."""
    told: list[str] = []
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    total = collections.Counter((event.code, event.kind) for event in events)
    for event in events:
        kind = event.code, event.kind
        seen[kind] += 1
        if seen[kind] > _MOST:
            continue
        text = _text(event, console)
        if seen[kind] == _MOST and total[kind] > _MOST:
            text = console.say("watch.event.more", told=text, count=total[kind] - _MOST)
        style = "dim" if event.kind == "ended" else "negative" if event.severity == "finding" else "caution"
        told += [console.paint(part, style) for part in ([text] if width is None else wrap(text, width, "", "    "))]
    return told


def _text(event: Event, console: Console) -> str:
    return console.say(
        f"watch.event.{event.kind}",
        step=event.step,
        code=event.code,
        title=event.title,
        told=place_and_reason(event, console.lang),
        **({} if event.kind == "ended" else {"severity": console.say(f"watch.severity.{event.severity}")}),
    )
