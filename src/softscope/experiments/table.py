"""Tables: columns with units, rows of numbers and words, and number formatting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softscope._near_one import near_one
from softscope._text import Lang, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

NATS = Text(en="nats", zh="奈特")
UNKNOWN = "–"


class Measured(NamedTuple):
    """A sample mean with its standard error.

    >>> Measured(value=0.75, error=0.01).value
    0.75
    """

    value: float
    error: float

    @classmethod
    def of(cls, sample: Any) -> Measured:
        """Average independent values, skipping NaN.

        >>> Measured.of([1.0, 2.0, 3.0])
        Measured(value=2.0, error=0.5773502691896258)
        """
        known = np.asarray(sample, dtype=np.float64).ravel()
        known = known[~np.isnan(known)]
        if known.size == 0:
            return cls(math.nan, math.nan)
        error = float(known.std(ddof=1)) / math.sqrt(known.size) if known.size > 1 else math.nan
        return cls(float(known.mean()), error)

    @classmethod
    def root(cls, variances: Any) -> Measured:
        """Average unbiased variances, then take the root: a mean of roots, one per short row, comes out too small.

        >>> Measured.root([1.0, 4.0, 4.0])
        Measured(value=1.7320508075688772, error=0.2886751345948129)
        """
        mean = cls.of(variances)
        value = math.sqrt(mean.value)
        return cls(value, 0.5 * mean.error / value if value > 0.0 else mean.error)


Cell = float | int | str | bool | Text | Measured | None


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        key: its name in records and JSON.
        title: its heading.
        unit: the unit of its numbers; None for counts, shares and ratios.
        digits: how many significant digits to show.
        label: whether it identifies the row; such columns come first.

    >>> Column("entropy", Text(zh="熵", en="entropy"), NATS).head("en")
    'entropy (nats)'
    """

    key: str
    title: Text
    unit: Text | None = None
    digits: int = 3
    label: bool = False

    def head(self, lang: Lang) -> str:
        """Return the title with its unit.

        >>> Column("entropy", Text(en="entropy", zh="熵"), NATS).head("zh")
        '熵 (奈特)'
        """
        return self.title.of(lang) + (f" ({self.unit.of(lang)})" if self.unit else "")


def label(key: str, title: Text) -> Column:
    """Make a column that identifies its row."""
    return Column(key, title, label=True)


@dataclass(frozen=True)
class Table:
    """The measurements of one part of an experiment; each row has one cell per column.

    A `dense` table is a curve: it goes into charts and JSON, but is not printed for readers.

    >>> columns = label("d", Text(zh="d", en="d")), Column("peak", Text(zh="最大权重", en="largest weight"))
    >>> made = Table("sizes", Text(zh="大小", en="Sizes"), columns, [(64, 0.5), (256, Measured(0.9, 0.01))])
    >>> made.column("d"), made.row(d=64)["peak"], made.texts("en")[1]
    ([64, 256], 0.5, ['256', '0.900 ± 0.010'])
    """

    key: str
    title: Text
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    dense: bool = False

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.key!r} has {len(self.columns)} columns, but got a row of another length")

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]

    def column(self, key: str) -> list[Any]:
        """Return all cells of one column."""
        return [record[key] for record in self.records()]

    def row(self, **where: Any) -> dict[str, Any]:
        """Return the first record with these cells; a text matches by its whole English or its first word."""
        for record in self.records():
            if all(_matches(record[key], value) for key, value in where.items()):
                return record
        raise KeyError(f"no row of {self.key!r} has {where}")

    def texts(self, lang: Lang) -> list[list[str]]:
        """Format every cell for display."""
        return [
            [
                f"{cell:g}" if column.label and isinstance(cell, float) else shown(cell, lang, column.digits)
                for cell, column in zip(row, self.columns, strict=True)
            ]
            for row in self.rows
        ]


def _matches(cell: Any, value: Any) -> bool:
    if isinstance(cell, Text) and isinstance(value, str):
        return value in (cell.en, cell.en.partition(" ")[0])
    return bool(cell == value)


def shown(cell: Cell, lang: Lang = "en", digits: int = 3) -> str:
    """Format a cell.

    A number that is not 0 or 1 never rounds to 0 or 1: near 0 it is written as 3.7e-44, near 1 with as many nines as
    it takes, and within a millionth of 1 as 1−1e-09.

    >>> shown(0.66524), shown(Measured(0.7534, 0.0123)), shown(True), shown(None), shown(3.7e-44)
    ('0.665', '0.753 ± 0.012', '✓', '–', '3.7e-44')
    >>> shown(0.99997), shown(1.0002), shown(1 - 1e-9), shown(Measured(0.99997, 2e-5)), shown(Measured(0.9996, 0.02))
    ('0.99997', '1.0002', '1−1e-09', '0.99997 ± 0.00002', '1.000 ± 0.020')
    >>> shown(1024.0), shown(2), shown(math.inf), shown(-0.0), shown(12345.6), shown(Measured(12.0, math.nan))
    ('1024', '2', 'inf', '0', '12346', '12')
    """
    match cell:
        case None:
            return UNKNOWN
        case Measured(value, error):
            text = _number(value, digits, within=error)
            error = 0.0 if error < 1e-15 * abs(value) else error  # that is rounding, not spread
            return f"{text} ± {_like(error, text)}" if math.isfinite(error) else text
        case Text():
            return cell.of(lang)
        case bool() | np.bool_():
            return "✓" if cell else "✗"
        case float() | np.floating():
            return _number(float(cell), digits)
        case _:
            return str(cell)


def _number(x: float, digits: int, within: float = 0.0) -> str:
    """Format a number; how far from 1 it is matters only beyond its error."""
    if math.isnan(x):
        return UNKNOWN
    if math.isinf(x):
        return f"{x}"
    if x == round(x) and abs(x) < 1e6:
        return f"{round(x)}"
    if abs(x) < 1e-4 or abs(x) >= 1e6:
        return f"{x:.{min(digits, 2) - 1}e}"
    text = f"{x:.{max(0, digits - 1 - math.floor(math.log10(abs(x))))}f}"
    return near_one(x) if _falsely_one(text, x) and not abs(1.0 - x) < within else text


def _falsely_one(text: str, x: float) -> bool:
    """Whether the text says 1 but the number is not; above 1, only if it is close, and not by rounding error."""
    return float(text) == 1.0 and (x < 1.0 or 1e-12 < x - 1.0 < 5e-3)


def figure(x: float, decimals: int = 3) -> str:
    """Format a number with this many decimals, unless it would then read as 0 or 1 without being that.

    >>> figure(0.6652), figure(1e-9), figure(1.0), figure(0.99997), figure(1 - 1e-9), figure(64.0, 0), figure(math.nan)
    ('0.665', '1e-09', '1.000', '0.99997', '1−1e-09', '64', 'NaN')
    """
    x = float(x)
    if math.isnan(x):
        return "NaN"
    text = f"{x:.{decimals}f}"
    if x != 0.0 and float(text) == 0.0:
        return f"{x:.2g}"
    return near_one(x) if decimals > 0 and abs(x - 1.0) > 1e-12 and float(text) == 1.0 else text


def bracketed(values: Iterable[float], decimals: int = 4) -> str:
    """Format a row of weights in brackets; 0 and 1 mean exactly 0 and 1.

    >>> bracketed([0.0900306, 0.24472847, 0.66524096]), bracketed([0.0, 4.5e-05, 0.99995])
    ('[0.0900, 0.2447, 0.6652]', '[0, 4.5e-05, 0.99995]')
    """
    return "[" + ", ".join(f"{x:.0f}" if x in (0.0, 1.0) else figure(x, decimals) for x in values) + "]"


def _like(error: float, text: str) -> str:
    """Format an error with as many decimals as its value, and at least one nonzero digit."""
    places = len(text.partition(".")[2]) if "e" not in text else 0
    return f"{error:.{places}f}" if error >= 0.5 * 10.0**-places else f"{error:.1g}"
