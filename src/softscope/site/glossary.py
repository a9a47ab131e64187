"""The glossary: one word for each thing, in both languages."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.lab.glossary import TERMS
from softscope.site import frame

if TYPE_CHECKING:
    from softscope._text import Lang

LEAD = Text(
    zh="一个概念一个词：课程、报告和程序的输出都用这些词。",
    en="One word for each thing: the lessons, the reports and the program all use these.",
)
HEADS = (
    Text(zh="英文", en="English"),
    Text(zh="中文", en="Chinese"),
    Text(zh="符号", en="symbol"),
    Text(zh="代码", en="code"),
)


def page(site: frame.Frame, lang: Lang) -> str:
    """Return the page; the reader's language comes first."""
    order = (1, 0, 2, 3) if lang == "zh" else (0, 1, 2, 3)

    def row(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{cells[i]}</{tag}>" for i in order) + "</tr>"

    rows = "".join(
        row(
            (
                _(term.en),
                f'<span lang="zh">{_(term.zh)}</span>',
                _(term.symbol),
                f"<code>{_(term.code)}</code>" if term.code else "",
            ),
            "td",
        )
        for term in TERMS
    )
    title = frame.GLOSSARY.name.of(lang)
    head = row(tuple(one.of(lang) for one in HEADS), "th")
    body = (
        f'<h1>{title}</h1>\n<p class="lead">{LEAD.of(lang)}</p>\n<div class="wide" tabindex="0">'
        f"<table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    )
    return site.page(lang, frame.GLOSSARY.path, title, body)


def _(text: str) -> str:
    return html.escape(text)
