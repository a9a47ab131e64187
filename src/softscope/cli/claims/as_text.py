"""The ledger as terminal text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from softscope._text import said
from softscope.cli.claims.parts import counts, ends, left_out, made, parts
from softscope.cli.layout import pad, width, wrap
from softscope.experiments.ledger import place

if TYPE_CHECKING:
    from softscope.cli.claims.checking import Checked
    from softscope.cli.console import Console
    from softscope.experiments.ledger import Entry, Settled

_CHINESE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
_STYLES = {"holds": "code", "only-if": "caution", "fails": "negative", "cited": "dim", "opinion": "dim"}


def show(checked: Checked, console: Console) -> None:
    """Print the contradictions, every claim under its text's heading, and the counts."""
    if checked.settled:
        console.write(console.paint(console.say("claims.contradictions"), "bold"))
        console.write()
        for settled in checked.settled:
            _contradiction(settled, console)
    for text in checked.texts:
        _painted(console, console.say(f"claims.text.{text}"), "bold", "")
        console.write()
        for entry in checked.of(text):
            _entry(entry, console)
    console.paragraph(counts(checked, console.lang), "")
    for line in (left_out(checked), made(checked)):
        if line is not None:
            console.paragraph(line.of(console.lang), "")


def _painted(console: Console, text: str, style: str, indent: str) -> None:
    for line in wrap(text, console.width, indent):
        console.write(console.paint(line, style))


def _entry(entry: Entry, console: Console) -> None:
    claim, outcome = entry.claim, entry.outcome
    verdict = console.say(f"claims.verdict.{outcome.verdict}")
    where = place(claim.where, console.lang)
    where = where if width(where) <= console.width // 2 else ""
    gap = console.width - width(claim.id) - 2 - width(verdict) - width(where)
    head = console.paint(claim.id, "bold") + "  " + console.paint(verdict, _STYLES[outcome.verdict])
    console.write(head + " " * max(2, gap) + console.paint(where, "dim") if where else head)
    console.paragraph(claim.says.of(console.lang))
    if console.lang == "zh" or not _CHINESE.search(claim.quote):  # quoted as it is
        _painted(console, f"“{claim.quote}”", "dim", "  ")
    rows = parts(entry)
    labels = [console.say(key) for key, _ in rows]
    columns = max(map(width, labels)) + 2
    for label, (_, text) in zip(labels, rows, strict=True):
        console.paragraph(said(text, console.lang), "    " + pad(label, columns), " " * (columns + 4))
    console.write()


def _contradiction(settled: Settled, console: Console) -> None:
    found = settled.contradiction
    console.paragraph(found.about.of(console.lang))
    for name in found.ids:
        verdict = settled.verdicts[name]
        console.write(f"    {name}  {console.paint(console.say(f'claims.verdict.{verdict}'), _STYLES[verdict])}")
    console.paragraph(ends(settled).of(console.lang), "    ")
    console.write()
