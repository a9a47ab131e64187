"""What an experiment returns: tables, findings in both languages and a chart. It exports to Markdown and JSON."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from typing import Any

import numpy as np

from softscope._installed import DRAWING, require
from softscope._text import Lang, Text
from softscope.experiments.table import Measured, Table

SCHEMA, VERSION = "softscope.experiment", 1  # bump the version when a name disappears or changes meaning


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of one experiment.

    Attributes:
        name: the experiment's name.
        question: the question it asks.
        tables: the measurements.
        notes: the findings, one sentence each, quoting the measured numbers.
        settings: the seed and the sizes.
        lang: the default language of `str`, `markdown` and `chart`.
        seconds: how long the run took.

    Examples:
        >>> from softscope import experiments
        >>> result = experiments.run("extremes")
        >>> [table.key for table in result.tables][0], result.document()["schema"]
        ('cases', 'softscope.experiment')
    """

    name: str
    question: Text
    tables: tuple[Table, ...]
    notes: tuple[Text, ...]
    settings: dict[str, Any]
    lang: Lang = "en"
    seconds: float = math.nan

    def __getitem__(self, key: str) -> Table:
        """Return the table with this key."""
        for table in self.tables:
            if table.key == key:
                return table
        raise KeyError(f"no table is called {key!r}; there are {', '.join(table.key for table in self.tables)}")

    def chart(self, lang: Lang | None = None) -> Any:
        """Draw the tables as an Altair chart."""
        require("charts need", DRAWING)
        from softscope.experiments import chart

        drawing = importlib.import_module(f"softscope.experiments.{self.name}").draw(self, lang or self.lang)
        return chart.dressed(drawing, self.question.of(lang or self.lang))

    @property
    def readable(self) -> list[Table]:
        """Return the tables meant for readers."""
        return [table for table in self.tables if not table.dense]

    def markdown(self, lang: Lang | None = None) -> str:
        """Format the question, findings and tables as Markdown."""
        lang = lang or self.lang
        parts = [f"# {self.question.of(lang)}", "\n".join(f"- {note.of(lang)}" for note in self.notes)]
        for table in self.readable:
            heads = [column.head(lang) for column in table.columns]
            lines = [heads, ["---"] * len(heads), *table.texts(lang)]
            drawn = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
            parts.append(f"## {table.title.of(lang)}\n\n{drawn}")
        return "\n\n".join(parts) + "\n"

    def document(self) -> dict[str, Any]:
        """Return the result ready for JSON: machine-readable names, texts in both languages, unknown values as null."""
        import softscope

        return {
            "schema": SCHEMA,
            "schema_version": VERSION,
            "softscope_version": softscope.__version__,
            "experiment": self.name,
            "question": plain(self.question),
            "settings": plain(self.settings),
            "seconds": plain(self.seconds),
            "notes": plain(self.notes),
            "tables": [
                {
                    "key": table.key,
                    "title": plain(table.title),
                    "columns": [{"key": c.key, "title": plain(c.title), "unit": plain(c.unit)} for c in table.columns],
                    "rows": plain(table.records()),
                }
                for table in self.tables
            ],
        }

    def json(self) -> str:
        """Return the document as a JSON string."""
        return json.dumps(self.document(), indent=2, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        return self.markdown()


def plain(value: Any) -> Any:
    """Convert to plain Python values; NaN and infinity become None because JSON cannot hold them.

    >>> plain({"a": np.float64(1.5), "b": Measured(2.0, math.nan), "c": Text(en="x", zh="某")})
    {'a': 1.5, 'b': {'value': 2.0, 'standard_error': None}, 'c': {'en': 'x', 'zh': '某'}}
    """
    match value:
        case Measured():
            return {"value": plain(value.value), "standard_error": plain(value.error)}
        case Text():
            return {"en": value.en, "zh": value.zh}
        case dict():
            return {name: plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case bool() | np.bool_():
            return bool(value)
        case float() | np.floating():
            return float(value) if math.isfinite(value) else None
        case int() | np.integer():
            return int(value)
        case _:
            return value
