"""The `out` argument: checked before any computation, written only after all of it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from softscope._arguments.arrays import Array, dtype_name, is_tensor, tracing
from softscope._arguments.seen import seen, wrapped


def checked_out(out: Array, x: Array, *others: Any) -> None:
    """Refuse an `out` that is not a writable array of x's kind, shape and dtype, or that partly overlaps an input."""
    kind = "torch tensor" if is_tensor(x) else "NumPy array"
    if is_tensor(out) != is_tensor(x) or not (is_tensor(out) or isinstance(out, np.ndarray)):
        raise TypeError(f"out must be a {kind} like x, but got {type(out).__name__}; pass one, or omit `out`")
    if tuple(out.shape) != tuple(x.shape):
        raise ValueError(
            f"out must have the result's shape {tuple(x.shape)}, but has {tuple(out.shape)}; allocate it like x"
        )
    if out.dtype != x.dtype:
        raise TypeError(
            f"out must have the result's dtype {dtype_name(x)}, but has {dtype_name(out)}; allocate it like x"
        )
    if is_tensor(out):
        _check_tensor(out, x, *others)
    elif not out.flags.writeable:
        raise ValueError("out must be writable, but is read-only; pass a copy")
    if _repeats_itself(out):
        raise ValueError("out must not overlap itself, but has an axis of stride 0; pass a copy")
    for other in (x, *others):
        if _partly_overlaps(out, other):
            raise ValueError(
                "out may be an input itself, but must not partly overlap one; pass a separate array or the input"
            )


def write(result: Array, out: Array) -> Array:
    """Copy the result into out and return out."""
    if is_tensor(out):
        with sys.modules["torch"].no_grad():
            out.copy_(result)
    else:
        out[...] = result
    return out


def _check_tensor(out: Array, x: Array, *others: Any) -> None:
    torch = sys.modules["torch"]
    if out.device != x.device:
        raise ValueError(f"out must be on x's device {x.device}, but is on {out.device}; allocate it like x")
    inputs = [value for value in (x, *others) if is_tensor(value)]
    if not tracing() and any(map(wrapped, inputs)) and not wrapped(out):
        raise ValueError(
            "out must be made inside the function that torch.func transforms, but is a tensor from outside; "
            "omit `out`, or allocate it like x"
        )
    if torch.is_grad_enabled() and any(value.requires_grad for value in [out, *inputs]):
        raise ValueError(
            "out does not support gradients, but got a tensor that requires grad; "
            "omit `out`, or call under torch.no_grad()"
        )


def _partly_overlaps(out: Array, other: Any) -> bool:
    a, b = _memory(out), _memory(other)
    if a is None or b is None or a.size == 0 or b.size == 0:
        return False
    same = a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    if same and a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype:
        return False
    try:
        # NumPy's stub allows only the two special values of max_work.
        return np.shares_memory(a, b, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _repeats_itself(a: Array) -> bool:
    """Tell whether two entries share memory (a stride of 0), so that the array cannot be written."""
    strides = a.stride() if is_tensor(a) else a.strides
    return 0 not in a.shape and any(stride == 0 and size > 1 for stride, size in zip(strides, a.shape, strict=True))


def _memory(x: Any) -> np.ndarray[Any, Any] | None:
    """Return x's memory as a NumPy array, or None if it is not accessible: a tracer takes care of overlaps itself."""
    if isinstance(x, np.ndarray):
        return x
    if is_tensor(x) and x.device.type == "cpu" and seen(x) and not wrapped(x):
        torch = sys.modules["torch"]
        x = x.detach()
        view = x.view(torch.int16) if dtype_name(x) == "bfloat16" and x.ndim else x
        return None if dtype_name(view) == "bfloat16" else np.asarray(view.numpy())
    return None
