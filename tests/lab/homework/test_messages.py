"""Messages between grader and answer: values survive the trip, and anything not written by `encode` is refused."""

import json
import math
import string

import numpy as np
import pytest

from softscope.lab.homework.sandbox.messages import Foreign, ForeignError, decode, encode
from softscope.lab.homework.sentences import STOPPED


def there_and_back(value):
    return decode(json.loads(json.dumps(encode(value))))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8", "bool", ">f8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_arrays_survive(dtype, shape):
    array = np.asarray(np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    back = there_and_back(array)
    assert back.dtype == np.dtype(dtype).newbyteorder("=")
    assert np.array_equal(back, array)


def test_every_bit_of_a_float_survives():
    numbers = np.array([0.1, 5e-324, 1.7976931348623157e308, np.inf, -np.inf, np.nan, -0.0])
    back = there_and_back(numbers)
    assert back.tobytes() == numbers.tobytes()
    assert there_and_back(0.1 + 0.2) == 0.1 + 0.2
    assert math.isnan(there_and_back(float("nan")))
    assert not there_and_back(numbers[:0]).size


def test_a_locked_array_arrives_locked():
    array = np.ones(2)
    array.flags.writeable = False
    assert not there_and_back(array).flags.writeable
    assert there_and_back(np.ones(2)).flags.writeable


@pytest.mark.parametrize("value", [None, True, 3, "x", (1.5, [2, (3,)]), {"m": 1.0, 2: [0.5]}, [], ()])
def test_plain_values_survive(value):
    assert there_and_back(value) == value
    assert type(there_and_back(value)) is type(value)


@pytest.mark.parametrize("value", [object(), 1j, np.array(["a"]), np.array([1j]), 2**100, print, np.ones(10**6), {1}])
def test_anything_else_becomes_its_name(value):
    back = there_and_back(value)
    assert isinstance(back, Foreign)
    assert back.kind == type(value).__name__
    assert len(repr(back)) <= 160


def test_a_value_that_holds_itself():
    endless = []
    endless.append(endless)
    assert there_and_back(endless)


ARRAY = {"array": [1.0], "shape": [1], "dtype": "<f8", "locked": False}


@pytest.mark.parametrize(
    "message",
    [2**63, -(2**63), 10**400,
     [], 1.5, {}, {"array": [1.0]}, ARRAY | {"shape": [2]}, ARRAY | {"shape": "x"}, ARRAY | {"dtype": "O"},
     ARRAY | {"dtype": "S9"}, ARRAY | {"dtype": "nothing"}, ARRAY | {"dtype": "999999999f8"}, ARRAY | {"dtype": None},
     ARRAY | {"array": "abc"}, ARRAY | {"array": [[1.0], 2.0]}, ARRAY | {"array": [10**400]}, ARRAY | {"array": {}},
     ARRAY | {"dtype": "<i8", "array": [2**70]}, {"list": 3}, {"list": [1]}, {"float": "x"}, {"float": None},
     {"dict": [[{"list": [], "tuple": False}, 1]]}, {"dict": [1]}, {"foreign": "x"}, {"array": None},
     {"list": [{"list": [{"list": []}]}], "tuple": True}],
)  # fmt: skip
def test_what_nobody_encoded_is_refused(message):
    with pytest.raises(ForeignError):
        decode(message)


def test_signs_that_a_terminal_obeys_do_not_arrive():
    assert repr(decode({"foreign": "\x1b[2J\n", "type": "a\x07"})) == "?[2J?"


@pytest.mark.parametrize("key", STOPPED)
def test_every_ending_is_told_in_both_languages(key):
    def fields(text):
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    text = STOPPED[key]
    assert fields(text.zh) == fields(text.en)
    assert text.zh.endswith("。")
    assert text.en.endswith(".")
