"""Worlds in which text 000's claims come out the other way round."""

import math
import types

import numpy as np

import softscope as ss
from experiments.ledger.worlds import World
from softscope.experiments.ledger.texts import scores

TEXTS = "softscope.experiments.ledger.texts"
ATTENTION, DERIVATIVE = f"{TEXTS}.text_000_attention", f"{TEXTS}.text_000_derivative"
RIGHT, ATTEND = ss.softmax, ss.attention


def temperature(value):
    """A softmax that always runs at this temperature."""
    return {"softscope.softmax": lambda x, **_: RIGHT(np.asarray(x) / value)}


def hard(x, **_):
    """All the weight to the largest entry, as a logic gate would."""
    top = np.asarray(x) == np.max(x, -1, keepdims=True)
    return top / top.sum(-1, keepdims=True)


def floored(x, **_):
    """A softmax that always leaves a millionth to every entry."""
    return (RIGHT(x) + 1e-6) / (1.0 + 1e-6 * np.shape(x)[-1])


def wrong_slope(x, **_):
    """The right weights with the derivative of another softmax."""
    return RIGHT(2.0 * x) + RIGHT(x).detach() - RIGHT(2.0 * x).detach()


def squared_error(x, target):
    """A loss on the weights themselves, without a logarithm."""
    return ((ss.softmax(x)[0, target] - 1.0) ** 2).sum()


def symbols_of_squares(n):
    """Symbols, and the softmax that has the squares of its exponentials."""
    import sympy

    z = sympy.Matrix(sympy.symbols(f"z1:{n + 1}", real=True))
    e = z.applyfunc(lambda x: sympy.exp(x) ** 2)
    return z, e / sum(e)


def root(value):
    """√512 is something else."""
    return {f"{ATTENTION}._root": lambda: value}


def products(factor):
    """Dot products that many times as large."""
    return {f"{ATTENTION}.dot_products": lambda d: factor * scores.dot_products(d)}


GATE = {"softscope.softmax": hard}
UNIFORM = {"softscope.softmax": lambda x, **_: np.full(np.shape(x), 1.0 / np.shape(x)[-1])}
OF_SQUARES = {"softscope.softmax": lambda x, **_: RIGHT(np.square(x))}
NO_LOGARITHM = {"softscope.cross_entropy": squared_error}
WRONG_SLOPE = {"softscope.softmax": wrong_slope}
# The values pass no gradient: then nothing at all gets through.
VALUES_CUT_OFF = {"softscope.attention": lambda q, k, v, **options: ATTEND(q, k, v.detach(), **options)}
NEVER_SATURATED = {"softscope.attention": lambda q, k, v, scale: ATTEND(q, k, v, scale=min(scale, 1.0))}
SLOW_EXPONENTIAL = {f"{ATTENTION}.math": types.SimpleNamespace(exp=lambda x: math.exp(x / 10), sqrt=math.sqrt)}

WORLDS = {
    "S0-01": World("holds", GATE),
    "S0-02": World("fails", temperature(2.0)),
    "S0-03": World("fails", UNIFORM),
    "S0-04": World("fails", {"softscope.jacobian_product": lambda _, v: np.zeros_like(v)}),
    "S0-05": World("fails", temperature(100.0)),
    "S0-06": World("holds", OF_SQUARES),
    "S0-07": World("holds", GATE),
    "S0-08": World("fails", {"softscope.softmax": floored}),
    "S0-09": World("fails", temperature(100.0)),
    "S0-10": World("holds", NO_LOGARITHM),
    "S0-11": World("fails", WRONG_SLOPE),
    "S0-12": World("fails", WRONG_SLOPE),
    "S0-13": World("fails", {f"{DERIVATIVE}.symbols": symbols_of_squares}),
    "S0-14": World("fails", {"softscope.jacobian": np.diag}),
    "S0-15": World("holds", {"softscope.jacobian": lambda p: 0.25 * np.eye(len(p))}),
    "S0-16": World("fails", {f"{DERIVATIVE}.slope": lambda *_: 0.25}),
    "S0-17": World("holds", NO_LOGARITHM),
    "S0-18": World("fails", {"softscope.softmax": floored}),
    "S0-19": World("holds", VALUES_CUT_OFF),
    "S0-20": World("fails", {"softscope.experiments.ledger.paper.EQUATION_1": "softmax(QKᵀ)V"}),
    "S0-21": World("fails", products(2.0)),
    "S0-23": World("fails", products(0.1)),
    "S0-24": World("fails", SLOW_EXPONENTIAL),
    "S0-25": World("fails", temperature(100.0)),
    "S0-26": World("holds", root(22.0)),
    "S0-27": World("fails", root(20.0)),
    "S0-28": World("fails", root(22.0)),
    "S0-29": World("holds", root(512.0)),
    "S0-30": World("fails", root(1.0)),
    "S0-31": World("holds", OF_SQUARES),
    "S0-32": World("fails", NEVER_SATURATED),
}

# Claims for which no other world can be invented, and why.
WHY_NOT = {
    "S0-22": "an opinion: whether a name fits is a matter of terms",
}
