"""The learner's progress: which lessons were opened and finished, in a small per-user file.

We use a file because browser storage is tied to an address, and our port changes from start to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope.lab.homework.json_store import JsonStore
from softscope.lab.theme import SYSTEM, THEMES

if TYPE_CHECKING:
    import pathlib


class LessonProgress(JsonStore):
    """What we know about the learner; without a path, it is gone when the process ends.

    >>> kept = LessonProgress()
    >>> kept.open("overflow"); kept.finish("overflow")
    >>> kept.state("overflow"), kept.state("rivals"), kept.last
    ('done', 'new', 'overflow')
    """

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self._lessons: dict[str, str] = {}
        self.last: str | None = None
        self._kept_theme = SYSTEM
        super().__init__(path)
        # Read once: this lab's pages should not change theme because another lab's pages did.
        self.theme = self._kept_theme

    def _take(self, document: Any) -> None:
        lessons, last, theme = document["lessons"], document["last"], document.get("theme", SYSTEM)
        if not isinstance(last, str | None) or not isinstance(theme, str):
            raise TypeError("last and theme are names")
        self._lessons = {str(name): state for name, state in lessons.items() if state in ("open", "done")}
        self.last = last
        self._kept_theme = theme if theme in THEMES else SYSTEM

    def _document(self) -> dict[str, Any]:
        return {"version": 1, "lessons": self._lessons, "last": self.last, "theme": self._kept_theme}

    def state(self, name: str) -> str:
        """Return 'new', 'open' or 'done'."""
        return self._lessons.get(name, "new")

    def open(self, name: str) -> None:
        """Mark the lesson as being read; a finished one stays finished."""

        def change() -> None:
            self._lessons.setdefault(name, "open")
            self.last = name

        self._change(change)

    def finish(self, name: str, done: bool = True) -> None:
        """Mark the lesson as finished, or undo that, as the learner chose."""

        def change() -> None:
            self._lessons[name] = "done" if done else "open"
            self.last = name

        self._change(change)

    def paint(self, theme: str) -> None:
        """Save the learner's theme: light, dark or system."""

        def change() -> None:
            self.theme = self._kept_theme = theme

        self._change(change)


_current = LessonProgress()


def use(progress: LessonProgress) -> None:
    """Make this process's lessons save their progress there."""
    global _current
    _current = progress


def current() -> LessonProgress:
    """Return the progress that this process's lessons use: the server's, or one that is never saved."""
    return _current
