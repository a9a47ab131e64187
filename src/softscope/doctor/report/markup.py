"""The smallest pieces of the page: texts, numbers, curves. All external input is escaped here."""

from __future__ import annotations

import html
import itertools
import math
from typing import TYPE_CHECKING

from softscope._text import LANGS, Text, safe
from softscope.doctor.judge.states import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.judge.states import StateName


def escaped(text: str) -> str:
    r"""The text as markup; whatever a reader would not see, such as a change of direction, becomes visible.

    Line ends stay: in a page they are blanks.

    >>> escaped("<b>\u202e")
    '&lt;b&gt;\\u202e'
    """
    return html.escape("\n".join(map(safe, text.split("\n"))))


def both(text: Text | str) -> str:
    """The text in both languages; the page shows one of them. A plain string is the same in both."""
    if isinstance(text, str):
        return escaped(text)
    if text.zh == text.en:
        return escaped(text.zh)
    return "".join(f'<span class="{lang}" lang="{lang}">{escaped(text.of(lang))}</span>' for lang in LANGS)


def state_cell(state: StateName, why: Text | None = None) -> str:
    """The state of a head in a table, and below it why, if there is room; kept short, because there are hundreds."""
    name = NAMES[state]
    more = "" if why is None else f"<small>{both(why)}</small>"
    return f'<td class="state {state}"><span class="zh">{name.zh}</span><span class="en">{name.en}</span>{more}</td>'


def words(*, zh: str, en: str) -> str:
    """`both` for a literal text."""
    return both(Text(zh=zh, en=en))


def drawn(text: Text | str, attributes: str) -> str:
    """An SVG text in both languages."""
    if isinstance(text, str):
        return f"<text {attributes}>{escaped(text)}</text>"
    return "".join(f'<text class="{lang}" lang="{lang}" {attributes}>{escaped(text.of(lang))}</text>' for lang in LANGS)


def short(view: HistoryView, head: Head) -> str:
    """A head's short name for crowded places; the same in both languages."""
    return escaped(f"{view.site(head).name} · {head.head}")


def figure(x: float | None, digits: int = 3) -> str:
    """Format a number with three digits, or two where space is tight.

    >>> figure(0.12345), figure(265.4), figure(3e-34), figure(None), figure(0.0), figure(-0.2341), figure(0.0631, 2)
    ('0.123', '265', '3e-34', '–', '0', '−0.234', '0.06')
    """
    if x is None or math.isnan(x):
        return "–"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if x == 0.0:
        return "0"
    if abs(x) < 10.0 ** (-digits) or abs(x) >= 1e5:
        text = f"{x:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    else:
        text = f"{x:.0f}" if abs(x) >= 100.0 else f"{x:.2f}" if digits == 2 and abs(x) < 1.0 else f"{x:.{digits}g}"
    return text.replace("-", "−", int(x < 0.0))


def share(x: float) -> str:
    """Format a share as a percentage.

    >>> share(0.456), share(float("nan"))
    ('46%', '–')
    """
    return "–" if math.isnan(x) else f"{x:.0%}"


def curve(
    xs: Sequence[float], ys: Sequence[float], width: int, height: int, span: tuple[float, float] | None = None
) -> str:
    """An SVG path in whole pixels, at most 17 points, over the given span or its own range; '' if there is none.

    >>> curve([0.0, 1.0, 2.0], [0.0, 1.0, 0.0], 10, 4)
    'm0 4l5-4 5 4'
    """
    points = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]
    if len(points) < 2:
        return ""
    every = math.ceil((len(points) - 1) / 16)
    points = points[::every] + ([] if (len(points) - 1) % every == 0 else points[-1:])
    left, right = points[0][0], points[-1][0]
    low, high = span or (min(y for _, y in points), max(y for _, y in points))
    x_range, y_range = (right - left) or 1.0, high - low
    whole = [
        (round((x - left) / x_range * width), round(height - ((y - low) / y_range if y_range else 0.5) * height))
        for x, y in points
    ]
    # Relative steps, and no space before a minus sign: this halves the size, and a page has hundreds of curves.
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(whole)]
    return f"m{whole[0][0]} {whole[0][1]}l" + " ".join(f"{x} {y}" for x, y in steps).replace(" -", "-")
