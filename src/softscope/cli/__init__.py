"""The command line: `softscope explain`, `softscope tour`, `softscope claims`, `softscope env`."""

from softscope.cli.program import main

__all__ = ["main"]
