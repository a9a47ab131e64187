"""The figures behind text 003's verdicts, against derivations that share nothing with the code that measured them."""

import math

import mpmath
import numpy as np
import pytest
import scipy.optimize

from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts import text_003_attention as in_attention
from softscope.experiments.ledger.texts import text_003_homework as homework
from softscope.experiments.ledger.texts import text_003_practice as practice
from softscope.experiments.ledger.texts import text_003_root_d as root_d
from softscope.experiments.ledger.texts import text_003_variants as variants


def in_many_digits(x: list[float], temperature: float = 1.0) -> list[mpmath.mpf]:
    with mpmath.workdps(50):
        e = [mpmath.exp(mpmath.mpf(v) / temperature) for v in x]
        return [v / sum(e) for v in e]


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [1.0, 5.0, 10.0], [1.0, 50.0, 100.0], [1000.0, 1001.0, 1002.0]])
def test_the_chapter_s_softmax(x):
    np.testing.assert_allclose(code.stable(np.array(x)), [float(v) for v in in_many_digits(x)], rtol=1e-14)


def test_the_listing_s_wrong_digits():
    """The text prints 0.006693 and 0.993184: each is off by one in its last place."""
    assert [mpmath.nstr(v, 6) for v in in_many_digits([1.0, 5.0, 10.0])[1:]] == ["0.00669203", "0.993185"]


@pytest.mark.parametrize(
    ("x", "decimals", "line"),
    [
        ([0.09003057, 0.24472847, 0.66524096], 4, "[0.09   0.2447 0.6652]"),
        ([0.0, 0.0, 1.0], 6, "[0. 0. 1.]"),
        ([1 / 3, 1 / 3, 1 / 3], 6, "[0.333333 0.333333 0.333333]"),
    ],
)
def test_printing_does_not_depend_on_the_options_set(x, decimals, line):
    with np.printoptions(precision=2, suppress=True):
        assert code.printed(np.array(x), decimals) == line


def test_a_warning_is_reported_and_not_raised():
    result, seen, raised = code.reported(code.naive, np.array([1000.0, 1001.0, 1002.0]))
    assert np.isnan(result).all()
    assert raised == ""
    assert any("overflow" in message for message in seen)


def test_an_exception_is_reported():
    def refuse(_):
        raise OverflowError

    assert code.reported(refuse, np.zeros(2)) == (None, [], "OverflowError")


def test_the_chapter_s_sparsemax_is_the_nearest_point():
    """By a general solver: the point of the simplex at the smallest distance."""
    rng = np.random.default_rng(7)
    for _ in range(5):
        x = rng.standard_normal(4)
        found = scipy.optimize.minimize(
            lambda p, x=x: ((p - x) ** 2).sum(),
            np.full(4, 0.25),
            bounds=[(0.0, 1.0)] * 4,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(code.sparse(x), found.x, atol=1e-6)
        np.testing.assert_allclose(variants._projected(x[None])[0], found.x, atol=1e-6)


@pytest.mark.parametrize(("temperature", "k"), [(0.5, 1), (1.0, 10)])
def test_pass_at_k_by_playing(temperature, k):
    """Draw the right answer and k guesses, and count."""
    rng = np.random.default_rng(11)
    logits = practice._problems()

    def draw(z):
        return (z + rng.gumbel(size=z.shape)).argmax(-1)

    right = draw(logits)
    passed = np.zeros(len(right), dtype=bool)
    for _ in range(k):
        passed |= draw(logits / temperature) == right
    wanted = practice._passes(temperature, k)
    assert abs(passed.mean() - wanted.mean()) < 5 * math.sqrt(0.25 / len(right))


@pytest.mark.parametrize("temperature", [0.2, 0.5])
def test_where_low_temperatures_stop_helping(temperature):
    """By powers instead of logarithms: ahead of T = 1 up to the flip, behind from there on."""
    k = practice._flip(temperature)
    logits = practice._problems()
    right = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    cold = np.exp(logits / temperature) / np.exp(logits / temperature).sum(-1, keepdims=True)

    def gain(tries):
        return (right * ((1.0 - right) ** tries - (1.0 - cold) ** tries)).sum(-1).mean()

    assert k > 1
    assert gain(k - 1) > 0.0 > gain(k)


# Of one product q_i·k_i: its mean and its variance, from the moments of a normal number.
TERMS = {"as assumed": (0.0, 1.0), "wide": (0.0, 16.0), "shifted": (1.0, 3.0), "alike": (1.0, 2.0)}


@pytest.mark.parametrize("setting", root_d._SETTINGS)
def test_dot_products_have_the_moments_that_follow_from_one_term(setting):
    mean, variance = TERMS[setting]
    x = root_d._sampled(setting, 64)
    assert abs(x.mean() - 64 * mean) < 5 * math.sqrt(64 * variance / x.size)
    assert x.var() == pytest.approx(64 * variance, rel=0.06)


def test_softmax_s_own_temperature_is_found(monkeypatch):
    scores = np.random.default_rng(3).standard_normal((5, 7))
    assert in_attention._own_temperature(scores) == pytest.approx(1.0)
    softmax = in_attention.ss.softmax
    monkeypatch.setattr("softscope.softmax", lambda x: softmax(x / 3.0))
    assert in_attention._own_temperature(scores) == pytest.approx(3.0)


def test_softmax_by_operators():
    x = [-3.0, 700.5, 699.0, 701.0]
    np.testing.assert_allclose(homework._by_operators(np.array(x)), [float(v) for v in in_many_digits(x)], atol=1e-15)


def test_calls_are_counted():
    assert homework._calls(homework._by_operators) == 0
    assert homework._calls(code.naive) == 2
