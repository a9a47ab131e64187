"""The operations that are followed from q and k to the values, so that an explicit softmax can be told from others."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from softscope.doctor.listen.follow import elementwise, stages, traces, views
from softscope.doctor.listen.follow.products import Product, Spec, einsum_product, matrix_product, mixed, product_of
from softscope.doctor.listen.functions import explicit_softmax, torch_multihead
from softscope.doctor.listen.observed_call import ObservedCall
from softscope.doctor.listen.patches import Patch, at_the_end
from softscope.doctor.listen.wrappers import around_product, followed

_VIEWS = (
    "view", "reshape", "transpose", "permute", "unflatten", "flatten", "unsqueeze", "squeeze", "expand", "chunk",
    "split", "tensor_split", "unbind", "movedim", "swapaxes", "narrow", "select", "view_as", "reshape_as", "expand_as",
    "__getitem__", "mT", "T",
)  # fmt: skip
_CASTS = ("to", "type", "type_as", "float", "half", "bfloat16", "double", "contiguous", "clone", "detach")
_MASKS = ("masked_fill", "masked_fill_", "where", "clamp", "clamp_", "tril", "triu", "nan_to_num")
_ELEMENTWISE: dict[Any, tuple[str, ...]] = {
    elementwise.kept: _CASTS,
    elementwise.masked: _MASKS,
    elementwise.multiplied: ("mul", "mul_", "__mul__", "__rmul__", "__imul__"),
    elementwise.divided: ("div", "div_", "true_divide", "__truediv__", "__itruediv__"),
    elementwise.added: ("add", "add_", "__add__", "__radd__", "__iadd__"),
    elementwise.subtracted: ("sub", "sub_", "__sub__", "__isub__"),
    elementwise.negated: ("neg", "__neg__"),
    elementwise.squashed: ("tanh", "tanh_"),
    elementwise.exponential: ("exp", "exp_"),
    elementwise.logarithms: ("log_softmax",),
    elementwise.over_rows("sum"): ("sum",),
    elementwise.over_rows("max"): ("max", "amax"),
    elementwise.over_rows("logsumexp"): ("logsumexp",),
}

_FUNCTIONS = (types.BuiltinFunctionType, types.FunctionType)


def patches() -> list[Patch]:
    """Patches of tensor methods and of the functions of the same names."""
    at_the_end(_pass_is_over)
    found = []
    for name in _VIEWS:
        found += [Patch(owner, name, followed(views.view, with_original=True)) for owner in _owners(name)]
    for after, names in _ELEMENTWISE.items():
        found += [Patch(owner, name, followed(after)) for name in names for owner in _owners(name)]
    found += [
        Patch(functional, "dropout", followed(elementwise.dropped)),
        Patch(torch, "dropout", followed(elementwise.dropped)),
        Patch(functional, "normalize", followed(elementwise.normalised)),
        Patch(functional, "layer_norm", followed(elementwise.layer_normalised)),
        Patch(functional, "rms_norm", followed(elementwise.layer_normalised)),
        Patch(functional, "log_softmax", followed(elementwise.logarithms)),
        Patch(functional, "tanh", followed(elementwise.squashed)),
        Patch(torch, "cat", followed(views.concatenated)),
        Patch(torch, "concat", followed(views.concatenated)),
        Patch(torch, "stack", followed(views.stacked)),
        Patch(torch, "einsum", around_product(_before_einsum, _after_einsum)),
    ]
    for name in ("matmul", "mm", "bmm", "__matmul__"):
        found += [Patch(owner, name, around_product(_before_matmul, _after_matmul)) for owner in _owners(name)]
    found += [Patch(owner, "baddbmm", around_product(_before_sum, _after_sum)) for owner in _owners("baddbmm")]
    return found


def _owners(name: str) -> list[Any]:
    """Where a method of this name is, and a function; `torch.float` is a dtype, and no function."""
    function = getattr(torch, name, None)
    return [torch.Tensor] * hasattr(torch.Tensor, name) + [torch] * isinstance(function, _FUNCTIONS)


def _pass_is_over() -> None:
    explicit_softmax.pass_is_over()
    traces.forget_all()


def _before_matmul(*args: Any, **named: Any) -> ObservedCall | None:
    spec = matrix_product(*_operands(args, named, ("input", "other"), ("self", "mat2")))
    return None if spec is None else explicit_softmax.met_values(spec)


def _after_matmul(result: Tensor, *args: Any, **named: Any) -> None:
    left, right = _operands(args, named, ("input", "other"), ("self", "mat2"))
    torch_multihead.take_product(left, right)
    _follow(result, matrix_product(left, right))


def _before_sum(*args: Any, **named: Any) -> ObservedCall | None:
    return _before_matmul(*_operands(args[1:], named, ("batch1", "batch2")))


def _after_sum(result: Tensor, *args: Any, alpha: float = 1.0, **named: Any) -> None:
    left, right = _operands(args[1:], named, ("batch1", "batch2"))
    torch_multihead.take_product(left, right)
    _follow(result, matrix_product(left, right), float(alpha))


def _operands(args: tuple[Any, ...], named: dict[str, Any], *names: tuple[str, str]) -> tuple[Any, Any]:
    """Both operands, given by place or by name."""
    left, right = (next((named[pair[i]] for pair in names if pair[i] in named), None) for i in (0, 1))
    return args[0] if args else left, args[1] if len(args) > 1 else right


def _before_einsum(*given: Any, **_: Any) -> ObservedCall | None:
    spec = einsum_product(*given)
    return None if spec is None else explicit_softmax.met_values(spec)


def _after_einsum(result: Tensor, *given: Any, **_: Any) -> None:
    _follow(result, einsum_product(*given))


def _follow(result: Tensor, spec: Spec | None, times: float = 1.0) -> None:
    """What the result of a product is: q·k, or logits whose heads are mixed."""
    if spec is None:
        return
    known = [traces.trace_of(x) for x, _ in spec.sides()]
    if any(trace is not None and isinstance(trace.origin, stages.Weights) for trace in known):
        return  # what attention gives is a new tensor
    for side, trace in enumerate(known):
        if trace is not None and isinstance(trace.origin, Product) and not trace.origin.linear:
            traces.remember(result, mixed(spec, trace, side))
            return
    product = product_of(spec, times)
    if product is not None:
        traces.remember(result, traces.Trace(product.axes, origin=product))
        stages.note_product(product, tuple(result.shape))
