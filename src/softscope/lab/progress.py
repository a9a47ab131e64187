"""How far the learner is: which lessons were opened and finished, in a small file of the learner's own.

A file and not the browser's storage, because that belongs to an address, and the port differs from start to start.
"""

from __future__ import annotations

import json
import os
import pathlib
import threading
from typing import Any

from softscope.lab.theme import SYSTEM, THEMES

_lock = threading.RLock()  # lessons run in threads of the server


def folder() -> pathlib.Path:
    """Where it is kept: $SOFTSCOPE_HOME, else $XDG_STATE_HOME/softscope, else ~/.local/state/softscope."""
    if os.environ.get("SOFTSCOPE_HOME"):
        return pathlib.Path(os.environ["SOFTSCOPE_HOME"])
    state = os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    return pathlib.Path(state) / "softscope"


class Progress:
    """What is known of the learner; without a path it is forgotten at the end.

    >>> kept = Progress()
    >>> kept.open("overflow"); kept.finish("overflow")
    >>> kept.state("overflow"), kept.state("rivals"), kept.last
    ('done', 'new', 'overflow')
    """

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self.path = path
        self._lessons: dict[str, str] = {}
        self.last: str | None = None
        self.theme = SYSTEM
        if path is not None:
            self._read(path)

    def _read(self, path: pathlib.Path) -> None:
        """What the file says; one that is missing or spoilt is no reason not to start."""
        try:
            kept: Any = json.loads(path.read_text(encoding="utf-8"))
            lessons, last, theme = kept["lessons"], kept["last"], kept.get("theme")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return
        if isinstance(lessons, dict):
            self._lessons = {str(name): state for name, state in lessons.items() if state in ("open", "done")}
        self.last = last if isinstance(last, str) else None
        self.theme = theme if theme in THEMES else SYSTEM

    def _write(self) -> None:
        if self.path is None:
            return
        document = {"version": 1, "lessons": self._lessons, "last": self.last, "theme": self.theme}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(document, indent=1), encoding="utf-8")
            new.replace(self.path)  # whole or not at all, whenever the server is stopped
        except OSError:
            self.path = None  # a home that cannot be written to must not stop a lesson

    def state(self, name: str) -> str:
        """'new', 'open' or 'done'."""
        return self._lessons.get(name, "new")

    def open(self, name: str) -> None:
        """The lesson is being read; one that is done stays so."""
        with _lock:
            self._lessons.setdefault(name, "open")
            self.last = name
            self._write()

    def finish(self, name: str, done: bool = True) -> None:
        """The learner says so, or takes it back."""
        with _lock:
            self._lessons[name] = "done" if done else "open"
            self.last = name
            self._write()

    def paint(self, theme: str) -> None:
        """The learner wants pages light, dark, or as the system has it."""
        with _lock:
            self.theme = theme
            self._write()


_current = Progress()


def use(progress: Progress) -> None:
    """Let the lessons of this process keep their progress there."""
    global _current
    _current = progress


def current() -> Progress:
    """The progress that lessons of this process keep: of the server, or one that is forgotten."""
    return _current
