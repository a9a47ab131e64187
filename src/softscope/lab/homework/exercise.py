"""An exercise: one file holds its texts, its task, and the checks for an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from softscope._text import Text
    from softscope.lab.homework.trial import Trial


class Problem(NamedTuple):
    """One property that an answer breaks: its stable name, and a sentence that shows the input."""

    name: str
    sentence: str


Check = Callable[["Trial"], Iterable[Problem]]


@dataclass(frozen=True)
class Exercise:
    """A programming exercise.

    Attributes:
        id: its name in URLs and commands.
        title: a few words.
        task: what to write, in paragraphs separated by empty lines.
        functions: the required signatures, such as "softmax(x)".
        starter: the file's first lines, with comments in the language; it runs, but does not pass.
        checks: called in turn with the running answer.
        hints: from a nudge to nearly the solution.
        notice: what a right answer shows.
        may_import: packages allowed besides NumPy and the standard library.
        minutes: roughly how long it takes.
    """

    id: str
    title: Text
    task: Text
    functions: tuple[str, ...]
    starter: Text
    checks: tuple[Check, ...]
    hints: tuple[Text, ...]
    notice: Text
    may_import: tuple[str, ...] = field(default=())
    minutes: int = 15

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the required functions."""
        return tuple(function.partition("(")[0] for function in self.functions)

    @property
    def file(self) -> str:
        """Return the name of the answer's file."""
        return f"homework_{self.id.replace('-', '_')}.py"
