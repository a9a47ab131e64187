"""The command line: `softscope explain`, `softscope experiment`, `softscope tour`, `softscope env`."""

from softscope.cli.program import main

__all__ = ["main"]
