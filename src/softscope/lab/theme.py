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


def links(now: str, lang: Lang, lesson: str = "") -> str:
    """Return an HTML link for each theme; each link leads back to the current page.

    >>> links("dark", "en").count("<a "), links("dark", "en").count("aria-current")
    (3, 1)
    """
    back = f"&amp;lesson={html.escape(lesson)}" if lesson else ""
    made = []
    for name, (sign, label) in THEMES.items():
        current = ' aria-current="true"' if name == now else ""
        words = label.of(lang)
        made.append(
            f'<a href="/theme/{name}?lang={lang}{back}" target="_self" title="{words}" aria-label="{words}"{current}>'
            f"{sign}</a>"
        )
    return f'<span class="themes">{"".join(made)}</span>'
