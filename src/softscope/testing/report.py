"""The battery's findings: one result per property, as text and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from softscope._text import Lang
from softscope.testing.sentences import FRAME, STATUS
from softscope.testing.wording import show

Status = Literal["held", "broken", "not declared"]


@dataclass(frozen=True, eq=False)
class Result:
    """The finding about one property.

    Attributes:
        property: The property's stable name, such as "non_negative".
        title: Its short name in the report's language, for tables.
        status: "held", "broken" or "not declared" (not tested).
        sentence: What the property requires and, if broken, what f did instead.
        input: The counterexample: an array, or a tuple of arrays if the test compares several calls.
        output: The weights, or whatever else f returned or raised; a tuple if `input` holds several calls.
        counts: False if the result is only informative and does not decide whether the map passed.

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
    """Which properties a map keeps; `str(report)` gives the report as text.

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
        """The broken results that count."""
        return tuple(r for r in self.results if r.counts and r.status == "broken")

    @property
    def passed(self) -> bool:
        """Whether nothing that counts is broken."""
        return not self.broken

    def __getitem__(self, name: str) -> Result:
        """Return the result of one property by name."""
        for result in self.results:
            if result.property == name:
                return result
        names = ", ".join(r.property for r in self.results)
        raise KeyError(f"no property is called {name!r}; there are {names}")

    def raise_if_broken(self) -> None:
        """Raise an AssertionError with the whole report if the map failed."""
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
                if not isinstance(r.output, BaseException):  # the sentence already names an exception
                    lines.append(f"{indent}{frame['output']} {show(r.output)}")
        return "\n".join(lines)
