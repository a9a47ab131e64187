"""Choose the backend: NumPy's (engine or definition) or torch's (engine or differentiable tensor operations)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._arguments.arrays import Array, is_tensor, tracing
from softscope._backends.engine import kernels

if TYPE_CHECKING:
    from types import ModuleType


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


def plain_attention(q: Any, k: Any, v: Any, scale: Any, causal: Any, start: Any) -> Array | None:
    """Take the short way for attention of tensors without further options. None if the full path is needed."""
    backend = None if tracing() else sys.modules.get("softscope._backends.torch")
    return None if backend is None else backend.plain_attention(q, k, v, scale, causal, start)


def plain(name: str, x: Array, temperature: Any, out: Array | None = None, *extra: Any) -> Array | None:
    """Take the fast path for the common case: one temperature, the last axis. None if the full path is needed."""
    if type(x) is np.ndarray:
        return kernels.plain(name, x, temperature, out, *extra)
    # The first tensor imports the backend. Importing in each call would be slow, and a compiler must not see the module
    # table change.
    backend = None if extra or tracing() else sys.modules.get("softscope._backends.torch")
    return None if backend is None else backend.plain(name, x, temperature, out)
