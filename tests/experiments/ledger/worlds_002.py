"""Worlds in which text 002's claims come out the other way round."""

import dataclasses
import math
import types

import numpy as np

import softscope as ss
from experiments.ledger.worlds import World
from softscope.experiments.ledger import Estimate
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts import random_attention as drawn

TEXTS = "softscope.experiments.ledger.texts"
SAMPLED = dots.sampled.__wrapped__


def seen(module, **values):
    """Patches of names in one of the texts' modules."""
    return {f"{TEXTS}.{module}.{name}": value for name, value in values.items()}


def always(value):
    """A measurement that finds the same whatever it is asked."""
    return lambda *_, **__: value


def fails(*patches):
    return World("fails", {name: value for patch in patches for name, value in patch.items()})


def holds(*patches):
    return fails(*patches)._replace(verdict="holds")


WIDE = seen("dot_products", sampled=lambda d, kind="normal": 2.0 * SAMPLED(d, kind))
SHIFTED = seen("dot_products", sampled=lambda d, kind="normal": SAMPLED(d, kind) + 3.0 * np.sqrt(d))
COUPLED = seen("text_002_variance", _moments=lambda d: (0, [1] * d, d + 1))

DOUBLED = seen("text_002_example", math=types.SimpleNamespace(**vars(math) | {"exp": lambda x: 2.0 * math.exp(x)}))
UNIFORM = {"softscope.softmax": lambda x: np.full(np.shape(x), 1.0 / np.shape(x)[-1])}
AS_PRINTED = {"softscope.softmax": lambda _: np.array([0.012, 0.089, 0.243, 0.661, 0.995])}
TOO_WARM = {"softscope.softmax": lambda x, right=ss.softmax: right(np.asarray(x) / 2.0)}
WIDER_IS_SMOOTHER = {"softscope.partition": lambda x: types.SimpleNamespace(entropy=np.ptp(x), peak=0.5)}

NORMAL = seen("dot_products", distance_from_normal=always(0.0), excess_kurtosis=always(0.0))

SHARPNESS = drawn.sharpness.__wrapped__


def rows(**readings):
    """Random rows whose readings are other ones: each a function of d."""

    def sharpness(d, factor):
        return dataclasses.replace(SHARPNESS(d, factor), **{name: value(d) for name, value in readings.items()})

    return seen("random_attention", sharpness=sharpness)


def sure(mean):
    """An estimate with hardly any error, whatever d."""
    return lambda _: Estimate(mean, 1e-4, 4000)


def spread_evenly(low, high):
    """The largest weights of 4000 matrices, whatever d."""
    return always(np.linspace(low, high, 4000))


FLAT_IN_BITS = {"softscope.partition": lambda x: types.SimpleNamespace(entropy=np.log2(np.ones(np.shape(x)).sum(-1)))}
RISING = rows(entropy=lambda d: Estimate(0.1 * math.log(d + 1.0), 1e-4, 4000))

INACCURATE = seen("random_attention", error_of_weights=always(0.5))
PAPER = "softscope.experiments.ledger.paper"
OWN_RUNS = {f"{PAPER}.TABLE_3_UNSCALED_ROWS": 3}
FLAT_TABLE = {f"{PAPER}.TABLE_3_ROWS_B": {64: (4.92, 25.8), 32: (4.92, 25.8), 16: (4.93, 25.7)}}
RISING_TABLE = {f"{PAPER}.TABLE_3_ROWS_B": {64: (4.92, 25.0), 32: (4.92, 25.5), 16: (4.93, 25.9)}}

LINEAR = seen("text_002_scores", _scores=lambda a: (a["q"] @ a["w_q"])[..., :, None, :] @ a["v_a"] * np.ones(10))
SLOW = seen("text_002_scores", _speed=always((0.4, 0.5, 0.6)))

VANISHING = seen("query_gradients", row_norms=lambda d, *_: np.full((400, 10), 100.0 / d))
CONSTANT = seen("query_gradients", row_norms=always(np.ones((400, 10))))
EVER_SMOOTH = rows(peak=sure(0.3), trace=sure(0.8))
HALF_EVEN = seen("scores", entropies=lambda *_, keys, **__: Estimate(0.5 * math.log(keys), 1e-4, 4000))
BEST_AT_ONE = seen("text_002_lanes", _norms=always({1.0: Estimate(0.5, 1e-4, 1000), 2.0: Estimate(0.4, 1e-4, 1000)}))
EVEN_IN_D = seen(
    "text_002_lanes", _layer_norm=lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True) * x.shape[-1] ** 0.25
)


def trained(accuracy, misled=0.0):
    """Every run ends with this accuracy, and this share of rows blocked on a wrong key."""
    seeds = [accuracy] * 5
    return seen(
        "recall_runs",
        sweep=lambda *_, keys=(16, 64), **__: dict.fromkeys(keys, seeds),
        accuracies=always(seeds),
        misled=always([misled] * 5),
        gained=always([0.0] * 5),
    )


WORLDS = {
    "S2-01": fails({"softscope.attention": lambda _q, _k, v: v}),
    "S2-02": holds(INACCURATE),
    "S2-03": fails(SHIFTED),
    "S2-04": fails(COUPLED),
    "S2-05": fails(WIDE),
    "S2-06": fails(WIDE),
    "S2-07": holds(NORMAL),
    "S2-08": fails(WIDE),
    "S2-09": fails(DOUBLED),
    "S2-10": fails(DOUBLED),
    "S2-11": fails(UNIFORM),
    "S2-12": fails(TOO_WARM),
    "S2-13": fails(UNIFORM),
    "S2-14": fails(WIDE),
    "S2-15": holds(NORMAL),
    "S2-16": fails(WIDE),
    "S2-17": holds(seen("text_002_example", _divided=always(np.array([-3.0, -1.0, 0.0, 1.0, 3.0])))),
    "S2-18": fails(DOUBLED),
    "S2-19": fails(DOUBLED),
    "S2-20": holds(AS_PRINTED),
    "S2-21": fails(WIDER_IS_SMOOTHER),
    "S2-22": holds(UNIFORM),
    "S2-23": fails(HALF_EVEN),
    "S2-24": fails(trained(1.0)),
    "S2-25": fails(HALF_EVEN),
    "S2-26": fails(trained(0.2, 0.8)),
    "S2-27": fails({f"{PAPER}.FOOTNOTE_PAGE": 5}),
    "S2-28": fails({f"{PAPER}.FOOTNOTE": "To illustrate why the dot products get small, …"}),
    "S2-29": holds(OWN_RUNS, RISING_TABLE),
    "S2-30": holds(FLAT_TABLE),
    "S2-31": holds(OWN_RUNS),
    "S2-32": fails({"softscope.additive_attention": lambda v, **_: v}),
    "S2-33": fails(LINEAR),
    "S2-34": fails({"numpy.tanh": np.sinh}),
    "S2-35": holds(seen("text_002_scores", _additive_entropy=always(Estimate(2.0, 1e-3, 300)))),
    "S2-36": holds(INACCURATE),
    "S2-37": holds(OWN_RUNS),
    "S2-38": fails(SLOW),
    "S2-39": holds(trained(1.0), seen("text_002_scores", _winners=always(16))),
    "S2-40": fails(COUPLED),
    "S2-41": holds(seen("text_002_variance", _scaled_scores=always(np.random.default_rng(0).standard_normal(20_000)))),
    "S2-42": fails(FLAT_IN_BITS),
    "S2-43": holds(rows(entropy=sure(2.1))),
    "S2-44": holds(rows(entropy=sure(0.8))),
    "S2-45": fails(rows(entropy=sure(0.8))),
    "S2-46": holds(rows(entropy=sure(2.3))),
    "S2-47": fails(RISING),
    "S2-48": fails(RISING),
    "S2-49": holds(VANISHING),
    "S2-50": holds(CONSTANT),
    "S2-51": holds(rows(largest=spread_evenly(0.25, 0.4))),
    "S2-52": holds(rows(largest=spread_evenly(0.1, 1.0))),
    "S2-53": holds(rows(largest=spread_evenly(0.0, 1.2))),
    "S2-54": fails(seen("text_002_script", _shapes=always(((10, 64), (64, 64))))),
    "S2-55": fails(rows(largest=lambda d: np.linspace(1.0, 1.1, 4000) / d)),
    "S2-56": fails(rows(largest=lambda d: np.linspace(1.0, 1.1, 4000) / d)),
    "S2-57": holds(EVER_SMOOTH),
    "S2-58": holds(CONSTANT, EVER_SMOOTH),
    "S2-59": holds(FLAT_TABLE),
    "S2-60": fails(SLOW),
    "S2-61": holds(NORMAL),
    "S2-62": holds(BEST_AT_ONE),
    "S2-64": holds(EVEN_IN_D),
}

# Claims for which no other world can be invented, and why.
WHY_NOT = {
    "S2-63": "an opinion about history: there is nothing to measure",
}
