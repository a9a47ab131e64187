"""The figures behind text 002's verdicts, against derivations that share nothing with the code that measured them."""

import math

import mpmath
import numpy as np
import pytest
import scipy.stats

from softscope.experiments.ledger import paper
from softscope.experiments.ledger.claim import generator
from softscope.experiments.ledger.texts import dot_products, query_gradients, random_attention
from softscope.experiments.ledger.texts import text_002_example as example
from softscope.experiments.ledger.texts import text_002_paper as on_paper
from softscope.experiments.ledger.texts import text_002_script as script


def density(d: int, x: float) -> float:
    """The density of q·k with d normal components: its characteristic function (1 + t²)^(−d/2), inverted by hand."""
    order = mpmath.mpf(d - 1) / 2
    return (x / 2) ** order * mpmath.besselk(order, x) / (mpmath.sqrt(mpmath.pi) * mpmath.gamma(mpmath.mpf(d) / 2))


@pytest.mark.parametrize("d", [2, 16, 64])
def test_the_tail_of_a_dot_product(d):
    wanted = 2 * mpmath.quad(lambda x: density(d, x), [3 * math.sqrt(d), 6 * math.sqrt(d), mpmath.inf])
    assert dot_products.outside(d, 3.0) == pytest.approx(float(wanted), rel=1e-4)


@pytest.mark.parametrize("d", [4, 64])
def test_the_distance_from_a_normal(d):
    def apart(z):
        inside = mpmath.quad(lambda x: density(d, x), [0, z * math.sqrt(d)])
        return abs(0.5 + float(inside) - scipy.stats.norm.cdf(z))

    wanted = max(apart(z) for z in np.linspace(0.3, 1.2, 19))
    assert dot_products.distance_from_normal(d) == pytest.approx(wanted, rel=0.01)


def test_the_kurtosis_of_samples_is_the_derived_one():
    found = scipy.stats.kurtosis(dot_products.sampled(4))
    assert found == pytest.approx(dot_products.excess_kurtosis(4), abs=0.3)


@pytest.mark.parametrize(("d", "scaled"), [(16, False), (64, False), (256, False), (16, True), (1024, True)])
def test_entropies_by_another_road(d, scaled):
    """Given the query's length, its scores are independent normals, so a row needs one chi variable and ten normals."""
    rng = np.random.default_rng(d)
    length = np.sqrt(rng.chisquare(d, (40_000, 1)))
    scores = length * rng.standard_normal((40_000, 10)) / (math.sqrt(d) if scaled else 1.0)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    wanted = scipy.stats.entropy(p, axis=-1)
    measured = (random_attention.scaled(d) if scaled else random_attention.plain(d)).entropy
    error = math.hypot(measured.error, wanted.std() / 200.0)
    assert abs(measured.mean - wanted.mean()) < 5.0 * error


@pytest.mark.parametrize("scaled", [False, True])
def test_query_gradients_by_the_formula(scaled):
    d = 16
    rng = generator(f"query gradients {d} 64")
    q, k, v, g = (rng.standard_normal((400, 10, width)) for width in (d, d, 64, 64))
    s = 0.25 if scaled else 1.0
    p = np.exp(s * q @ k.transpose(0, 2, 1))
    p /= p.sum(-1, keepdims=True)
    at_weights = g @ v.transpose(0, 2, 1)
    at_scores = p * (at_weights - (p * at_weights).sum(-1, keepdims=True))
    wanted = np.linalg.norm(s * at_scores @ k, axis=-1)
    np.testing.assert_allclose(query_gradients.row_norms(d, 64, scaled), wanted, rtol=1e-9, atol=1e-12)


def test_the_example_in_many_digits():
    with mpmath.workdps(40):
        e = [mpmath.exp(x) for x in (-3, -1, 0, 1, 3)]
        wanted = [float(x / sum(e)) for x in e]
    assert example._s2_20.check().measured == "[" + ", ".join(f"{x:.3f}" for x in wanted) + "]"


@pytest.mark.parametrize(("stated", "verdict"), [("2.6e10", "holds"), ("2.7e10", "fails"), ("2.65e10", "holds")])
def test_another_claim_gets_another_verdict(stated, verdict):
    assert example._power(24.0, stated).verdict == verdict


def test_a_table_that_rises_is_not_stable_either(monkeypatch):
    monkeypatch.setattr(paper, "TABLE_3_ROWS_B", {64: (4.9, 25.0), 32: (4.9, 25.5), 16: (4.9, 25.9)})
    assert on_paper._s2_30.check().verdict == on_paper._s2_59.check().verdict == "fails"


@pytest.mark.parametrize(
    ("plain", "scaled", "verdict"),
    [("1.000", "0.530", "holds"), ("5.000", "0.530", "fails"), ("1.000", "0.01", "fails")],
)
def test_a_printed_weight_may_be_too_large_or_too_small(plain, scaled, verdict):
    assert script._sample(64, plain, scaled).verdict == verdict
