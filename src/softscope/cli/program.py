"""`softscope`: find the command, run it, and turn failures into one line and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from typing import TYPE_CHECKING

from softscope._users_code import told
from softscope.cli import help as _help
from softscope.cli import language
from softscope.cli.commands import COMMANDS, HELP, LANG, Command, Option, parse
from softscope.cli.console import Console, forget
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope._text import Lang

FINE, WRONG, INTERRUPTED = 0, 2, 130

_WHOLE = Command(
    name="softscope",
    usage="softscope [OPTIONS] COMMAND [...]",
    options=(Option(("--version",), "option.version"), LANG, HELP),
    examples=(
        ("softscope checkup", "softscope.example.checkup"),
        ("softscope tour", "softscope.example.tour"),
        ("softscope explain 2.0 2.1 2.2 --temperature 0.5", "softscope.example.explain"),
        ("softscope explain --help", "softscope.example.help"),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0 if all is well, 2 for a usage error or an unreadable or unwritable file.

    A command may return its own exit code: 1 for findings, or for homework that does not pass yet.
    """
    argv = sys.argv[1:] if argv is None else argv
    lang = language.asked_for(argv)
    code = FINE
    try:
        code = _run(argv, Console.of(sys.stdout, os.environ, lang))
        if sys.stdout is not None:
            sys.stdout.flush()
    except UsageError as problem:
        return _complain(problem, lang)
    except BrokenPipeError:  # the reader has seen enough, as in `softscope tour | head -1`
        forget(sys.stdout)
        return code
    except OSError as error:  # commands report their own read errors, so this is the disk under stdout
        forget(sys.stdout)
        return _complain(UsageError("write.failed", reason=error.strerror or type(error).__name__), lang)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as error:  # of somebody else's code: whatever it says, the command has not finished
        return _complain(UsageError("program.left", reason=shown(told(error))), lang)
    except BaseException as error:  # Python would exit with 1, which means findings
        if sys.stderr is not None:
            traceback.print_exc()
        return _complain(UsageError("program.failed", reason=shown(told(error))), lang)
    return code


def _run(argv: Sequence[str], console: Console) -> int:
    before, after = _divided(argv)
    options = parse(_WHOLE, before).options
    if options.version:
        import softscope

        console.write(f"softscope {softscope.__version__}")
        return FINE
    if options.help or not after:
        _help.show(_WHOLE, console)
        return FINE
    if after[0] not in COMMANDS:
        raise UsageError("command.unknown", command=shown(after[0]), known=", ".join(COMMANDS))
    module = importlib.import_module(COMMANDS[after[0]])
    arguments = parse(module.COMMAND, after[1:])
    if arguments.options.help:
        _help.show(module.COMMAND, console)
        return FINE
    return module.run(arguments, console) or FINE


def _divided(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split off the options of `softscope` itself from the command and its arguments.

    >>> _divided(["--lang", "zh", "explain", "1", "--lang", "en"])
    (['--lang', 'zh'], ['explain', '1', '--lang', 'en'])
    """
    i = 0
    while i < len(argv) and argv[i].startswith("-"):
        i += 2 if argv[i] == "--lang" else 1
    return argv[:i], argv[i:]


def _complain(problem: UsageError, lang: Lang | None) -> int:
    console = Console.of(sys.stderr, os.environ, lang)
    with contextlib.suppress(OSError):
        console.write("softscope: " + console.say(problem.key, **problem.values))
    return WRONG
