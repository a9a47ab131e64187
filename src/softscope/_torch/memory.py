"""Whether the engine may read and write a tensor's memory; that memory as a NumPy array; and the engine's call."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from softscope import _engine, _kernels

Array = np.ndarray[Any, Any]

# The private ones have no public name; each says that someone has to see tensor operations, not their results.
_is_compiling = torch.compiler.is_compiling
_transforms = torch._C._functorch.get_dynamic_layer_stack_depth  # vmap, grad, jacrev, …
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._is_torch_function_mode_enabled
_jit_trace = torch._C._get_tracing_state
_has_storage = torch._C._has_storage  # which the tensors that transforms wrap around others have not

# The dtypes that the engine has, as its enum Type counts them.
DTYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}

# Their memory is a plain tensor's; that of other subclasses may be anything.
_KINDS = (Tensor, torch.nn.Parameter)


def reachable(x: Tensor) -> bool:
    """Whether x is a dense CPU tensor in eager mode, so that its numbers are what its memory holds.

    Everything else stays with tensor operations: compilers, transforms and modes have to see these, a dual level
    has tangents beside the numbers, and other devices and layouts have no memory that we could read.
    """
    return (
        not _is_compiling()
        and type(x) in _KINDS
        and x.is_cpu
        and x.layout is torch.strided
        and not (x.is_neg() or x.is_conj() or x.is_nested)
        and _has_storage(x)
        and _transforms() == 0
        and _dispatch_modes() == 0
        and not _function_modes()
        and forward_ad._current_level < 0
        and _jit_trace() is None
        and (address := x.data_ptr()) != 0
        and address % x.itemsize == 0
    )


def flows(x: Any) -> bool:
    """Whether autograd records what is done to x."""
    return isinstance(x, Tensor) and x.requires_grad and torch.is_grad_enabled()


def memory(x: Tensor) -> Array:
    """The memory of a reachable tensor; bfloat16, which NumPy has not, as the integers that hold it."""
    x = x.detach()
    return (x.view(torch.uint16) if x.dtype is torch.bfloat16 else x).numpy()


def numbers(value: Any) -> Any:
    """A tensor as a NumPy array, a number as it is."""
    return memory(value) if isinstance(value, Tensor) else value


def engine(name: str, x: Tensor, temperature: Any, out: Tensor | None = None) -> Tensor:
    """What the engine computes of the rows of x, which is reachable and has some; it offers this."""
    if out is not None:
        # What autograd has saved of it is not what it was; PyTorch has to be told, as it did not see it happen.
        torch.autograd.graph.increment_version(out)
    elif name == "softmax" or name == "log_softmax":
        out = torch.empty_like(x)
    elif name == "logsumexp":
        out = x.new_empty(x.shape[:-1])
    else:
        out = x.new_empty((*x.shape[:-1], 7), dtype=torch.float64)
    # As many threads as PyTorch takes, and no more than we would: who limits it, in a data loader say, means us, too.
    threads = min(_kernels.THREADS, torch.get_num_threads())
    if type(temperature) is float and name != "state" and x.is_contiguous() and out.is_contiguous():
        n = x.shape[-1]
        at = getattr(_engine, name + "_at")
        at(x.data_ptr(), out.data_ptr(), x.numel() // n, n, DTYPES[x.dtype], temperature, threads)
    else:
        t = memory(temperature.double()) if isinstance(temperature, Tensor) else temperature
        _kernels.run(name, memory(x), t, memory(out), threads)
    return out
