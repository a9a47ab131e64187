"""`softscope experiment`: run one of the texts' questions, print its tables and findings, and draw its chart."""

from __future__ import annotations

import importlib
import inspect
import pathlib
from typing import TYPE_CHECKING, Any

from softscope.cli.commands import HELP, LANG, Arguments, Command, Option, seed
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from softscope.cli.console import Console

FORMATS = ("text", "json", "markdown")


def _format(text: str) -> str:
    if text not in FORMATS:
        raise UsageError("experiment.format", value=shown(text), known=", ".join(FORMATS))
    return text


def _plot(text: str) -> pathlib.Path:
    from softscope.experiments.chart import SUFFIXES

    path = pathlib.Path(text)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError("experiment.suffix", path=shown(text), known=", ".join(SUFFIXES))
    return path


COMMAND = Command(
    name="experiment",
    usage="softscope experiment NAME [OPTIONS]",
    arguments=(("NAME", "experiment.argument.name"),),
    options=(
        Option(("--list",), "experiment.option.list"),
        Option(("--plot",), "experiment.option.plot", "FILE", _plot),
        Option(("--format",), "experiment.option.format", "FORMAT", _format, "text"),
        Option(("--large",), "experiment.option.large"),
        Option(("--seed",), "experiment.option.seed", "N", seed, 0),
        LANG,
        HELP,
    ),
    examples=(
        ("softscope experiment --list", "experiment.example.list"),
        ("softscope experiment entropy", "experiment.example.entropy"),
        ("softscope experiment learning --plot a.html --lang zh", "experiment.example.plot"),
        ("softscope experiment overflow --format markdown", "experiment.example.markdown"),
    ),
)


def run(arguments: Arguments, console: Console) -> None:
    """List the experiments, or run one."""
    from softscope import experiments
    from softscope.cli.experiment import text

    options = arguments.options
    if options.list:
        if arguments.rest:
            raise UsageError("experiment.list.alone", argument=shown(arguments.rest[0]))
        text.catalogue(console)
        return
    name = _name(arguments.rest)
    sizes = _sizes(name, options.large)
    _check(name, options.plot)
    result = experiments.run(name, lang=console.lang, seed=options.seed, **sizes)
    if options.plot is not None:
        _draw(result, options.plot, console)
    if options.format == "json":
        console.write(result.json())
    elif options.format == "markdown":
        console.write(result.markdown().rstrip())
    else:
        text.show(result, options.plot, console)


def _name(words: list[str]) -> str:
    from softscope.experiments.catalogue import NAMES, nearest

    if len(words) != 1:
        key = "experiment.none" if not words else "experiment.several"
        raise UsageError(key, count=len(words))
    if words[0] in NAMES:
        return words[0]
    guess = nearest(words[0])
    if guess:
        raise UsageError("experiment.unknown.near", name=shown(words[0]), guess=guess)
    raise UsageError("experiment.unknown", name=shown(words[0]), known=", ".join(NAMES))


def _sizes(name: str, large: bool) -> dict[str, Any]:
    if not large:
        return {}
    module = importlib.import_module(f"softscope.experiments.{name}")
    if "large" not in inspect.signature(module.measure).parameters:
        raise UsageError("experiment.large", name=name)
    return {"large": True}


def _check(name: str, plot: pathlib.Path | None) -> None:
    """Fail before the work starts if a package or a folder is missing."""
    from softscope._installed import DRAWING, missing
    from softscope.experiments.catalogue import entry

    for package in missing((*entry(name).needs, *(DRAWING if plot is not None else ()))):
        raise UsageError("experiment.missing", package=package.replace("_", "-"))
    if plot is not None and plot.is_dir():
        raise UsageError("experiment.folder", path=shown(plot))
    if plot is not None and not plot.parent.is_dir():
        raise UsageError("experiment.nowhere", path=shown(plot), folder=shown(plot.parent))


def _draw(result: Any, plot: pathlib.Path, console: Console) -> None:
    from softscope.experiments import chart

    try:
        chart.save(result, plot, console.lang)
    except OSError as error:
        raise UsageError(
            "experiment.unwritable", path=shown(plot), reason=error.strerror or type(error).__name__
        ) from None
