"""The controls of a lesson as plain form elements, each with the few values that were computed beforehand."""

from __future__ import annotations

import html
import itertools
import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST = 130  # states of one output: more would make a page heavy
SINGLE = 41  # values of a control that an output depends on alone
TYPED = ("3, -1, 0.5", "1, 1, 1", "10, 0, -10", "0.1, 0.2, 0.3, 0.4")  # a page without Python cannot read what is typed


class Stop(NamedTuple):
    """One value of a control, and what the reader sees of it."""

    value: Any
    name: str


def stops(element: Any) -> list[Stop]:
    """Return every value that a control can have; one or none if it cannot be replayed."""
    match type(element).__name__:
        case "slider":
            return [Stop(value, f"{value:g}") for value in _grid(element)]
        case "number":
            first = int(element.start)
            numbers = sorted({*range(first, first + 10), int(element.value)})
            return [Stop(value, str(value)) for value in numbers]
        case "dropdown" | "radio":
            return [Stop(value, name) for name, value in element.options.items()]
        case "button":
            return [Stop(value, str(value + 1)) for value in range(10)] if isinstance(element.value, int) else []
        case "text":
            return [Stop(value, value) for value in (element.value, *TYPED)]
        case "switch" | "checkbox":
            return [Stop(False, ""), Stop(True, "")]
        case _:
            return []


def _grid(element: Any) -> list[float]:
    if element.steps:
        return list(element.steps)
    step = element.step or (element.stop - element.start) / 100
    whole = all(float(x).is_integer() for x in (element.start, step))
    values = np.arange(element.start, element.stop + step / 2, step)
    return [int(value) if whole else round(float(value), 6) for value in values]


class Plan:
    """Which values of each control are computed: fewer where an output depends on several."""

    def __init__(self, elements: Mapping[str, Any], together: Sequence[Sequence[str]]) -> None:
        self.elements = elements
        self.stops: dict[str, list[Stop]] = {}
        for name, element in elements.items():
            most = SINGLE
            for group in together:
                if name in group:
                    most = min(most, self._share(name, group))
            self.stops[name] = _chosen(stops(element), element.value, most)

    def _share(self, name: str, group: Sequence[str]) -> int:
        """Share the states of an output out among its controls; those with few values leave more to the others."""
        room, left = float(MOST), list(group)
        for one in sorted(group, key=lambda one: len(stops(self.elements[one]))):
            mine = min(len(stops(self.elements[one])), max(2, math.floor(room ** (1 / len(left)) + 1e-9)))
            if one == name:
                return mine
            room, left = room / mine, left[1:]
        return 2

    def states(self, group: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield every combination of the group's values, with its name: the places of the values."""
        for places in itertools.product(*(range(len(self.stops[name])) for name in group)):
            chosen = {name: self.stops[name][i].value for name, i in zip(group, places, strict=True)}
            yield ",".join(map(str, places)), chosen

    def first(self, name: str) -> int:
        """Return the place of the value that a control starts with."""
        return [stop.value for stop in self.stops[name]].index(self.elements[name].value)

    def markup(self, name: str, label: str) -> str:
        """Return the control as a form element."""
        found, first = self.stops[name], self.first(name)
        known = f'data-control="{name}"'
        kind = type(self.elements[name]).__name__
        if kind in ("slider", "number"):
            names = html.escape(json.dumps([stop.name for stop in found], ensure_ascii=False))
            return (
                f'<label class="control"><span>{label}</span><input type="range" min="0" max="{len(found) - 1}" '
                f'value="{first}" {known} data-names="{names}" autocomplete="off">'
                f"<output>{html.escape(found[first].name)}</output></label>"
            )
        if kind == "radio":
            choices = "".join(
                f'<label><input type="radio" name="{name}" value="{i}" {known}{" checked" if i == first else ""} '
                f'autocomplete="off">{html.escape(stop.name)}</label>'
                for i, stop in enumerate(found)
            )
            return f'<fieldset class="control">{f"<legend>{label}</legend>" if label else ""}{choices}</fieldset>'
        if kind == "button":
            return f'<button type="button" {known} data-count="{len(found)}" value="{first}">{label}</button>'
        if kind in ("switch", "checkbox"):
            mark = " checked" if first else ""
            return f'<label class="control"><input type="checkbox" {known}{mark} autocomplete="off"> {label}</label>'
        choices = "".join(
            f'<option value="{i}"{" selected" if i == first else ""}>{html.escape(stop.name)}</option>'
            for i, stop in enumerate(found)
        )
        return (
            f'<label class="control"><span>{label}</span><select {known} autocomplete="off">{choices}</select></label>'
        )


def _chosen(found: list[Stop], now: Any, most: int) -> list[Stop]:
    """Return at most so many values, evenly spread, with the first, the last and the present one."""
    values = [stop.value for stop in found]
    if now not in values:
        found = sorted([*found, Stop(now, f"{now:g}")], key=lambda stop: stop.value)
        values = [stop.value for stop in found]
    if len(found) <= most:
        return found
    here = values.index(now)
    places = {round(i) for i in np.linspace(0, len(found) - 1, most)}
    if here not in places:
        inner = sorted(places - {0, len(found) - 1}, key=lambda i: abs(i - here))
        places = places - set(inner[:1]) | {here}
    return [found[i] for i in sorted(places)]
