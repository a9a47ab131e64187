"""The benchmarks: `docs/speed.md` as a page, with the date on which its figures last changed."""

from __future__ import annotations

import pathlib
import re
import subprocess
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.site import frame
from softscope.site.lessons.controls import Plan
from softscope.site.lessons.convert import Converter

if TYPE_CHECKING:
    from softscope._text import Lang

DOCS = pathlib.Path(__file__).parents[3] / "docs"  # there in a source tree, not in an installed package
DATED = Text(zh="这些数字最后一次改动：{date}。", en="These figures last changed on {date}.")


def source(lang: Lang) -> pathlib.Path:
    """Return the document in one language."""
    return DOCS / ("speed.zh-CN.md" if lang == "zh" else "speed.md")


def available() -> bool:
    """Say whether this is a source tree, which has the documents."""
    return source("en").is_file() and source("zh").is_file()


def page(site: frame.Frame, lang: Lang) -> str:
    """Return the document as a page; a link to a file that the site does not have becomes plain text."""
    import marimo

    text = re.sub(r"^\[README\].*\n", "", source(lang).read_text("utf-8"), count=1, flags=re.MULTILINE)
    made = Converter(lang, frame.SPEED.path, Plan({}, [])).html(str(marimo.md(text).text), {})
    made = re.sub(r"(<table\b.*?</table>)", r'<div class="wide" tabindex="0">\1</div>', made, flags=re.DOTALL)
    made = re.sub(r'<a href="\.\./bench/lengths\.svg">(.*?)</a>', _chart(lang), made)
    made = re.sub(r'<a href="(?!#|http|[./]*assets)[^"]*">(.*?)</a>', r"\1", made)
    dated = f'<p class="quiet">{DATED.of(lang).format(date=date(lang))}</p>' if date(lang) else ""
    made = made.replace("</h1>", f"</h1>\n{dated}", 1)
    return site.page(lang, frame.SPEED.path, frame.SPEED.name.of(lang), made)


def chart() -> pathlib.Path:
    """Return the chart that the document links to."""
    return DOCS.parent / "bench" / "lengths.svg"


def date(lang: Lang) -> str:
    """Return the day of the document's last commit; empty without a history.

    >>> len(date("en")) in (0, 10)
    True
    """
    command = ["git", "-C", str(DOCS), "log", "-1", "--format=%cs", "--", source(lang).name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _chart(lang: Lang) -> str:
    to = frame.link(lang, frame.SPEED.path, "assets/lengths.svg")
    return rf'<a href="{to}">\1</a>'
