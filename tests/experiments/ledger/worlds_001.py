"""Worlds in which text 001's claims come out the other way round."""

import numpy as np

import softscope as ss
from experiments.ledger.worlds import World
from softscope.experiments.ledger import Estimate
from softscope.experiments.ledger.texts.recall import Recalled
from softscope.experiments.properties import FIVE, Mark

TEXTS = "softscope.experiments.ledger.texts."
SOFTMAX = ss.softmax


def uniform(x):
    return np.full(np.shape(x), 1.0 / np.shape(x)[-1])


def too_warm(x):
    return SOFTMAX(np.asarray(x) / 2.0)


def hard(x):
    return (np.asarray(x) == np.max(x, -1, keepdims=True)) * 1.0


def unnormalised(x):
    return np.exp(np.minimum(x, 50.0))


def softplus(x):
    return np.logaddexp(0.0, x)


def exactly(value):
    """A measurement that comes out the same whatever is measured."""
    return lambda *_, **__: Estimate(value, 1e-6, 1_000)


def lower(mask):
    """Softmax for which a score of −∞ is only a very low one."""
    return SOFTMAX(np.maximum(mask, -6.0))


def only(*learned):
    """A world in which these kinds of weights learn recall, and no others."""

    def recalled(weighing):
        accuracy = 0.99 if weighing in learned else 0.1
        return Recalled(accuracy, accuracy, (0.5, 0.5), 0.3)

    return {TEXTS + "recall.recalled": recalled}


def five_for(*names):
    """A world in which these maps have all five properties, and the others none."""
    return {TEXTS + "rivals.marks": lambda name: dict.fromkeys(FIVE, Mark(name in names, None))}


AMPLIFY, RIVALS, PROBABILITY, SUMMARY = (
    TEXTS + f"text_001_{name}." for name in ("amplify", "rivals", "probability", "summary")
)
SAME_GRADIENT = {TEXTS + "scores.jacobian_sizes": lambda *_: np.full(1_000, 0.3)}

WORLDS = {
    "S1-01": World("holds", only("softmax")),
    "S1-02": World("fails", {"softscope.softmax": too_warm}),
    "S1-03": World("holds", {AMPLIFY + "DIVIDED": lambda _: np.array([0.326, 0.342, 0.358])}),
    "S1-04": World("fails", {AMPLIFY + "DIVIDED": lambda x: SOFTMAX(10.0 * x)}),
    "S1-05": World("fails", {"numpy.exp": np.exp2}),
    "S1-06": World("holds", {"numpy.exp": lambda x: 1.64 * x}),
    "S1-07": World("fails", {"softscope.softmax": too_warm}),
    "S1-08": World("fails", {"softscope.softmax": uniform}),
    "S1-10": World("holds", only("softmax")),
    "S1-11": World("fails", {"numpy.exp": np.arctan}),
    "S1-12": World("holds", {"numpy.exp": np.ones_like}),
    "S1-13": World("fails", {"softscope.softmax": unnormalised}),
    "S1-14": World("fails", {"softscope.softmax": unnormalised}),
    "S1-15": World("holds", only("softmax")),
    "S1-16": World("fails", {"softscope.softmax": lambda x: np.asarray(x) - np.mean(x)}),
    "S1-17": World("fails", only("softmax", "softmax, no gradient")),
    "S1-18": World("fails", {"softscope.softmax": hard}),
    "S1-19": World("holds", SAME_GRADIENT),
    "S1-21": World("fails", {RIVALS + "RELU": softplus}),
    "S1-22": World("fails", {RIVALS + "RELU": softplus}),
    "S1-23": World("fails", {RIVALS + "RELU": SOFTMAX}),
    "S1-24": World("fails", {RIVALS + "SIGMOID": SOFTMAX}),
    "S1-25": World("holds", only("softmax")),
    "S1-26": World("fails", {RIVALS + "LINEAR": SOFTMAX}),
    "S1-27": World("holds", {RIVALS + "LINEAR": uniform}),
    "S1-28": World("holds", SAME_GRADIENT),
    "S1-29": World("holds", {"torch.nn.functional.dropout": lambda p, _: p}),
    "S1-30": World("fails", {"softscope.softmax": lower}),
    "S1-32": World("holds", five_for("softmax")),
    "S1-33": World("fails", {PROBABILITY + "_largest": exactly(5.0)}),
    "S1-34": World("fails", SAME_GRADIENT),
    "S1-35": World("holds", {TEXTS + "scores.entropies": exactly(1.9)}),
    "S1-37": World("fails", {"softscope.softmax": unnormalised}),
    "S1-38": World("holds", five_for("softmax")),
    "S1-39": World("holds", {SUMMARY + "_times_slower": lambda: {"x/n": [0.9, 1.0, 1.1]}}),
}

# Claims for which no other world can be invented, and why.
WHY_NOT = {
    "S1-09": "an opinion: nothing measures what is natural",
    "S1-20": "cited practice: nothing here measures what is widely used",
    "S1-31": "an opinion: readers judge what is easy to understand",
    "S1-36": "an opinion: nothing measures what is mature",
    "S1-40": "an opinion: it names neither a task nor a measure of what is best",
}
