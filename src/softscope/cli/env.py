"""`softscope env`: print the versions a bug report needs, and nothing that identifies a person or place."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from softscope._installed import version
from softscope.cli.commands import HELP, LANG, Arguments, Command
from softscope.cli.layout import pad

if TYPE_CHECKING:
    from softscope.cli.console import Console

ABSENT = "not installed"
COMMAND = Command(name="env", usage="softscope env [--lang zh|en]", options=(LANG, HELP))


def run(_: Arguments, console: Console) -> None:
    """Print the versions. Names stay English in both languages, for whoever gets the report."""
    facts = versions()
    columns = max(map(len, facts)) + 2
    for name, value in facts.items():
        console.write(pad(name, columns) + value)


def versions() -> dict[str, str]:
    """Return the name and version of everything that affects what the library computes."""
    import softscope
    from softscope import _engine

    # Not platform.platform(): kernel releases can contain custom names.
    libc = " ".join(part for part in platform.libc_ver() if part)
    return {
        "softscope": softscope.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "numpy": version("numpy") or ABSENT,
        "torch": version("torch") or ABSENT,
        "transformers": version("transformers") or ABSENT,
        "platform": ", ".join(part for part in (platform.system(), platform.machine(), libc) if part),
        "engine": f"{_engine.isa()} (of {', '.join(_engine.isas())})",
    }
