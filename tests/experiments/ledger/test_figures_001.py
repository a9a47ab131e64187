"""The figures behind text 001's verdicts, against computations that share nothing with the code that measured them."""

import numpy as np
import pytest

from softscope.experiments import ledger
from softscope.experiments.ledger.texts import recall, scores


@pytest.fixture
def one_short_run(monkeypatch):
    ledger.forget()
    for name, value in {"VOCABULARIES": (16,), "SEEDS": 1, "STEPS": 2}.items():
        monkeypatch.setattr(recall, name, value)
    yield
    ledger.forget()


def plain(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def mean_norm(std, keys, rows):
    """Mean ‖J‖ from the whole matrices."""
    rng = np.random.default_rng(3)
    weights = [plain(std * rng.standard_normal(keys)) for _ in range(rows)]
    return np.mean([np.linalg.norm(np.diag(p) - np.outer(p, p)) for p in weights])


@pytest.mark.parametrize(("std", "keys"), [(1.0, 10), (8.0, 10), (22.6, 10)])
def test_the_size_of_the_gradient(std, keys):
    found = scores.jacobian_norms(std, keys)
    assert found.mean == pytest.approx(mean_norm(std, keys, 4_000), abs=0.01)
    assert 0.0 < found.error < 0.002


def test_an_even_row_s_gradient():
    """At n equal weights, J = I/n − 1/n², whose norm is √(n − 1)/n."""
    assert scores.frobenius(np.full((1, 7), 1 / 7)).item() == pytest.approx(np.sqrt(6) / 7)


def test_where_wide_scores_begin_to_leave_more_gradient():
    flip = scores.reverses_above(8.0)
    few, many = int(flip / 1.6), int(flip * 1.6)
    assert mean_norm(8.0, few, 2_000) < mean_norm(1.0, few, 500)
    assert mean_norm(8.0, many, 2_000) > mean_norm(1.0, many, 500)
    assert scores.reverses_above(22.6) > 2.0 * flip, "the wider, the more keys it takes"


@pytest.mark.usefixtures("one_short_run")
@pytest.mark.parametrize(("weighing", "share"), [("softmax", 0.0), ("sigmoid", 0.0), ("x/n", 0.5)])
def test_how_many_weights_are_negative(weighing, share):
    found = recall.recalled(weighing)
    assert found.negative == pytest.approx((share, share), abs=0.1)
    assert (found.off_one < 1e-6) == (weighing == "softmax")
    assert 0.0 <= found.worst == found.best < 0.5, "two steps teach nothing"
    assert not found.learned
