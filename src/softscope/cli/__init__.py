"""The command line: `softscope explain`, `experiment`, `tour`, `lab`, `claims`, `env`."""

from softscope.cli.program import main

__all__ = ["main"]
