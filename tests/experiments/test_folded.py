"""No table is a wall: with the default sizes, what readers see is short, and JSON still holds every row."""

import functools
import io
import json

import pytest

from cli.commands import columns
from softscope import experiments
from softscope._text import Text, same
from softscope.cli.console import Console
from softscope.cli.experiment import text
from softscope.experiments.fold import LONGEST, crossed
from softscope.experiments.table import Column, Table, label

pytestmark = pytest.mark.xdist_group("folded")  # a single worker runs each experiment once
# The default sizes decide the number of rows; only samples, steps and widths are small.
QUICK = {
    "overflow": {},
    "extremes": {"rows": 20},
    "temperature": {"problems": 50},
    "saturation": {},
    "variance": {"samples": 60},
    "entropy": {"runs": 20},
    "gradients": {"runs": 4},
    "normalisers": {"d": 4, "steps": 1},
    "scores": {"runs": 2, "tokens": 4},
    "remedies": {"d": 8, "steps": 2, "more": 2},
    "initialisation": {"runs": 2},
    "learning": {"steps": 2, "dimensions": (4, 8, 16)},
    "cost": {"tokens": (32, 40, 48, 56)},
}


@functools.cache
def quick(name):
    return experiments.run(name, **QUICK.get(name, {}))


@pytest.mark.parametrize("name", experiments.NAMES)
def test_what_is_shown_is_short_and_nothing_is_lost(name):
    result = quick(name)
    for table in result.readable:
        assert len(table.rows) <= LONGEST, f"{name}: {table.key} has {len(table.rows)} rows"
    rows = {table["key"]: len(table["rows"]) for table in json.loads(result.json())["tables"]}
    assert rows == {table.key: len(table.rows) for table in result.tables}
    for lang in experiments.LANGS:
        stream = io.StringIO()
        text.show(result, None, Console(stream, lang, 80))
        shown = stream.getvalue()
        assert columns(max(shown.splitlines(), key=columns)) <= 80
        for table in result.tables:
            if table.dense:
                where = Text(en="{} ({} rows)", zh="{}（{} 行）").of(lang).format(table.key, len(table.rows))
                assert where in " ".join(shown.split()), "no word on where the rest is"


@pytest.mark.parametrize(
    ("name", "key", "rows"),
    [
        ("entropy", "sharpness", 36),
        ("gradients", "norms", 32),
        ("initialisation", "spread", 48),
        ("variance", "law", 21),
        ("variance", "shape", 21),
        ("extremes", "law", 18),
        ("temperature", "sweep", 16),
        ("overflow", "errors", 16),
        ("scores", "spread", 16),
        ("remedies", "remedies", 20),
        ("cost", "cost", 12),
        ("normalisers", "properties", 17),
        ("normalisers", "trained", 16),
    ],
)
def test_the_long_tables_are_still_in_the_data(name, key, rows):
    assert len(quick(name)[key].rows) == rows


def test_a_folded_cell_is_the_long_tables_cell():
    whole = quick("entropy")
    for row in whole["ten_keys"].records():
        for scale, key in (("without 1/√d", "without_1_d"), ("with 1/√d", "with_1_d")):
            found = [r for r in whole["sharpness"].records() if (r["keys"], r["d"]) == (10, row["d"])]
            (long,) = [r for r in found if r["scale"].en == scale]
            assert row[f"entropy_{key}"] == long["entropy"]
            assert row[f"peak_{key}"] == long["peak"]


def test_a_missing_cell_is_unknown():
    heads = label("d", same("d")), label("kind", same("kind")), Column("sd", same("sd"))
    whole = Table("t", same("t"), heads, [(1, "a", 2.0), (4, "b", 7.0)])
    made = crossed(whole, "short", same("s"), down="d", across="kind", values=("sd",), name=lambda k: same(f"k = {k}"))
    assert made.rows == [(1, 2.0, None), (4, None, 7.0)]
    assert [column.title.en for column in made.columns] == ["d", "k = a", "k = b"]
