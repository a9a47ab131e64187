"""The ledger as one self-contained page: both languages, light and dark, filters; it makes no requests."""

from __future__ import annotations

import html
import importlib.resources
from typing import TYPE_CHECKING

from softscope._text import LANGS, Text
from softscope.cli.claims.parts import ends, parts, words
from softscope.experiments.ledger import place

if TYPE_CHECKING:
    from softscope.cli.claims.checking import Checked
    from softscope.cli.console import Console
    from softscope.experiments.ledger import Entry, Settled

_LANGUAGES = (("zh", "&#20013;&#25991;"), ("en", "English"))  # each in its own language


def show(checked: Checked, console: Console) -> None:
    """Print the page; it opens in the console's language."""
    parts = importlib.resources.files("softscope.cli.claims")
    style, script = (parts.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    console.write(
        f'<!doctype html>\n<html lang="{console.lang}" data-lang="{console.lang}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>softscope · {html.escape(console.say('claims.title'))}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>"
    )
    console.write(f'<h1>{_words("claims.title")}</h1>\n<p class="intro">{_words("claims.intro")}</p>')
    console.write(_filters(checked))
    for text in checked.texts:
        console.write(f'<section data-text="{text}">\n<h2>{_words(f"claims.text.{text}")}</h2>')
        for entry in checked.of(text):
            console.write(_entry(entry))
        console.write("</section>")
    if checked.settled:
        console.write(f"<section>\n<h2>{_words('claims.contradictions')}</h2>")
        for settled in checked.settled:
            console.write(_contradiction(settled))
        console.write("</section>")
    console.write(f"</main>\n<script>\n{script}</script>\n</body>\n</html>")


def _filters(checked: Checked) -> str:
    def button(kind: str, value: str, label: str) -> str:
        pressed = "false" if value else "true"
        return f'<button data-filter="{kind}" value="{value}" aria-pressed="{pressed}">{label}</button>'

    texts = [button("text", "", _words("claims.filter.all")), *(button("text", name, name) for name in checked.texts)]
    verdicts = [button("verdict", "", _words("claims.filter.all"))]
    verdicts += [button("verdict", v, f"{_words(f'claims.verdict.{v}')} {n}") for v, n in checked.counts.items()]
    langs = [f'<button data-lang="{lang}" lang="{lang}">{name}</button>' for lang, name in _LANGUAGES]
    wanted = words("claims.filter.search")
    left = f'<span><span id="left">{len(checked.entries)}</span> {_words("claims.filter.left")}</span>'
    line = '<span class="break"></span>'
    search = '<input type="search" ' + " ".join(f'data-{lang}="{wanted.of(lang)}"' for lang in LANGS) + ">"
    return (
        "<nav>\n"
        + "\n".join([*texts, f'<span class="langs">{" ".join(langs)}</span>', line, *verdicts, line, search, left])
        + "\n</nav>"
    )


def _entry(entry: Entry) -> str:
    claim, outcome = entry.claim, entry.outcome
    listed = "".join(f"<dt>{_words(key)}</dt><dd>{_both(text)}</dd>" for key, text in parts(entry))
    cases = "".join(f"<li{' class=held' if case.held else ''}>{_both(case.label)}</li>" for case in outcome.cases)
    more = f"<details><summary>{_words('claims.cases')}</summary><ul>{cases}</ul></details>" if cases else ""
    head = (
        f'<span class="id">{claim.id}</span><span class="verdict">{_words(f"claims.verdict.{outcome.verdict}")}</span>'
        f'<span class="where">{_both(Text(zh=place(claim.where, "zh"), en=claim.where))}</span>'
    )
    return (
        f'<article id="{claim.id}" class="{outcome.verdict}" data-text="{claim.text}" data-verdict="{outcome.verdict}">'
        f'<header>{head}</header><p class="says">{_both(claim.says)}</p><dl>{listed}</dl>{more}</article>'
    )


def _contradiction(settled: Settled) -> str:
    rows = "".join(
        f'<dt><a href="#{name}">{name}</a></dt>'
        f'<dd class="{verdict}"><span class="verdict">{_words(f"claims.verdict.{verdict}")}</span></dd>'
        for name, verdict in settled.verdicts.items()
    )
    about = f'<p class="says">{_both(settled.contradiction.about)}</p>'
    return f'<article class="opinion">{about}<dl class="sides">{rows}</dl><p>{_both(ends(settled))}</p></article>'


def _words(key: str) -> str:
    return _both(words(key))


def _both(text: Text | str) -> str:
    """Return the text in both languages; the page shows one of them."""
    if isinstance(text, str):
        return html.escape(text)
    return "".join(f'<span class="{lang}" lang="{lang}">{html.escape(text.of(lang))}</span>' for lang in LANGS)
