"""The tools behind the temperature experiment, against scipy: sampling, temperature_for, fit_temperature."""

import numpy as np
import pytest
from scipy import optimize, special, stats

import softscope as ss

ROWS = np.random.default_rng(2).normal(scale=2.0, size=(6, 9))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_have_the_frequencies_of_softmax(temperature):
    draws = 30_000
    row = ROWS[0]
    drawn = ss.sample(np.tile(row, (draws, 1)), temperature=temperature, rng=np.random.default_rng(3))
    counts = np.bincount(drawn, minlength=len(row))
    expected = draws * special.softmax(row / temperature)
    few = expected < 5  # chi-square needs some in each class: merge the rare ones
    if few.any():
        counts, expected = (np.append(x[~few], x[few].sum()) for x in (counts, expected))
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    wrong = draws * special.softmax(ROWS[0] / (1.1 * temperature))
    wrong = np.append(wrong[~few], wrong[few].sum()) if few.any() else wrong
    assert stats.chisquare(counts, wrong).pvalue < 1e-3, "the test would not see a temperature 10% off"


@pytest.mark.parametrize("row", range(len(ROWS)))
@pytest.mark.parametrize("goal", [0.3, 1.0, 1.9])
def test_temperature_for_an_entropy_is_the_root_that_scipy_finds(row, goal):
    x = ROWS[row]

    def excess(log_t):
        return stats.entropy(special.softmax(x / np.exp(log_t))) - goal

    wanted = np.exp(optimize.brentq(excess, -8, 8, xtol=1e-13))
    assert float(ss.temperature_for(x, entropy=goal)[0]) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("row", range(len(ROWS)))
@pytest.mark.parametrize("goal", [0.2, 0.5, 0.9])
def test_temperature_for_a_peak_is_the_root_that_scipy_finds(row, goal):
    x = ROWS[row]

    def excess(log_t):
        return special.softmax(x / np.exp(log_t)).max() - goal

    wanted = np.exp(optimize.brentq(excess, -8, 8, xtol=1e-13))
    assert float(ss.temperature_for(x, peak=goal)[0]) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("gain", [0.5, 1.0, 3.0])
def test_fit_temperature_finds_the_gain_that_was_put_in(gain):
    rng = np.random.default_rng(4)
    logits = 2.0 * rng.standard_normal((20_000, 6))
    labels = ss.sample(logits, rng=rng)
    found = ss.fit_temperature(gain * logits, labels)

    def nll(log_t):
        z = gain * logits / np.exp(log_t)
        return float(np.mean(special.logsumexp(z, axis=1) - z[np.arange(len(z)), labels]))

    wanted = optimize.minimize_scalar(nll, bounds=(-4, 4), method="bounded", options={"xatol": 1e-9})
    assert found.temperature == pytest.approx(np.exp(wanted.x), rel=1e-5)
    assert found.temperature == pytest.approx(gain, rel=0.03)
