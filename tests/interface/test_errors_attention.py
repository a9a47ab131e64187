"""Bad input to the attention functions: a wrong value for every option, and every shape that does not fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.kinds import tensor
from interface.refused import refused

Make = Callable[[Any], Any]
each_room = pytest.mark.parametrize("make", [np.array, tensor])


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape)


Q, K, V, GRAD = ones(4, 3, 8), ones(2, 5, 8), ones(2, 5, 6), ones(4, 3, 6)
W, U = ones(8, 7), ones(7)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "attention": lambda m, **o: ss.attention(m(Q), m(K), m(V), **o),
    "attention_partition": lambda m, **o: ss.attention_partition(m(Q), m(K), **o),
    "gradient_readings": lambda m, **o: ss.gradient_readings(m(Q), m(K), m(V), m(GRAD), **o),
    "additive_attention": lambda m, **o: ss.additive_attention(m(Q), m(K), m(V), m(W), m(W), m(U), **o),
}
OPTIONS: list[tuple[str, Any, tuple[str, ...]]] = [
    ("causal", "yes", ("'yes'",)),
    ("causal", 1, ("1",)),
    ("causal", None, ("None",)),
    ("query_start", 1.5, ("1.5",)),
    ("query_start", True, ("True",)),
    ("query_start", "0", ("'0'",)),
    ("window", (-1, 0), ("-1",)),
    ("window", (0, -1), ("-1",)),
    ("window", (1.5, 0), ("1.5",)),
    ("window", (1,), ("(1,)",)),
    ("window", (1, 2, 3), ("(1, 2, 3)",)),
    ("window", 3, ("3",)),
    ("window", "ab", ("ab",)),
    ("mask", np.ones((3, 5), dtype=np.int64), ("int64",)),
    ("mask", np.ones((3, 5), dtype=np.complex128), ("complex128",)),
    ("mask", np.ones((3, 4), dtype=bool), ("(3, 4)", "(4, 3, 5)")),
    ("mask", np.ones((2, 3, 5)), ("(2, 3, 5)", "(4, 3, 5)")),
    ("mask", np.ones((2, 4, 3, 5)), ("(2, 4, 3, 5)", "(4, 3, 5)")),
    ("mask", "causal", ()),
    ("alpha", 0.5, ("0.5",)),
    ("alpha", np.inf, ("inf", "finite")),
    ("alpha", np.nan, ("nan",)),
    ("alpha", np.full((4, 1, 1), 1.5), ("(4, 1, 1)", "(4,)")),
    ("alpha", np.full(3, 1.5), ("(3,)", "(4,)")),
    ("alpha", np.array([1.5, 0.5, 2.0, 1.0]), ("0.5", "finite")),
    ("sink", np.nan, ("nan",)),
    ("sink", "0", ()),
    ("sink", np.zeros(3), ("(3,)", "(4,)")),
    ("sink", np.zeros((4, 1)), ("(4, 1)", "(4,)")),
    ("sink", True, ()),
]
SCALED: list[tuple[str, Any, tuple[str, ...]]] = [
    ("scale", np.inf, ("inf",)),
    ("scale", -np.inf, ("inf",)),
    ("scale", np.nan, ("nan",)),
    ("scale", "sqrt", ()),
    ("scale", True, ()),
    ("scale", np.ones(3), ("(3,)", "(4,)")),
    ("scale", np.ones((4, 1, 1)), ("(4, 1, 1)", "(4,)")),
    ("softcap", 0.0, ("0.0",)),
    ("softcap", -1, ("-1",)),
    ("softcap", np.nan, ("nan",)),
    ("softcap", np.inf, ("inf",)),
    ("softcap", "50", ("'50'",)),
    ("softcap", True, ("True",)),
    ("softcap", np.ones(4), ()),
]
ROWS: list[tuple[str, Any, tuple[str, ...]]] = [
    ("rows", [0, 7], ("7",)),
    ("rows", [-7], ("-7",)),
    ("rows", [0.0, 1.0], ("float64",)),
    ("rows", [True, False, True], ("bool",)),
    ("rows", 1, ()),
    ("rows", [[0, 1]], ("(1, 2)",)),
    ("rows", "all", ()),
]
CASES = [(function, *case) for function in FUNCTIONS for case in OPTIONS]
CASES += [(function, *case) for function in FUNCTIONS if function != "additive_attention" for case in SCALED]
CASES += [(function, *case) for function in ("attention_partition", "gradient_readings") for case in ROWS]
CASES += [(function, "return_partition", "no", ("no",)) for function in ("attention", "additive_attention")]


def test_every_option_is_given_wrongly() -> None:
    given = {name for _, name, _, _ in CASES}
    assert given == ss.attention.__kwdefaults__.keys() | {"rows"}


@pytest.mark.parametrize(("function", "name", "value", "came"), CASES)
def test_an_option_given_wrongly(function: str, name: str, value: Any, came: tuple[str, ...]) -> None:
    for make in (np.array, tensor):
        beside = make(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fib" else value
        refused(lambda m=make, b=beside: FUNCTIONS[function](m, **{name: b}), name, *came)


@each_room
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_sink_goes_with_softmax_only(function: str, make: Make) -> None:
    for alpha in (1.5, 2.0, 3.0):
        refused(lambda a=alpha: FUNCTIONS[function](make, sink=0.0, alpha=a), "sink", "alpha", str(alpha))


SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], str]] = {
    "widths": ((4, 3, 8), (2, 5, 7), (2, 5, 6), "q"),
    "keys": ((4, 3, 8), (2, 5, 8), (2, 4, 6), "k"),
    "heads of k and v": ((4, 3, 8), (2, 5, 8), (4, 5, 6), "k"),
    "heads no multiple": ((4, 3, 8), (3, 5, 8), (3, 5, 6), "q"),
    "more heads of keys": ((2, 3, 8), (4, 5, 8), (4, 5, 6), "q"),
    "batch": ((2, 4, 3, 8), (3, 4, 5, 8), (3, 4, 5, 6), ""),
    "batch of v": ((2, 4, 3, 8), (2, 4, 5, 8), (3, 4, 5, 6), ""),
    "one head among many": ((3, 8), (2, 5, 8), (2, 5, 6), "k"),
    "one-dimensional": ((8,), (8,), (8,), "q"),
}


@each_room
@pytest.mark.parametrize("case", SHAPES)
def test_shapes_that_do_not_fit_are_all_shown(case: str, make: Make) -> None:
    q, k, v, name = SHAPES[case]
    shown = {"batch of v": (q, v), "keys": (k, v), "heads of k and v": (k, v)}.get(case, (q, k))
    arrays = [make(np.ones(shape)) for shape in (q, k, v)]
    came = [str(shape) for shape in shown]
    refused(lambda: ss.attention(*arrays), name, *came)
    grad = make(np.ones((*q[:-1], v[-1])))
    refused(lambda: ss.gradient_readings(*arrays, grad), name, *came)
    if case not in {"widths", "one-dimensional"}:
        refused(lambda: ss.additive_attention(*arrays, make(W), make(W), make(U)), name, *came)
    if shown == (q, k):
        refused(lambda: ss.attention_partition(*arrays[:2]), name, *came)


@each_room
def test_the_weights_of_additive_attention(make: Make) -> None:
    q, k, v = make(Q), make(K), make(V)
    wrong = [("w_q", (9, 7), (8, 7), (7,)), ("w_k", (8, 7), (9, 7), (7,)), ("w_q", (8, 6), (8, 7), (7,))]
    wrong += [("w_k", (8, 7), (8, 6), (7,)), ("w_q", (8,), (8, 7), (7,)), ("w_q", (8, 7), (8, 7), (7, 1))]
    for name, *shapes in wrong:
        w_q, w_k, v_a = (make(np.ones(shape)) for shape in shapes)
        came = str(shapes[0] if name == "w_q" else shapes[1])
        refused(lambda a=w_q, b=w_k, c=v_a: ss.additive_attention(q, k, v, a, b, c), name, came, str(shapes[2]))


@each_room
def test_the_gradient_given_to_gradient_readings(make: Make) -> None:
    for shape in ((4, 3, 5), (3, 6), (2, 3, 6), (4, 2, 6)):
        wrong = make(np.ones(shape))
        refused(
            lambda g=wrong: ss.gradient_readings(make(Q), make(K), make(V), g), "grad_output", str(shape), "(4, 3, 6)"
        )
    part = make(GRAD[:, :2])
    refused(lambda: ss.gradient_readings(make(Q), make(K), make(V), part, rows=[0, 1]), "grad_output", "(4, 2, 6)")


@each_room
@pytest.mark.parametrize("name", ["k", "v"])
def test_mixed_dtypes(name: str, make: Make) -> None:
    arrays = {"q": make(Q), "k": make(K), "v": make(V)}
    arrays[name] = make((K if name == "k" else V).astype(np.float32))
    refused(lambda: ss.attention(**arrays), name, "float64", "float32")
    refused(lambda: ss.gradient_readings(**arrays, grad_output=make(GRAD)), name, "float64", "float32")


def test_mixed_devices() -> None:
    q, k, v, grad = (tensor(a) for a in (Q, K, V, GRAD))
    for name, call in (
        ("k", lambda: ss.attention(q, k.to("meta"), v)),
        ("v", lambda: ss.attention(q, k, v.to("meta"))),
        ("mask", lambda: ss.attention(q, k, v, mask=torch.ones(3, 5, device="meta") > 0)),
        ("sink", lambda: ss.attention(q, k, v, sink=torch.ones(4, device="meta"))),
        ("scale", lambda: ss.attention(q, k, v, scale=torch.ones(4, device="meta"))),
        ("rows", lambda: ss.attention_partition(q, k, rows=torch.zeros(1, dtype=torch.int64, device="meta"))),
        ("grad_output", lambda: ss.gradient_readings(q, k, v, grad.to("meta"))),
        ("w_q", lambda: ss.additive_attention(q, k, v, torch.ones(8, 7, device="meta"), W, U)),
    ):
        refused(call, name, "meta", "cpu")


@each_room
def test_mask_scale_and_sink_may_differ_in_dtype(make: Make) -> None:
    plain = ss.attention(make(Q), make(K), make(V), scale=0.5, sink=1.0, mask=make(np.zeros((3, 5))))
    for dtype in (np.float16, np.float32, np.float64):
        options = {"mask": make(np.zeros((3, 5), dtype)), "scale": make(np.full(4, 0.5, dtype))}
        got = ss.attention(make(Q), make(K), make(V), sink=make(np.ones(4, dtype)), **options)
        assert got.dtype == plain.dtype
        np.testing.assert_allclose(np.asarray(got), np.asarray(plain), rtol=1e-12)
