"""`softscope lab`: the course in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._installed import missing
from softscope._natural_number import natural_number
from softscope.cli.commands import HELP, LANG, Arguments, Command, Option
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from softscope.cli.console import Console
    from softscope.lab.homework.json_store import JsonStore

PACKAGES = ("marimo", "anywidget", "starlette", "uvicorn", "zmq", "altair")
HIGHEST = 65535
PATH = 4096  # characters of a path; cut short, it would lead nowhere


def _port(text: str) -> int:
    found = natural_number(text)
    if found is None or found > HIGHEST or not text.isascii():
        raise UsageError("lab.port", value=shown(text.strip()), highest=HIGHEST)
    return found


COMMAND = Command(
    name="lab",
    usage="softscope lab [OPTIONS]",
    options=(
        Option(("--port",), "lab.option.port", "N", _port, 0),
        Option(("--no-browser",), "lab.option.no_browser"),
        LANG,
        HELP,
    ),
    examples=(
        ("softscope lab", "lab.example.plain"),
        ("softscope lab --lang zh --port 8000", "lab.example.port"),
        ("softscope lab --no-browser", "lab.example.no_browser"),
    ),
)


def run(arguments: Arguments, console: Console) -> None:
    """Serve the course until Ctrl-C."""
    for package in missing(PACKAGES):  # check before importing: a traceback helps nobody
        raise UsageError("lab.missing", package=package)
    from softscope.lab import practice, progress
    from softscope.lab.start import listen, serve

    options = arguments.options
    try:
        opened = listen(options.port)
    except OSError as error:
        raise UsageError("lab.taken", port=options.port, reason=error.strerror or type(error).__name__) from None

    told: set[object] = set()

    def troubles() -> list[JsonStore]:
        """Return the records we still cannot write; report a spoilt one once."""
        records = (progress.current(), practice.homework())
        for kept in records:
            if kept.trouble:
                kept.try_to_keep()
        for aside in (kept.spoilt for kept in records):
            if aside is not None and aside not in told:
                told.add(aside)
                console.paragraph(console.say("lab.spoilt", path=shown(aside, PATH)), "")
        return [kept for kept in records if kept.trouble]

    def announce(address: str) -> None:
        for kept in troubles()[:1]:  # one is enough: they share a folder
            console.paragraph(console.say("lab.unkept", **_where(kept)), "")
        console.write(console.say("lab.ready"))
        console.write("  " + console.paint(address, "code"))
        console.write(console.say("lab.stop"))
        if console.stream is not None:
            console.stream.flush()

    serve(opened, lang=console.lang, browser=not options.no_browser, announce=announce)
    unkept = troubles()
    console.write(console.say("lab.stopped.unkept", **_where(unkept[0])) if unkept else console.say("lab.stopped"))


def _where(kept: JsonStore) -> dict[str, str]:
    return {"folder": shown(kept.path and kept.path.parent, PATH), "reason": kept.trouble}
