"""`softscope explain`: show what a map does to a row of numbers, in a table and in plain sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softscope.cli.commands import HELP, LANG, Arguments, Command, Option
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from softscope.cli.console import Console


def _temperature(text: str) -> float:
    try:
        value = float(text.strip().replace("−", "-"))
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise UsageError("temperature.wrong", value=shown(text.strip()))
    return value


def _row(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError("row.wrong", value=shown(text.strip())) from None


def _format(text: str) -> str:
    if text not in ("text", "json"):
        raise UsageError("format.unknown", value=shown(text))
    return text


COMMAND = Command(
    name="explain",
    usage="softscope explain [NUMBER ... | FILE.npy | -] [OPTIONS]",
    arguments=(
        ("NUMBER ...", "explain.argument.numbers"),
        ("FILE.npy", "explain.argument.file"),
        ("-", "explain.argument.stdin"),
    ),
    options=(
        Option(("--temperature", "-T"), "explain.option.temperature", "T", _temperature, 1.0),
        Option(("--map",), "explain.option.map", "MAP", str, "softmax"),
        Option(("--file",), "explain.option.file", "FILE.npy"),
        Option(("--row",), "explain.option.row", "N", _row),
        Option(("--format",), "explain.option.format", "text|json", _format, "text"),
        LANG,
        HELP,
    ),
    examples=(
        ("softscope explain 2.0 2.1 2.2 --temperature 0.5", "explain.example.temperature"),
        ("softscope explain -3 -1 0 1 3 --map sparsemax", "explain.example.sparsemax"),
        ("softscope explain -3 -1 0 1 3 --map linear", "explain.example.linear"),
        ("seq 1 5 | softscope explain --format json", "explain.example.stdin"),
        ("softscope explain logits.npy --row 3", "explain.example.file"),
    ),
)


def run(arguments: Arguments, console: Console) -> None:
    """Read the numbers, weigh them at the temperature and at 1, and explain."""
    from softscope.cli.explain import document, maps, measure, source, text

    options = arguments.options
    chosen = maps.named(options.map)
    row = source.read(arguments.rest, options.file, options.row)
    explanation = measure.explain(row, chosen, options.temperature)
    if options.format == "json":
        document.show(explanation, console)
    else:
        text.show(explanation, console)
