"""Every wrong map is caught for the right reason, and every property and sentence is triggered by some map."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from softscope._text import Lang
from softscope.testing import PROPERTIES, Report, check_simplex_map
from softscope.testing.battery import breaks
from softscope.testing.sentences import SENTENCES

from . import wrong_axes, wrong_maps
from .right_maps import RIGHT, softmax

WRONG = {**wrong_maps.WRONG, **wrong_axes.WRONG}

CHINESE = re.compile("[\u4e00-\u9fff]")


@cache
def report_on(name: str, lang: Lang = "en") -> Report:
    return check_simplex_map(WRONG[name].f, **WRONG[name].options, lang=lang)


@pytest.mark.parametrize("name", WRONG)
def test_breaks_what_it_must_and_nothing_else(name: str) -> None:
    report = report_on(name)
    assert {result.property for result in report.broken} == WRONG[name].broken, str(report)
    assert not report.passed


@pytest.mark.parametrize(
    ("name", "property_", "shown", "words"),
    [
        ("linear", "shift", ([0, 1], [1, 2]), "adding 1 turns [0, 1] into [0.333333, 0.666667]"),
        ("linear", "non_negative", [-1, 2], "the logit -1 gets -1"),
        ("linear", "finite", [0, 0], "but got [nan, nan]."),
        ("linear", "order", [-1, -2], "-2 gets 0.666667 and -1 gets 0.333333"),
        (
            "linear",
            "sharpens",
            ([1, 2, 3], [4096, 8192, 12288]),
            "but at a factor of 4096 they are [0.166667, 0.333333, 0.5]",
        ),
        ("relu", "sums_to_one", [1, 2, 3], "they sum to 6"),
        ("sigmoid", "sums_to_one", [0, 1], "they sum to 1.23106"),
        ("sigmoid", "shift", ([0, 1], [1, 2]), "turns [0.5, 0.731059] into [0.731059, 0.880797]"),
        ("hardmax", "continuity", ([0, 0.001], [0.001, 0]), "it moved them by 1.41421"),
        ("hardmax", "order", [0, 0], "two logits of 0 get 1 and 0"),
        ("hardmax_that_shares_ties", "continuity", ([0, 0.001], [0.001, 0]), "it moved them by 1.41421"),
        ("naive_softmax", "finite", [1000, 1001, 1002], "without overflow, but got [nan, nan, nan]."),
        ("naive_softmax_in_plain_python", "finite", [1000, 1001, 1002], "f raised OverflowError('math range error')"),
        ("uniform", "responds", ([0, 2], [2, 0]), "[0, 2] and [2, 0] both get [0.5, 0.5]"),
        ("softmax_off_by_one", "sums_to_one", [0, 1], "they sum to 0.788058"),
        ("softmax_with_an_epsilon", "sums_to_one", [0, 1], "they sum to 0.99999999899"),
        ("softmax_that_sorts_its_output", "permutation", ([0, 1], [1, 0]), "to [0.731059, 0.268941], but"),
        ("softmax_in_place", "input_unchanged", [0, 1], "[0, 1] became [0.268941, 0.731059]"),
        ("softmax_that_writes_to_its_input", "input_unchanged", [0, 1], "A read-only array must be accepted"),
        ("softmax_into_zeros_like", "integers", [0, 1], "[0.268941, 0.731059], but got [0, 0]."),
        ("softmax_with_a_big_negative_number", "all_minus_infinity", [-np.inf], "but got [1]."),
        ("softmax_with_a_small_negative_number", "minus_infinity", [-np.inf, 0, 1], "exactly 0, but it gets 5.54"),
        ("softmax_that_hides_nan", "nan", [np.nan, 1], "all must be NaN, but got [0, 0]."),
        ("softmax_without_the_empty_case", "empty", [], "an empty array gives an empty array, but f raised ValueError"),
        ("softmax_that_flattens_large_logits", "sharpens", ([0, 1], [0, 2]), "at a factor of 2 it falls from"),
        ("nothing", "returns", [0, 1], "but f returned None instead of an array of real numbers"),
        ("raising", "returns", [0, 1], "but f raised RuntimeError('not written yet: {x} of shape (2,)"),
        ("leaving", "returns", [0, 1], "but f raised SystemExit(3)"),
        ("hostile", "returns", [0, 1], "but f returned <Hostile> instead"),
        ("a_column", "returns", [0, 1], "shape (2, 1) for an input of shape (2,)"),
        ("a_list", "returns", [0, 1], "(list)"),
        ("hardmax_of_integers", "returns", [0, 1], "but f returned [0, 1] (int64)"),
        ("always_nan", "sums_to_one", [0, 1], "but f returned [nan, nan] for finite logits"),
        ("softmax_with_one_maximum_for_all_rows", "axis", [[1000, 1001], [0, 1]], "[0, 1] must get [0.268941,"),
        ("softmax_over_the_last_axis", "axis", [[0, 0.5, 1], [1.5, 2.5, 2]], "With axis=0"),
        ("softmax_that_ignores_the_sign_of_axis", "axis", [[0, 0.5, 1], [1.5, 2.5, 2]], "f raised AxisError"),
        ("softmax_masked_afterwards", "where", ([1, 2, 3], [True, True, False]), "the same weights as without"),
        (
            "softmax_masked_with_a_big_negative_number",
            "where",
            ([1, 2, 3], [False, False, False]),
            "With every logit masked, all weights must be 0, but got [0.333333, 0.333333, 0.333333].",
        ),
    ],
)
def test_says_why_and_shows_it(name: str, property_: str, shown: object, words: str) -> None:
    result = report_on(name)[property_]
    assert words in result.sentence
    assert result.sentence.endswith(".")
    assert "\n" not in result.sentence
    if isinstance(shown, tuple):
        assert [part.tolist() for part in result.input] == list(shown)
        assert len(result.output) == len(shown) or property_ == "where"
    else:
        np.testing.assert_array_equal(result.input, np.asarray(shown))


def test_a_jump_away_from_ties_is_found() -> None:
    """Weights under 0.01 are dropped, and the step that shows the jump crosses exactly that value."""
    result = report_on("softmax_that_drops_small_weights")["continuity"]
    smallest = [softmax(x).min() for x in result.input]
    assert min(smallest) < 0.01 <= max(smallest)


def test_the_shown_input_does_break_it() -> None:
    """Passing a result's input to the map again gives the result's output."""
    for name in ("linear", "relu", "sigmoid", "hardmax"):
        for result in report_on(name).broken:
            if isinstance(result.output, np.ndarray):
                with np.errstate(all="ignore"):
                    np.testing.assert_array_equal(WRONG[name].f(result.input), result.output)


def test_every_property_is_broken_by_some_map() -> None:
    """A property that nothing breaks tests nothing. What is not a map at all, and breaks everything, does not count."""
    maps = [name for name, entry in WRONG.items() if len(entry.broken) < len(PROPERTIES) / 2]
    broken = {r.property for name in maps for r in report_on(name).results if r.status == "broken"}
    assert broken == set(PROPERTIES)


def test_every_sentence_is_said_about_some_map() -> None:
    """A sentence that no map triggers is dead text, or belongs to a check that never fires."""
    said = {r.sentence for name in WRONG for r in report_on(name).results}
    said |= {r.sentence for r in check_simplex_map(softmax, dtype=np.float32).results}
    unsaid = {key for key, text in SENTENCES.items() if not any(re.fullmatch(pattern(text.en), s) for s in said)}
    assert not unsaid


def pattern(template: str) -> str:
    """A template as a regular expression that matches any filled-in version of it."""
    return "".join(".+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", template))


@pytest.mark.parametrize("name", WRONG)
def test_chinese_tells_the_same(name: str) -> None:
    english, chinese = report_on(name), report_on(name, lang="zh")
    for one, other in zip(english.results, chinese.results, strict=True):
        assert (one.property, one.status) == (other.property, other.status)
        assert CHINESE.search(other.sentence)
        assert not CHINESE.search(one.sentence)
    assert CHINESE.search(str(chinese))


def test_sentences_exist_in_both_languages_with_the_same_values() -> None:
    for key, text in SENTENCES.items():
        assert text.en
        assert text.zh
        english, chinese = (sorted(re.findall(r"\{\w+\}", text.of(lang))) for lang in ("en", "zh"))
        assert english == chinese, key


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", ["linear", "relu", "sigmoid", "hardmax", "naive_softmax", "uniform"])
def test_coarser_dtypes_excuse_nothing(name: str, dtype: type) -> None:
    report = check_simplex_map(WRONG[name].f, dtype=dtype)
    assert {result.property for result in report.broken} == WRONG[name].broken, str(report)


def test_the_right_maps_are_not_among_the_wrong() -> None:
    assert not {entry.f for entry in WRONG.values()} & set(RIGHT.values())


@pytest.mark.parametrize("name", [name for name in WRONG if not WRONG[name].options])
def test_one_at_a_time_the_same_is_found(name: str) -> None:
    found = [(result.property, result.sentence) for result in breaks(WRONG[name].f)]
    assert found == [(result.property, result.sentence) for result in report_on(name).broken]
