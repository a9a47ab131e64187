"""The ledger as Markdown: the contradictions, then one table per text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import said
from softscope.cli.claims.parts import counts, ends, left_out, made, parts

if TYPE_CHECKING:
    from softscope.cli.claims.checking import Checked
    from softscope.cli.console import Console
    from softscope.experiments.ledger import Entry

_COLUMNS = ("claims.claim", "claims.verdict", "claims.found", "claims.because")
_FOUND = ("claims.evidence.measured", "claims.evidence.derived", "claims.evidence.quoted")
_MORE = ("claims.instead", "claims.source")


def show(checked: Checked, console: Console) -> None:
    """Print the contradictions, the tables and the counts."""
    console.write(f"# {console.say('claims.title')}\n\n{console.say('claims.intro')} {made(checked).of(console.lang)}")
    if checked.settled:
        console.write(f"\n## {console.say('claims.contradictions')}\n")
        for settled in checked.settled:
            found = settled.contradiction
            verdicts = ", ".join(f"{name} {console.say(f'claims.verdict.{v}')}" for name, v in settled.verdicts.items())
            console.write(f"- {found.about.of(console.lang)} ({verdicts}) {ends(settled).of(console.lang)}")
    for text in checked.texts:
        console.write(f"\n## {console.say(f'claims.text.{text}')}\n")
        _row(console, ["id", *map(console.say, _COLUMNS)])
        _row(console, ["---"] * (len(_COLUMNS) + 1))
        for entry in checked.of(text):
            _row(console, _cells(entry, console))
    console.write("\n" + counts(checked, console.lang))
    left = left_out(checked)
    if left is not None:
        console.write("\n" + left.of(console.lang))


def _cells(entry: Entry, console: Console) -> list[str]:
    claim, outcome = entry.claim, entry.outcome
    rows = dict(parts(entry))

    def joined(keys: tuple[str, ...]) -> str:
        found = [(key, said(rows[key], console.lang)) for key in keys if key in rows]
        return "<br>".join(f"*{console.say(key)}*: {text}" for key, text in found)

    verdict = f"**{console.say(f'claims.verdict.{outcome.verdict}')}**"
    if "claims.only_if" in rows:
        verdict += " " + said(rows["claims.only_if"], console.lang)
    says = f"{claim.says.of(console.lang)}<br>“{claim.quote}”"
    why = said(outcome.because, console.lang)
    return [claim.id, says, verdict, joined(_FOUND), "<br>".join(filter(None, (why, joined(_MORE))))]


def _row(console: Console, cells: list[str]) -> None:
    console.write("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
