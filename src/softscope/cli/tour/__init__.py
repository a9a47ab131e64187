"""`softscope tour`: show what the library does, stop by stop, running each call as shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.cli.commands import HELP, LANG, Arguments, Command

if TYPE_CHECKING:
    from softscope.cli.console import Console

COMMAND = Command(
    name="tour",
    usage="softscope tour [--lang zh|en]",
    options=(LANG, HELP),
    examples=(("softscope tour --lang zh", "tour.example.lang"),),
)


def run(_: Arguments, console: Console) -> None:
    """Walk through the stops in one Python interpreter, as a reader could type them."""
    from softscope.cli.tour.interpreter import Interpreter
    from softscope.cli.tour.stops import STOPS

    interpreter = Interpreter()
    console.paragraph(console.say("tour.welcome", stops=len(STOPS)), "")
    for code in ("import numpy as np", "import softscope as ss"):
        _show(code, interpreter.run(code), console)
    for place, stop in enumerate(STOPS, 1):
        console.write()
        title = console.say(f"tour.{stop.name}.title")
        console.write(console.paint(f"{place}/{len(STOPS)}  {title}", "bold"))
        console.paragraph(console.say(f"tour.{stop.name}.why"), "")
        interpreter.values.clear()
        for code in stop.code:
            _show(code, interpreter.run(code), console)
        measured = console.say(f"tour.{stop.name}.measured", **stop.measured(interpreter.values, interpreter.names))
        console.paragraph(measured, "→ ", "  ")
    console.write()
    console.write(console.paint(console.say("tour.next"), "bold"))
    for command, key in (
        ("softscope explain 2.0 2.1 2.2 --temperature 0.5", "tour.next.explain"),
        ("softscope explain --help", "tour.next.help"),
        ("README.md", "tour.next.readme"),
    ):
        console.write("  " + console.paint(command, "code"))
        console.paragraph(console.say(key), " " * 6)


def _show(code: str, result: str, console: Console) -> None:
    console.write("  " + console.paint(f">>> {code}", "code"))
    for line in result.splitlines():
        console.write("  " + line)
