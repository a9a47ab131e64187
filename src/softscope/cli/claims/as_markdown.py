"""The ledger as Markdown: one table per text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import said
from softscope.cli.claims.parts import counts, ends

if TYPE_CHECKING:
    from softscope.cli.claims.checking import Checked
    from softscope.cli.console import Console
    from softscope.experiments.ledger import Entry

_COLUMNS = ("claims.claim", "claims.verdict", "claims.measured", "claims.because")


def show(checked: Checked, console: Console) -> None:
    """Print the tables, the contradictions and the counts."""
    console.write(f"# {console.say('claims.title')}\n\n{console.say('claims.intro')}")
    for text in checked.texts:
        console.write(f"\n## {console.say(f'claims.text.{text}')}\n")
        _row(console, ["id", *map(console.say, _COLUMNS)])
        _row(console, ["---"] * (len(_COLUMNS) + 1))
        for entry in checked.of(text):
            _row(console, _cells(entry, console))
    if checked.settled:
        console.write(f"\n## {console.say('claims.contradictions')}\n")
        for settled in checked.settled:
            found = settled.contradiction
            verdicts = ", ".join(f"{name} {console.say(f'claims.verdict.{v}')}" for name, v in settled.verdicts.items())
            console.write(f"- {found.about.of(console.lang)} ({verdicts}) {ends(settled).of(console.lang)}")
    console.write("\n" + counts(checked, console.lang))


def _cells(entry: Entry, console: Console) -> list[str]:
    claim, outcome = entry.claim, entry.outcome
    verdict = f"**{console.say(f'claims.verdict.{outcome.verdict}')}**"
    if outcome.verdict == "only-if" and outcome.only_if is not None:
        verdict += " " + outcome.only_if.of(console.lang)
    because = " ".join(part for part in (outcome.because.of(console.lang), outcome.source) if part)
    return [claim.id, claim.says.of(console.lang), verdict, said(outcome.measured, console.lang), because]


def _row(console: Console, cells: list[str]) -> None:
    console.write("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
