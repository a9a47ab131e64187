"""Shared by `watch` and `export`: the record's name among the arguments, and record errors in both languages."""

from __future__ import annotations

import contextlib
import pathlib
from typing import TYPE_CHECKING

from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator


def names(words: list[str], wanted: tuple[str, ...], command: str) -> list[pathlib.Path]:
    """Return the files among the arguments, checking that there are as many as the command wants."""
    if len(words) != len(wanted):
        raise UsageError("record.names", command=command, wanted=" ".join(wanted), count=len(words))
    return [pathlib.Path(word) for word in words]


@contextlib.contextmanager
def spoken() -> Iterator[None]:
    """Turn a record error into one line in the console's language."""
    from softscope.doctor.record import RecordError

    try:
        yield
    except RecordError as error:
        values = {name: value if name == "detail" else shown(value) for name, value in error.values.items()}
        raise UsageError(f"record.{error.reason}", **values) from None
