"""The learner's homework progress, in a small file that is written atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from softscope.lab.homework.catalogue import EXERCISES, IDS
from softscope.lab.homework.json_store import JsonStore

if TYPE_CHECKING:
    import pathlib

    from softscope.lab.homework.exercise import Exercise
    from softscope.lab.homework.quiz import Quiz

State = Literal["new", "tried", "skipped", "passed"]
_STATES: tuple[State, ...] = ("new", "tried", "skipped", "passed")


class ExerciseProgress(JsonStore):
    """The state and hints of each exercise; without a path, they are gone when the process ends."""

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self._states: dict[str, State] = {}
        self._hints: dict[str, int] = {}
        super().__init__(path)

    def state(self, name: str) -> State:
        """Return an exercise's state."""
        return self._states.get(name, "new")

    @property
    def passed(self) -> int:
        """Count the passed exercises."""
        return sum(self.state(name) == "passed" for name in IDS)

    def next(self) -> Exercise | Quiz | None:
        """Return the first exercise neither passed nor skipped, or else the first skipped one; None at the end."""
        for wanted in (("new", "tried"), ("skipped",)):
            for exercise in EXERCISES:
                if self.state(exercise.id) in wanted:
                    return exercise
        return None

    def graded(self, name: str, passed: bool) -> None:
        """Record that an answer was graded; a passed exercise stays passed."""
        self._set(name, "passed" if passed else "tried")

    def skip(self, name: str) -> None:
        """Leave an exercise for later."""
        self._set(name, "skipped")

    def hints(self, name: str) -> int:
        """Count the hints the learner has asked for."""
        return self._hints.get(name, 0)

    def hint(self, name: str, most: int) -> int:
        """Ask for one more hint, up to `most`; return how many that makes."""
        self._reach(name, min(self.hints(name) + 1, most))
        return self.hints(name)

    def read(self, name: str, place: int) -> None:
        """Record that hint number `place`, from 1, was read; the hints before it count too."""
        if place > self.hints(name):
            self._reach(name, place)

    def _take(self, document: Any) -> None:
        states, hints = document["states"], document["hints"]
        known = {str(name): state for name, state in states.items() if state in _STATES}
        self._hints = {str(name): int(count) for name, count in hints.items() if int(count) >= 0}
        self._states = known  # only once everything has parsed

    def _document(self) -> dict[str, Any]:
        return {"version": 1, "states": self._states, "hints": self._hints}

    def _set(self, name: str, state: State) -> None:
        """Set the state; a passed exercise stays passed, even if another program recorded the pass meanwhile."""

        def change() -> None:
            if self.state(name) != "passed":
                self._states[name] = state

        if self.state(name) != "passed":
            self._change(change)

    def _reach(self, name: str, count: int) -> None:
        def change() -> None:
            self._hints[name] = max(self.hints(name), count)

        self._change(change)
