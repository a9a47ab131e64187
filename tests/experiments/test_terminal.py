"""Every result on a terminal: no line too wide, no cell missing, in both languages."""

import dataclasses
import io

import pytest

from cli.commands import columns
from experiments.small import result
from softscope import experiments
from softscope.cli.console import Console
from softscope.cli.experiment import text


@pytest.mark.parametrize("lang", experiments.LANGS)
@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("name", experiments.NAMES)
def test_it_fits_and_nothing_is_lost(name, width, lang):
    stream = io.StringIO()
    text.show(result(name), None, Console(stream, lang, width))
    lines = stream.getvalue().splitlines()
    widest = max(lines, key=columns)
    # One cell with a row of weights, plus the names of its row, may be all a line can hold.
    assert columns(widest) <= (width if width >= 80 else 80), widest
    shown = stream.getvalue()
    for table in result(name).readable:
        for row in table.texts(lang):
            assert all(cell in shown for cell in row)


def test_a_table_too_wide_is_divided_and_each_part_names_its_rows():
    stream = io.StringIO()
    text.show(result("variance"), None, Console(stream, "en", 80))
    assert stream.getvalue().count("  none: as assumed") == 4


def test_plain_streams_get_plain_marks():
    stream = io.StringIO()
    console = dataclasses.replace(Console(stream, "en", 80), blocks=False)
    text.show(result("overflow"), None, console)
    assert "\n* " in stream.getvalue()
    assert "•" not in stream.getvalue()
