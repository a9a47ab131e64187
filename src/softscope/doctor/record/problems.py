"""Problems with a record: an error for readers, a warning for writers."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

from softscope._text import Text, safe, same

if TYPE_CHECKING:
    import pathlib

_LONGEST = 200  # characters of a detail
# reason → what is wrong with the file, and what to do about it.
_SENTENCES = {
    "missing": "there is no file {path}; name the file that the run writes, or start the run first",
    "folder": "{path} is a folder; name the record in it",
    "empty": "{path} is empty: its run has not begun to record; try again in a moment",
    "foreign": "{path} is no softscope record; name the file that was given to softscope.doctor.Record",
    "newer": "{path} is a record of version {found}, and this softscope reads up to version {known}; "
    "update it: pip install -U softscope",
    "older": "{path} is a record of version {found}, and this softscope reads version {known}; "
    "read it with the softscope that wrote it",
    "damaged": "{path} is damaged ({detail}); "
    "copy it again from where it was written, together with {path}-wal if that exists",
    "unreadable": "{path} cannot be read ({detail}); try again, or copy it to a place where you may read and write",
    "special": "{path} is a pipe or a device, not a file; name the file that the run writes",
    "altered": "{path} holds {detail}, which softscope does not write; use the original, or remove what was added",
    "unfinished": "{path} was being written when its run was killed, and {path}-journal must be applied first; resume "
    "the run, or open and close the file once with softscope.doctor.Record",
    "excessive": "{path} asks for more than a record of its size can hold ({detail}); use the original",
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
        if "detail" in values:  # it may quote the file, which may hold anything
            found = values["detail"]
            told = found if isinstance(found, Text) else same(str(found))
            values["detail"] = Text(zh=_short(told.zh), en=_short(told.en))
        sentence = same(_SENTENCES[reason]).format(path=path, **values)
        super().__init__(sentence.en)
        self.reason = reason
        self.values = {"path": path, **values}


def _short(detail: str) -> str:
    told = safe(detail)
    return told if len(told) <= _LONGEST else told[: _LONGEST - 1] + "…"


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
