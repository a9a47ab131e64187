"""`softscope glossary`: the terms in both languages, with their symbols and code names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.cli.commands import HELP, LANG, Arguments, Command
from softscope.cli.layout import pad, width
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from softscope.cli.console import Console

COMMAND = Command(
    name="glossary",
    usage="softscope glossary [TERM] [--lang zh|en]",
    arguments=(("TERM", "glossary.argument.term"),),
    options=(LANG, HELP),
    examples=(("softscope glossary entropy", "glossary.example.one"),),
)


def run(arguments: Arguments, console: Console) -> None:
    """Print one row per term; the reader's language comes first."""
    from softscope.lab import glossary

    word = " ".join(arguments.rest)
    terms = glossary.TERMS
    if word:
        found = glossary.find(word)
        if found is None:
            raise UsageError("glossary.unknown", term=shown(word))
        terms = (found,)
    order = ("zh", "en") if console.lang == "zh" else ("en", "zh")
    head = tuple(console.say(f"glossary.column.{column}") for column in (*order, "symbol", "code"))
    rows = [(*(getattr(term, lang) for lang in order), term.symbol, term.code) for term in terms]
    columns = [max(width(row[i]) for row in (head, *rows)) + 2 for i in range(4)]
    for place, row in enumerate((head, *rows)):
        line = "".join(pad(cell, size) for cell, size in zip(row, columns, strict=True)).rstrip()
        console.write(console.paint(line, "bold") if place == 0 else line)
