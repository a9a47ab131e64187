"""Lesson 8 measures what it says about softmax's rivals, and reads what the reader types in."""

import warnings

import numpy as np
import pytest

from softscope.lab import rivals


def test_the_text_below_the_table_follows_from_it():
    held = {row[0]: dict(zip(rivals.heads("en"), row[1:], strict=True)) for row in rivals.marks("en")}
    assert [name for name, row in held.items() if all(row.values())] == ["softmax"]
    assert [head for head, holds in held["entmax 1.5"].items() if not holds] == ["never flat"]
    assert [head for head, holds in held["sparsemax"].items() if not holds] == ["differentiable", "never flat"]
    assert [head for head, holds in held["hardmax"].items() if not holds] == ["differentiable", "never flat"]


@pytest.mark.parametrize(
    ("text", "numbers", "others"),
    [
        ("1, 2 3", [1.0, 2.0, 3.0], []),
        ("1，2；3、−4;5", [1.0, 2.0, 3.0, -4.0, 5.0], []),
        ("", [], []),
        (" , ，", [], []),
        ("abc", [], ["abc"]),
        ("nan, inf, 1e999, 2", [2.0], ["nan", "inf", "1e999"]),
    ],
)
def test_what_is_typed_is_read(text, numbers, others):
    assert rivals.read(text) == (numbers, others)


@pytest.mark.parametrize("row", [[-1000.0, 1000.0], [1e308, 1e308, -1e308], [-1.0, -2.0], [0.0]])
def test_no_scores_warn(row):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for made in rivals.maps("en").values():
            made(np.array(row)).sum()
