"""How far the learner is with the homework, in a small file that is whole or not there at all."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any, Literal

from softscope.lab.homework.catalogue import EXERCISES, IDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope.lab.homework.exercise import Exercise
    from softscope.lab.homework.quiz import Quiz

State = Literal["new", "tried", "skipped", "passed"]
_STATES: tuple[State, ...] = ("new", "tried", "skipped", "passed")
_LARGEST = 2**20  # bytes of a file that can be ours


def file(environ: Mapping[str, str] = os.environ) -> pathlib.Path:
    """Where it is kept: $SOFTSCOPE_HOME, else $XDG_STATE_HOME/softscope, else ~/.local/state/softscope.

    >>> file({"SOFTSCOPE_HOME": "/there"}).as_posix()
    '/there/homework.json'
    """
    if environ.get("SOFTSCOPE_HOME"):
        return pathlib.Path(environ["SOFTSCOPE_HOME"]) / "homework.json"
    state = environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    return pathlib.Path(state) / "softscope" / "homework.json"


class Progress:
    """State and hints of each exercise; without a path it is forgotten at the end.

    Attributes:
        path: the file, None where nothing is kept.
        spoilt: where a file that could not be read was put aside; None if there was none.
        trouble: why the last change could not be kept; "" if it was.
    """

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self.path = path
        self.spoilt: pathlib.Path | None = None
        self.trouble = ""
        self._states: dict[str, State] = {}
        self._hints: dict[str, int] = {}
        if path is not None:
            self._read(path)

    def state(self, name: str) -> State:
        """What has become of an exercise."""
        return self._states.get(name, "new")

    @property
    def passed(self) -> int:
        """How many are passed."""
        return sum(self.state(name) == "passed" for name in IDS)

    def next(self) -> Exercise | Quiz | None:
        """The first that is neither passed nor skipped; when none is left, the first skipped; None at the end."""
        for wanted in (("new", "tried"), ("skipped",)):
            for exercise in EXERCISES:
                if self.state(exercise.id) in wanted:
                    return exercise
        return None

    def graded(self, name: str, passed: bool) -> None:
        """An answer was graded; what has passed once stays so."""
        if self.state(name) != "passed":
            self._states[name] = "passed" if passed else "tried"
            self._write()

    def skip(self, name: str) -> None:
        """Leave an exercise for later."""
        if self.state(name) != "passed":
            self._states[name] = "skipped"
            self._write()

    def hints(self, name: str) -> int:
        """How many hints were asked for."""
        return self._hints.get(name, 0)

    def hint(self, name: str, most: int) -> int:
        """Ask for one more, of so many; returns how many that makes."""
        self._hints[name] = min(self.hints(name) + 1, most)
        self._write()
        return self._hints[name]

    def read(self, name: str, place: int) -> None:
        """The hint at this place, from 1, was read; those before it count with it."""
        if place > self.hints(name):
            self._hints[name] = place
            self._write()

    def _read(self, path: pathlib.Path) -> None:
        """What the file says. One that makes no sense is put aside, not overwritten: it may be somebody's."""
        try:
            with path.open("rb") as stream:
                kept: Any = json.loads(stream.read(_LARGEST))
            states, hints = kept["states"], kept["hints"]
            self._states = {str(name): state for name, state in states.items() if state in _STATES}
            self._hints = {str(name): int(count) for name, count in hints.items() if int(count) >= 0}
        except FileNotFoundError:
            return
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            aside = path.with_suffix(".broken.json")
            with contextlib.suppress(OSError):
                path.replace(aside)
                self.spoilt = aside

    def _write(self) -> None:
        if self.path is None:
            return
        document = {"version": 1, "states": self._states, "hints": self._hints}
        self.trouble = ""
        new = ""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, new = tempfile.mkstemp(prefix=self.path.name, dir=self.path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(document, stream, indent=1)
            pathlib.Path(new).replace(self.path)
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
            with contextlib.suppress(OSError):
                pathlib.Path(new).unlink()
