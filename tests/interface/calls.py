"""Every public function as one small call, so each rule of the interface is tested on all of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

import softscope as ss

Make = Callable[[np.ndarray], Any]

_random = np.random.default_rng(20240101)
X = _random.normal(size=(2, 3, 4)) * 1.5
OTHER = _random.normal(size=(2, 3, 4))
WEIGHTS = np.exp(X) / np.exp(X).sum(axis=-1, keepdims=True)
TARGETS = np.array([[0, 3, 1], [2, 2, -100]])
LABELS = np.array([[0, 3, 1], [2, 2, 1]])
Q = _random.normal(size=(2, 4, 3, 5))
K = _random.normal(size=(2, 2, 6, 5))
V = _random.normal(size=(2, 2, 6, 2))
GRAD = _random.normal(size=(2, 4, 3, 2))
W_Q, W_K, V_A = (_random.normal(size=shape) for shape in ((5, 3), (5, 3), (3,)))

CALLS: dict[str, Callable[[Make], Any]] = {
    "softmax": lambda m: ss.softmax(m(X)),
    "log_softmax": lambda m: ss.log_softmax(m(X)),
    "logsumexp": lambda m: ss.logsumexp(m(X)),
    "sparsemax": lambda m: ss.sparsemax(m(X)),
    "entmax": lambda m: ss.entmax(m(X)),
    "jacobian": lambda m: ss.jacobian(m(WEIGHTS)),
    "jacobian_product": lambda m: ss.jacobian_product(m(WEIGHTS), m(OTHER)),
    "cross_entropy": lambda m: ss.cross_entropy(m(X), m(TARGETS)),
    "distillation_loss": lambda m: ss.distillation_loss(m(X), m(OTHER), temperature=2.0),
    "partition": lambda m: ss.partition(m(X)),
    "temperature_for": lambda m: ss.temperature_for(m(X), entropy=0.7),
    "fit_temperature": lambda m: ss.fit_temperature(m(X), m(LABELS)),
    "sample": lambda m: ss.sample(m(X), rng=np.random.default_rng(3)),
    "attention": lambda m: ss.attention(m(Q), m(K), m(V)),
    "attention, partition": lambda m: ss.attention(m(Q), m(K), m(V), return_partition=True),
    "attention, support": lambda m: ss.attention(m(Q), m(K), m(V), alpha=1.5, return_partition=True),
    "attention_partition": lambda m: ss.attention_partition(m(Q), m(K), rows=m(np.array([0, 2]))),
    "additive_attention": lambda m: ss.additive_attention(m(Q), m(K), m(V), m(W_Q), m(W_K), m(V_A)),
    "gradient_readings": lambda m: ss.gradient_readings(m(Q), m(K), m(V), m(GRAD)),
}

READINGS = (
    "lse", "entropy", "collision", "peak", "max_logit", "variance", "count", "jacobian_trace",
    "effective_support", "sharpness",
)  # fmt: skip
SUPPORT = ("tau", "size", "entropy", "collision", "peak", "jacobian_trace")

# Functions of the family that share x, axis, temperature and where; then those that also share out.
MAPS = {"softmax": ss.softmax, "log_softmax": ss.log_softmax, "sparsemax": ss.sparsemax, "entmax": ss.entmax}
FAMILY = {**MAPS, "logsumexp": ss.logsumexp, "partition": ss.partition}


def leaves(result: Any) -> dict[str, Any]:
    """The arrays in a result, by name; a plain result is called 'result'."""
    if isinstance(result, ss.Partition):
        return {name: getattr(result, name) for name in READINGS}
    if isinstance(result, ss.Support):
        return {name: getattr(result, name) for name in SUPPORT}
    if isinstance(result, ss.GradientReadings | ss.Calibration):
        return result._asdict()
    if isinstance(result, tuple):
        return {name: leaf for part in result for name, leaf in leaves(part).items()}
    return {"result": result}
