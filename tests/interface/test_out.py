"""`out=` is written completely or not at all; it may be the input itself but must not overlap it partially."""

import inspect
import tracemalloc
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import MAPS, X
from interface.kinds import HALVES_AND_FLOATS, cast, numpy, same, tensor
from interface.refused import refused

FILL = 123.0
each_map = pytest.mark.parametrize("name", MAPS)
each_room = pytest.mark.parametrize("make", [np.array, tensor])
Make = Callable[[Any], Any]


def with_arguments(*arguments: str) -> Any:
    """Every map with each of these arguments; only entmax has alpha."""
    pairs = [(name, argument) for name in MAPS for argument in arguments if argument != "alpha" or name == "entmax"]
    return pytest.mark.parametrize(("name", "argument"), pairs)


def filled(shape: tuple[int, ...] = X.shape, dtype: Any = np.float64) -> np.ndarray:
    return np.full(shape, FILL, dtype=dtype)


def test_all_and_only_the_maps_have_it() -> None:
    functions = [name for name in ss.__all__ if not isinstance(getattr(ss, name), type)]
    with_out = [name for name in functions if "out" in inspect.signature(getattr(ss, name)).parameters]
    assert sorted(with_out) == sorted(MAPS)


@each_map
@each_room
@pytest.mark.parametrize("dtype", HALVES_AND_FLOATS)
def test_it_is_written_and_returned(name: str, make: Make, dtype: str) -> None:
    x, out = make(cast(X, dtype)), make(cast(filled(), dtype))
    assert MAPS[name](x, out=out) is out
    same(out, MAPS[name](x), rtol=0.0, atol=0.0)
    same(x, make(cast(X, dtype)), rtol=0.0, atol=0.0)


@each_map
@each_room
@pytest.mark.parametrize("axis", [-1, 0, (0, 2), None])
def test_it_may_be_the_input_itself(name: str, make: Make, axis: Any) -> None:
    options = {"axis": axis, "temperature": 0.7, "where": make(X < 1.5)}
    x, wanted = make(X), MAPS[name](make(X), **options)
    assert MAPS[name](x, out=x, **options) is x
    same(x, wanted)


@each_map
def test_it_may_lie_anyhow_in_memory(name: str) -> None:
    wanted, backwards = MAPS[name](X), filled()
    for out in (
        np.asfortranarray(filled()),
        backwards[::-1, :, ::-1],
        filled((2, 3, 8))[..., ::2],
        filled(dtype=">f8"),
    ):
        x = X.astype(out.dtype)
        assert MAPS[name](x, out=out) is out
        same(out, wanted)
    out = torch.full((4, 2, 3), FILL, dtype=torch.float64).permute(1, 2, 0)
    assert MAPS[name](tensor(X), out=out) is out
    same(out, wanted)


@each_map
@each_room
def test_views_that_interleave_without_touching_are_allowed(name: str, make: Make) -> None:
    buffer = make(np.repeat(X, 2, axis=-1))
    MAPS[name](buffer[..., ::2], out=buffer[..., 1::2])
    same(buffer[..., ::2], X)
    same(buffer[..., 1::2], MAPS[name](X))


@each_map
def test_lists_integers_and_single_numbers_take_a_float64_array(name: str) -> None:
    for x in ([1.0, 2.0], [1, 2], np.array([1, 2], dtype=np.int8)):
        out = filled((2,))
        assert MAPS[name](x, out=out) is out
        same(out, MAPS[name]([1.0, 2.0]))
    out = filled(())
    assert MAPS[name](3.0, out=out) is out
    assert float(out) == (0.0 if name == "log_softmax" else 1.0)


FLAT, SQUARE = np.linspace(0.0, 1.0, 8), np.arange(9.0).reshape(3, 3)
PARTIAL: dict[str, Callable[[Any], tuple[Any, Any]]] = {  # a buffer → x, out
    "shifted": lambda b: (b[:-1], b[1:]),
    "one entry": lambda b: (b[:4], b[3:7]),
    "other stride": lambda b: (b[:4], b[::2]),
    "transposed": lambda b: (b, b.T),
    "reversed": lambda b: (b, b[::-1]),
}
PAIRS = [(make, pair) for make in (np.array, tensor) for pair in PARTIAL if (make, pair) != (tensor, "reversed")]


@each_map
@pytest.mark.parametrize(("make", "pair"), PAIRS)
def test_a_partial_overlap_is_refused(name: str, make: Make, pair: str) -> None:
    x, out = PARTIAL[pair](make(SQUARE if pair == "transposed" else FLAT))
    before = numpy(x).copy(), numpy(out).copy()
    refused(lambda: MAPS[name](x, out=out), "out", "overlap")
    same(x, before[0])
    same(out, before[1])


@with_arguments("temperature", "where", "alpha")
@each_room
def test_a_partial_overlap_with_another_argument_is_refused(name: str, make: Make, argument: str) -> None:
    out = make(np.ones((2, 8)))
    if argument == "where":
        view = out.view(np.bool_)[:, :8] if make is np.array else out.view(torch.bool)[:, :8]
    else:
        view = out[:, :1]
    x = make(np.linspace(0.0, 1.0, 16).reshape(2, 8))
    refused(lambda: MAPS[name](x, out=out, **{argument: view}), "out", "overlap")
    same(out, np.ones((2, 8)))


@each_room
def test_memory_that_repeats_itself_cannot_be_written(make: Make) -> None:
    row = make(filled((1, 4)))
    out = row.expand(3, 4) if make is tensor else np.lib.stride_tricks.as_strided(row, (3, 4), (0, 8))
    refused(lambda: ss.softmax(make(np.arange(12.0).reshape(3, 4)), out=out), "out")
    same(row, filled((1, 4)))


WRONG: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "shape": (lambda: filled((2, 3)), ("(2, 3, 4)", "(2, 3)")),
    "shape that would broadcast": (lambda: filled((5, 2, 3, 4)), ("(2, 3, 4)", "(5, 2, 3, 4)")),
    "narrower dtype": (lambda: filled(dtype=np.float32), ("float64", "float32")),
    "integer dtype": (lambda: filled(dtype=np.int64), ("float64", "int64")),
    "complex dtype": (lambda: filled(dtype=np.complex128), ("float64", "complex128")),
    "read-only": (lambda: np.broadcast_to(filled(()), X.shape), ("read-only",)),
    "list": (lambda: filled().tolist(), ("list",)),
    "tensor": (lambda: tensor(filled()), ("Tensor",)),
    "another library's": (lambda: array_api_strict.asarray(filled()), ("Array",)),
    "flag": (lambda: True, ("bool",)),
}
WRONG_TENSORS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "shape": (lambda: tensor(filled((2, 3))), ("(2, 3, 4)", "(2, 3)")),
    "dtype": (lambda: tensor(filled(dtype=np.float32)), ("float64", "float32")),
    "array": (filled, ("ndarray",)),
    "device": (lambda: torch.empty(X.shape, dtype=torch.float64, device="meta"), ("cpu", "meta")),
    "requires grad": (lambda: tensor(filled()).requires_grad_(True), ("grad",)),
}


@each_map
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_array_is_refused_and_not_written(name: str, wrong: str) -> None:
    make, came = WRONG[wrong]
    out = make()
    refused(lambda: MAPS[name](X, out=out), "out", *came)
    if wrong != "flag":
        assert (np.asarray(out) == FILL).all()


@each_map
@pytest.mark.parametrize("wrong", WRONG_TENSORS)
def test_a_wrong_tensor_is_refused_and_not_written(name: str, wrong: str) -> None:
    make, came = WRONG_TENSORS[wrong]
    out = make()
    refused(lambda: MAPS[name](tensor(X), out=out), "out", *came)
    if wrong != "device":
        assert (numpy(out) == FILL).all()


BAD_ARGUMENTS: dict[str, Any] = {
    "axis": 7,
    "temperature": np.array([[[1.0], [0.0], [2.0]]] * 2),
    "where": np.ones((9, 9), dtype=bool),
    "alpha": 0.5,
}


@with_arguments(*BAD_ARGUMENTS)
@each_room
@pytest.mark.parametrize("itself", [False, True])
def test_nothing_is_written_when_another_argument_is_wrong(name: str, make: Make, argument: str, itself: bool) -> None:
    x = make(X)
    out = x if itself else make(filled())
    refused(lambda: MAPS[name](x, out=out, **{argument: BAD_ARGUMENTS[argument]}), argument)
    same(out, X if itself else filled())


@with_arguments("x", "temperature", "alpha")
def test_out_and_gradients_exclude_each_other(name: str, argument: str) -> None:
    x, t, alpha = tensor(X), torch.ones(2, 3, 1, dtype=torch.float64), torch.full((2, 3, 1), 1.5, dtype=torch.float64)
    {"x": x, "temperature": t, "alpha": alpha}[argument].requires_grad_(True)
    extra = {"alpha": alpha} if name == "entmax" else {}
    out = tensor(filled())
    refused(lambda: MAPS[name](x, temperature=t, out=out, **extra), "out", "grad")
    same(out, filled())
    with torch.no_grad():
        assert MAPS[name](x, temperature=t, out=out, **extra) is out
    same(out, MAPS[name](X, **({"alpha": 1.5} if extra else {})))
    leaf = tensor(filled()).requires_grad_(True)
    with torch.no_grad():
        assert MAPS[name](tensor(X), out=leaf) is leaf
    same(leaf, MAPS[name](X))


@pytest.mark.parametrize("make", [np.zeros, torch.zeros], ids=["array", "tensor"])
def test_nothing_fits_into_nothing(make: Any) -> None:
    """NumPy gives empty arrays strides of 0; that does not mean two entries share memory."""
    x = make((3, 0, 2))
    for out in (make((3, 0, 2)), x):
        assert ss.softmax(x, out=out) is out
        assert ss.entmax(x, axis=0, out=out) is out


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [-1, 0, None])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "sparsemax", "entmax"])
def test_out_saves_an_array(name: str, axis: int | None, dtype: str) -> None:
    """That is what it is for: with x as `out`, no second array of its size is made, whatever the dtype."""
    x = np.random.default_rng(0).normal(size=(300, 400)).astype(dtype)
    extra = (1.5,) if name == "entmax" else ()
    wanted = getattr(ss, name)(x, *extra, axis=axis)
    tracemalloc.start()
    try:
        assert getattr(ss, name)(x, *extra, axis=axis, out=x) is x
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(x, wanted)
    assert most < 0.2 * x.nbytes
