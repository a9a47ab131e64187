"""Lesson 9 in the page: the place where a small attention head trains."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from softscope.site.pictures import NEEDS_SCRIPT

if TYPE_CHECKING:
    from softscope._text import Lang


def section(lang: Lang) -> str:
    """Return the place; `trainer.js` fills it."""
    return f'<div class="stage" data-trainer="{html.escape(lang)}"><noscript>{NEEDS_SCRIPT.of(lang)}</noscript></div>'
