"""The quick ways give the bits and the errors of the full path, which a switch in this file forces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
import softscope._backends.torch  # what the first tensor would import
from softscope import _attention, _jacobian, _losses, _maps, _partition, _temperature
from softscope._backends.engine.quick import READINGS
from softscope._backends.reference.losses import distillation
from softscope._backends.reference.temperature import entropy_of, log_peak_of, temperature_for

QUICK = [
    (_maps, "plain"),
    (_jacobian, "plain_product"),
    (_losses, "plain_cross_entropy"),
    (_losses, "plain_distillation"),
    (_partition, "plain_state"),
    (_temperature, "plain_temperature"),
    (_attention, "plain_attention"),
    (_attention, "plain_statistics"),
]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call so far was answered by a quick way."""
    answers: list[bool] = []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*arguments: Any) -> Any:
            found = function(*arguments)
            answers.append(found is not None)
            return found

        return watch

    for module, name in QUICK:
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return answers


def fully(call: Callable[[], Any]) -> Any:
    """The same call with every quick way closed."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in QUICK:
            patch.setattr(module, name, lambda *_: None)
        return call()


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return 2.0 * np.random.default_rng(seed).standard_normal(shape)


def tensor(a: Any, dtype: Any = None) -> torch.Tensor:
    t = torch.tensor(a)
    return t if dtype is None or not t.is_floating_point() else t.to(dtype)


def single(a: Any) -> np.ndarray[Any, Any]:
    return np.asarray(a, np.float32 if np.asarray(a).dtype.kind == "f" else None)


def gaps(a: Any) -> np.ndarray[Any, Any]:
    """The same numbers, with others between them."""
    return np.stack([a, np.zeros_like(a)], axis=-1)[..., 0]


KINDS = {
    "float32 array": single,
    "float64 array": np.asarray,
    "float32 array with gaps": lambda a: gaps(single(a)),
    "float64 array, transposed": lambda a: np.asarray(a).T.copy().T,
    "float64 array, backwards": lambda a: np.asarray(np.flip(np.flip(a).copy())),
    "float16 tensor": functools.partial(tensor, dtype=torch.float16),
    "bfloat16 tensor": functools.partial(tensor, dtype=torch.bfloat16),
    "float32 tensor": functools.partial(tensor, dtype=torch.float32),
    "float64 tensor": tensor,
}
SHAPES = [(10,), (3, 7), (2, 3, 40), (5, 100), (1, 1), (70, 3)]
X = {shape: numbers(*shape) for shape in SHAPES}
V = {shape: numbers(*shape, seed=1) for shape in SHAPES}
TARGETS = {shape: np.random.default_rng(2).integers(0, shape[-1], shape[:-1]) for shape in SHAPES}


ARRAY, TENSOR = X[3, 7].astype(np.float32), torch.tensor(X[3, 7])


def weights(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    e = np.exp(X[shape])
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


CALLS: dict[str, Callable[..., Any]] = {
    "softmax": lambda make, s, **o: ss.softmax(make(X[s]), **o),
    "log_softmax": lambda make, s, **o: ss.log_softmax(make(X[s]), **o),
    "logsumexp": lambda make, s, **o: ss.logsumexp(make(X[s]), **o),
    "sparsemax": lambda make, s, **o: ss.sparsemax(make(X[s]), **o),
    "entmax": lambda make, s, **o: ss.entmax(make(X[s]), 1.3, **o),
    "entmax of 1": lambda make, s, **o: ss.entmax(make(X[s]), 1, **o),
    "entmax of 3": lambda make, s, **o: ss.entmax(make(X[s]), 3, **o),
    "jacobian_product": lambda make, s, **o: ss.jacobian_product(make(weights(s)), make(V[s]), **o),
    "jacobian_product of 2": lambda make, s, **o: ss.jacobian_product(make(weights(s)), make(V[s]), alpha=2, **o),
    "partition": lambda make, s, **o: read(ss.partition(make(X[s]), **o)),
}
LOSSES: list[dict[str, Any]] = [
    {},
    {"label_smoothing": 0.1},
    {"label_smoothing": 1, "reduction": "sum"},
    {"reduction": "none"},
    {"reduction": "none", "ignore_index": 0},
    {"ignore_index": 0},
]


def read(p: ss.Partition) -> list[Any]:
    return [*p.state, p.highest, p.temperature, *(getattr(p, name) for name in READINGS)]


def same(a: Any, b: Any) -> None:
    if isinstance(a, list | tuple):
        for x, y in zip(a, b, strict=True):
            same(x, y)
        return
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.stride() == b.stride()
        a, b = (x.detach().double().numpy() for x in (a, b))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("options", [{}, {"temperature": 2}, {"temperature": 0.3}, {"axis": "last"}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_bits(name: str, kind: str, options: dict[str, Any], counted: list[bool]) -> None:
    for shape in SHAPES:
        named = {"axis": len(shape) - 1} if "axis" in options else options
        call = functools.partial(CALLS[name], KINDS[kind], shape, **named)
        same(call(), fully(call))
    assert counted == [True] * len(SHAPES), "the quick way was not taken"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [2, 0.7])
def test_the_same_distillation(temperature: Any, kind: str, counted: list[bool]) -> None:
    for shape in SHAPES:
        call = functools.partial(
            ss.distillation_loss, KINDS[kind](X[shape]), KINDS[kind](V[shape]), temperature=temperature
        )
        same(call(), fully(call))
    assert counted == [True] * len(SHAPES), "the quick way was not taken"


def test_the_engine_distils_and_searches_as_the_definitions_say() -> None:
    for shape in SHAPES:
        student, teacher = X[shape], V[shape].copy()
        teacher[..., 1:2] = -np.inf
        losses = distillation(student, teacher, 1.7)
        found = ss.distillation_loss(student, teacher, temperature=1.7)
        np.testing.assert_allclose(found, losses.mean(), rtol=1e-13, atol=1e-15)
        for name, reading, wanted in (("entropy", entropy_of, 0.4), ("peak", log_peak_of, 0.7)):
            target = np.full(shape[:-1], wanted if name == "entropy" else np.log(wanted))
            t = ss.temperature_for(student, **{name: wanted})[..., 0]
            np.testing.assert_allclose(t, temperature_for(student, reading, target), rtol=1e-13)


@pytest.mark.parametrize("student", [ARRAY, TENSOR, ARRAY.tolist(), ARRAY[0], None], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(
    "teacher", [ARRAY, TENSOR, ARRAY.tolist(), ARRAY[:, :2], "text"], ids=lambda x: type(x).__name__
)
@pytest.mark.parametrize(
    "temperature", [1.0, 0, -1.0, np.nan, 1e200, True, "hot", np.ones((3, 1)), np.ones((2, 1))], ids=str
)
def test_the_same_refusals_of_distillation(student: Any, teacher: Any, temperature: Any) -> None:
    call = functools.partial(ss.distillation_loss, student, teacher, temperature=temperature)
    assert refusal(call) == refusal(lambda: fully(call))


def test_a_distillation_too_large_for_float32_is_infinite_without_a_warning() -> None:
    with np.errstate(all="raise"):
        student, teacher = np.float32([0.0, 3e38]), np.float32([3e38, 0.0])
        assert ss.distillation_loss(student, teacher, temperature=1e10) == np.inf


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", [{"entropy": 0.3}, {"peak": 0.6}, {"peak": 1}, {"entropy": 9}], ids=str)
def test_the_same_temperatures(wanted: dict[str, Any], kind: str, counted: list[bool]) -> None:
    for shape in SHAPES:
        call = functools.partial(ss.temperature_for, KINDS[kind](X[shape]), **wanted)
        same(call(), fully(call))
    assert counted == [True] * len(SHAPES), "the quick way was not taken"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0}, {"temperature": 0.7, "top_k": 3}, {"top_p": 0.8, "min_p": 0.05}], ids=str
)
@pytest.mark.parametrize("seeded", [np.random.default_rng, torch.Generator().manual_seed], ids=["numpy", "torch"])
def test_the_same_draws_from_the_same_numbers_in_float64(seeded: Any, options: dict[str, Any], kind: str) -> None:
    for shape in SHAPES:
        x = KINDS[kind](X[shape])
        found = ss.sample(x, rng=seeded(3), **options)
        assert isinstance(found, torch.Tensor) == ("tensor" in kind)
        np.testing.assert_array_equal(found, ss.sample(x.tolist(), rng=seeded(3), **options))


@pytest.mark.parametrize(
    "x", [X[3, 7], torch.tensor(X[3, 7]), X[3, 7].tolist(), None, "text"], ids=lambda x: type(x).__name__
)
@pytest.mark.parametrize(
    "bad",
    [{"entropy": -1}, {"peak": 0}, {"peak": 1.5}, {"entropy": np.nan}, {"entropy": True}, {"peak": "x"},
     {"entropy": 10**400}, {}, {"entropy": 1, "peak": 0.5}, {"entropy": 1, "axis": 5}, {"entropy": 1, "axis": True}],
    ids=str,
)  # fmt: skip
def test_the_same_refusals_of_temperatures(bad: dict[str, Any], x: Any) -> None:
    call = functools.partial(lambda **o: ss.temperature_for(x, **o), **bad)
    assert refusal(call) == refusal(lambda: fully(call))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "array" in kind])
@pytest.mark.parametrize("name", CALLS)
def test_the_same_bits_along_any_axis_of_an_array(name: str, kind: str, counted: list[bool]) -> None:
    for shape in SHAPES:
        for axis in range(-len(shape), len(shape)):
            call = functools.partial(CALLS[name], KINDS[kind], shape, axis=axis)
            same(call(), fully(call))
    assert set(counted) == {True}


@pytest.mark.parametrize("kind", ["float32 array", "float32 array with gaps", "float64 array, transposed"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "entmax"])
def test_out_may_have_gaps_and_may_be_x(name: str, kind: str) -> None:
    x = KINDS[kind](X[2, 3, 40])
    for axis in (0, 1, 2):
        wanted = CALLS[name](lambda _, x=x: x, (2, 3, 40), axis=axis)
        for out in (np.empty_like(x), gaps(x), x.copy()):
            given = x if axis else np.copyto(out, x) or out
            assert getattr(ss, name)(given, *([1.3] if name == "entmax" else []), axis=axis, out=out) is out
            np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("options", LOSSES, ids=str)
@pytest.mark.parametrize("temperature", [1.0, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_losses(kind: str, temperature: Any, options: dict[str, Any], counted: list[bool]) -> None:
    """Each row's loss has the same bits. A sum or mean adds them in another order, so only almost."""
    for shape in SHAPES:
        x, y = KINDS[kind](X[shape]), KINDS[kind](TARGETS[shape])
        call = functools.partial(ss.cross_entropy, x, y, temperature=temperature, **options)
        got, wanted = call(), fully(call)
        if options.get("reduction") == "none":
            same(got, wanted)
        else:
            assert type(got) is type(wanted)
            assert got.dtype == wanted.dtype
            roundings = 2.0 * torch.finfo(torch.as_tensor(got).dtype).eps
            np.testing.assert_allclose(float(got), float(wanted), rtol=roundings)
    assert counted == [True] * len(SHAPES)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", [*CALLS, "cross_entropy"])
def test_the_same_gradients(name: str, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        leaf = torch.tensor(X[shape]).to(dtype).requires_grad_()

        def call(leaf: torch.Tensor = leaf, shape: tuple[int, ...] = shape) -> Any:
            if name == "cross_entropy":
                y = ss.cross_entropy(leaf, torch.tensor(TARGETS[shape]), reduction="sum", label_smoothing=0.1)
            elif name == "partition":
                y = ss.partition(leaf).entropy
            else:
                y = CALLS[name](lambda _: leaf, shape)
            return y, *torch.autograd.grad(y, leaf, torch.ones_like(y))

        same(call()[1:], fully(call)[1:])


BAD: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0}, "negative": {"temperature": -1.0}, "NaN": {"temperature": np.nan},
    "text": {"temperature": "hot"}, "boolean": {"temperature": True}, "huge": {"temperature": 10**400},
    "axis": {"axis": 5}, "axes": {"axis": "last"}, "boolean axis": {"axis": True}, "half an axis": {"axis": 0.5},
}  # fmt: skip
BAD_LOSSES: dict[str, dict[str, Any]] = {
    "smoothing": {"label_smoothing": 1.5}, "NaN": {"label_smoothing": np.nan}, "reduction": {"reduction": "mode"},
    "list": {"reduction": ["mean"]}, "ignored": {"ignore_index": 1.5}, "far": {"ignore_index": 1 << 70},
    "class": {"targets": [0, 7, 1]}, "below": {"targets": [0, 1, -1]}, "shape": {"targets": [0, 1]},
    "floats": {"targets": [0.0, 1.0, 2.0]}, "temperature": {"temperature": -2},
}  # fmt: skip
BAD_ATTENTION: dict[str, dict[str, Any]] = {
    "scale": {"scale": np.inf}, "scale of text": {"scale": "1"}, "causal": {"causal": 1},
    "start": {"query_start": 0.5},
    "window": {"window": (1, -1)}, "three sides": {"window": (1, 2, 3)}, "side": {"window": (True, 1.5)},
    "softcap": {"softcap": 0}, "negative cap": {"softcap": -1.0}, "alpha": {"alpha": 0.5},
    "alpha of text": {"alpha": "1"},
    "mask": {"mask": torch.ones(1, 1, 4, 5, dtype=torch.bool)},
    "integers": {"mask": torch.ones(4, 6, dtype=torch.int64)},
    "partition": {"return_partition": 1}, "values": {"v": torch.ones(1, 2, 5, 3)},
    "dtype": {"k": torch.ones(1, 2, 6, 3).double()},
    "width": {"k": torch.ones(1, 2, 6, 4)}, "heads": {"q": torch.ones(1, 3, 4, 3)},
}  # fmt: skip


def refusal(call: Callable[[], Any]) -> tuple[type, str] | None:
    try:
        call()
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("x", [ARRAY, TENSOR], ids=["array", "tensor"])
@pytest.mark.parametrize("name", CALLS)
def test_the_same_refusals(name: str, x: Any, bad: str) -> None:
    call = functools.partial(CALLS[name], lambda _: x, (3, 7), **BAD[bad])
    assert refusal(call) == refusal(lambda: fully(call))


@pytest.mark.parametrize("bad", BAD_LOSSES)
@pytest.mark.parametrize("kind", ["float32 array", "float64 tensor"])
def test_the_same_refusals_of_losses(kind: str, bad: str) -> None:
    named = dict(BAD_LOSSES[bad])
    targets = KINDS[kind](np.asarray(named.pop("targets", [0, 1, 2])))
    call = functools.partial(ss.cross_entropy, KINDS[kind](X[3, 7]), targets, **named)
    found = refusal(call)
    assert found is not None
    assert found == refusal(lambda: fully(call))


@pytest.mark.parametrize("bad", BAD_ATTENTION)
@pytest.mark.parametrize("arrays", [False, True], ids=["tensors", "arrays"])
@pytest.mark.parametrize("statistics", [False, True], ids=["output", "statistics"])
def test_the_same_refusals_of_attention(bad: str, arrays: bool, statistics: bool) -> None:
    given = {"q": torch.ones(1, 2, 4, 3), "k": torch.ones(1, 2, 6, 3), "v": torch.ones(1, 2, 6, 3)}
    given |= BAD_ATTENTION[bad]
    if arrays:
        given = {name: x.numpy() if isinstance(x, torch.Tensor) else x for name, x in given.items()}
    if statistics and bad not in ("partition", "values"):
        del given["v"]
        call = functools.partial(lambda q, k, **o: ss.attention_partition(q, k, **o), **given)
    else:
        call = functools.partial(lambda q, k, v, **o: ss.attention(q, k, v, **o), **given)
    found = refusal(call)
    assert found is not None
    assert found == refusal(lambda: fully(call))


@pytest.mark.parametrize("x", [None, "text", object(), {}, 3, [[1.0], [2.0, 3.0]]], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("name", [*CALLS, "cross_entropy", "targets", "attention", "mask"])
def test_what_is_no_array_gets_the_words_of_the_full_path(name: str, x: Any) -> None:
    q = torch.ones(1, 2, 4, 3)
    calls = {
        "cross_entropy": lambda: ss.cross_entropy(x, TENSOR),
        "targets": lambda: ss.cross_entropy(TENSOR, x),
        "attention": lambda: ss.attention(x, q, q),
        "mask": lambda: ss.attention(q, q, q, mask=x),
    }
    call = calls.get(name) or functools.partial(CALLS[name], lambda _: x, (3, 7))
    assert refusal(call) == refusal(lambda: fully(call))


ROWS = np.array([
    [1.0, 2.0, 0.5], [-5.0, -5.0, -5.0], [0.0, -40.0, -800.0], [1e300, -1e300, 0.0], [-0.6, -0.7, -0.2],
    [-np.inf, -np.inf, -np.inf], [-np.inf, 3.0, -np.inf], [np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0], [7.0, 7.0, -np.inf],
])  # fmt: skip


@pytest.mark.parametrize("temperature", [1.0, 0.3, "each"])
@pytest.mark.parametrize("name", READINGS)
def test_the_engine_reads_what_the_formulas_say(name: str, temperature: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    t = np.linspace(0.5, 2.0, len(ROWS))[:, None] if temperature == "each" else temperature
    found = getattr(ss.partition(ROWS, temperature=t), name)
    p = ss.partition(torch.tensor(ROWS), temperature=torch.tensor(t) if temperature == "each" else t)
    if temperature != "each" or name != "lse":
        np.testing.assert_array_equal(getattr(p, name).numpy(), found)
    monkeypatch.setattr(_partition, "plain_reading", lambda *_: None)
    np.testing.assert_allclose(getattr(p, name).numpy(), found, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("make", [np.asarray, torch.tensor], ids=["array", "tensor"])
@pytest.mark.parametrize("name", READINGS)
def test_merged_partitions_are_read_in_the_same_way(name: str, make: Any) -> None:
    """The engine reads them too: a partition of one part has the same bits as that part joined with nothing."""
    p = ss.partition(make(ROWS))
    for merged in (p.merge(ss.Partition.empty()), ss.Partition.empty((len(ROWS),)).merge(p)):
        np.testing.assert_array_equal(np.asarray(getattr(merged, name)), np.asarray(getattr(p, name)))
        assert "numbers" in merged.__dict__, "the engine did not read it"


def test_readings_keep_gradients_and_transforms() -> None:
    x = torch.tensor(ROWS[:5])
    for name in READINGS:
        leaf = x.clone().requires_grad_()
        value = getattr(ss.partition(leaf), name)
        assert value.requires_grad
        mapped = torch.func.vmap(lambda row, name=name: getattr(ss.partition(row), name))(x)
        np.testing.assert_allclose(mapped.numpy(), value.detach().numpy(), rtol=1e-14)


def test_a_gradient_nobody_asks_for_is_zero_even_beside_nan() -> None:
    x = torch.tensor([[1.0, np.nan, 2.0], [np.inf, 0.0, 1.0], [0.5, 0.25, 0.0]], requires_grad=True)
    (slope,) = torch.autograd.grad(ss.cross_entropy(x, torch.tensor([-100, -100, 1])), x)
    assert (slope[:2] == 0.0).all()
    assert torch.isfinite(slope[2]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_the_gradient_keeps_its_digits_near_one_hot(dtype: torch.dtype, shift: float) -> None:
    """At the target it is −Σ of the other weights: tiny, and exact to a few roundings, not what 1 − p leaves."""
    for n in (3, 30, 300):
        row = torch.full((n,), -20.0, dtype=torch.float64)
        row[0] = 0.0
        x = (row + shift).to(dtype).expand(5, n).contiguous().requires_grad_()
        (slope,) = torch.autograd.grad(ss.cross_entropy(x, torch.zeros(5, dtype=torch.int64), reduction="sum"), x)
        wanted = -(n - 1) * np.exp(-20.0) / (1.0 + (n - 1) * np.exp(-20.0))
        np.testing.assert_allclose(slope[:, 0].double(), wanted, rtol=8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(5000, 8), (700, 100), (3, 300_000), (40, 20_000)])
def test_threads_change_no_bit(shape: tuple[int, int]) -> None:
    x, y = torch.tensor(numbers(*shape)).float(), torch.tensor(np.random.default_rng(3).integers(0, shape[1], shape[0]))
    found, before = [], ss.get_num_threads()
    try:
        for threads in (1, 2, 3):
            ss.set_num_threads(threads)
            leaf = x.clone().requires_grad_()
            loss = ss.cross_entropy(leaf, y, label_smoothing=0.1)
            found.append((loss, *torch.autograd.grad(loss, leaf)))
    finally:
        ss.set_num_threads(before)
    for other in found[1:]:
        same(list(found[0]), list(other))
