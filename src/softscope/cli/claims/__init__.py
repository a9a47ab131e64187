"""`softscope claims`: check the source texts' claims, with the measurement and verdict for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.cli.commands import HELP, LANG, Arguments, Command, Option, seed
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from softscope.cli.console import Console

_TEXTS = ("000", "001", "002", "003", "004")
_VERDICTS = ("holds", "only-if", "fails", "cited", "opinion")
_FORMATS = ("text", "json", "markdown", "html")


def _text(value: str) -> str:
    if not value or value.zfill(3) not in _TEXTS:
        raise UsageError("claims.text.unknown", known=", ".join(_TEXTS), value=shown(value))
    return value.zfill(3)


def _verdict(value: str) -> str:
    if value not in _VERDICTS:
        raise UsageError("claims.verdict.unknown", known=", ".join(_VERDICTS), value=shown(value))
    return value


def _format(value: str) -> str:
    if value not in _FORMATS:
        raise UsageError("claims.format.unknown", value=shown(value))
    return value


COMMAND = Command(
    name="claims",
    usage="softscope claims [ID ...] [OPTIONS]",
    arguments=(("ID ...", "claims.argument.id"),),
    options=(
        Option(("--text",), "claims.option.text", "000|…|004", _text),
        Option(("--verdict",), "claims.option.verdict", "|".join(_VERDICTS), _verdict),
        Option(("--fast",), "claims.option.fast"),
        Option(("--seed",), "claims.option.seed", "N", seed, 0),
        Option(("--format",), "claims.option.format", "|".join(_FORMATS), _format, "text"),
        LANG,
        HELP,
    ),
    examples=(
        ("softscope claims S1-03 S4-01", "claims.example.one"),
        ("softscope claims --text 004 --verdict fails", "claims.example.fails"),
        ("softscope claims --format html > claims.html", "claims.example.page"),
    ),
)


def run(arguments: Arguments, console: Console) -> None:
    """Choose the claims, check them, and write them in the requested format."""
    import importlib

    from softscope.cli.claims import checking

    options = arguments.options
    checked = checking.check(arguments.rest, options.text, options.verdict, options.fast, options.seed)
    importlib.import_module(f"{__name__}.as_{options.format}").show(checked, console)
