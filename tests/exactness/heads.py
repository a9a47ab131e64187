"""Small attention problems, and the oracle's answer for each of their rows."""

import functools
from typing import Any, NamedTuple

import numpy as np
from mpmath import mpf

from exactness.inputs import array
from oracle import attention, gradients, readings, sparse
from oracle.attention import Options

HEADS, KV_HEADS, QUERIES, KEYS, DEPTH, WIDTH = 2, 1, 3, 5, 4, 3

BOOLEAN = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [1, 1, 0, 1, 1]], dtype=bool)
BIAS = np.array([[0.5, -1.0, 0.25, 0.0, -2.0], [0, 0, -0.5, 1.5, 0], [-3.0, 0.0, 0.125, 2.0, 0.0]])
HOLED = np.where(BOOLEAN, BIAS, -np.inf)
FINITE_HOLES = np.where(BOOLEAN, BIAS, np.finfo(np.float64).min)
NOTHING = np.zeros((QUERIES, KEYS), dtype=bool) | (np.arange(QUERIES) != 1)[:, None]

PROBLEMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dot product": {"scale": 1.0},
    "scale per head": {"scale": np.array([0.25, 2.0])},
    "sharp": {"scale": 12.0},
    "causal": {"causal": True},
    "causal, started": {"causal": True, "query_start": 2},
    "window": {"window": (1, 1), "query_start": 1},
    "window, open to the left": {"window": (None, 0)},
    "causal window": {"causal": True, "window": (1, None), "query_start": 2},
    "boolean mask": {"mask": BOOLEAN},
    "a row with nothing": {"mask": NOTHING},
    "additive mask": {"mask": BIAS},
    "additive mask with -inf": {"mask": HOLED},
    "additive mask with finfo.min": {"mask": FINITE_HOLES},
    "soft cap": {"softcap": 1.5},
    "soft cap, scale and mask": {
        "softcap": 2.0,
        "scale": 1.5,
        "mask": HOLED,
        "causal": True,
        "query_start": 3,
    },
    "sink": {"sink": np.array([0.0, 1.5])},
    "sink, causal, cap": {"sink": np.array([-1.0, 0.5]), "causal": True, "softcap": 1.0, "mask": BIAS},
    "sink and nothing else": {"sink": np.array([0.0, 1.5]), "mask": NOTHING},
    "entmax 1.5": {"alpha": 1.5},
    "entmax 1.25, all else": {"alpha": 1.25, "causal": True, "query_start": 2, "softcap": 3.0, "mask": BIAS},
    "sparsemax": {"alpha": 2.0, "scale": 1.0},
    "sparsemax, masked": {"alpha": 2.0, "mask": NOTHING},
    "entmax 3": {"alpha": 3.0, "mask": NOTHING},
    "entmax 6, causal": {"alpha": 6.0, "causal": True, "query_start": 2, "scale": 0.1},
}


class Given(NamedTuple):
    """Queries, keys, values and the gradient of the output, as (heads, rows, width)."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    grad_output: np.ndarray


@functools.cache
def given() -> Given:
    rng = np.random.default_rng(4)
    shapes = (
        (HEADS, QUERIES, DEPTH),
        (KV_HEADS, KEYS, DEPTH),
        (KV_HEADS, KEYS, WIDTH),
        (HEADS, QUERIES, WIDTH),
    )
    # Few bits, so float32 holds them exactly.
    return Given(*((rng.normal(size=shape) * 64).round() / 64 for shape in shapes))


def passed(name: str, backend: str, dtype: str) -> tuple[list[Any], dict[str, Any]]:
    """The arrays and options as a caller would pass them."""
    options = {}
    for key, value in PROBLEMS[name].items():
        if isinstance(value, np.ndarray) and value.dtype == bool:
            options[key] = array(value, dtype, backend) > 0
        else:
            options[key] = array(value, "float64", backend) if isinstance(value, np.ndarray) else value
    return [array(a, dtype, backend) for a in given()], options


def _options(name: str, head: int) -> tuple[float, Options]:
    problem = dict(PROBLEMS[name])
    scale = problem.pop("scale", DEPTH**-0.5)
    for key in ("mask", "sink"):
        if isinstance(problem.get(key), np.ndarray):
            problem[key] = problem[key].tolist() if key == "mask" else float(problem[key][head])
    floor = float(np.finfo(np.float64).min) / 2
    return float(scale[head]) if isinstance(scale, np.ndarray) else scale, Options(hidden_at=floor, **problem)


@functools.cache
def products(name: str, head: int) -> list[list[mpf]]:
    scale, _ = _options(name, head)
    return attention.products(given().q[head].tolist(), given().k[head * KV_HEADS // HEADS].tolist(), scale)


@functools.cache
def wanted_outputs(name: str, head: int) -> list[list[mpf]]:
    values = given().v[head * KV_HEADS // HEADS].tolist()
    return attention.outputs(products(name, head), values, _options(name, head)[1])


@functools.cache
def wanted_partition(name: str, head: int, query: int) -> readings.Readings:
    return attention.partition(query, products(name, head)[query], _options(name, head)[1])


@functools.cache
def wanted_support(name: str, head: int, query: int) -> dict[str, Any]:
    """The statistics of a row of alpha-entmax, straight from its weights."""
    _, options = _options(name, head)
    row = attention.logits(query, products(name, head)[query], options)
    p = [w for w in sparse.entmax(row, options.alpha) if w > 0]
    if not p:
        return {"size": 0}
    return {
        "tau": sparse.tau(row, options.alpha),
        "size": len(p),
        "entropy": readings.entropy(p),
        "collision": sum(w**2 for w in p),
        "peak": max(p),
        "jacobian_trace": sparse.jacobian_trace(p, options.alpha),
    }


@functools.cache
def wanted_gradients(name: str, head: int, query: int) -> gradients.Gradients:
    values = given().v[head * KV_HEADS // HEADS].tolist()
    raw, slope = products(name, head)[query], given().grad_output[head][query].tolist()
    return gradients.gradient_readings(query, raw, values, slope, _options(name, head)[1])
