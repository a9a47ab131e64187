"""Choose the backend: NumPy's (engine or definition) or torch's (engine or differentiable tensor operations)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._arguments.arrays import Array, is_tensor, tracing
from softscope._arguments.checks import plain_number
from softscope._backends.engine import plain_attention as quick_attention
from softscope._backends.engine import quick

if TYPE_CHECKING:
    from types import ModuleType

    from softscope._engine import Memory, RowsAt


def backend_of(x: Array) -> ModuleType | Any:
    """Return the package with the functions for x; both offer the same names, for rows on the last axis."""
    if is_tensor(x):
        from softscope._backends import torch as backend
    else:
        from softscope._backends import numpy as backend  # type: ignore[no-redef]
    return backend


def attention_backend_of(x: Array) -> ModuleType | Any:
    """Return the module with the attention functions for x."""
    if is_tensor(x):
        from softscope._backends.torch import attention as backend
    else:
        from softscope._backends.numpy import attention as backend  # type: ignore[no-redef]
    return backend


def quick_backend() -> ModuleType | None:
    """Return the torch backend if it is loaded, for the quick ways of tensors; None while a compiler traces us.

    The first tensor imports the backend. Importing in each call would be slow, and a compiler must not see the module
    table change.
    """
    return None if tracing() else sys.modules.get("softscope._backends.torch")


def plain_attention(q: Any, k: Any, v: Any, *options: Any) -> Any:
    """Take the short way for attention with common options. None if the full path is needed."""
    backend: Any = quick_attention if type(q) is np.ndarray else quick_backend()
    return None if backend is None else backend.plain_attention(q, k, v, *options)


def plain_statistics(q: Any, k: Any, *options: Any) -> Array | None:
    """Take the short way of `attention_partition`: every row's numbers (…, 8)."""
    backend: Any = quick_attention if type(q) is np.ndarray else quick_backend()
    return None if backend is None else backend.plain_statistics(q, k, *options)


def plain(name: str, x: Array, temperature: Any, axis: int, out: Array | None = None, alpha: Any = 1.0) -> Array | None:
    """Take the fast path for the common case: one temperature, the last axis. None if the full path is needed."""
    backend: Any = quick if type(x) is np.ndarray else quick_backend()
    return None if backend is None else backend.plain(name, x, temperature, axis, out, alpha)


def plain_state(x: Array, temperature: Any, axis: int) -> tuple[Array, float] | None:
    """Take the fast path of `partition`: each row's state in one array (…, 7), and T as a float."""
    backend: Any = quick if type(x) is np.ndarray else quick_backend()
    return None if backend is None else backend.plain_state(x, temperature, axis)


def plain_reading(name: str, partition: Any) -> Array | None:
    """Let the engine compute a reading of a partition; None where tensor operations must.

    The engine's numbers are kept in the partition if they have to be put together first.
    """
    if tracing():
        return None
    kept = partition.__dict__
    numbers = kept.get("numbers")
    part = partition.state.c if numbers is None else numbers
    backend: Any = sys.modules.get("softscope._backends.torch") if is_tensor(part) else quick
    if backend is None:
        return None
    if numbers is None:
        numbers = backend.packed(partition.state)
        if numbers is None:
            return None
        kept["numbers"] = numbers
    temperature = partition.temperature if name == "lse" else 1.0
    return backend.reading(name, numbers, 1.0 if temperature is None else temperature)


def plain_temperature(x: Array, name: str, wanted: Any) -> Array | None:
    """Take the fast path of `temperature_for`, for rows on the last axis and one entropy or peak."""
    backend: Any = quick if type(x) is np.ndarray else quick_backend()
    return None if backend is None else backend.plain_temperature(x, name, wanted)


def plain_rows(x: Array) -> tuple[Memory, RowsAt, tuple[int, ...]] | None:
    """Return where plain rows lie, as the engine takes them, and the shape before the last axis, for `sample`.

    None if the full path must convert x. Whoever has an address must keep x.
    """
    backend: Any = quick if type(x) is np.ndarray else quick_backend()
    return None if backend is None else backend.plain_rows(x)


def plain_product(p: Array, v: Array, alpha: Any, temperature: Any, axis: Any) -> Array | None:
    """Take the fast path of `jacobian_product`, for two arrays of one kind, shape and dtype."""
    backend: Any = quick if type(p) is np.ndarray else quick_backend()
    return None if backend is None else backend.plain_product(p, v, alpha, temperature, axis)


def plain_cross_entropy(x: Array, targets: Array, *numbers: Any) -> Array | None:
    """Take the fast path of `cross_entropy`, for classes on the last axis."""
    backend: Any = quick if type(x) is np.ndarray else quick_backend()
    return None if backend is None else backend.plain_cross_entropy(x, targets, *numbers)


def plain_distillation(student: Array, teacher: Array, temperature: Any, hottest: float) -> Array | None:
    """Take the fast path of `distillation_loss`, for two arrays of one kind and shape and one temperature."""
    backend: Any = quick if type(student) is np.ndarray else quick_backend()
    t = plain_number(temperature)
    return None if backend is None or not 0.0 < t <= hottest else backend.plain_distillation(student, teacher, t)
