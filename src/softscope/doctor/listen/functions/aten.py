"""ATen's fused attention operators, called without the function around them."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from softscope.doctor.listen import reasons
from softscope.doctor.listen.functions import sdpa
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, positions
from softscope.doctor.listen.patches import Function, Patch
from softscope.doctor.listen.wrappers import told

# The arguments after query, key and value; each operator also takes `scale` and some `attn_mask` by name.
_ARGUMENTS = {
    "scaled_dot_product_attention": ("attn_mask", "dropout_p", "is_causal"),
    "_scaled_dot_product_flash_attention_for_cpu": ("dropout_p", "is_causal"),
    "_scaled_dot_product_flash_attention": ("dropout_p", "is_causal"),
    "_scaled_dot_product_efficient_attention": ("attn_mask", "", "dropout_p", "is_causal"),
    "_scaled_dot_product_cudnn_attention": ("attn_mask", "", "dropout_p", "is_causal"),
    "_scaled_dot_product_attention_math": ("attn_mask", "dropout_p", "is_causal"),
    "_scaled_dot_product_fused_attention_overrideable": ("attn_mask", "dropout_p", "is_causal"),
}
# These take (batch, n, heads, d).
_POSITIONS_FIRST = {
    "_flash_attention_forward": ("cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p", "is_causal"),
    "_efficient_attention_forward": (
        "attn_mask", "cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p", "custom_mask_type",
    ),
}  # fmt: skip
_SAME = {"attn_bias": "attn_mask", "bias": "attn_mask", "cu_seqlens_q": "cum_seq_q", "cu_seqlens_k": "cum_seq_k"}


class Operator:
    """An operator that reports its calls and those of its overloads, and is the original in everything else."""

    def __init__(self, original: Any, name: str) -> None:
        wrap = told(_describe(name))
        self._original, self._call = original, wrap(original)
        self._overloads = {x: wrap(getattr(original, x)) for x in original.overloads()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return self._overloads.get(name) or getattr(self._original, name)


class _SeenError(Exception):
    """The operator has arrived where it should."""


class _Looking(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _SeenError


def _make_known(operator: Any) -> None:
    """Let PyTorch look up the operator's overloads once, so that it keeps them.

    What DTensor and other subclasses and modes get is looked up in `torch.ops` when an operator first reaches one of
    them, and kept for good. It must be the original, not what stands in its place while we listen.
    """
    like = torch.empty(1, 1, 1, 1)
    made = {"Tensor": like, "int": 1, "SymInt": 1, "bool": False, "float": 0.0}
    for name in operator.overloads():
        overload = getattr(operator, name)
        needed = [x for x in overload._schema.arguments if not x.has_default_value()]
        with contextlib.suppress(_SeenError, RuntimeError, TypeError), _Looking():  # type: ignore[no-untyped-call]
            overload(**{x.name: made.get(str(x.type)) for x in needed})


def patches() -> list[Patch]:
    """Patches of the operators in `torch.ops.aten`, and of those that `torch` has as functions."""
    found = []
    for name in (*_ARGUMENTS, *_POSITIONS_FIRST):
        if hasattr(torch.ops.aten, name):
            _make_known(getattr(torch.ops.aten, name))
    for name in (*_ARGUMENTS, *_POSITIONS_FIRST):
        if hasattr(torch.ops.aten, name):
            found.append(Patch(torch.ops.aten, name, _operator(name)))
        if hasattr(torch, name):
            found.append(Patch(torch, name, told(_describe(name))))
    return found


def _operator(name: str) -> Any:
    def wrap(original: Function) -> Function:
        return Operator(original, name)

    return wrap


def _describe(name: str) -> Any:
    return describe_positions_first(name) if name in _POSITIONS_FIRST else _describe_heads_first(name)


def _describe_heads_first(name: str) -> Any:
    def describe(result: Any, query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any) -> ObservedCall:
        given = _given(_ARGUMENTS[name], args, named)
        output = result[0] if isinstance(result, tuple) else result
        mask = given.get("attn_mask")
        if mask is not None and mask.dtype == torch.bool and name != "scaled_dot_product_attention":
            given["attn_mask"] = mask.to(query.dtype)  # the operators add it
        taken = {x: given[x] for x in ("attn_mask", "dropout_p", "is_causal", "scale") if x in given}
        return sdpa.describe(output, query, key, value, **taken)

    return describe


def describe_positions_first(name: str) -> Any:
    """Describe a call whose tensors are (batch, n, heads, d)."""

    def describe(result: Any, query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any) -> ObservedCall:
        given = _given(_POSITIONS_FIRST[name], args, named)
        if given.get("cum_seq_q") is not None or query.ndim != 4:
            raise UnseenError(reasons.PACKED)
        if any(given.get(x) is not None for x in ("alibi_slopes", "seqused_k", "seqlen_k", "block_table")):
            raise UnseenError(reasons.BIAS)
        kind = given.get("custom_mask_type", 1 if given.get("is_causal") else 0)
        called = sdpa.describe(
            result[0], query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), given.get("attn_mask"),
            given.get("dropout_p", 0.0), bool(kind), given.get("scale"),
        )  # fmt: skip
        window = given.get("window_size") or 0
        left = window - 1 if window else given.get("window_size_left")
        right = 0 if kind else given.get("window_size_right")
        start = called.m - called.n if kind == 2 or name == "_flash_attention_forward" else 0
        called.options = called.options.__class__(
            scale=called.options.scale, positions=positions(called.n, start, query), mask=called.options.mask,
            left=left if left is not None and left >= 0 else None,
            right=right if right is not None and right >= 0 else None,
        )  # fmt: skip
        called.start = start
        called.gradient = lambda grad: grad.transpose(1, 2)
        return called

    return describe


def _given(names: tuple[str, ...], args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    found = dict(zip(names, args, strict=False))
    return found | {_SAME.get(name, name): value for name, value in named.items()}
