"""sample: the right frequencies after each filter, filters in the right order, reproducible results."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import softscope as ss
from interface.kinds import dtype_of, same, tensor
from softscope._backends.reference.sampling import draw, keep

DRAWS = 20_000
P = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
LOGITS = np.log(P) + 7.0
each_room = pytest.mark.parametrize("make", [np.array, tensor])
Make = Callable[[Any], Any]


def generator(kind: str, seed: int = 11) -> Any:
    return np.random.default_rng(seed) if kind == "numpy" else torch.Generator().manual_seed(seed)


def check(drawn: Any, wanted: np.ndarray) -> None:
    """A chi-square test of the frequencies; entries without weight are never drawn."""
    counts = np.bincount(np.asarray(drawn).ravel(), minlength=len(wanted))
    assert counts.sum() == DRAWS
    assert counts[wanted == 0.0].sum() == 0
    some = wanted > 0.0
    expected = DRAWS * wanted[some] / wanted[some].sum()
    assert some.sum() == 1 or stats.chisquare(counts[some], expected).pvalue > 1e-3, (counts, expected)


FILTERS: dict[str, tuple[dict[str, Any], list[float]]] = {
    "nothing": ({}, [0.4, 0.3, 0.15, 0.1, 0.05]),
    "cold": ({"temperature": 0.5}, [0.16, 0.09, 0.0225, 0.01, 0.0025]),
    "hot": ({"temperature": np.inf}, [1, 1, 1, 1, 1]),
    "top_k 2": ({"top_k": 2}, [0.4, 0.3, 0, 0, 0]),
    "top_k beyond the end": ({"top_k": 99}, [0.4, 0.3, 0.15, 0.1, 0.05]),
    "top_k 1": ({"top_k": 1}, [1, 0, 0, 0, 0]),
    "top_p within the first": ({"top_p": 0.39}, [1, 0, 0, 0, 0]),
    "top_p reached by the second": ({"top_p": 0.41}, [0.4, 0.3, 0, 0, 0]),
    "top_p 1": ({"top_p": 1.0}, [0.4, 0.3, 0.15, 0.1, 0.05]),
    "top_p tiny": ({"top_p": 1e-9}, [1, 0, 0, 0, 0]),
    "min_p": ({"min_p": 0.3}, [0.4, 0.3, 0.15, 0, 0]),
    "min_p 0": ({"min_p": 0.0}, [0.4, 0.3, 0.15, 0.1, 0.05]),
    "min_p 1": ({"min_p": 1.0}, [1, 0, 0, 0, 0]),
    # The order matters: with top_p before the temperature, one more would be kept here and one fewer there …
    "temperature, then top_p": ({"temperature": 0.5, "top_p": 0.56}, [0.16, 0, 0, 0, 0]),
    "temperature, then top_p, hot": ({"temperature": np.inf, "top_p": 0.5}, [1, 1, 1, 0, 0]),
    "temperature, then min_p": ({"temperature": 0.5, "min_p": 0.3}, [0.16, 0.09, 0, 0, 0]),
    # … among the two kept by top_k the first has 4/7 > 0.55; among all it has 0.4 …
    "top_k, then top_p": ({"top_k": 2, "top_p": 0.55}, [0.4, 0, 0, 0, 0]),
    # … min_p is relative to the largest, so it drops the same entries before top_p as after, unless top_p came last.
    "top_p, then min_p": ({"top_p": 0.75, "min_p": 0.3}, [0.4, 0.3, 0.15, 0, 0]),
    "min_p would shrink top_p": ({"top_p": 0.8, "min_p": 0.7}, [0.4, 0.3, 0, 0, 0]),
    "all four": ({"temperature": 2.0, "top_k": 4, "top_p": 0.9, "min_p": 0.55},
                 [0.4**0.5, 0.3**0.5, 0.15**0.5, 0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("case", FILTERS)
def test_frequencies(case: str, kind: str) -> None:
    options, wanted = FILTERS[case]
    logits = np.broadcast_to(LOGITS, (DRAWS, 5))
    check(ss.sample(logits, rng=generator(kind), **options), np.array(wanted, dtype=float))


@each_room
def test_rows_in_any_order_and_with_entries_that_are_impossible(make: Make) -> None:
    order = [3, 0, 5, 4, 2, 1]
    row = np.append(LOGITS, -np.inf)[order]
    logits = make(np.tile(row, (DRAWS, 1)))
    check(ss.sample(logits, rng=generator("numpy"), top_k=3), np.array([0.4, 0.3, 0.15, 0, 0, 0])[order])
    check(ss.sample(logits, rng=generator("torch")), np.array([0.4, 0.3, 0.15, 0.1, 0.05, 0])[order])


@each_room
def test_each_row_has_its_own_distribution_and_its_own_draw(make: Make) -> None:
    logits = np.stack([np.tile(LOGITS, (DRAWS, 1)), np.tile(LOGITS[::-1], (DRAWS, 1))])
    drawn = np.asarray(ss.sample(make(logits), rng=generator("numpy")))
    check(drawn[0], P)
    check(drawn[1], P[::-1])
    together = stats.contingency.crosstab(drawn[0], drawn[1]).count
    assert stats.chi2_contingency(together).pvalue > 1e-3  # independent


@each_room
def test_temperature_zero_is_argmax_of_equals_the_first(make: Make) -> None:
    logits = make(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 0.0], [-np.inf, -1.0, -1.0]]))
    for options in ({}, {"top_k": 2}, {"top_p": 0.5}, {"min_p": 0.9}):
        same(ss.sample(logits, temperature=0.0, rng=generator("numpy"), **options), np.array([1, 0, 1]))
    same(ss.sample(logits, temperature=0, rng=generator("torch")), np.array([1, 0, 1]))


@each_room
def test_temperatures_of_the_rows_zero_among_them(make: Make) -> None:
    logits, hot = np.tile(LOGITS, (2, DRAWS, 1)), np.zeros((2, 1, 1))
    hot[1] = 0.5
    drawn = np.asarray(ss.sample(make(logits), temperature=make(hot), rng=generator("numpy")))
    assert (drawn[0] == 0).all()
    check(drawn[1], P**2)


@each_room
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_same_seed_draws_the_same(kind: str, make: Make) -> None:
    logits = make(np.tile(LOGITS, (50, 1)))
    first, again, other = (ss.sample(logits, rng=generator(kind, seed)) for seed in (1, 1, 2))
    same(first, again)
    assert (first != other).any()
    rng = generator(kind)
    assert (ss.sample(logits, rng=rng) != ss.sample(logits, rng=rng)).any()  # the generator advances


def test_the_kind_of_the_logits_does_not_change_the_draw() -> None:
    logits = np.tile(LOGITS, (50, 1))
    for kind in ("numpy", "torch"):
        same(ss.sample(logits, rng=generator(kind)), ss.sample(tensor(logits), rng=generator(kind)))


@each_room
@pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 3, 5), (4, 1)])
def test_the_last_axis_goes_and_int64_comes(shape: tuple[int, ...], make: Make) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        drawn = ss.sample(make(np.zeros(shape, dtype)), rng=generator("numpy"))
        assert tuple(drawn.shape) == shape[:-1]
        assert dtype_of(drawn) == "int64"
        assert (np.asarray(drawn) < shape[-1]).all()


@pytest.mark.parametrize("n", [1, 2, 7, 300])
@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0, 5.0])
@pytest.mark.parametrize(
    ("k", "p", "least"),
    [(None, None, None), (3, None, None), (None, 0.6, None), (None, None, 0.2), (5, 0.8, None), (40, 0.95, 0.05)],
)
def test_the_draw_of_the_definition(
    n: int, temperature: float, k: int | None, p: float | None, least: float | None
) -> None:
    logits = 3.0 * np.random.default_rng(n).standard_normal((200, n))
    logits[:, 1:][np.random.default_rng(1).random((200, n - 1)) < 0.2] = -np.inf
    drawn = ss.sample(logits, temperature=temperature, top_k=k, top_p=p, min_p=least, rng=generator("numpy"))
    if temperature == 0.0:
        same(drawn, logits.argmax(axis=-1))
        return
    weights = np.exp((logits - logits.max(axis=-1, keepdims=True)) / temperature)
    kept = keep(weights / weights.sum(axis=-1, keepdims=True), k, p, least)
    same(drawn, draw(kept, generator("numpy").random(200)))


def test_ties_at_the_border_of_top_k_keep_k() -> None:
    drawn = ss.sample(np.zeros((DRAWS, 4)), top_k=2, rng=generator("numpy"))
    assert len(np.unique(drawn)) == 2


def test_nothing_but_the_given_generator_is_used() -> None:
    before = torch.get_rng_state()
    ss.sample(tensor(LOGITS), rng=generator("torch"))
    assert (torch.get_rng_state() == before).all()
