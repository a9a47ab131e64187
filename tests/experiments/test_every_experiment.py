"""What holds for every experiment: both languages, units and sizes, JSON, a chart, and reproducible numbers."""

import json
import re

import pytest

from experiments.small import SIZES, TIMED, result
from softscope import experiments
from softscope.experiments import LANGS, Column, Measured, Table, Text

pytestmark = pytest.mark.xdist_group("experiments")  # a single worker runs each of them once
CHINESE = re.compile(r"[\u4e00-\u9fff]")
each = pytest.mark.parametrize("name", experiments.NAMES)


def texts(value):
    """Every text in a result, at any depth."""
    if isinstance(value, Text):
        yield value
    elif isinstance(value, experiments.Result):
        yield from texts([value.question, value.notes, value.tables])
    elif isinstance(value, Table):
        yield from texts([value.title, value.columns, value.rows])
    elif isinstance(value, Column):
        yield from texts([value.title, value.unit])
    elif isinstance(value, list | tuple) and not isinstance(value, Measured):
        for part in value:
            yield from texts(part)


def test_all_are_tested():
    assert set(SIZES) == set(experiments.NAMES)
    assert len(experiments.NAMES) == 16


@each
def test_every_text_has_both_languages(name):
    found = list(texts(result(name)))
    assert len(found) > 10
    for text in found:
        assert text.en.strip(), text
        assert text.zh.strip(), text
        assert not CHINESE.search(text.en), text
    sentences = [result(name).question, *result(name).notes, *(table.title for table in result(name).tables)]
    for text in sentences:
        assert CHINESE.search(text.zh), text
        assert text.en != text.zh
    # The numbers in a finding are the same in both languages.
    for note in result(name).notes:
        assert sorted(re.findall(r"\d+\.\d+", note.en)) == sorted(re.findall(r"\d+\.\d+", note.zh)), note


@each
def test_findings_hold_numbers_that_were_measured(name):
    assert 2 <= len(result(name).notes) <= 6
    assert any(re.search(r"\d", note.en) for note in result(name).notes)
    for note in result(name).notes:
        assert "nan" not in note.en.lower().replace("nan from", "").replace("returns nan", ""), note
        assert note.en.endswith(".")
        assert note.zh.endswith("。")


@each
def test_tables_have_rows_of_their_columns_and_say_how_many_were_sampled(name):
    for table in result(name).tables:
        assert table.rows, table.key
        keys = [column.key for column in table.columns]
        assert len(set(keys)) == len(keys)
        assert any(column.label for column in table.columns), "nothing names the rows"
        sampled = any(isinstance(cell, Measured) for row in table.rows for cell in row)
        sizes = {"runs", "rows", "samples", "problems", "repeats", "sizes", "d"}
        assert not sampled or sizes & set(keys), f"{table.key} does not say how many were sampled"


@each
def test_json_is_valid_and_versioned(name):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    document = json.loads(result(name).json(), parse_constant=refuse)
    assert document["schema"] == "softscope.experiment"
    assert document["schema_version"] == 1
    assert document["experiment"] == name
    assert document["settings"]["seed"] == 0
    assert set(document["question"]) == {"en", "zh"}
    assert len(document["tables"]) == len(result(name).tables)
    for table in document["tables"]:
        keys = {column["key"] for column in table["columns"]}
        assert all(set(row) == keys for row in table["rows"])


@each
@pytest.mark.parametrize("lang", LANGS)
def test_markdown(name, lang):
    text = result(name).markdown(lang)
    assert text.startswith(f"# {result(name).question.of(lang)}\n")
    for table in result(name).readable:
        assert f"## {table.title.of(lang)}" in text
    widths = [line.count(" | ") for line in text.splitlines() if line.startswith("| ---")]
    assert len(widths) == len(result(name).readable)
    assert bool(CHINESE.search(text)) == (lang == "zh")


@each
@pytest.mark.parametrize("lang", LANGS)
def test_the_chart_renders(name, lang):
    import vl_convert

    drawing = result(name).chart(lang)
    svg = vl_convert.vegalite_to_svg(drawing.to_json())
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    marks = len(re.findall(r"<path", svg))
    assert marks > 20, "nothing is drawn"
    assert bool(CHINESE.search("".join(words))) == (lang == "zh")
    for bad in ("undefined", "NaN%", "null", "Infinity"):
        assert bad not in words
    question = result(name).question.of(lang)
    assert question[:20] in "".join(words)


# Times vary between runs; tests/tasks checks that training is reproducible.
@pytest.mark.parametrize(
    "name", [n for n in experiments.NAMES if n not in {*TIMED, "learning", "remedies", "normalisers"}]
)
def test_the_same_seed_gives_the_same_numbers(name):
    again = experiments.run(name, **SIZES[name])
    assert [table.texts("en") for table in again.tables] == [table.texts("en") for table in result(name).tables]


@pytest.mark.parametrize(
    "name",
    ["extremes", "temperature", "variance", "lanes", "entropy", "gradients", "weights", "attention", "initialisation"],
)
def test_another_seed_gives_other_numbers(name):
    again = experiments.run(name, seed=1, **SIZES[name])
    assert [table.texts("en") for table in again.tables] != [table.texts("en") for table in result(name).tables]
