"""The frame around every page: head, navigation, language and theme; all links are relative."""

from __future__ import annotations

import html
import importlib.resources
from typing import TYPE_CHECKING, NamedTuple

import softscope
from softscope._text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope._text import Lang

# From a file, 'self' is nobody: the page's own files are named by their scheme.
POLICY = "default-src 'self' file: data: 'unsafe-inline'"
OTHER: dict[Lang, Lang] = {"en": "zh", "zh": "en"}
OTHER_NAME = Text(zh="English", en="中文")
LIGHT, DARK = Text(zh="浅色", en="Light"), Text(zh="深色", en="Dark")
MENU = Text(zh="本站各页", en="Pages of this site")
SKIP = Text(zh="跳到正文", en="Skip to the content")


class Place(NamedTuple):
    """A page of the site: its path, the same in both languages, and its name in the navigation."""

    path: str
    name: Text


FRONT = Place("index.html", Text(zh="首页", en="Home"))
LESSONS = Place("lessons/index.html", Text(zh="课程", en="Lessons"))
HOMEWORK = Place("homework.html", Text(zh="练习", en="Homework"))
LEDGER = Place("ledger.html", Text(zh="说法核对", en="Claims"))
REPORT = Place("report.html", Text(zh="体检报告样例", en="Sample report"))
GLOSSARY = Place("glossary.html", Text(zh="词汇表", en="Glossary"))
SPEED = Place("speed.html", Text(zh="速度", en="Speed"))
REFERENCE = Place("reference/index.html", Text(zh="API 参考（英文）", en="API reference"))
PLACES = (FRONT, LESSONS, HOMEWORK, LEDGER, REPORT, GLOSSARY, SPEED, REFERENCE)
SHARED = ("assets/", "reference/")  # one for both languages


def home(path: str, lang: Lang) -> str:
    """Return where a page lies in the folder.

    >>> home("glossary.html", "zh"), home("assets/site.css", "zh")
    ('zh/glossary.html', 'assets/site.css')
    """
    return path if lang == "en" or path.startswith(SHARED) else f"zh/{path}"


def link(lang: Lang, here: str, to: str, other: Lang | None = None) -> str:
    """Return the relative address of page `to` (in language `other`, if given) on page `here`.

    >>> link("zh", "lessons/overflow.html", "index.html"), link("en", "index.html", "index.html", "zh")
    ('../index.html', 'zh/index.html')
    """
    start, end = home(here, lang).split("/"), home(to, lang if other is None else other).split("/")
    while len(start) > 1 and len(end) > 1 and start[0] == end[0]:
        start, end = start[1:], end[1:]
    return "../" * (len(start) - 1) + "/".join(end)


def asset(name: str) -> str:
    """Return the text of one of our own scripts or styles."""
    return importlib.resources.files("softscope.site").joinpath("assets", name).read_text("utf-8")


class Frame(NamedTuple):
    """What every page of one site shares: the pages that are there."""

    places: Sequence[Place]

    def page(
        self,
        lang: Lang,
        here: str,
        title: str,
        body: str,
        *,
        scripts: Sequence[str] = (),
        styles: Sequence[str] = (),
        inline: str = "",
    ) -> str:
        """Return a whole page; `scripts` and `styles` are files in `assets/`, `inline` is a script of its own."""

        def to(path: str, other: Lang | None = None) -> str:
            return link(lang, here, path, other)

        head = "".join(f'<link rel="stylesheet" href="{to(f"assets/{name}")}">\n' for name in ("site.css", *styles))
        after = "".join(f'<script src="{to(f"assets/{name}")}"></script>\n' for name in scripts)
        own = f"<script>\n{inline}</script>\n" if inline else ""
        name = "softscope" if title == "softscope" else f"{html.escape(title)} · softscope"
        return (
            f'<!doctype html>\n<html lang="{"zh-CN" if lang == "zh" else "en"}">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta name="color-scheme" content="light dark">\n<title>{name}</title>\n'
            f'<link rel="icon" href="{to("assets/icon.svg")}">\n{head}<script>\n{asset("theme.js")}</script>\n</head>\n'
            f'<body>\n<a class="skip" href="#content">{SKIP.of(lang)}</a>\n{self._bar(lang, here)}\n'
            f'<main id="content">\n{body}\n</main>\n<footer>softscope {softscope.__version__}</footer>\n'
            f"{after}{own}</body>\n</html>\n"
        )

    def _bar(self, lang: Lang, here: str) -> str:
        items = []
        for place in self.places:
            now = place.path == here or (place is LESSONS and here.startswith("lessons/"))
            mark = ' aria-current="page"' if now else ""
            items.append(f'<a href="{link(lang, here, place.path)}"{mark}>{html.escape(place.name.of(lang))}</a>')
        other = OTHER[lang]
        return (
            f'<header class="bar"><a class="brand" href="{link(lang, here, FRONT.path)}">softscope</a>'
            f'<nav aria-label="{MENU.of(lang)}">{"".join(items)}</nav><div class="tools">'
            f'<a href="{link(lang, here, here, other)}" hreflang="{other}" lang="{other}" data-language="{other}">'
            f"{OTHER_NAME.of(lang)}</a>"
            f'<button type="button" class="theme" data-dark="{DARK.of(lang)}" data-light="{LIGHT.of(lang)}">◐</button>'
            f"</div></header>"
        )
