"""Light, dark or system theme: one choice for the index and all lessons, saved with the progress."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from softscope._text import Text

if TYPE_CHECKING:
    from softscope._text import Lang

SYSTEM = "system"
THEMES = {
    "light": ("☀", Text(zh="浅色", en="light")),
    "dark": ("☾", Text(zh="深色", en="dark")),
    SYSTEM: ("◐", Text(zh="跟随系统", en="follow the system")),
}


def buttons(now: str, lang: Lang, lesson: str = "") -> str:
    """Return an HTML button for each theme; each leads back to the current page.

    Buttons and not links, since a link that changes something can be followed from any other page.

    >>> buttons("dark", "en").count("<form "), buttons("dark", "en").count('"true"')
    (3, 1)
    """
    back = f"&amp;lesson={html.escape(lesson)}" if lesson else ""
    made = []
    for name, (sign, label) in THEMES.items():
        words = label.of(lang)
        made.append(
            f'<form method="post" action="/theme/{name}?lang={lang}{back}"><button type="submit" title="{words}" '
            f'aria-label="{words}" aria-pressed="{str(name == now).lower()}">{sign}</button></form>'
        )
    return f'<div class="themes">{"".join(made)}</div>'
