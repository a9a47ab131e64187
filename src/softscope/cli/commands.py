"""A command: its options and examples, from which we build both the parser and the help."""

from __future__ import annotations

import argparse
import dataclasses
import re
from typing import TYPE_CHECKING, Any, NoReturn

from softscope._natural_number import natural_number
from softscope.cli import language
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Each is a module with a `COMMAND` and a `run(Arguments, Console)` that may return an exit code. We import it when it
# is called. Words: `NAME.summary`, `NAME.description`.
COMMANDS = {
    "checkup": "softscope.cli.checkup",
    "explain": "softscope.cli.explain",
    "experiment": "softscope.cli.experiment",
    "tour": "softscope.cli.tour",
    "lab": "softscope.cli.lab",
    "site": "softscope.cli.site",
    "claims": "softscope.cli.claims",
    "watch": "softscope.cli.watch",
    "export": "softscope.cli.export",
    "homework": "softscope.cli.homework",
    "glossary": "softscope.cli.glossary",
    "env": "softscope.cli.env",
}


@dataclasses.dataclass(frozen=True)
class Option:
    """One option: its flags, the words that explain it, and, if it takes a value, how to parse that."""

    flags: tuple[str, ...]
    words: str
    metavar: str = ""
    parse: Callable[[str], Any] = str
    default: Any = None

    @property
    def name(self) -> str:
        """Return the attribute that holds its value."""
        return self.flags[0].lstrip("-").replace("-", "_")


@dataclasses.dataclass(frozen=True)
class Command:
    """One command; `arguments` and `examples` pair what the user types with the words that explain it."""

    name: str
    usage: str
    arguments: tuple[tuple[str, str], ...] = ()
    options: tuple[Option, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()


LANG = Option(("--lang",), "option.lang", "zh|en", language.checked)
HELP = Option(("--help", "-h"), "option.help")


def seed(text: str) -> int:
    """Parse the value of --seed.

    >>> seed("7")
    7
    """
    found = natural_number(text)
    if found is None:
        raise UsageError("seed.wrong", value=shown(text.strip()))
    return found


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What the user typed after the command: the option values, and the rest in order."""

    options: argparse.Namespace
    rest: list[str]


class _Parser(argparse.ArgumentParser):
    """An argparse parser that reports errors as bilingual problems."""

    def error(self, message: str) -> NoReturn:
        option, _, reason = message.removeprefix("argument ").partition(": ")
        if reason == "expected one argument":
            raise UsageError("option.value", option=option)
        raise UsageError("option.wrong", message=shown(message))


def parse(command: Command, argv: Sequence[str]) -> Arguments:
    """Parse a command's arguments. Numbers, including negative ones, and options may come in any order.

    argparse sees only the options: given positional arguments too, it would reject any that follow an option, and
    take -1e5 for an option.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    for option in command.options:
        if option.metavar:
            parser.add_argument(*option.flags, dest=option.name, type=option.parse, default=option.default)
        else:
            parser.add_argument(*option.flags, dest=option.name, action="store_true")
    options, rest = parser.parse_known_args([_shielded(word) for word in argv])
    rest = [word.strip() for word in rest if word != "--"]
    for word in rest:
        if word.startswith("-") and word != "-" and _shielded(word) == word:
            raise UsageError("option.unknown", option=shown(word.partition("=")[0]), command=command.name)
    if rest and not command.arguments:
        raise UsageError("argument.unexpected", argument=shown(rest[0]), command=command.name)
    return Arguments(options, rest)


def _shielded(word: str) -> str:
    """Put a space before a negative number, so that argparse does not take it for an option.

    >>> _shielded("-1e5"), _shielded("-.5"), _shielded("-inf"), _shielded("-T"), _shielded("3")
    (' -1e5', ' -.5', ' -inf', '-T', '3')
    """
    return " " + word if re.match(r"-(\.?\d|inf|nan)", word, re.IGNORECASE) else word
