"""Every argument of every function with values nobody meant: a result, or one sentence; never anything else."""

import decimal
import fractions
import inspect
import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss

from .budget import attempts

X = np.random.default_rng(0).normal(size=(3, 4))
Q = X.reshape(1, 3, 4)
P = ss.softmax(X)
CALLS: dict[str, dict[str, Any]] = {
    "softmax": {"x": X},
    "log_softmax": {"x": X},
    "sparsemax": {"x": X},
    "entmax": {"x": X, "alpha": 1.5},
    "logsumexp": {"x": X},
    "partition": {"x": X},
    "jacobian": {"p": P},
    "jacobian_product": {"p": P, "v": X},
    "cross_entropy": {"logits": X, "targets": np.array([0, 1, 2])},
    "distillation_loss": {"student": X, "teacher": X, "temperature": 2.0},
    "temperature_for": {"x": X, "entropy": 1.0},
    "fit_temperature": {"logits": X, "targets": np.array([0, 1, 2])},
    "sample": {"logits": X},
    "attention": {"q": Q, "k": Q, "v": Q},
    "attention_partition": {"q": Q, "k": Q},
    "gradient_readings": {"q": Q, "k": Q, "v": Q, "grad_output": Q},
    "additive_attention": {"q": Q, "k": Q, "v": Q, "w_q": np.eye(4), "w_k": np.eye(4), "v_a": np.ones(4)},
}
NUMBERS: list[Any] = [
    0, 1, -1, 3, 2**31, 2**40, 2**63, -(2**63), 2**64, 10**400, 10**5000, -(10**5000),
    0.0, -0.0, 0.5, 1e-320, 5e-324, 1e308, math.nan, math.inf, -math.inf, 1j,
    np.float16(2), np.int8(-3), np.uint64(2**63), decimal.Decimal("0.5"), fractions.Fraction(1, 3),
]  # fmt: skip
THINGS: list[Any] = [
    None, True, False, "", "2", "mean", b"2", (), [], {}, set(), [[]], [1, [2]], range(3), (0, 1), (None, None),
    (2**70, None), (1, 2, 3), object(), len, int, Ellipsis, slice(2), NotImplemented, torch.nn.Linear(2, 2),
]  # fmt: skip
ARRAYS: list[Any] = [
    np.array([]), np.array(2.0), np.array([1.0, 2.0]), np.zeros((0, 4)), np.ones((3, 1)), np.array(["a"]),
    np.array([None]), np.array([1j]), np.zeros(3, "M8[s]"), np.zeros(3, [("a", "f4")]), np.ones((3, 4), ">f4"),
    np.full((3, 4), np.nan), np.full((3, 4), np.inf), np.full((3, 4), -np.inf), np.full((3, 4), 1e308),
    np.full((3, 4), 5e-324), np.ones((3, 4), bool), np.ones((3, 4), np.float16), np.ones((3, 4), np.longdouble),
    np.array([0, 1, 2], np.uint8), np.array([2**63], np.uint64), np.ma.masked_array([1.0, 2.0], [True, False]),
]  # fmt: skip
TENSORS: list[Any] = [
    torch.ones(3, 4), torch.ones(3, 4, device="meta"), torch.ones(3, 4, dtype=torch.bfloat16),
    torch.ones(3, 4).to_sparse(), torch.ones(3, 4, requires_grad=True), torch.tensor([0, 1, 2]),
    torch.ones(3, 4, dtype=torch.complex64),
]  # fmt: skip
ODD = NUMBERS + THINGS + ARRAYS + TENSORS
CALM = (TypeError, ValueError, NotImplementedError)


def attacked(name: str, arguments: dict[str, Any]) -> str | None:
    """What went wrong, or None."""
    function = getattr(ss, name)
    kept = {key: np.array(value, copy=True) for key, value in arguments.items() if isinstance(value, np.ndarray)}
    positional = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_ONLY]
    first = [arguments[key] for key in positional if key in arguments]
    named = {key: value for key, value in arguments.items() if key not in positional}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            function(*first, **named)
        except CALM as error:
            text = str(error)
            if not text or "\n" in text or len(text) > 400:
                return f"says {text!r}"
        except BaseException as error:
            return f"{type(error).__name__}: {error}"[:300]
    for key, value in kept.items():
        if key != "out" and not np.array_equal(value, arguments[key], equal_nan=value.dtype.kind == "f"):
            return f"changed {key}"
    return None


def fresh(value: Any) -> Any:
    """A copy of its own, because `out` is written."""
    return value.copy() if isinstance(value, np.ndarray) else value


def parameters(name: str) -> list[str]:
    return list(inspect.signature(getattr(ss, name)).parameters)


def told(value: Any) -> str:
    text = "10**5000" if isinstance(value, int) and abs(value) > 10**4000 else repr(value)
    return f"{type(value).__name__} {text[:50]}"


@pytest.mark.parametrize("name", CALLS)
def test_one_argument_that_nobody_meant(name: str) -> None:
    found = []
    for argument in parameters(name):
        for value in ODD:
            wrong = attacked(name, CALLS[name] | {argument: fresh(value)})
            if wrong is not None:
                found.append(f"{argument}={told(value)}: {wrong}")
    assert not found, f"{len(found)} wrong:\n" + "\n".join(found[:40])


def test_several_arguments_that_nobody_meant() -> None:
    names = list(CALLS)
    for seed, rng in attempts(300):
        name = names[int(rng.integers(len(names)))]
        arguments = dict(CALLS[name])
        for argument in rng.permutation(parameters(name))[: int(rng.integers(2, 5))]:
            arguments[str(argument)] = fresh(ODD[int(rng.integers(len(ODD)))])
        wrong = attacked(name, arguments)
        shown = {key: told(value) for key, value in arguments.items()}
        assert wrong is None, f"seed {seed}: {name}({shown}) {wrong}"


def test_the_public_functions_are_all_attacked() -> None:
    functions = {name for name in ss.__all__ if inspect.isfunction(getattr(ss, name))}
    assert functions - {"get_num_threads", "set_num_threads", "probe", "merge"} <= CALLS.keys(), (
        functions - CALLS.keys()
    )
