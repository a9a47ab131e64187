"""The stops of the tour: the lines to run, and the values they supply to the closing sentence.

Each stop has its words: `tour.NAME.title`, `.why` (what to look for) and `.measured` (what came out).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope.cli.figures import number, percent, weight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclasses.dataclass(frozen=True)
class Stop:
    """One stop; `measured` turns its lines' results and the interpreter's names into the closing sentence's values."""

    name: str
    code: tuple[str, ...]
    measured: Callable[[list[Any], dict[str, Any]], Mapping[str, object]]


def _overflow(values: list[Any], _: dict[str, Any]) -> dict[str, object]:
    naive, stable = values
    return {"naive": int(np.isnan(naive).sum()), "n": naive.size, "total": number(float(stable.sum()))}


def _temperature(values: list[Any], names: dict[str, Any]) -> dict[str, object]:
    cold, hot, half = (percent(float(weights.max())) for weights in values)
    return {"cold": cold, "hot": hot, "T": f"{float(names['T'][0]):.4g}", "half": half}


def _partition(values: list[Any], names: dict[str, Any]) -> dict[str, object]:
    (_, support, _), difference = values
    return {
        "n": int(names["whole"].count),
        "support": f"{float(support):.3g}",
        "difference": f"{abs(float(difference)):.1g}",
    }


def _sparse(values: list[Any], _: dict[str, Any]) -> dict[str, object]:
    softmax, entmax, sparsemax = (int((weights == 0.0).sum()) for weights in values)
    return {
        "softmax": softmax,
        "smallest": weight(float(values[0].min())),
        "entmax": entmax,
        "sparsemax": sparsemax,
        "n": values[0].size,
    }


def _attention(values: list[Any], _: dict[str, Any]) -> dict[str, object]:
    (plain, _), plain_trace, (scaled, _), scaled_trace = values
    return {
        "plain": percent(float(plain)),
        "scaled": percent(float(scaled)),
        "times": f"{float(scaled_trace / plain_trace):.2g}",
    }


def _gradient(values: list[Any], names: dict[str, Any]) -> dict[str, object]:
    (plain, _), (scaled, _) = values
    return {"plain": int(plain), "scaled": int(scaled), "rows": names["a"].blocked.size}


STOPS = (
    Stop(
        "overflow",
        (
            "x = np.array([1000.0, 1001.0, 1002.0])",
            "np.exp(x) / np.exp(x).sum()",
            "ss.softmax(x)",
        ),
        _overflow,
    ),
    Stop(
        "temperature",
        (
            "x = np.array([1.0, 2.0, 3.0])",
            "ss.softmax(x, temperature=0.25)",
            "ss.softmax(x, temperature=4)",
            "T = ss.temperature_for(x, peak=0.5)",
            "ss.softmax(x, temperature=T)",
        ),
        _temperature,
    ),
    Stop(
        "partition",
        (
            "x = np.random.default_rng(1).standard_normal(1000)",
            "whole = ss.partition(x)",
            "whole.entropy, whole.effective_support, whole.peak",
            "left = ss.partition(x[:400])",
            "right = ss.partition(x[400:])",
            "left.merge(right).entropy - whole.entropy",
        ),
        _partition,
    ),
    Stop(
        "sparse",
        (
            "x = np.array([3.0, 2.5, 1.5, -1.0])",
            "ss.softmax(x)",
            "ss.entmax(x, 1.5)",
            "ss.sparsemax(x)",
        ),
        _sparse,
    ),
    Stop(
        "attention",
        (
            "rng = np.random.default_rng(0)",
            "q, k = rng.standard_normal((2, 64, 256))",
            "plain = ss.attention_partition(q, k, scale=1.0)",
            "plain.peak.mean(), plain.entropy.mean()",
            "plain.jacobian_trace.mean()",
            "scaled = ss.attention_partition(q, k)  # 1/√256",
            "scaled.peak.mean(), scaled.entropy.mean()",
            "scaled.jacobian_trace.mean()",
        ),
        _attention,
    ),
    Stop(
        "gradient",
        (
            "v, grad = rng.standard_normal((2, 64, 256))",
            "a = ss.gradient_readings(q, k, v, grad, scale=1.0)",
            "a.blocked.sum(), np.median(a.transmission)",
            "b = ss.gradient_readings(q, k, v, grad)",
            "b.blocked.sum(), np.median(b.transmission)",
        ),
        _gradient,
    ),
)
