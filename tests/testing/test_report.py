"""The report: its structure, its text, and that nothing a map does reaches the caller."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

from softscope.testing import PROPERTIES, check_simplex_map
from softscope.testing.wording import show

from .right_maps import softmax
from .wrong_maps import hardmax, hostile, naive_softmax, nothing


def test_one_result_per_property_in_a_fixed_order() -> None:
    for f in (softmax, naive_softmax, nothing):
        report = check_simplex_map(f)
        assert tuple(result.property for result in report.results) == PROPERTIES
        assert {result.status for result in report.results} <= {"held", "broken", "not declared"}
        assert report.broken == tuple(r for r in report.results if r.status == "broken" and r.counts)


def test_only_what_is_broken_shows_an_input() -> None:
    for result in check_simplex_map(hardmax).results:
        assert (result.input is not None) == (result.status == "broken")


def test_options_are_tested_only_where_declared() -> None:
    report = check_simplex_map(lambda x: softmax(x))
    assert report["axis"].status == report["where"].status == "not declared"
    assert "pass axis=True" in report["axis"].sentence
    report = check_simplex_map(lambda x, axis=-1: softmax(x, axis=axis), axis=True)
    assert (report["axis"].status, report["where"].status) == ("held", "not declared")
    report = check_simplex_map(lambda x: softmax(x), axis=True)
    assert "unexpected keyword argument 'axis'" in report["axis"].sentence


def test_text_of_a_passing_and_a_failing_report() -> None:
    assert str(check_simplex_map(softmax)).startswith("passed: 16 properties tested, all hold\n  returns ")
    lines = str(check_simplex_map(naive_softmax)).splitlines()
    assert lines[0] == "failed: 1 of 16 properties broken"
    at = next(i for i, line in enumerate(lines) if line.startswith("  finite"))
    assert lines[at].split()[1] == "broken"
    assert lines[at + 1].split(maxsplit=1) == ["input", "[1000, 1001, 1002]"]
    assert lines[at + 2].split(maxsplit=1) == ["output", "[nan, nan, nan]"]
    assert str(check_simplex_map(naive_softmax, lang="zh")).startswith("未通过：检验了 16 条性质，1 条不成立")


def test_any_report_can_be_printed() -> None:
    assert "<Hostile>" in str(check_simplex_map(hostile))


def test_raise_if_broken_carries_the_text() -> None:
    check_simplex_map(softmax).raise_if_broken()
    report = check_simplex_map(naive_softmax)
    with pytest.raises(AssertionError) as caught:
        report.raise_if_broken()
    assert str(caught.value) == str(report)


def test_an_unknown_property_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match=r"no property is called 'shfit'; there are returns, finite"):
        check_simplex_map(softmax)["shfit"]


def test_the_same_twice() -> None:
    assert str(check_simplex_map(hardmax)) == str(check_simplex_map(hardmax))


def test_the_caller_sees_no_warning_and_keeps_its_settings() -> None:
    def noisy(x: np.ndarray) -> np.ndarray:
        np.seterr(all="raise")
        warnings.simplefilter("error")
        warnings.warn("noise", stacklevel=2)
        return softmax(x)

    def warning(x: np.ndarray) -> np.ndarray:
        warnings.warn("noise", stacklevel=2)
        return softmax(x)

    before, filters = np.geterr(), list(warnings.filters)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        check_simplex_map(naive_softmax)
        check_simplex_map(warning).raise_if_broken()
    assert not heard
    assert "UserWarning('noise')" in check_simplex_map(noisy)["returns"].sentence
    assert (np.geterr(), list(warnings.filters)) == (before, filters)


def test_an_interrupt_by_the_user_is_not_swallowed() -> None:
    def interrupted(x: np.ndarray) -> np.ndarray:
        raise KeyboardInterrupt(x)

    with pytest.raises(KeyboardInterrupt):
        check_simplex_map(interrupted)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dtype": int}, TypeError, "dtype must be one of float16, float32, float64, but got <class 'int'>;"),
        ({"dtype": "nonsense"}, TypeError, "dtype must be one of float16, float32, float64, but got 'nonsense';"),
        ({"lipschitz": 0.0}, ValueError, "lipschitz must be a finite number > 0, but got 0.0;"),
        ({"lipschitz": np.inf}, ValueError, "lipschitz must be a finite number > 0, but got inf;"),
        ({"lang": "fr"}, ValueError, "lang must be one of en, zh, but got 'fr';"),
    ],
)
def test_bad_arguments_are_named(options: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        check_simplex_map(softmax, **options)
    assert words in str(caught.value)


def test_long_and_strange_values_stay_short() -> None:
    assert show(np.zeros((2, 2))) == "[[0, 0], [0, 0]]"
    assert show("x" * 1000).endswith("...")
    assert len(show(["x" * 1000])) <= 160


def test_needs_numpy_alone() -> None:
    """A learner's machine need not have pytest or torch."""
    code = "import sys, softscope.testing\nprint(sorted({'pytest', 'torch', 'scipy', 'hypothesis'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
