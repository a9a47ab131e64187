"""What an exercise is: one file holds its texts, what it asks for, and how an answer is judged."""

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
        id: its name in addresses and commands.
        title: a few words.
        task: what to write, in paragraphs apart by empty lines.
        functions: the signatures asked for, such as "softmax(x)".
        starter: the first lines of the file, comments in the language; it runs, and does not pass.
        checks: called one after the other with the running answer.
        hints: from a nudge to nearly there.
        notice: what a right answer shows.
        may_import: packages that are allowed beside NumPy and the standard library.
        minutes: about how long it takes.
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
        """The names of the functions asked for."""
        return tuple(function.partition("(")[0] for function in self.functions)

    @property
    def file(self) -> str:
        """The name of the file that holds an answer."""
        return f"homework_{self.id.replace('-', '_')}.py"
