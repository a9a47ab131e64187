"""A small JSON file that several programs may change: one at a time, whole or not at all, and never lost unread."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LARGEST = 2**20  # bytes of a file that can be ours
_PATIENCE = 2.0  # seconds for another program that is writing: one that was stopped meanwhile must not stop us
_threads = threading.RLock()  # lessons run in threads of the server


class JsonStore:
    """What is known, in memory and in its file; subclasses say what a document of the file means.

    Attributes:
        path: the file, None where nothing is kept.
        spoilt: where a file that could not be read was put aside; None if there was none.
        trouble: why the last change could not be kept; "" if it was.
    """

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self.path = path
        self.spoilt: pathlib.Path | None = None
        self.trouble = ""
        self._unkept: list[Callable[[], None]] = []
        self.refresh()

    def _take(self, document: Any) -> None:
        """Know what the document says, and nothing else; one that makes no sense raises."""
        raise NotImplementedError

    def _document(self) -> dict[str, Any]:
        """What is known."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Know what the file says by now, and what of ours is not in it yet."""
        with _threads:
            try:
                self._read()
            except OSError as error:
                self.trouble = _reason(error)
            else:
                self.trouble = self.trouble if self._unkept else ""
            self._repeat()

    def try_to_keep(self) -> None:
        """Write what is known, so that `trouble` says at once whether it can be kept."""
        self._change(lambda: None)

    def _change(self, change: Callable[[], None]) -> None:
        """Make a change to what the file says by now, not to what it said once: another program may have written.

        A change must come to the same when it is made twice. What cannot be written is tried again with the next one.
        """
        with _threads:
            self._unkept.append(change)
            if self.path is None:
                self._repeat()
                self._unkept.clear()
                return
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with _alone(self.path.parent):
                    self._read()
                    self._repeat()
                    _write(self.path, self._document())
            except OSError as error:
                self.trouble = _reason(error)
                self._repeat()
            else:
                self.trouble = ""
                self._unkept.clear()

    def _repeat(self) -> None:
        for change in self._unkept:
            change()

    def _read(self) -> None:
        """What the file says. One that makes no sense is put aside, not overwritten: it may be somebody's."""
        if self.path is None:
            return
        try:
            with self.path.open("rb") as stream:
                text = stream.read(_LARGEST)
        except FileNotFoundError:
            return
        try:
            self._take(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            aside = self.path.with_suffix(".broken.json")
            self.path.replace(aside)
            self.spoilt = aside


@contextlib.contextmanager
def _alone(folder: pathlib.Path) -> Iterator[None]:
    """While no other program is here. The folder itself is the lock, so that no file of a lock is left behind."""
    try:
        import fcntl
    except ImportError:  # Windows: reading just before writing has to do
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(0.01)
                    continue
            except OSError:  # a file system without locks
                pass
            break
        yield
    finally:
        os.close(handle)


def _write(path: pathlib.Path, document: dict[str, Any]) -> None:
    """Whole or not at all, whenever the program is stopped."""
    handle, new = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(document, stream, indent=1)
        pathlib.Path(new).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            pathlib.Path(new).unlink()
        raise


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
