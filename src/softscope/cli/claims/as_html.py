"""The ledger as one self-contained page: both languages, light and dark, filters; it makes no requests."""

from __future__ import annotations

import html
import importlib.resources
import inspect
from typing import TYPE_CHECKING

from softscope._text import LANGS, Text
from softscope.cli.claims.parts import ends, left_out, made, parts, words
from softscope.experiments.ledger import place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope.cli.claims.checking import Checked
    from softscope.cli.console import Console
    from softscope.experiments.ledger import Claim, Entry, Settled

_LANGUAGES = (("zh", "&#20013;&#25991;"), ("en", "English"))  # each in its own language


def show(checked: Checked, console: Console) -> None:
    """Print the page; it opens in the console's language."""
    files = importlib.resources.files("softscope.cli.claims")
    style, script = (files.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    console.write(
        f'<!doctype html>\n<html lang="{console.lang}" data-lang="{console.lang}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>softscope · {html.escape(console.say('claims.title'))}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>"
    )
    console.write(_top(checked))
    if checked.settled:
        console.write(f'<section id="contradictions">\n<h2>{_words("claims.contradictions")}</h2>')
        says = {entry.claim.id: entry.claim.says for entry in checked.checked}
        for settled in checked.settled:
            console.write(_contradiction(settled, says))
        console.write("</section>")
    for text in checked.texts:
        console.write(f'<section data-text="{text}" id="text-{text}">\n<h2>{_words(f"claims.text.{text}")}</h2>')
        for entry in checked.of(text):
            console.write(_entry(entry))
        console.write("</section>")
    console.write(f"</main>\n<script>\n{script}</script>\n</body>\n</html>")


def _top(checked: Checked) -> str:
    lines = [f'<h1>{_words("claims.title")}</h1>\n<p class="intro">{_words("claims.intro")} {_both(made(checked))}</p>']
    lines.append(f'<p class="intro">{_words("claims.rule")}</p>')
    left = left_out(checked)
    if left is not None:
        lines.append(f'<p class="left-out">{_both(left)}</p>')
    return "\n".join([*lines, _bars(checked), _filters(checked)])


def _bars(checked: Checked) -> str:
    """Draw each text as a bar, one piece per verdict."""
    rows = []
    for text in checked.texts:
        found = [entry.outcome.verdict for entry in checked.of(text)]
        pieces = "".join(
            f'<span class="{verdict}" style="flex-grow:{found.count(verdict)}">{found.count(verdict)}</span>'
            for verdict in checked.counts
            if verdict in found
        )
        rows.append(f'<a href="#text-{text}">{text}</a><div class="bar">{pieces}</div>')
    return f'<div class="bars">{"".join(rows)}</div>'


def _filters(checked: Checked) -> str:
    def button(kind: str, value: str, label: str) -> str:
        pressed = "false" if value else "true"
        shade = f' class="{value}"' if kind == "verdict" and value else ""
        return f'<button{shade} data-filter="{kind}" value="{value}" aria-pressed="{pressed}">{label}</button>'

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
    held = {True: " class=held", False: ""}
    cases = "".join(f"<li{held[case.held]}>{_both(case.label)}</li>" for case in outcome.cases)
    more = f"<details open><summary>{_words('claims.cases')}</summary><ul>{cases}</ul></details>" if cases else ""
    head = (
        f'<a class="id" href="#{claim.id}">{claim.id}</a>'
        f'<span class="verdict">{_words(f"claims.verdict.{outcome.verdict}")}</span>'
        f'<span class="where">{_both(Text(zh=place(claim.where, "zh"), en=claim.where))}</span>'
    )
    quote = f"<blockquote>{html.escape(claim.quote)}</blockquote>" if claim.quote else ""
    return (
        f'<article id="{claim.id}" class="{outcome.verdict}" data-text="{claim.text}" data-verdict="{outcome.verdict}">'
        f'<header>{head}</header><p class="says">{_both(claim.says)}</p>{quote}<dl>{listed}</dl>{more}{_code(claim)}'
        "</article>"
    )


def _code(claim: Claim) -> str:
    module, line = claim.code
    at = words("claims.code.at", module=module, line=line)
    source = html.escape(inspect.getsource(claim.check))
    return (
        f'<details class="code"><summary>{_words("claims.code")} · {_both(at)}</summary><pre>{source}</pre></details>'
    )


def _contradiction(settled: Settled, says: Mapping[str, Text]) -> str:
    rows = "".join(
        f'<dt><a href="#{name}">{name}</a></dt>'
        f'<dd class="{verdict}">{_both(says[name])} '
        f'<span class="verdict">{_words(f"claims.verdict.{verdict}")}</span></dd>'
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
