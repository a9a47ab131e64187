"""Results that overflow or have no value are inf or NaN, without a warning, in every dtype and at every temperature."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

import softscope as ss

READINGS = ("lse", "entropy", "collision", "peak", "variance", "jacobian_trace", "effective_support", "sharpness")
TEMPERATURES: list[Any] = [1.0, 1e-300, 1e300, math.inf, np.array([[1e-300], [1e300]])]
OPTIONS: list[dict[str, Any]] = [
    {}, {"alpha": 1.5}, {"alpha": 3.0}, {"softcap": 1e-300}, {"softcap": 2.0, "alpha": 1.5}, {"scale": 1e300},
    {"sink": math.inf}, {"sink": -math.inf}, {"mask": np.zeros((2, 2), bool)}, {"mask": np.full((2, 2), 1e300)},
]  # fmt: skip


def rows(dtype: str) -> list[np.ndarray]:
    top, tiny = (float(x) for x in (np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal))
    inf, nan = math.inf, math.nan
    found = [[top] * 3, [top, -top, 0], [-top] * 3, [inf, 1, 2], [inf, inf, -inf], [-inf] * 3, [nan, 1, 2]]
    return [np.array([row, row], dtype) for row in [*found, [tiny, 0, -tiny], [top, nan, -inf]]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_maps_losses_and_products(dtype: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in rows(dtype):
            weights = np.abs(np.nan_to_num(x))
            for t in TEMPERATURES:
                for f in (ss.softmax, ss.log_softmax, ss.logsumexp, ss.sparsemax):
                    f(x, temperature=t)
                    f(x, temperature=t, where=np.array([True, False, True]))
                part = ss.partition(x, temperature=t)
                for reading in READINGS:
                    getattr(part, reading)
                for smoothing in (0.0, 0.1):
                    ss.cross_entropy(x, [0, 1], temperature=t, label_smoothing=smoothing)
                for alpha in (1.0, 1.5, 2.0, 3.0):
                    ss.entmax(x, alpha, temperature=t)
                    ss.jacobian(weights, alpha=alpha, temperature=t)
                    ss.jacobian_product(weights, x, alpha=alpha, temperature=t)
            ss.temperature_for(x, entropy=0.5)
            ss.distillation_loss(x, x[:, ::-1], temperature=3.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_attention(options: dict[str, Any], dtype: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in rows(dtype):
            q = x[None]
            ss.attention(q, q, q, return_partition=True, **options)
            ss.attention_partition(q, q, **options)
            ss.gradient_readings(q, q, q, q, **options)
        ss.additive_attention(q, q, q, *2 * [np.eye(3, dtype=dtype)], np.ones(3, dtype))


@pytest.mark.parametrize("size", [1.7e308, 1e-310])
def test_a_temperature_that_no_float_holds_is_refused(size: float) -> None:
    logits = size * np.array([[1.0, -1.0, 0.0], [0.0, -1.0, 1.0]])
    with pytest.raises(ValueError, match="logits must differ by 1e-250 to 1e250"):
        ss.fit_temperature(logits, [0, 1])
