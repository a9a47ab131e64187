"""Worlds in which text 004's claims come out the other way round."""

import math

import numpy as np
import sympy

import softscope as ss
from experiments.ledger.worlds import World
from experiments.ledger.worlds_000 import (
    OF_SQUARES,
    UNIFORM,
    WRONG_SLOPE,
    symbols_of_squares,
    temperature,
)
from softscope.experiments.ledger import Estimate

TEXTS = "softscope.experiments.ledger.texts"
GAIN, ATTENTION, JACOBIAN = (f"{TEXTS}.text_004_{name}" for name in ("gain", "attention", "jacobian"))
LOG, LOG_SOFTMAX = sympy.log, ss.log_softmax


def always(*weights):
    """A softmax that gives these weights to everything."""
    return {"softscope.softmax": lambda *_, **__: np.array(weights)}


def symbols_in_step(n):
    """One variable in place of n independent ones."""
    x = sympy.Symbol("x", real=True)
    return sympy.Matrix([x] * n), sympy.ones(n, 1) / n


def shared_slopes():
    """A derivation in which every entry has the same share, so that any index will do."""
    z = sympy.Matrix(sympy.symbols("z1:5", real=True))
    return {"z": z, "s": sympy.ones(4, 1) / 4, "total": sympy.exp(sum(z) / 4)}


SHARPER_AT_SMALL_D = {f"{GAIN}.entropies": lambda d, keys, n: Estimate(math.log(keys) * d / 256, 0.001, n)}
LOGARITHM_TO_BASE_2 = {"sympy.log": lambda x: LOG(x) / LOG(2)}
POWERS_OF_2 = {"sympy.exp": lambda x: 2**x}

WORLDS = {
    "S4-01": World("holds", SHARPER_AT_SMALL_D),
    "S4-02": World("fails", temperature(2.0)),
    "S4-03": World("fails", temperature(2.0)),
    "S4-04": World("fails", OF_SQUARES),
    "S4-05": World("holds", always(0.99, 0.01)),
    "S4-06": World("holds", always(0.01, 0.99)),
    "S4-07": World("fails", UNIFORM),
    "S4-08": World("fails", UNIFORM),
    "S4-09": World("fails", UNIFORM),
    "S4-10": World("holds", {"softscope.attention": lambda q, *_: q}),
    "S4-11": World("fails", {"softscope.log_softmax": lambda x, **_: LOG_SOFTMAX(x)}),
    "S4-12": World("fails", {"sympy.sqrt": lambda d: 1 / d}),
    "S4-13": World("fails", UNIFORM),
    "S4-14": World("fails", UNIFORM),
    "S4-15": World("fails", temperature(2.0)),
    "S4-16": World("fails", {f"{JACOBIAN}.symbols": symbols_of_squares}),
    "S4-17": World("fails", LOGARITHM_TO_BASE_2),
    "S4-18": World("fails", LOGARITHM_TO_BASE_2),
    "S4-19": World("fails", {f"{JACOBIAN}.symbols": symbols_in_step}),
    "S4-20": World("holds", {f"{JACOBIAN}._derivation": shared_slopes}),
    "S4-21": World("fails", POWERS_OF_2),
    "S4-22": World("fails", WRONG_SLOPE),
    "S4-23": World("fails", {"softscope.jacobian": np.diag}),
    "S4-24": World("holds", {f"{ATTENTION}.PREMISE": (0, math.inf)}),
}

# Claims for which no other world can be invented, and why.
WHY_NOT: dict[str, str] = {}
