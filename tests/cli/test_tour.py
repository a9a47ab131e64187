"""The tour shows what it actually ran, and its sentences match the results."""

import ast
import re
import resource

import numpy as np
import pytest

from cli.commands import program, softmax
from softscope._text import LANGS
from softscope.cli.tour.interpreter import Interpreter
from softscope.cli.tour.stops import STOPS


def test_under_two_seconds():
    """CPU time, so other work on the same cores does not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert program("tour").returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0


def test_says_what_was_measured(run):
    text = re.sub(r"\s+", " ", run.text("tour"))
    assert "[nan nan nan]" in text
    assert "[0.09 0.2447 0.6652]" in text
    assert "gave nan for 3 of 3 numbers" in text
    cold, hot = (100 * max(softmax([1, 2, 3], T)) for T in (0.25, 4))
    assert f"The largest weight is {cold:.1f}% at T = 0.25 and {hot:.1f}% at T = 4" in text
    T = float(re.search(r"at T = ([\d.]+) it is 50%", text)[1])
    assert max(softmax([1, 2, 3], T)) == pytest.approx(0.5, abs=1e-4)
    x = np.random.default_rng(1).standard_normal(1000)
    p = np.exp(x) / np.exp(x).sum()
    assert f"as if {np.exp(-(p * np.log(p)).sum()):.3g} shared it" in text
    assert float(re.search(r"the entropy differs by (\S+)\. ", text)[1]) < 1e-14
    assert "softmax 0 (its smallest is 0.0099), entmax 1, sparsemax 2" in text


def test_attention_is_what_the_definition_gives(run):
    """Peak, entropy, trace and blocked rows at the last two stops, from materialised weights."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 64, 256))
    v, grad = rng.standard_normal((2, 64, 256))
    text = run.text("tour")
    blocked = []
    for scale in (1.0, 1 / 16):
        logits = scale * q @ k.T
        p = np.exp(logits - logits.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(-1)
        assert f"\n  {p.max(-1).mean():.4g}, {entropy.mean():.4g}\n" in text
        assert f"\n  {(1 - (p * p).sum(-1)).mean():.4g}\n" in text
        dP = grad @ v.T
        dS = p * (dP - (p * dP).sum(-1, keepdims=True))
        spread = dP - dP.mean(-1, keepdims=True)
        transmission = 64 * np.linalg.norm(dS, axis=-1) / np.linalg.norm(spread, axis=-1)
        blocked.append(int((transmission < 0.0025 * 8).sum()))
        assert f"\n  {blocked[-1]}, {np.median(transmission):.4g}\n" in text
    assert f"Of 64 rows, {blocked[0]} are blocked without the scale and {blocked[1]} with it." in text
    assert blocked[0] > blocked[1]


@pytest.mark.parametrize("lang", LANGS)
def test_both_languages_show_the_same_calls_and_results(run, lang):
    calls = [code for stop in STOPS for code in stop.code]
    text = run.text("tour", "--lang", lang)
    shown = re.findall(r"^  >>> (.*)$", text, re.MULTILINE)
    assert shown == ["import numpy as np", "import softscope as ss", *calls]
    assert len(re.findall(r"^→ ", text, re.MULTILINE)) == len(STOPS) == 6
    results = re.findall(r"^  >>> .*\n  ([^>].*)$", text, re.MULTILINE)
    assert len(results) == sum(not isinstance(ast.parse(code).body[0], ast.Assign) for code in calls) > 12
    other = run.text("tour", "--lang", "zh" if lang == "en" else "en")
    assert results == re.findall(r"^  >>> .*\n  ([^>].*)$", other, re.MULTILINE)


def test_calls_fit_a_narrow_terminal():
    assert max(len(code) for stop in STOPS for code in stop.code) <= 60 - len("  >>> ")


def test_calls_can_be_typed_into_python(run):
    """Line by line, without the interpreter's own conveniences."""
    names = {}
    text = run.text("tour")
    for code in re.findall(r"^  >>> (.*)$", text, re.MULTILINE):
        with np.errstate(all="ignore"):
            exec(compile(ast.parse(code), "<typed>", "exec"), names)


def test_numbers_in_the_words_are_those_of_the_code(run):
    """The two stops whose introductions mention sizes."""
    attention = next(stop for stop in STOPS if stop.name == "attention")
    assert "q, k = rng.standard_normal((2, 64, 256))" in attention.code
    assert "64 random queries and keys of dimension 256" in run.text("tour")


def test_a_mistake_in_a_stop_is_not_hidden():
    with pytest.raises(NameError):
        Interpreter().run("nothing_called_so")
