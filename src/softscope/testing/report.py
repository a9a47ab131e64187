"""What the battery found: one result per property, readable and structured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from softscope._text import Lang
from softscope.testing.sentences import FRAME, STATUS
from softscope.testing.wording import show

Status = Literal["held", "broken", "not declared"]


@dataclass(frozen=True, eq=False)
class Result:
    """What was found about one property.

    Attributes:
        property: its stable name, such as "non_negative".
        title: its short name in the report's language, for tables.
        status: "held", "broken" or "not declared" (not tested).
        sentence: what was expected, and what came if it is broken.
        input: what shows the break: an array, or a tuple of them where several calls are compared.
        output: the weights that came, or what else f returned or raised; a tuple where `input` holds several
            calls.
        counts: False if the result only informs, and does not decide whether the map passed.

    Examples:
        >>> from softscope.testing import check_simplex_map
        >>> result = check_simplex_map(lambda x, axis: x)["sums_to_one"]
        >>> result.status, result.counts
        ('broken', True)
    """

    property: str
    title: str
    status: Status
    sentence: str
    input: Any = None
    output: Any = None
    counts: bool = True


@dataclass(frozen=True, eq=False)
class Report:
    """What a map keeps of the contract; `str(report)` reads as text.

    >>> import softscope as ss
    >>> from softscope.testing import check_simplex_map
    >>> report = check_simplex_map(ss.softmax)
    >>> report.passed, report["order"].status
    (True, 'held')
    """

    results: tuple[Result, ...]
    lang: Lang = "en"

    @property
    def broken(self) -> tuple[Result, ...]:
        """The results that fail the map."""
        return tuple(r for r in self.results if r.counts and r.status == "broken")

    @property
    def passed(self) -> bool:
        """Whether nothing that counts is broken."""
        return not self.broken

    def __getitem__(self, name: str) -> Result:
        """The result of one property, by its name."""
        for result in self.results:
            if result.property == name:
                return result
        names = ", ".join(r.property for r in self.results)
        raise KeyError(f"no property is called {name!r}; there are {names}")

    def raise_if_broken(self) -> None:
        """Raise an AssertionError that carries the whole report, if the map failed."""
        if not self.passed:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        frame = {key: text.of(self.lang) for key, text in FRAME.items()}
        tested = sum(r.counts and r.status != "not declared" for r in self.results)
        head = frame["passed" if self.passed else "failed"]
        lines = [head.format(tested=tested, broken=len(self.broken))]
        width = max((len(r.property) for r in self.results), default=0)
        for r in self.results:
            note = "" if r.counts else frame["informative"]
            lines.append(f"  {r.property:<{width}}  {STATUS[r.status].of(self.lang)}  {note}{r.sentence}")
            if r.status == "broken":
                indent = " " * (width + 6)
                lines.append(f"{indent}{frame['input']} {show(r.input)}")
                if not isinstance(r.output, BaseException):  # its sentence has named it
                    lines.append(f"{indent}{frame['output']} {show(r.output)}")
        return "\n".join(lines)
