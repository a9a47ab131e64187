"""The command line: `softscope explain`, `experiment`, `tour`, `claims`, `homework`, `glossary`, `env`."""

from softscope.cli.program import main

__all__ = ["main"]
