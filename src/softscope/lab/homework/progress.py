"""How far the learner is with the homework, in a small file that is whole or not there at all."""

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
    """State and hints of each exercise; without a path it is forgotten at the end."""

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self._states: dict[str, State] = {}
        self._hints: dict[str, int] = {}
        super().__init__(path)

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
        self._set(name, "passed" if passed else "tried")

    def skip(self, name: str) -> None:
        """Leave an exercise for later."""
        self._set(name, "skipped")

    def hints(self, name: str) -> int:
        """How many hints were asked for."""
        return self._hints.get(name, 0)

    def hint(self, name: str, most: int) -> int:
        """Ask for one more, of so many; returns how many that makes."""
        self._reach(name, min(self.hints(name) + 1, most))
        return self.hints(name)

    def read(self, name: str, place: int) -> None:
        """The hint at this place, from 1, was read; those before it count with it."""
        if place > self.hints(name):
            self._reach(name, place)

    def _take(self, document: Any) -> None:
        states, hints = document["states"], document["hints"]
        known = {str(name): state for name, state in states.items() if state in _STATES}
        self._hints = {str(name): int(count) for name, count in hints.items() if int(count) >= 0}
        self._states = known  # when all has been understood

    def _document(self) -> dict[str, Any]:
        return {"version": 1, "states": self._states, "hints": self._hints}

    def _set(self, name: str, state: State) -> None:
        """What has passed once stays so, also if it has passed elsewhere meanwhile."""

        def change() -> None:
            if self.state(name) != "passed":
                self._states[name] = state

        if self.state(name) != "passed":
            self._change(change)

    def _reach(self, name: str, count: int) -> None:
        def change() -> None:
            self._hints[name] = max(self.hints(name), count)

        self._change(change)
