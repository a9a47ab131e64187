"""Problems with a record: an error for readers, a warning for writers."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pathlib

# reason → what is wrong with the file, and what to do about it.
_SENTENCES = {
    "missing": "there is no file {path}; name the file that the run writes, or start the run first",
    "folder": "{path} is a folder; name the record in it",
    "empty": "{path} is empty: its run has not begun to record; try again in a moment",
    "foreign": "{path} is no softscope record; name the file that was given to softscope.doctor.record.Record",
    "newer": "{path} is a record of version {found}, and this softscope reads up to version {known}; "
    "update it: pip install -U softscope",
    "older": "{path} is a record of version {found}, and this softscope reads version {known}; "
    "read it with the softscope that wrote it",
    "damaged": "{path} is damaged ({detail}); "
    "copy it again from where it was written, together with {path}-wal if that exists",
    "unreadable": "{path} cannot be read ({detail}); try again, or copy it to a place where you may read and write",
    "part": "{path} has {parts} part(s), and part {part} was asked for; they count from 0",
}


class RecordError(ValueError):
    """The file cannot be read as a record; `reason` is a word for programs, `values` fill the message.

    >>> import tempfile
    >>> from softscope.doctor import RecordError, read_record
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         read_record(folder)
    ...     except RecordError as error:
    ...         error.reason
    'folder'
    """

    def __init__(self, reason: str, path: pathlib.Path, **values: Any) -> None:
        super().__init__(_SENTENCES[reason].format(path=path, **values))
        self.reason = reason
        self.values = {"path": path, **values}


class RecordNotFoundError(RecordError, FileNotFoundError):
    """The file does not exist.

    >>> from softscope.doctor import read_record
    >>> read_record("no-such-run.db")
    Traceback (most recent call last):
    ...
    softscope.doctor.record.problems.RecordNotFoundError: there is no file no-such-run.db; ...
    """


class RecordWarning(UserWarning):
    """A problem with the record that does not stop the training.

    >>> import tempfile
    >>> from softscope.doctor import Record, RecordWarning
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     with Record(folder):                                               # a folder is no file: training goes on
    ...         pass
    ...     said[0].category.__name__
    'RecordWarning'
    """


def warn(sentence: str) -> None:
    """Warn; where warnings are errors, stay silent, and the training goes on."""
    with contextlib.suppress(RecordWarning):
        warnings.warn(sentence, RecordWarning, stacklevel=3)


def reasons() -> tuple[str, ...]:
    """Every reason an error may have; the command line has a message for each."""
    return tuple(_SENTENCES)
