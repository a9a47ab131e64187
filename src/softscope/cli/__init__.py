"""The command line: `softscope checkup`, `explain`, `experiment`, `tour`, `claims`, `env`."""

from softscope.cli.program import main

__all__ = ["main"]
