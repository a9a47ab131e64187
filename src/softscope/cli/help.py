"""Help for one command and for the whole program, in the console's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.cli.commands import COMMANDS
from softscope.cli.layout import pad, width

if TYPE_CHECKING:
    from softscope.cli.commands import Command
    from softscope.cli.console import Console


def show(command: Command, console: Console) -> None:
    """Print usage, what the command does, its arguments, options and examples."""
    console.paragraph(command.usage, console.say("help.usage"), "  ")
    console.write()
    console.paragraph(console.say(f"{command.name}.description"), "")
    if command.name == "softscope":
        _table(console, "help.commands", [(name, f"{name}.summary") for name in COMMANDS])
    _table(console, "help.arguments", list(command.arguments))
    _table(console, "help.options", [(", ".join(o.flags) + f" {o.metavar}", o.words) for o in command.options])
    _examples(command, console)


def _table(console: Console, title: str, rows: list[tuple[str, str]]) -> None:
    """Print rows of what to type and what it means."""
    if not rows:
        return
    _title(console, title)
    typed = [left.strip() for left, _ in rows]
    columns = min(max(map(width, typed)), console.width // 3)
    for left, (_, key) in zip(typed, rows, strict=True):
        first = "  " + pad(left, columns) + "  "
        if width(left) > columns:
            console.write("  " + left)
            first = " " * (columns + 4)
        console.paragraph(console.say(key), first, " " * (columns + 4))


def _examples(command: Command, console: Console) -> None:
    if command.examples:
        _title(console, "help.examples")
    for typed, key in command.examples:
        console.write("  " + console.paint(typed, "code"))
        console.paragraph(console.say(key), " " * 6)


def _title(console: Console, key: str) -> None:
    console.write()
    console.write(console.paint(console.say(key), "bold"))
