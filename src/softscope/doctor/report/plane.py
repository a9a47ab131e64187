"""A plot of every head by transmission and advantage: which can still move, and which read the right keys."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from softscope._gradient_readings import BLOCKED
from softscope._text import Text
from softscope.doctor.judge.states import MEANINGS, NAMES, STATES, StateName
from softscope.doctor.judge.thresholds import RIGHT
from softscope.doctor.report.markup import both, drawn, figure, share, short, words

if TYPE_CHECKING:
    from softscope.doctor.diagnosis import Diagnosis

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 340, 54, 44, 14
DECADES = (-6, 1)  # of transmission; lower values are drawn at the edge, and the tooltip has the number
ADVANTAGES = (-1.5, 3.5)
# One shape per state: colour alone is lost in print, and many people cannot tell the colours apart.
SHAPES: dict[StateName, str] = {
    "learning": '<circle r="5"/>',
    "right": '<path d="M0-6.5 6.5 0 0 6.5-6.5 0z"/>',
    "useful": '<path d="M0-6.5 6.5 0 0 6.5-6.5 0z"/>',
    "resting": '<path d="M-5-5H5V5H-5z"/>',
    "positional": '<path d="M-5-2H5V2H-5z"/>',
    "idle": '<path d="M-5-2H5V2H-5z"/>',
    "uniform": '<circle r="5"/>',
    "empty": '<path d="M-5-5 5 5M-5 5 5-5"/>',
    "suspected": '<path d="M-6 5 0-6.5 6 5z"/>',
    "starving": '<path d="M-6 5 0-6.5 6 5z"/>',
    "unjudged": '<circle r="3"/>',
}


ZONES = Text(
    zh="底色：中位数的那一行也被阻断。头的状态取决于它有多少行被阻断，以及这些行的优势。",
    en="shaded: the median row is blocked too. A head's state depends on how many of its rows are blocked and on "
    "their advantage.",
)


def plane(diagnosis: Diagnosis) -> str:
    """The plot with its legend; a sentence instead if there is no loss."""
    view = diagnosis.view
    judged = {head: found for head, found in view.states.items() if not math.isnan(found.transmission)}
    if not judged:
        return f'<p class="none">{both(MEANINGS["unjudged"])}</p>'
    marks = []
    for head, found in sorted(judged.items(), key=lambda item: STATES.index(item[1].state)):
        told = f"{figure(found.transmission)}|{figure(found.advantage)} ± {figure(found.error)}|{share(found.blocked)}"
        at = f"{_x(found.transmission):.0f} {_y(found.advantage):.0f}"
        marks.append(
            f'<g class="mark {found.state}" transform="translate({at})" data-name="{short(view, head)}" '
            f'data-told="{told}">{SHAPES[found.state]}</g>'
        )
    counted = Text(
        zh="，".join(f"{NAMES[s].zh} {n}" for s, n in diagnosis.states.items() if n),
        en=", ".join(f"{NAMES[s].en} {n}" for s, n in diagnosis.states.items() if n),
    )
    label = Text(zh=f"每个头的传导率与优势：{counted.zh}", en=f"Transmission and advantage of every head: {counted.en}")
    return (
        f'<div class="wide"><svg class="plane" viewBox="0 0 {WIDTH} {HEIGHT}" role="group" '
        f'aria-label="{both(label.en)}" data-label-zh="{both(label.zh)}" data-label-en="{both(label.en)}">'
        f"{_frame(_edge(diagnosis))}{''.join(marks)}</svg></div>"
        f'<ul class="legend">{_legend(diagnosis)}</ul><p class="none">{both(ZONES)}</p>'
    )


def _edge(diagnosis: Diagnosis) -> float:
    """The transmission below which a row is blocked: 0.0025·√n, where n is the number of keys the median head sees."""
    found = (diagnosis.view.value("count", head) for head in diagnosis.view.heads)
    keys = [n for n in found if n is not None and 1.0 <= n < math.inf]
    return BLOCKED * math.sqrt(statistics.median(keys) if keys else 16.0)


def _x(transmission: float) -> float:
    decades = math.log10(max(transmission, 10.0 ** DECADES[0])) - DECADES[0]
    return LEFT + min(decades / (DECADES[1] - DECADES[0]), 1.0) * (WIDTH - LEFT - 14)


def _y(advantage: float) -> float:
    low, high = ADVANTAGES
    inside = min(max(0.0 if math.isnan(advantage) else advantage, low), high)
    return TOP + (high - inside) / (high - low) * (HEIGHT - TOP - BOTTOM)


def _frame(edge: float) -> str:
    floor, line = HEIGHT - BOTTOM, _y(RIGHT.value)
    wide = _x(edge) - LEFT
    parts = [
        f'<rect class="zone right" x="{LEFT}" y="{TOP}" width="{wide:.0f}" height="{line - TOP:.0f}"/>',
        f'<rect class="zone starving" x="{LEFT}" y="{line:.0f}" width="{wide:.0f}" height="{floor - line:.0f}"/>',
        drawn(Text(zh="读对", en="right"), f'x="{LEFT + 8}" y="{TOP + 18}" font-weight="600"'),
        drawn(
            Text(zh="可疑：要试过才知道", en="suspected: a trial decides"),
            f'x="{LEFT + 8}" y="{floor - 10}" font-weight="600"',
        ),
        drawn(Text(zh="在学", en="learning"), f'x="{WIDTH - 20}" y="{TOP + 18}" text-anchor="end" font-weight="600"'),
    ]
    for power in range(DECADES[0], DECADES[1] + 1):
        x = _x(10.0**power)
        name = {0: "1", 1: "10"}.get(power, f"1e{power}".replace("-", "−"))
        prefix = "≤" if power == DECADES[0] else ""
        parts.append(f'<path class="grid" d="M{x:.0f} {TOP}V{floor}"/>')
        parts.append(drawn(prefix + name, f'x="{x:.0f}" y="{floor + 16}" text-anchor="middle"'))
    for value in (-1, 0, 1, 2, 3):
        y = _y(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.0f}H{WIDTH - 14}"/>')
        parts.append(drawn(f"{value}".replace("-", "−"), f'x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end"'))
    middle = (LEFT + WIDTH - 14) / 2
    parts.append(
        drawn(Text(zh="传导率（中位数）：梯度还剩多少", en="transmission (median): how much of the gradient is left"),
              f'x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle"')
    )  # fmt: skip
    centre = (TOP + floor) / 2
    parts.append(
        drawn(Text(zh="优势：读的键有多好", en="advantage: how good its keys are"),
              f'transform="translate(16 {centre:.0f}) rotate(-90)" text-anchor="middle"')
    )  # fmt: skip
    return "".join(parts)


def _legend(diagnosis: Diagnosis) -> str:
    return (
        "".join(
            f'<li><svg class="mark {state}" viewBox="-8 -8 16 16" aria-hidden="true">{SHAPES[state]}</svg>'
            f"<b>{both(NAMES[state])} {count}</b> <span>{both(MEANINGS[state])}</span></li>"
            for state, count in diagnosis.states.items()
            if count
        )
        or f"<li>{words(zh='没有头', en='no heads')}</li>"
    )
