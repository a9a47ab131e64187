"""Transforms of PyTorch give the right numbers or one sentence, never wrong numbers in silence: the table, tried."""

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, func
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad

import softscope as ss
import softscope.nn
from hostile.transform_table import CELLS, FUNCTIONS, GRADIENT, HOT, READINGS, Case, K, Q, V, X, case_of, read
from softscope import tasks
from softscope._arguments import attention as attention_arguments

# PyTorch's own: forward derivatives, linearize.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning"),
]

SENTENCE = r"(needs the numbers in its tensors|no torch\.func derivatives inside)[^\n]*; (call|use) "
ROWS = torch.tensor([0, 2])


def tangent(case: Callable[[Tensor], Tensor], v: Tensor, t: Tensor) -> Tensor:
    """The derivative of a function along t, by a dual tensor."""
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(case(forward_ad.make_dual(v, t))).tangent


def leaf(v: Tensor) -> Tensor:
    return v.clone().requires_grad_(True)


def twice(case: Case) -> Tensor:
    """t·H·u by two backward passes."""
    v = leaf(case.v)
    (slope,) = torch.autograd.grad(case.scalar(v), v, create_graph=True)
    return torch.autograd.grad(slope @ case.t, v)[0] @ case.u


def batched(case: Case) -> Tensor:
    """All rows of the Jacobian from one batch of backward passes."""
    v = leaf(case.v)
    units = torch.eye(case.y.numel(), dtype=torch.float64).reshape(-1, *case.y.shape)
    return torch.autograd.grad(case(v), v, units, is_grads_batched=True)[0].reshape(*case.y.shape, -1)


FIRST: dict[str, Callable[[Case], Tensor]] = {
    "jvp": lambda f: func.jvp(f, (f.v,), (f.t,))[1],
    "linearize": lambda f: func.linearize(f, f.v)[1](f.t),
    "dual": lambda f: tangent(f, f.v, f.t),
    "vjp": lambda f: func.vjp(f, f.v)[1](f.c)[0],
    "grad": lambda f: func.grad(f.scalar)(f.v),
    "jacrev": lambda f: func.jacrev(f)(f.v),
    "jacfwd": lambda f: func.jacfwd(f)(f.v),
    "batched": batched,
}
SECOND: dict[str, Callable[[Case], Tensor]] = {
    "jvp(jvp)": lambda f: (func.jvp(f.slope, (f.v,), (f.u,))[1] * f.c).sum(),
    "grad(jvp)": lambda f: func.grad(lambda v: (f.slope(v) * f.c).sum())(f.v) @ f.u,
    "hessian": lambda f: f.t @ func.hessian(f.scalar)(f.v) @ f.u,
    "double": twice,
}


def wanted(case: Case, transform: str) -> Tensor:
    J = case.jacobian
    if transform in ("jvp", "linearize", "dual"):
        return J @ case.t
    if transform in ("vjp", "grad"):
        return torch.tensordot(case.c, J, dims=case.c.ndim)
    return J


# Half a second for each pair adds up: CI tries these columns on some functions, the nightly tier on all.
LONG = {"linearize", "export", "compile", "compile(jvp)"}
SOME = {"entmax,alpha", "attention,every_option", "attention,alpha", "temperature_for"}


def names(transforms: Any, cell: str) -> list[Any]:
    """The pairs of these columns with this cell."""
    pairs = [pair for pair, found in CELLS.items() if found == cell and pair[1] in transforms]
    slow = pytest.mark.slow
    return [pytest.param(*p, marks=[slow] if p[1] in LONG and p[0] not in SOME else []) for p in pairs]


def test_the_table_has_every_function_of_tensors() -> None:
    public = {name for name in ss.__all__ if not isinstance(getattr(ss, name), type)}
    public |= {*softscope.nn.__all__} - {"replace"}
    covered = {name.partition(",")[0] for name in FUNCTIONS}
    assert public - covered == {"get_num_threads", "set_num_threads", "probe"}
    assert {name for name, _ in CELLS} == FUNCTIONS.keys()
    assert set(CELLS.values()) == {"R", "c", "S"}


@pytest.mark.parametrize(("name", "transform"), names(FIRST, "R"))
def test_first_derivatives(name: str, transform: str) -> None:
    case = case_of(name)
    torch.testing.assert_close(FIRST[transform](case), wanted(case, transform), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("name", "transform"), names(SECOND, "R"))
def test_second_derivatives(name: str, transform: str) -> None:
    case = case_of(name)
    torch.testing.assert_close(SECOND[transform](case), case.curvature, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "transform"), names({"vmap", "vmap(grad)"}, "R"))
def test_vmap(name: str, transform: str) -> None:
    case = case_of(name)
    function = case if transform == "vmap" else func.grad(case.scalar)
    several = torch.stack([case.v, 1.1 * case.v, case.v - 0.01 * case.t], dim=-1)
    each = torch.stack([function(v) for v in several.unbind(-1)])
    torch.testing.assert_close(func.vmap(function, in_dims=-1)(several), each, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("name", "transform"), [pair for pair in CELLS if CELLS[pair] == "c"])
def test_constants_say_so(name: str, transform: str) -> None:
    case = case_of(name)
    if transform == "dual":
        assert tangent(case, case.v, case.t) is None
    else:
        assert not case(leaf(case.v)).requires_grad


REFUSED: dict[str, Callable[[Case], Any]] = {
    **FIRST,
    **SECOND,
    "vmap": lambda f: func.vmap(f)(torch.stack([f.v, f.v])),
    "vmap(grad)": lambda f: func.vmap(func.grad(f.scalar))(torch.stack([f.v, f.v])),
    "meta": lambda f: f(f.v.to("meta")),
    "fake": lambda f: faked(f),
    "export": lambda f: exported(f),
    "compile": lambda f: compiled(lambda v: f(v))(f.v),
    "compile(jvp)": lambda f: compiled(lambda v: func.jvp(f, (v,), (f.t,))[1])(f.v),
}


@pytest.mark.parametrize(("name", "transform"), names(REFUSED, "S"))
def test_one_sentence(name: str, transform: str) -> None:
    case = case_of(name)
    # The compiler has an exception of its own, which quotes ours.
    kind = RuntimeError if transform.startswith("compile") else NotImplementedError
    with pytest.raises(kind) as raised:
        REFUSED[transform](case)
    assert re.search(SENTENCE, str(raised.value))


def faked(case: Case) -> Tensor:
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        return case(mode.from_tensor(case.v))


@pytest.mark.parametrize(("name", "transform"), names({"fake", "meta"}, "R"))
def test_tensors_without_values_have_shapes_and_dtypes(name: str, transform: str) -> None:
    case = case_of(name)
    found = faked(case) if transform == "fake" else case(case.v.to("meta"))
    assert (found.shape, found.dtype) == (case.y.shape, case.y.dtype)
    assert found.device.type == ("cpu" if transform == "fake" else "meta")


def exported(case: Case) -> Any:
    class Model(torch.nn.Module):
        def forward(self, v: Tensor) -> Tensor:
            return case(v)

    return torch.export.export(Model(), (case.v,)).module()


def compiled(function: Callable[..., Any], fullgraph: bool = True, backend: str = "eager") -> Any:
    torch.compiler.reset()
    return torch.compile(function, fullgraph=fullgraph, backend=backend)


@pytest.mark.parametrize(("name", "transform"), names({"export", "compile", "compile(jvp)"}, "R"))
def test_one_graph(name: str, transform: str) -> None:
    case = case_of(name)
    function = case.slope if transform == "compile(jvp)" else case
    run = exported(case) if transform == "export" else compiled(lambda v: function(v))
    other = case.v - 0.01 * case.t
    torch.testing.assert_close(run(other), function(other), rtol=1e-11, atol=1e-12)


def test_other_transforms_inside_compiled_code() -> None:
    attention, entmax = case_of("attention"), case_of("entmax")
    together = compiled(
        lambda a, e: (func.grad(attention.scalar)(a), func.vmap(attention)(a[None]), func.vmap(entmax)(e[None]))
    )
    gradient, *values = together(attention.v, entmax.v)
    torch.testing.assert_close(gradient, wanted(attention, "grad"), rtol=1e-6, atol=1e-7)
    for case, value in zip((attention, entmax), values, strict=True):
        torch.testing.assert_close(value[0], case.y, rtol=1e-11, atol=1e-13)
    with pytest.raises(RuntimeError, match=SENTENCE):
        compiled(func.grad(entmax.scalar))(entmax.v)


def test_without_fullgraph_the_compiler_leaves_entmax_to_eager_mode() -> None:
    case = case_of("entmax")
    found = compiled(lambda v: func.jvp(case, (v,), (case.t,))[1], fullgraph=False)(case.v)
    torch.testing.assert_close(found, wanted(case, "jvp"), rtol=1e-6, atol=1e-7)


def test_code_compiled_outside_a_dual_level_is_not_reused_inside() -> None:
    case = case_of("attention")
    function = compiled(lambda v: case(v))
    torch.testing.assert_close(function(case.v), case.y)
    torch.testing.assert_close(tangent(function, case.v, case.t), wanted(case, "dual"), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_trace_of_entmax_can_be_saved() -> None:
    traced = torch.jit.trace(lambda x: ss.entmax(x), (X,))
    torch.jit.save(traced, io.BytesIO())
    torch.testing.assert_close(traced(2.0 * X), ss.entmax(2.0 * X))


def test_the_derivative_that_was_silently_zero() -> None:
    x, t = (torch.tensor(numbers, dtype=torch.float64) for numbers in ([0.5, 0.2, 0.1], [1.0, 0.0, 0.0]))
    # All three are in the support of sparsemax, so J = I − 1/3.
    for found in (func.jvp(ss.sparsemax, (x,), (t,))[1], func.linearize(ss.sparsemax, x)[1](t)):
        torch.testing.assert_close(found, torch.tensor([2.0, -1.0, -1.0], dtype=torch.float64) / 3.0)


@pytest.mark.parametrize("transform", ["jvp", "grad", "jacrev", "hessian", "batched", "double"])
@pytest.mark.parametrize("name", ["attention,every_option", "attention,alpha", "additive_attention"])
def test_rows_that_do_not_fit_at_once(name: str, transform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_arguments, "_TILE", 1)
    (test_first_derivatives if transform in FIRST else test_second_derivatives)(name, transform)


@pytest.mark.parametrize("transform", ["jvp", "grad", "vmap"])
@pytest.mark.parametrize("name", ["attention_partition", "attention_partition,alpha", "gradient_readings"])
def test_readings_of_rows_that_do_not_fit_at_once(name: str, transform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_arguments, "_TILE", 1)
    (test_vmap if transform == "vmap" else test_first_derivatives)(name, transform)


def test_values_are_checked_wherever_they_can_be_seen() -> None:
    for differentiate in (lambda f: func.grad(lambda t: f(t).sum())(-HOT), lambda f: func.jvp(f, (-HOT,), (HOT,))):
        with pytest.raises(ValueError, match="temperature must be > 0 everywhere, but holds -0"):
            differentiate(lambda t: ss.softmax(X, temperature=t))
    assert func.vmap(lambda t: ss.softmax(X, temperature=t))(torch.stack([HOT, -HOT])).shape == (2, 2, 4)


def test_a_nan_that_a_query_cannot_see_stays_out_of_its_derivative() -> None:
    k = K.clone()
    k[..., 3, :] = torch.nan
    found = func.jvp(lambda q: ss.attention(q, k, V, causal=True), (Q,), (Q,))[1]
    torch.testing.assert_close(found, func.jvp(lambda q: ss.attention(q, K, V, causal=True), (Q,), (Q,))[1])


OUT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "softmax": lambda x, out: ss.softmax(x, out=out),
    "log_softmax": lambda x, out: ss.log_softmax(x, temperature=0.5, out=out),
    "entmax": lambda x, out: ss.entmax(x, out=out),
}


@pytest.mark.parametrize("name", OUT)
def test_out(name: str) -> None:
    function = OUT[name]

    def fresh(x: Tensor) -> Tensor:
        return function(x, torch.empty_like(x))

    def in_place(x: Tensor) -> Tensor:
        x = x.clone()
        return function(x, x)

    value = fresh(X)
    derivative = func.jvp(lambda x: OUT[name](x, torch.empty_like(x)), (X,), (X.flip(0),))[1]
    h = 1e-6
    slope = (fresh(X + h * X.flip(0)) - fresh(X - h * X.flip(0))) / (2.0 * h)
    for call in (fresh, in_place):
        torch.testing.assert_close(func.vmap(call)(X), value, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(tangent(call, X, X.flip(0)), slope, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(derivative, slope, rtol=1e-6, atol=1e-8)
        with pytest.raises(ValueError, match="out does not support gradients"):
            func.grad(lambda x, call=call: call(x).sum())(X)
        with FakeTensorMode() as mode:
            assert call(mode.from_tensor(X)).shape == X.shape
        assert call(X.to("meta")).shape == X.shape
    outside = torch.empty_like(X)
    with pytest.raises(ValueError, match="out must be made inside the function"):
        func.jvp(lambda x: function(x, outside), (X,), (X,))
    with pytest.raises(ValueError, match="out must be made inside the function"):
        func.vmap(lambda x: function(x, outside[0]))(X)


def test_out_and_lists_compile() -> None:
    def function(x: Tensor, out: Tensor, q: Tensor, rows: Tensor) -> list[Tensor]:
        made = [call(x, torch.empty_like(x)) for call in OUT.values()]
        found = ss.entmax(x, [[1.3], [1.8]], temperature=[[0.8], [1.7]], where=[True, True, False, True])
        chosen = ss.attention_partition(q, K, rows=rows)
        numpy = ss.gradient_readings(q, K, V, q, rows=CHOSEN)
        in_place = x.clone()
        returned = ss.softmax(x, out=out)
        return [
            *made,
            found,
            read(chosen, READINGS),
            read(numpy, GRADIENT),
            ss.softmax(in_place, out=in_place),
            returned,
        ]

    outs = [torch.zeros_like(X) for _ in range(2)]
    found, expected = (run(X, out, Q, ROWS) for run, out in zip((compiled(function), function), outs, strict=True))
    for got, value in zip([*found, outs[0]], [*expected, outs[1]], strict=True):
        torch.testing.assert_close(got, value, rtol=1e-12, atol=1e-14)


CHOSEN = ROWS.numpy()


# The model's attention is PyTorch's own.
@pytest.mark.filterwarnings("ignore:There is a performance drop.*_scaled_dot_product:UserWarning")
def test_gradients_for_each_sample_of_a_model() -> None:
    model = tasks.RecallModel(d=8, vocabulary=4)
    batch = tasks.recall_batch(3, pairs=2, generator=torch.Generator().manual_seed(0))
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(parameters: dict[str, Tensor], *inputs: Tensor) -> Tensor:
        return func.functional_call(model, parameters, tuple(x[None] for x in inputs)).square().sum()

    found = func.vmap(func.grad(loss), in_dims=(None, 0, 0, 0))(parameters, *batch.inputs)
    for i in range(3):
        each = func.grad(loss)(parameters, *(x[i] for x in batch.inputs))
        torch.testing.assert_close({name: gradient[i] for name, gradient in found.items()}, each)
