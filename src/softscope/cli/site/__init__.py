"""`softscope site`: the course and everything around it as a folder of plain files."""

from __future__ import annotations

import dataclasses
import io
import pathlib
from typing import TYPE_CHECKING

from softscope._installed import missing
from softscope._progress_bar import ProgressBar
from softscope.cli.commands import HELP, LANG, Arguments, Command, parse
from softscope.cli.language import say
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._text import Lang
    from softscope.cli.console import Console

PACKAGES = ("marimo", "anywidget", "altair", "vl_convert", "torch", "sympy")

COMMAND = Command(
    name="site",
    usage="softscope site FOLDER [--lang zh|en]",
    arguments=(("FOLDER", "site.argument.folder"),),
    options=(LANG, HELP),
    examples=(("softscope site public", "site.example.plain"),),
)


def run(arguments: Arguments, console: Console) -> None:
    """Write the site into an empty or new folder."""
    if len(arguments.rest) != 1:
        raise UsageError("site.one", count=len(arguments.rest))
    folder = pathlib.Path(arguments.rest[0])
    for package in missing(PACKAGES):  # check before importing: a traceback helps nobody
        raise UsageError("site.missing", package=package.replace("_", "-"))
    _prepare(folder)
    from softscope.site.build import build

    bar = ProgressBar()

    def progress(part: str, share: float) -> None:
        bar.label = part
        bar(share)

    try:
        absent = build(folder, ledger=_ledger(console), progress=progress)
    except OSError as error:
        raise UsageError(
            "site.unwritable", folder=shown(folder), reason=error.strerror or type(error).__name__
        ) from None
    finally:
        bar.wipe()
    for place in absent:
        console.paragraph(console.say("site.absent", page=place.name.of(console.lang)), "")
    console.write(console.say("site.written", page=folder / "index.html"))


def _prepare(folder: pathlib.Path) -> None:
    """Make the folder; one that holds something stays as it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError("site.full", folder=shown(folder))
        probe = folder / ".softscope"
        probe.touch()  # hours of work are not lost to a disk that cannot be written
        probe.unlink()
    except OSError as error:
        raise UsageError(
            "site.unwritable", folder=shown(folder), reason=error.strerror or type(error).__name__
        ) from None


def _ledger(console: Console) -> Callable[[Lang], str]:
    """Return what gives the ledger's page; the claims are checked once, since the page holds both languages."""
    from softscope.cli import claims

    made = io.StringIO()

    def page(lang: Lang) -> str:
        if not made.getvalue():
            words = parse(claims.COMMAND, ["--format", "html"])
            claims.run(words, dataclasses.replace(console, stream=made, lang="en"))
        text = made.getvalue()
        for attribute in ("lang", "data-lang"):
            text = text.replace(f' {attribute}="en"', f' {attribute}="{lang}"', 1)
        return text.replace(say("en", "claims.title"), say(lang, "claims.title"), 1)

    return page
