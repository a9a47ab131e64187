"""How far the learner is: which lessons were opened and finished, in a small file of the learner's own.

A file and not the browser's storage, because that belongs to an address, and the port differs from start to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope.lab.homework.json_store import JsonStore
from softscope.lab.theme import SYSTEM, THEMES

if TYPE_CHECKING:
    import pathlib


class LessonProgress(JsonStore):
    """What is known of the learner; without a path it is forgotten at the end.

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
        # Asked once: the pages of this lab do not change their colours because those of another one do.
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
        """'new', 'open' or 'done'."""
        return self._lessons.get(name, "new")

    def open(self, name: str) -> None:
        """The lesson is being read; one that is done stays so."""

        def change() -> None:
            self._lessons.setdefault(name, "open")
            self.last = name

        self._change(change)

    def finish(self, name: str, done: bool = True) -> None:
        """The learner says so, or takes it back."""

        def change() -> None:
            self._lessons[name] = "done" if done else "open"
            self.last = name

        self._change(change)

    def paint(self, theme: str) -> None:
        """The learner wants pages light, dark, or as the system has it."""

        def change() -> None:
            self.theme = self._kept_theme = theme

        self._change(change)


_current = LessonProgress()


def use(progress: LessonProgress) -> None:
    """Let the lessons of this process keep their progress there."""
    global _current
    _current = progress


def current() -> LessonProgress:
    """The progress that lessons of this process keep: of the server, or one that is forgotten."""
    return _current
