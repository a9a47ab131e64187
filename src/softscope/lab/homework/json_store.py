"""A small JSON file that several programs may change: one at a time, atomically, and never losing unread data."""

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

_LARGEST = 2**20  # bytes; a larger file cannot be ours
_PATIENCE = 2.0  # seconds to wait for another writer: one suspended mid-write must not block us
_threads = threading.RLock()  # lessons run in the server's threads


class JsonStore:
    """State held in memory and in a file; subclasses define what the file's document means.

    Attributes:
        path: the file; None if nothing is saved.
        spoilt: where we moved a file we could not read; None if there was none.
        trouble: why we could not save the last change; "" if we could.
    """

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self.path = path
        self.spoilt: pathlib.Path | None = None
        self.trouble = ""
        self._unkept: list[Callable[[], None]] = []
        self._reload(self._read)

    def _take(self, document: Any) -> None:
        """Replace the state with the document's; raise if the document makes no sense."""
        raise NotImplementedError

    def _document(self) -> dict[str, Any]:
        """Return the state as a document."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Reload the file, then reapply our changes that are not in it yet.

        Showing a page calls this, so it writes nothing: a file that makes no sense stays until the next change.
        """
        self._reload(self._look)

    def _reload(self, read: Callable[[], object]) -> None:
        with _threads:
            try:
                read()
            except OSError as error:
                self.trouble = _reason(error)
            else:
                self.trouble = self.trouble if self._unkept else ""
            self._repeat()

    def try_to_keep(self) -> None:
        """Write the current state, so that `trouble` says at once whether saving works."""
        self._change(lambda: None)

    def _change(self, change: Callable[[], None]) -> None:
        """Apply a change to the file's current state, not a remembered one: another program may have written since.

        Changes must be idempotent. If we cannot write one, we retry it with the next.
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
        """Read the file. If it makes no sense, move it aside rather than overwrite it: it may be somebody's."""
        if self.path is not None and not self._look():
            aside = self.path.with_suffix(".broken.json")
            self.path.replace(aside)
            self.spoilt = aside

    def _look(self) -> bool:
        """Read the file if it is there; return False, and keep our state, if it makes no sense."""
        if self.path is None:
            return True
        try:
            with self.path.open("rb") as stream:
                text = stream.read(_LARGEST)
        except FileNotFoundError:
            return True
        try:
            self._take(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return False
        return True


@contextlib.contextmanager
def _alone(folder: pathlib.Path) -> Iterator[None]:
    """Hold the lock against other programs. The folder itself is the lock, so we leave no lock file behind."""
    try:
        import fcntl
    except ImportError:  # Windows: reading right before writing has to do
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
    """Write atomically, so that stopping the program at any time leaves a whole file."""
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
