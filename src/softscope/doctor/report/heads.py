"""The table of heads: state, figures, and their curves over the steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softscope.doctor.judge.checks.starving import told
from softscope.doctor.judge.states import STATES
from softscope.doctor.report.markup import curve, figure, share, short, state_cell, words

if TYPE_CHECKING:
    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.judge.history_view import Head, HistoryView

CURVES = ("blocked", "transmission:median", "advantage", "sharpness", "max_logit")
# Heads that need attention come first.
_ORDER = (
    "starving", "suspected", "empty", "unjudged", "uniform", "idle", "useful", "right", "resting", "positional",
    "learning",
)  # fmt: skip
assert set(_ORDER) == set(STATES)
_LOGARITHMIC = {"transmission:median": 1e-9, "max_logit": 1e-2}  # with the floor at which smaller values are drawn
_WIDTH, _HEIGHT = 72, 20


def heads(diagnosis: Diagnosis) -> str:
    """The table; readings that no head has are left out."""
    view = diagnosis.view
    taken = [name for name in CURVES if any(view.value(name, head) is not None for head in view.heads)]
    titles = {
        "blocked": words(zh="被阻断", en="blocked"),
        "transmission:median": words(zh="传导率", en="transmission"),
        "advantage": words(zh="优势", en="advantage"),
        "sharpness": words(zh="尖锐度", en="sharpness"),
        "max_logit": words(zh="最大分数", en="largest logit"),
    }
    top = "".join(f'<th scope="col">{titles[name]}</th>' for name in taken)
    ordered = sorted(view.heads, key=lambda head: _ORDER.index(view.states[head].state))
    spans = {name: _span(view, name) for name in taken}
    rows = "".join(_row(view, head, spans) for head in ordered)
    title = words(
        zh="各头及其读数随步数的变化（每列同一尺度）",
        en="All heads and their readings over time, by step (same scale within a column)",
    )
    return (
        f'<div class="wide"><table class="heads"><caption>{title}'
        f'</caption><thead><tr><th scope="col">{words(zh="头", en="head")}</th>'
        f'<th scope="col">{words(zh="状态", en="state")}</th>{top}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(view: HistoryView, head: Head, spans: dict[str, tuple[float, float]]) -> str:
    cells = []
    for name, span in spans.items():
        x = view.value(name, head)
        text = share(x) if name == "blocked" and x is not None else figure(x)
        steps, values = _curve(view, name, head)
        cells.append(f"<td>{_spark(curve(steps, values, _WIDTH, _HEIGHT, span))}<span>{text}</span></td>")
    found = view.states[head]
    state = state_cell(found.state, None if found.trial is None else told(found.trial))
    return f'<tr><th scope="row">{short(view, head)}</th>{state}{"".join(cells)}</tr>'


def _curve(view: HistoryView, name: str, head: Head) -> tuple[list[float], list[float]]:
    """Steps and values to draw; values that span many powers of ten as logarithms."""
    steps, values = view.curve(name, head)
    drawn = [float(value) for value in values]
    if name in _LOGARITHMIC:
        drawn = [math.log10(max(value, _LOGARITHMIC[name])) for value in drawn]
    return [float(step) for step in steps], drawn


def _span(view: HistoryView, name: str) -> tuple[float, float]:
    found = [y for head in view.heads for y in _curve(view, name, head)[1] if math.isfinite(y)]
    return (min(found), max(found)) if found else (0.0, 0.0)


def _spark(path: str) -> str:
    """A curve without text of its own: for those who cannot see it, the number is next to it."""
    return f'<svg class="spark" viewBox="0 0 {_WIDTH} {_HEIGHT}"><path d="{path}"/></svg>' if path else ""


def losses(diagnosis: Diagnosis) -> str:
    """The loss over the steps, if there is one."""
    found = [(s.step, s.loss) for s in diagnosis.view.history.snapshots if s.loss is not None and math.isfinite(s.loss)]
    path = curve([step for step, _ in found], [loss for _, loss in found], 560, 80)
    if not path:
        return ""
    first, last = found[0], found[-1]
    told = f"{figure(first[1])} → {figure(last[1])}"
    return (
        f'<figure class="loss"><svg viewBox="-2 -4 564 88" preserveAspectRatio="none" role="img" '
        f'aria-label="loss {told}"><path d="{path}"/></svg>'
        f"<figcaption>{words(zh='损失', en='loss')} {told} · {words(zh='步', en='steps')} {first[0]} – "
        f"{last[0]}</figcaption></figure>"
    )
