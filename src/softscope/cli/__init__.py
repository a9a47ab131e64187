"""The softscope command line; `softscope --help` lists its commands."""

from softscope.cli.program import main

__all__ = ["main"]
