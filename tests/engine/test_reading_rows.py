"""The engine's readings of attention rows, against the same in long double."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from softscope import _engine

STATE = ("n", "c", "m", "r", "u", "t", "w", "highest")
OTHERS = ("distance", "squares", "aligned", "mean", "demand", "lowest", "expected", "supply")
KEYS = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 255, 256, 257, 511, 1023, 1025, 2500]
D, DV = 5, 3


def problem(m: int, dtype: Any, n: int = 5, spread: float = 1.0) -> dict[str, Any]:
    """Two batch entries, four heads on two key heads, and a mask that hides some keys but never a whole row."""
    rng = np.random.default_rng(m)
    shapes = {"q": (2, 4, n, D), "k": (2, 2, m, D), "v": (2, 2, m, DV), "grad": (2, 4, n, DV)}
    found = {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
    found["q"] *= dtype(spread)
    shown = rng.random((2, 4, n, m)) < 0.7
    shown[..., rng.integers(m)] = True
    return found | {"shown": shown, "positions": rng.integers(0, m, n)}


def engine(given: dict[str, Any], *, gradient: bool = True, threads: int = 1, **changed: Any) -> tuple[Any, Any]:
    """The numbers the engine finds, by name, and the weights."""
    q, k = given["q"], given["k"]
    m, dtype = k.shape[-2], q.dtype
    numbers = np.full((*q.shape[:-1], 16), 7.0)
    weights = np.full((*q.shape[:-1], m), 7.0, dtype)
    options = {
        "scale": np.full(4, 0.7), "positions": given["positions"].astype(np.int64), "left": 1 << 60, "right": 1 << 60,
        "mask": given["shown"].view(np.uint8), "brain_mask": False, "softcap": 0.0, "sink": None,
    }  # fmt: skip
    _engine.read_attention(
        q, k, given["v"] if gradient else None, given["grad"] if gradient else None,
        key_lengths=(1.0 / np.linalg.norm(k, axis=-1)).astype(dtype), numbers=numbers, weights=weights,
        options=_engine.AttentionOptions(**(options | changed)), brain=False, threads=threads,
    )  # fmt: skip
    return dict(zip(STATE + OTHERS, np.moveaxis(numbers, -1, 0), strict=True)), weights


def definition(given: dict[str, Any], *, left: int | None = None, right: int | None = None, softcap: float = 0.0,
               sink: Any = None, bias: Any = 0.0) -> tuple[dict[str, Any], Any]:  # fmt: skip
    """The same, row by row in long double."""
    found: dict[str, Any] = {name: np.zeros(given["q"].shape[:-1], np.longdouble) for name in STATE + OTHERS}
    weights = np.zeros((*given["q"].shape[:-1], given["k"].shape[-2]), np.longdouble)
    bias = np.broadcast_to(bias, given["shown"].shape)
    for b, h, i in itertools.product(*map(range, given["q"].shape[:-1])):
        k, v = (given[name][b, h // 2].astype(np.longdouble) for name in "kv")
        shown = given["shown"][b, h, i].copy()
        offset = np.arange(len(k)) - given["positions"][i]
        shown &= (offset >= -(1 << 60 if left is None else left)) & (offset <= (1 << 60 if right is None else right))
        if not shown.any():
            found["m"][b, h, i] = found["highest"][b, h, i] = -np.inf
            continue
        scores = (k @ given["q"][b, h, i].astype(np.longdouble) * np.longdouble(0.7))[shown]
        x = (scores if not softcap else softcap * np.tanh(scores / softcap)) + bias[b, h, i][shown]
        slope = np.ones_like(x) if not softcap else np.cosh(scores / softcap) ** -2
        d = x - x.max()
        e, top = np.exp(d), d == 0
        below = np.where(top, 0.0, e)
        numbers = [len(x), top.sum(), x.max(), below.sum(), (below * d).sum(), (below * d * d).sum(),
                   (below**2).sum(), scores.max(), d.sum(), (d * d).sum(),
                   (np.abs(scores) / np.linalg.norm(k[shown], axis=-1)).sum()]  # fmt: skip
        g = (v @ given["grad"][b, h, i].astype(np.longdouble))[shown]
        if sink is not None:
            x, g, slope = np.append(x, sink[h]), np.append(g, 0.0), np.append(slope, 1.0)
            e = np.exp(x - x.max())
        p, c = e / e.sum(), g - g.mean()
        # Counted from the largest weight: near one-hot even long double would lose the rest.
        away = (p * (c - c[p.argmax()])).sum()
        dS = slope * p * ((c - c[p.argmax()]) - away)
        numbers += [g.mean(), np.linalg.norm(c), c.min(), away + c[p.argmax()], np.linalg.norm(dS)]
        for name, number in zip(STATE + OTHERS, numbers, strict=True):
            found[name][b, h, i] = number
        weights[b, h, i][shown] = p[: shown.sum()]
    return found, weights


def close(got: tuple[Any, Any], wanted: tuple[Any, Any], dtype: Any, factor: float = 64.0) -> None:
    eps = factor * np.finfo(dtype).eps
    for name, value in wanted[0].items():
        with np.errstate(invalid="ignore"):
            # A sum with both signs is only as exact as its terms are large; a logit, as its products are.
            size = np.abs(value) * (1.0 + np.abs(np.nan_to_num(wanted[0]["m"], neginf=0.0))) + 1.0
            off = np.abs(got[0][name] - value) > eps * size
        same = (got[0][name] == value) | ~off
        assert same.all(), (name, got[0][name][~same][0], value[~same][0])
    assert np.abs(got[1] - wanted[1]).max() <= eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", KEYS)
def test_numbers_and_weights(m: int, dtype: Any) -> None:
    given = problem(m, dtype)
    close(engine(given), definition(given), dtype)


OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "causal": ({"right": 0}, {"right": 0}),
    "window": ({"left": 9, "right": 3}, {"left": 9, "right": 3}),
    "soft cap": ({"softcap": 1.5}, {"softcap": 1.5}),
    "sink": ({"sink": np.array([-3.0, 0.0, 2.0, 9.0])}, {"sink": [-3.0, 0.0, 2.0, 9.0]}),
    "cap, sink, causal": (
        {"softcap": 1.5, "sink": np.array([-3.0, 0.0, 2.0, 9.0]), "right": 0},
        {"softcap": 1.5, "sink": [-3.0, 0.0, 2.0, 9.0], "right": 0},
    ),
}


@pytest.mark.parametrize("m", [1, 17, 300])
@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, m: int) -> None:
    given = problem(m, np.float64)
    for_engine, for_definition = OPTIONS[name]
    close(engine(given, **for_engine), definition(given, **for_definition), np.float64)


def test_an_additive_mask() -> None:
    given = problem(70, np.float64)
    bias = np.random.default_rng(0).normal(size=given["shown"].shape)
    mask = np.where(given["shown"], bias, -np.inf)
    close(engine(given, mask=mask), definition(given, bias=bias), np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_a_gradient(dtype: Any) -> None:
    given = problem(100, dtype)
    got, weights = engine(given, gradient=False)
    wanted, p = definition(given)
    wanted = {name: value for name, value in wanted.items() if name not in OTHERS[3:]}
    close((got, weights), (wanted, p), dtype)
    assert all((got[name] == 0).all() for name in OTHERS[3:])


@pytest.mark.parametrize("spread", [10.0, 100.0])
def test_next_to_one_hot_supply_and_state_keep_their_digits(spread: float) -> None:
    """What reaches q and k is tiny there, and the doctor judges by it."""
    given = problem(300, np.float64, spread=spread)
    got, _ = engine(given)
    wanted, _ = definition(given)
    assert (wanted["supply"] < 1e-3).any()
    for name in ("r", "w", "supply"):
        exact = wanted[name].astype(float)
        assert got[name] == pytest.approx(exact, rel=1e-8 * spread, abs=1e-290), name


def test_any_number_of_threads_finds_the_same() -> None:
    given = problem(2500, np.float32, n=60)
    (one, p), (two, q) = engine(given, threads=1), engine(given, threads=3)
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert np.array_equal(p, q)


def test_rows_that_see_nothing_and_rows_with_nan_or_infinity() -> None:
    given = problem(40, np.float32)
    given["shown"][0, 0, 0] = False
    given["q"][1, 1, 1] = np.nan
    given["q"][1, 2, 2], given["k"][1, 1, 5], given["shown"][1, 2, 2, 5] = np.abs(given["q"][1, 2, 2]), np.inf, True
    given["shown"][1, 2:, :, 5] = False
    given["shown"][1, 2, 2, 5] = True
    got, weights = engine(given)
    assert got["n"][0, 0, 0] == 0
    assert got["m"][0, 0, 0] == -np.inf
    assert (weights[0, 0, 0] == 0).all()
    assert all(np.isnan(got[name][1, 1, 1]) for name in ("m", "r", "supply", "expected"))
    assert got["n"][1, 1, 1] == given["shown"][1, 1, 1].sum()  # as many keys are visible, whatever the query is
    assert got["m"][1, 2, 2] == np.inf
    assert np.isnan(got["r"][1, 2, 2])
    kept = np.ones((2, 4, 5), bool)
    kept[[0, 1, 1], [0, 1, 2], [0, 1, 2]] = False
    given["k"][1, 1, 5] = 0.5  # no other row sees it
    given["q"][1, 1, 1] = 1.0  # what the loss asks for does not depend on the query
    wanted, p = definition(given)
    for name in ("mean", "demand", "lowest"):
        assert got[name][1, 1, 1] == pytest.approx(float(wanted[name][1, 1, 1]), rel=1e-4), name
    close(
        ({name: value[kept] for name, value in got.items()}, weights[kept]),
        ({name: value[kept] for name, value in wanted.items()}, p[kept]),
        np.float32,
    )


def test_what_a_hidden_key_holds_does_not_matter() -> None:
    given = problem(40, np.float32)
    before = engine(given)
    given["shown"][..., 7] = False
    wanted = engine(given)
    given["k"][:, :, 7], given["v"][:, :, 7] = np.nan, np.inf
    got = engine(given)
    assert all(np.array_equal(got[0][name], wanted[0][name]) for name in STATE + OTHERS[:2] + OTHERS[3:])
    assert np.array_equal(got[1], wanted[1])
    assert not np.array_equal(before[1], wanted[1])


@pytest.mark.parametrize("size", [1e-30, 1e-24, 1e-20, 1e10, 1e20, 1e30])
def test_a_gradient_of_any_size_reads_the_same(size: float) -> None:
    """Squares of 1e-24 underflow in float32 and those of 1e20 overflow, so the unit is the largest gradient."""
    given = problem(64, np.float32)
    wanted, _ = definition(given)
    given["grad"] = given["grad"] * np.float32(size)
    got, _ = engine(given)
    for name in ("mean", "demand", "lowest", "expected", "supply"):
        exact, near = wanted[name].astype(float) * size, 1e-5 * float(wanted["demand"].max()) * size
        assert got[name] == pytest.approx(exact, rel=1e-4, abs=near), name


@pytest.mark.parametrize("gap", [5.0, 20.0, 40.0])
def test_next_to_one_hot_the_weight_of_a_sink_keeps_its_digits(gap: float) -> None:
    """It is not 1 minus the weight of the keys, of which nothing would be left."""
    given = problem(8, np.float64)
    given["shown"][...] = True
    given["q"][...], given["k"][...] = 1.0, -gap
    given["k"][:, :, 3] = gap
    sink = np.array([-3.0, 0.0, 2.0, 9.0])
    got, _ = engine(given, sink=sink)
    wanted, _ = definition(given, sink=list(sink))
    assert got["supply"] == pytest.approx(wanted["supply"].astype(float), rel=1e-11, abs=1e-290)


def test_a_mask_below_what_float32_holds_is_finite_all_the_same() -> None:
    """−1e300 in float64 is no −inf, and what is hidden does not depend on the dtype of q."""
    given = problem(40, np.float32)
    mask = np.where(np.arange(40) % 3 == 0, -1e300, 0.0)
    mask = np.ascontiguousarray(np.broadcast_to(mask, given["shown"].shape))
    got, weights = engine(given, mask=mask)
    assert (got["n"] == 40).all()
    assert (weights[..., ::3] == 0.0).all()
