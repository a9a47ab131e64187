"""Pages that stand alone (the ledger, a report) get a way back to the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.site import frame

if TYPE_CHECKING:
    from softscope._text import Lang

BACK = Text(zh="← softscope 首页", en="← softscope")


def with_way_back(page: str, lang: Lang, here: str) -> str:
    """Put a link to the front page at the top of a page.

    >>> with_way_back("<html><body><p>x</p></body></html>", "en", "ledger.html").count('href="index.html"')
    1
    """
    start = page.index("<body>") + len("<body>")
    link = f'<a href="{frame.link(lang, here, frame.FRONT.path)}">{BACK.of(lang)}</a>'
    return f'{page[:start]}\n<p style="margin: .6rem 1rem 0">{link}</p>{page[start:]}'
