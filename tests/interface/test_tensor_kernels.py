"""CPU tensors go to the engine when it can access their memory, and only then; both paths give the same numbers."""

import copy
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import softscope as ss
from softscope import _engine, bounds
from softscope._backends.torch import losses, tensor_partition, tensor_softmax
from softscope._backends.torch.engine_memory import reachable
from softscope._backends.torch.tensor_entmax import entmax as composite_entmax

NAMES = ("softmax", "log_softmax", "logsumexp")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
each = pytest.mark.parametrize("name", NAMES)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def normal(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 5) -> torch.Tensor:
    return (2.0 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)


X = normal(3, 7)
SHOWN = X > -1.5
TARGETS = torch.tensor([6, -100, 2])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the engine's functions that compute, in the order they are called."""
    called: list[str] = []

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def record(*arguments: Any) -> Any:
            called.append(name.removesuffix("_at"))
            return function(*arguments)

        return record

    names = [name for name in dir(_engine) if not name.startswith(("_", "isa", "know")) and not name.endswith("_of")]
    assert {"softmax", "softmax_at", "state"} <= set(names)
    for name in names:
        monkeypatch.setattr(_engine, name, recorded(name, getattr(_engine, name)))
    return called


def near(got: torch.Tensor, wanted: torch.Tensor, scale: float = 1.0) -> None:
    """Within a few roundings of got's dtype, relative to the largest of wanted or to `scale`."""
    assert got.shape == wanted.shape
    u = bounds.unit_roundoff(got.dtype)
    held = torch.isfinite(wanted)
    assert torch.equal(torch.isfinite(got), held)
    largest = max([scale, *wanted[held].abs().tolist()])
    torch.testing.assert_close(got[held].double(), wanted[held].double(), rtol=8 * u, atol=8 * u * largest)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "every second": lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
    "offset": lambda x: torch.cat([x[..., :1], x], dim=-1)[..., 1:],
    "expanded": lambda x: x[:1].expand(4, *x.shape[1:]),
    "leaf": lambda x: x.clone().requires_grad_(True),
    "with history": lambda x: 1.0 * x.clone().requires_grad_(True),
    "parameter": lambda x: torch.nn.Parameter(x.clone()),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "temperature": {"temperature": 0.6},
    "temperatures": {"temperature": torch.tensor([[[0.5], [1.0], [3.0]]])},
    "axis": {"axis": 1},
    "axes": {"axis": (0, 2), "temperature": 2.0},
    "where": {"where": SHOWN},
}


def definition(name: str, x: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
    """The same in float64 tensor operations, with rows along any axis."""
    axis = options.get("axis", -1)
    axes = [a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))]
    ends = list(range(-len(axes), 0))
    moved = x.double().movedim(axes, ends)
    flat = moved.flatten(-len(axes))
    t = options.get("temperature", 1.0)
    t = t.double() if isinstance(t, torch.Tensor) else t
    visible = options["where"].expand(flat.shape) if "where" in options else None
    y = getattr(tensor_softmax, name)(flat, t, visible)
    return y if name == "logsumexp" else y.reshape(moved.shape).movedim(ends, axes)


@each
@each_dtype
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_and_gradients_are_those_of_the_definition(
    name: str, dtype: torch.dtype, options: str, layout: str, asked: list[str]
) -> None:
    x = LAYOUTS[layout](normal(4, 3, 7, dtype=dtype))
    y = getattr(ss, name)(x, **OPTIONS[options])
    assert asked, "the engine was not asked"
    assert y.dtype == dtype
    wide = x.detach().double().requires_grad_(True)
    wanted = definition(name, wide, OPTIONS[options])
    near(y.detach(), wanted.detach())
    assert y.requires_grad == x.requires_grad
    if x.requires_grad:
        pull = torch.linspace(-1.0, 2.0, y.numel(), dtype=dtype).reshape(y.shape)
        (got,) = torch.autograd.grad(y, x, pull)
        (slope,) = torch.autograd.grad(wanted, wide, pull.double())
        assert got.dtype == dtype
        near(got, slope, scale=4.0)


@each_dtype
def test_states_are_those_of_the_definition(dtype: torch.dtype, asked: list[str]) -> None:
    x = normal(4, 3, 7, dtype=dtype)
    for visible in (None, SHOWN):
        got = ss.partition(x, temperature=0.7, where=visible)
        wanted, highest = tensor_partition.state(x.double(), 0.7, None if visible is None else visible.expand(x.shape))
        relative = bounds.readings(dtype)
        for part, exact in zip((*got.state, got.highest), (*wanted, highest), strict=True):
            assert part.dtype == exact.dtype
            torch.testing.assert_close(part, exact, rtol=relative, atol=relative)
    assert asked == ["state", "state"]


@each_dtype
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("temperature", [1.0, 0.5, torch.tensor([[0.5], [1.0], [2.0]])], ids=["1", "0.5", "each"])
def test_cross_entropy_is_its_definition(
    dtype: torch.dtype, smoothing: float, temperature: Any, asked: list[str]
) -> None:
    x = normal(3, 7, dtype=dtype).requires_grad_(True)
    wide = x.detach().double().requires_grad_(True)
    loss = ss.cross_entropy(x, TARGETS, temperature=temperature, label_smoothing=smoothing)
    assert asked == ["cross_entropy"]
    t = temperature.double() if isinstance(temperature, torch.Tensor) else temperature
    each_row = losses.cross_entropy(wide, TARGETS.clamp(min=0), t, smoothing)
    wanted = each_row[TARGETS >= 0].mean()
    near(loss.detach(), wanted.detach())
    asked.clear()
    (got,) = torch.autograd.grad(loss, x)
    assert asked, "the backward pass did not ask the engine"
    (slope,) = torch.autograd.grad(wanted, wide)
    near(got, slope, scale=0.0)
    assert (got[1] == 0.0).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_the_slope_at_a_target_with_nearly_all_the_weight_keeps_its_digits(smoothing: float) -> None:
    x = torch.tensor([[0.0, -18.0, -19.5], [0.0, -40.0, -45.0], [7.0, 7.0, -3.0], [-2.0, 4.0, 3.9]], requires_grad=True)
    wide = x.detach().double().requires_grad_(True)
    targets = torch.tensor([0, 0, 1, 2])
    (got,) = torch.autograd.grad(ss.cross_entropy(x, targets, reduction="sum", label_smoothing=smoothing), x)
    e = torch.exp(wide.detach() - wide.detach().amax(dim=-1, keepdim=True))
    at = targets.unsqueeze(-1)
    others = e.scatter(-1, at, 0.0).sum(dim=-1, keepdim=True) / e.sum(dim=-1, keepdim=True)
    share = smoothing / 3
    wanted = (e / e.sum(dim=-1, keepdim=True) - share).scatter(-1, at, smoothing - share - others)
    torch.testing.assert_close(got.double(), wanted, rtol=2e-6, atol=0.0)


def test_an_ignored_row_passes_nothing_back_whatever_it_holds() -> None:
    x = X.clone()
    x[1, 3] = torch.nan
    x.requires_grad_(True)
    (slope,) = torch.autograd.grad(ss.cross_entropy(x, TARGETS), x)
    assert (slope[1] == 0.0).all()
    assert torch.isfinite(slope).all()


DOUBLES = {name: lambda x, f=name: getattr(ss, f)(x, temperature=0.7) for name in NAMES}
DOUBLES |= {
    f"{name}, temperatures": lambda x, f=name: getattr(ss, f)(x, temperature=torch.tensor([[0.5], [1.0], [3.0]]))
    for name in NAMES
}
DOUBLES |= {f"{name}, where": lambda x, f=name: getattr(ss, f)(x, where=SHOWN).clamp(min=-99.0) for name in NAMES}
DOUBLES |= {
    "cross_entropy": lambda x: ss.cross_entropy(x, TARGETS, temperature=0.7),
    "cross_entropy, smoothed": lambda x: ss.cross_entropy(x, TARGETS, label_smoothing=0.2, reduction="none"),
}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", DOUBLES)
def test_first_and_second_derivatives(name: str, tied: bool, asked: list[str]) -> None:
    x = X.round() if tied else X
    leaf = x.double().clone().requires_grad_(True)
    assert gradcheck(DOUBLES[name], (leaf,), eps=1e-6, atol=1e-6, rtol=1e-5)
    assert asked
    assert gradgradcheck(DOUBLES[name], (leaf,), eps=1e-6, atol=1e-5, rtol=1e-4)
    assert gradcheck(DOUBLES[name], (leaf,), eps=1e-6, atol=1e-6, rtol=1e-5, check_batched_grad=True)


# Cases that need to see tensor operations, or have no accessible memory. Each gives a result and the expected one.


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Heard(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    pass


Map = Callable[..., torch.Tensor]


def _inside(mode: Any, f: Map) -> torch.Tensor:
    with mode:
        return f(X)


def _dual(f: Map) -> torch.Tensor:
    with forward_ad.dual_level():
        y = forward_ad.unpack_dual(f(forward_ad.make_dual(X, torch.ones_like(X))))
        assert y.tangent is not None
        return y.primal.clone()


def _unaligned() -> torch.Tensor:
    return torch.frombuffer(bytearray(b"\0" + X.numpy().tobytes()), dtype=torch.float32, offset=1).reshape(X.shape)


def _negative() -> torch.Tensor:
    x = torch.complex(X, -X).conj().imag
    assert x.is_neg()
    return x


def _leaked() -> torch.Tensor:
    """A tensor that outlives its transform."""
    kept = []
    torch.func.grad(lambda x: kept.append(x) or x.sum())(X)
    return kept[0]


ASIDE: dict[str, Callable[[Map], torch.Tensor]] = {
    "compiled": lambda f: torch.compile(f, fullgraph=True, backend="eager")(X),
    "vmap": lambda f: torch.func.vmap(f)(X),
    "jvp": lambda f: torch.func.jvp(f, (X,), (X,))[0],
    "vjp": lambda f: torch.func.vjp(f, X)[0],
    "dual level": _dual,
    "dispatch mode": lambda f: _inside(Seen(), f),
    "function mode": lambda f: _inside(Heard(), f),
    "default device": lambda f: _inside(torch.device("cpu"), f),
    "subclass": lambda f: f(X.as_subclass(Sub)).as_subclass(torch.Tensor),
    "traced": lambda f: torch.jit.trace(f, X, check_trace=False)(X),
    "negative bit": lambda f: f(_negative()),
    "unaligned": lambda f: f(_unaligned()),
    "temperature that is learned": lambda f: f(X, temperature=torch.ones(3, 1, requires_grad=True)).detach(),
    "temperature that is negated": lambda f: f(X, temperature=torch.complex(X[:, :1], -torch.ones(3, 1)).conj().imag),
}


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("case", ASIDE)
@each
def test_what_has_to_see_tensor_operations_sees_them(name: str, case: str, asked: list[str]) -> None:
    torch.compiler.reset()
    near(ASIDE[case](getattr(ss, name)), getattr(tensor_softmax, name)(X.double(), 1.0, None))
    assert not asked


@each
def test_what_outlived_its_transform(name: str) -> None:
    near(getattr(ss, name)(_leaked()), getattr(tensor_softmax, name)(X.double(), 1.0, None))


@each
@pytest.mark.parametrize("temperature", [1e-35, 1e35, torch.full((3, 1), 1e-35, dtype=torch.float64)])
def test_what_the_engine_refuses_tensor_operations_compute(name: str, temperature: Any, asked: list[str]) -> None:
    x = X.clone().requires_grad_(True)
    near(
        getattr(ss, name)(x, temperature=temperature).detach(),
        getattr(tensor_softmax, name)(X.double(), temperature, None),
    )
    assert not asked


def test_a_temperature_of_nan_makes_its_row_nan() -> None:
    y = ss.softmax(X, temperature=torch.tensor([[1.0], [torch.nan], [2.0]]))
    assert torch.isnan(y).any(dim=-1).tolist() == [False, True, False]


def test_the_gate() -> None:
    assert reachable(X)
    assert reachable(torch.nn.Parameter(X))
    assert reachable(X.mT[::2])
    with torch.inference_mode():
        assert reachable(torch.ones(3))
    assert reachable(SHOWN)
    freed = X.clone()
    freed.untyped_storage().resize_(0)
    nested = torch.nested.nested_tensor([X[0], X[1, :2]], layout=torch.jagged)
    for x in (X.to("meta"), X.to_sparse(), torch.empty(0), freed, nested):
        assert not reachable(x)
    assert not any(map(reachable, (X.numpy(), [1.0], None, X.as_subclass(Sub), _negative(), _unaligned(), _leaked())))
    with torch._subclasses.FakeTensorMode() as mode:
        assert not reachable(X)
        fake = mode.from_tensor(X)
    assert not reachable(fake)


@each
def test_parameters_inference_and_other_threads_go_to_the_engine(name: str, asked: list[str]) -> None:
    f, got = getattr(ss, name), []

    def work() -> None:
        with torch.inference_mode():
            got.append(f(X).clone())
            got.append(f(X * 1.0))

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        got.append(f(torch.nn.Parameter(X)))
    assert asked == [name] * 3
    assert all(y.dtype == torch.float32 and torch.equal(y, f(X)) for y in got)
    assert f(X.clone().requires_grad_(True)).grad_fn is not None


@each
@pytest.mark.parametrize("shape", [(3, 7), (2, 300_000), (40, 5000)])
def test_the_number_of_threads_and_a_gradient_change_no_bit(name: str, shape: tuple[int, int]) -> None:
    x, f = normal(*shape).requires_grad_(True), getattr(ss, name)
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            y = f(x)
            results.append((y.detach(), f(x.detach()), *torch.autograd.grad(y, x, y.detach())))
        finally:
            torch.set_num_threads(before)
    for y, without, slope in results:
        assert torch.equal(y, without)
        assert torch.equal(y, results[0][0])
        assert torch.equal(slope, results[0][2])


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "every second"])
@each_dtype
def test_out_is_written_by_the_engine_itself(name: str, layout: str, dtype: torch.dtype, asked: list[str]) -> None:
    x = LAYOUTS[layout](normal(4, 3, 7, dtype=dtype))
    wanted, f = getattr(ss, name)(x), getattr(ss, name)
    for out in (torch.empty_like(x), torch.full((4, 3, 14), 9.0, dtype=dtype)[..., ::2]):
        assert f(x, out=out) is out
        assert torch.equal(out, wanted)
    assert f(x, out=x) is x
    assert torch.equal(x, wanted)
    assert asked == [name] * 4


def test_autograd_notices_that_out_was_overwritten() -> None:
    x, w = X.clone(), torch.ones(7, requires_grad=True)
    y = (x * w).sum()  # saves x
    ss.softmax(x, out=x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@each
def test_a_batch_of_gradients(name: str) -> None:
    x = X.clone().requires_grad_(True)
    y = getattr(ss, name)(x)
    pulls = normal(5, *y.shape, seed=8)
    (got,) = torch.autograd.grad(y, x, pulls, is_grads_batched=True, retain_graph=True)
    for slope, pull in zip(got, pulls, strict=True):
        torch.testing.assert_close(slope, torch.autograd.grad(y, x, pull, retain_graph=True)[0])


@each
def test_second_derivatives_in_float32(name: str, asked: list[str]) -> None:
    pulls, slopes = normal(3, 7, seed=9), []
    for x, f in ((X, getattr(ss, name)), (X.double(), lambda x: getattr(tensor_softmax, name)(x, 1.0, None))):
        leaf = x.clone().requires_grad_(True)
        y = f(leaf)
        (slope,) = torch.autograd.grad((y * y).sum(), leaf, create_graph=True)
        slopes.append(torch.autograd.grad((slope * pulls.to(x.dtype)).sum(), leaf)[0])
    assert asked
    near(*slopes, scale=20.0)


def test_checkpoints_copies_and_pickles() -> None:
    x = X.clone().requires_grad_(True)
    y = checkpoint(lambda a: ss.log_softmax(a) * ss.softmax(a), x, use_reentrant=False)
    (got,) = torch.autograd.grad(y.sum(), x)
    (wanted,) = torch.autograd.grad((ss.log_softmax(x) * ss.softmax(x)).sum(), x)
    assert torch.equal(got, wanted)
    result = ss.softmax(X)
    saved = io.BytesIO()
    torch.save(result, saved)
    saved.seek(0)
    for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result)), torch.load(saved), result.resize_(3, 7)):
        assert torch.equal(again, ss.softmax(X))


def test_a_gradient_that_is_nan_where_hidden_goes_nowhere() -> None:
    for name in NAMES[:2]:
        x = X.masked_fill(~SHOWN, torch.nan).requires_grad_(True)
        y = getattr(ss, name)(x, where=SHOWN)
        assert not torch.isnan(y).any()
        (slope,) = torch.autograd.grad(y, x, torch.ones_like(y).masked_fill(~SHOWN, torch.nan))
        assert torch.isfinite(slope).all()
        assert (slope[~SHOWN] == 0.0).all()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Make sure no test changes the input of the next one."""
    before = X.clone()
    yield
    assert torch.equal(X, before)


@each_dtype
@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, torch.tensor([[1.1], [1.6], [2.0]])], ids=str)
def test_entmax_goes_to_the_engine_and_back(alpha: Any, dtype: torch.dtype, asked: list[str]) -> None:
    x, g = normal(3, 7, dtype=dtype).requires_grad_(), normal(3, 7, dtype=dtype, seed=8)
    y = ss.entmax(x, alpha, temperature=0.7, where=SHOWN)
    y.backward(g)
    assert asked == ["entmax", "jacobian_product"]
    wide = x.detach().double().requires_grad_()
    wanted = composite_entmax(wide, _per_row(alpha), 0.7, SHOWN)
    wanted.backward(g.double())
    near(y, wanted)
    near(x.grad, wide.grad, scale=4.0)


def _per_row(alpha: Any) -> Any:
    return alpha.double() if isinstance(alpha, torch.Tensor) else alpha


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0, 2.5])
def test_entmax_is_differentiated_twice(alpha: float) -> None:
    x = normal(2, 5, dtype=torch.float64).requires_grad_()
    assert gradcheck(lambda x: ss.entmax(x, alpha, temperature=0.8), x)
    assert gradgradcheck(lambda x: ss.entmax(x, alpha, temperature=0.8), x)


def test_an_alpha_that_learns_is_seen_by_autograd(asked: list[str]) -> None:
    alpha = torch.full((3, 1), 1.4, dtype=torch.float64, requires_grad=True)
    ss.entmax(X.double(), alpha).square().sum().backward()
    assert asked == []
    assert alpha.grad is not None
    assert bool((alpha.grad != 0).all())
