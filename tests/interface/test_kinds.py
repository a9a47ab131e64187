"""You get back the kind you passed in: NumPy, lists, tensors, and anything that speaks DLPack."""

import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import CALLS, WEIGHTS, X, leaves
from interface.kinds import HALVES_AND_FLOATS, KINDS, OnlyDLPack, cast, dtype_of, is_numpy, numpy, same, tensor

ARRAYS = [name for name in CALLS if name != "fit_temperature"]  # a calibration is five plain numbers
WHOLE = {"count", "size"}
# These return float64 for any input; the others return the dtype they were given.
READERS = {"partition", "temperature_for", "attention_partition", "gradient_readings"}


def test_every_public_function_is_called() -> None:
    functions = {name for name in ss.__all__ if not isinstance(getattr(ss, name), type)}
    functions -= {"get_num_threads", "set_num_threads", "probe"}  # these take no arrays
    assert functions == {name.partition(",")[0] for name in CALLS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_kind_comes_back_with_the_same_values(name: str, kind: str) -> None:
    got, wanted = leaves(CALLS[name](KINDS[kind].make)), leaves(CALLS[name](np.array))
    assert got.keys() == wanted.keys()
    for reading, value in got.items():
        right = isinstance(value, float) if name == "fit_temperature" else KINDS[kind].back(value)
        assert right, f"{name}: {reading} came back as {type(value).__name__}"
        same(value, wanted[reading], rtol=1e-10)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("name", CALLS)
def test_the_input_is_not_changed(name: str, kind: str) -> None:
    given: list[tuple[object, np.ndarray]] = []

    def make(a: np.ndarray) -> object:
        made = KINDS[kind].make(a)
        if kind == "numpy":
            made.flags.writeable = False
        given.append((made, a.copy()))
        return made

    CALLS[name](make)
    assert given
    for made, before in given:
        np.testing.assert_array_equal(numpy(made), before)


@pytest.mark.parametrize("dtype", HALVES_AND_FLOATS)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("name", ARRAYS)
def test_floating_dtypes_are_kept(name: str, kind: str, dtype: str) -> None:
    make = np.array if kind == "numpy" else tensor
    got = leaves(CALLS[name](lambda a: make(cast(a, dtype))))
    wanted = leaves(CALLS[name](lambda a: cast(cast(a, dtype), "float64")))
    ulp = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}[dtype]
    for reading, value in got.items():
        if name == "sample" or reading in WHOLE:
            assert dtype_of(value) == "int64"
        elif reading == "blocked":
            assert dtype_of(value) == "bool"
        elif reading != "result" or name in READERS:
            assert dtype_of(value) == "float64", f"{name}: {reading} is {dtype_of(value)}"
        else:
            assert dtype_of(value) == dtype
        # One rounding of the result; readings are as exact as the float32 they are computed in.
        rounding = ulp if reading == "result" else 0.0
        inside = 1e-10 if dtype == "float64" else 1e-5
        same(value, wanted[reading], rtol=rounding + inside, atol=inside)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "sparsemax", "entmax", "partition"])
def test_integers_and_booleans_are_promoted(name: str, dtype: str) -> None:
    x = np.array([[1, 0, 1], [0, 3, 2]]).astype(dtype)
    function = getattr(ss, name)
    wanted = leaves(function(x.astype(np.float64)))
    for reading, value in leaves(function(x)).items():
        assert dtype_of(value) == ("int64" if reading == "count" else "float64")
        same(value, wanted[reading])
    for reading, value in leaves(function(tensor(x))).items():
        readings = "int64" if reading == "count" else "float64"
        assert dtype_of(value) == (readings if name == "partition" else "float32")
        same(value, wanted[reading], rtol=1e-6, atol=1e-7)


def test_integer_tensors_take_torchs_default_dtype() -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        got = [ss.softmax(torch.tensor([1, 2])), ss.attention(*[torch.ones(1, 2, 2, dtype=torch.int64)] * 3)]
    finally:
        torch.set_default_dtype(before)
    assert [g.dtype for g in got] == [torch.float64] * 2
    assert ss.attention(*[torch.ones(1, 2, 2, dtype=torch.int64)] * 3).dtype == torch.float32


@pytest.mark.parametrize("value", [3, 3.0, True, np.float32(3.0), np.int8(3), np.array(3.0), torch.tensor(3.0)])
def test_a_single_number_is_a_row_of_one(value: object) -> None:
    for function, wanted in ((ss.softmax, 1.0), (ss.sparsemax, 1.0), (ss.log_softmax, 0.0), (ss.entmax, 1.0)):
        assert numpy(function(value)).shape == ()
        assert float(function(value)) == wanted
    assert float(ss.logsumexp(value)) == float(value)
    assert float(ss.partition(value).entropy) == 0.0
    assert int(ss.partition(value).count) == 1


def test_nested_tuples_and_lists_of_integers_are_arrays() -> None:
    same(ss.softmax(((1, 2), (3, 4))), ss.softmax(np.array([[1.0, 2.0], [3.0, 4.0]])))
    same(ss.jacobian_product([0.5, 0.5], [1, 0]), np.array([0.25, -0.25]))


def test_a_reading_of_one_row_is_a_numpy_scalar_or_a_0d_tensor() -> None:
    assert isinstance(ss.logsumexp(X[0, 0]), np.float64)
    assert isinstance(ss.partition(X[0, 0]).peak, np.float64)
    assert isinstance(ss.sample(X[0, 0], rng=np.random.default_rng(0)), np.int64)
    assert ss.partition(tensor(X[0, 0])).peak.shape == ()


def test_second_arguments_may_be_lists_or_arrays_beside_a_tensor() -> None:
    x, hot, shown = tensor(X), [[[1.0], [2.0], [3.0]]], X > -1.0
    wanted = ss.softmax(X, temperature=np.array(hot), where=shown)
    for temperature in (hot, np.array(hot), tensor(hot), OnlyDLPack(np.array(hot))):
        same(ss.softmax(x, temperature=temperature, where=shown), wanted)
    same(ss.jacobian_product(tensor(WEIGHTS), X.tolist()), ss.jacobian_product(WEIGHTS, X))


def test_parameters_and_tensors_with_history_stay_differentiable() -> None:
    x = torch.nn.Parameter(tensor(X))
    assert ss.softmax(x).grad_fn is not None
    assert ss.partition(x * 2.0).entropy.grad_fn is not None
    assert not is_numpy(ss.softmax(x))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ss.softmax(np.zeros(3), temperature=torch.ones(1)),
        lambda: ss.softmax(np.zeros(3), where=torch.ones(3, dtype=torch.bool)),
        lambda: ss.jacobian_product(np.ones(2) / 2, torch.ones(2, dtype=torch.float64)),
        lambda: ss.cross_entropy(np.zeros((2, 3)), torch.zeros(2, dtype=torch.int64)),
        lambda: ss.distillation_loss(np.zeros((2, 3)), torch.zeros(2, 3), temperature=1.0),
        lambda: ss.attention(np.zeros((1, 2, 3)), torch.zeros(1, 2, 3), torch.zeros(1, 2, 3)),
        lambda: ss.attention(*[torch.zeros(1, 2, 3, dtype=torch.float64)] * 2, np.zeros((1, 2, 3))),
        lambda: ss.gradient_readings(*[np.zeros((1, 2, 3))] * 3, torch.zeros(1, 2, 3)),
    ],
)
def test_a_tensor_beside_a_numpy_array_is_refused(call) -> None:
    with pytest.raises(TypeError, match="tensor"):
        call()
