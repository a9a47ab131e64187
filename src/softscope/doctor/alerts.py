"""Events as alerts for people: one for all heads with the same news, with a title short enough for a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from softscope._text import Lang, Text, safe
from softscope.doctor.events import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from softscope.doctor.events import Event, EventKind

TITLE = 63  # characters: Weights & Biases asks for less than 64
MOST = 10  # heads named in one alert
_MORE = Text(zh="另有 {count} 处", en="and {count} more")
_MANY = Text(zh="{count} 处", en="{count} places")
_STEP = Text(zh="第 {step} 步", en="step {step}")


class Alert(NamedTuple):
    """Named as the arguments of `wandb.Run.alert`."""

    title: str
    text: str
    level: str  # "WARN" for a finding that is there, otherwise "INFO"


def alerts(events: Iterable[Event], lang: Lang = "en") -> list[Alert]:
    r"""One alert for each check and kind of news: a layer that breaks is one message, not one for each of its heads.

    Titles name the step: Weights & Biases drops an alert if one with the same title was sent in the last minute.

    >>> from softscope.doctor.events import Event
    >>> says = Text(zh="它在停歇", en="the head is resting")
    >>> events = [Event(120, "appeared", "SS002", "encoder.0", head, says, "informative") for head in (3, 4)]
    >>> for alert in alerts(events):
    ...     print(*alert, sep="\n")
    step 120 SS002 Head resting on a sink: 2 places
    encoder.0 head 3: the head is resting
    encoder.0 head 4: the head is resting
    INFO
    """
    groups: dict[tuple[str, EventKind], list[Event]] = {}
    for event in events:
        groups.setdefault((event.code, event.kind), []).append(event)
    return [_alert(group, lang) for group in groups.values()]


def _alert(group: list[Event], lang: Lang) -> Alert:
    first, count = group[0], len(group)
    words = [_STEP.format(step=first.step).of(lang), first.code, first.title.of(lang)]
    words += [] if first.kind == "appeared" else [KIND_NAMES[first.kind].of(lang)]
    start = " ".join(words)
    place = safe(first.place.of(lang)) if count == 1 else _MANY.format(count=count).of(lang)
    room = TITLE - len(start) - 2
    if len(place) > room:  # the end of a name tells more: all names share the beginning
        place = "…" + place[len(place) - room + 1 :] if room > 1 else ""
    told = [line(event, lang) for event in group[:MOST]]
    told += [_MORE.format(count=count - MOST).of(lang)] if count > MOST else []
    there = first.kind != "ended" and any(event.severity == "finding" for event in group)
    return Alert(f"{start}: {place}"[:TITLE], "\n".join(told), "WARN" if there else "INFO")


def line(event: Event, lang: Lang) -> str:
    """Where, and what was seen.

    >>> from softscope.doctor.events import Event
    >>> line(Event(120, "ended", "SS002", "encoder.0", 3, Text(zh="没有再出现", en="it is gone"), "tip"), "zh")
    'encoder.0 头 3：没有再出现'
    """
    mark = Text(zh="：", en=": ").of(lang)
    return safe(f"{event.place.of(lang)}{mark}{event.says.of(lang)}")
