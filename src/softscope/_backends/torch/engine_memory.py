"""Whether the engine may read and write a tensor's memory; that memory as a NumPy array; and the engine's call."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from softscope import _engine, _threads
from softscope._backends.engine import kernels

if TYPE_CHECKING:
    from softscope._arguments.attention import Options

Array = np.ndarray[Any, Any]

# The dtypes that the engine has, as its enum Type counts them.
DTYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}

# What the engine takes by address, if it is contiguous: NumPy arrays around ten numbers cost more than their softmax.
_AT = {"softmax": "softmax_at", "log_softmax": "log_softmax_at", "logsumexp": "logsumexp_at"}

# Their memory is a plain tensor's; that of other subclasses may be anything.
_KINDS = (Tensor, torch.nn.Parameter)

# Who has to see tensor operations, and not their results. Most have no public name.
_is_compiling = torch.compiler.is_compiling
_transforms = torch._C._functorch.get_dynamic_layer_stack_depth  # vmap, grad, jacrev, …
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._is_torch_function_mode_enabled
_jit_trace = torch._C._get_tracing_state

_torch_threads = torch.get_num_threads


def reachable(x: Any) -> bool:
    """Whether x is a dense CPU tensor in eager mode, so that its numbers are what its memory holds.

    Everything else stays with tensor operations: compilers, transforms and modes have to see these, a dual level
    has tangents beside the numbers, and other devices and layouts have no memory that we could read.
    """
    if (
        _is_compiling()
        or type(x) not in _KINDS
        or not x.is_cpu
        or x.is_neg()
        or x.is_nested
        or _transforms()
        or _dispatch_modes()
        or _function_modes()
        or forward_ad._current_level >= 0
        or _jit_trace() is not None
    ):
        return False
    try:
        address = x.data_ptr()
    except RuntimeError:  # without storage: sparse, or what a transform wrapped around another tensor
        return False
    return address != 0 and address % x.itemsize == 0


def transformed() -> bool:
    """Whether vmap, grad, jacrev and their like are at work, so that numbers cannot be looked at."""
    return bool(_transforms())


def flows(x: Any) -> bool:
    """Whether autograd records what is done to x."""
    return isinstance(x, Tensor) and x.requires_grad and torch.is_grad_enabled()


def memory(x: Tensor) -> Array:
    """The memory of a reachable tensor; bfloat16, which NumPy has not, as the integers that hold it."""
    x = x.detach()
    return (x.view(torch.uint16) if x.dtype is torch.bfloat16 else x).numpy()


def memory_of(options: Options) -> Options:
    """The same options with the memory of their tensors."""

    def array(x: Any) -> Any:
        return memory(x) if isinstance(x, Tensor) else x

    return dataclasses.replace(
        options, scale=array(options.scale), positions=array(options.positions), mask=array(options.mask),
        sink=array(options.sink),
    )  # fmt: skip


def per_row(value: Any) -> Any:
    """A number as it is; a tensor of numbers for the rows, such as temperatures, in the engine's float64."""
    return memory(value.double()) if isinstance(value, Tensor) else value


def threads() -> int:
    """No more than PyTorch takes: who limits it, in a data loader say, means us, too."""
    mine, theirs = _threads.count, _torch_threads()
    return theirs if theirs < mine else mine


def engine(name: str, x: Tensor, temperature: Any, out: Tensor | None = None, alpha: Any = None) -> Tensor:
    """What the engine computes of the rows of x, which is reachable and has some; it offers this."""
    contiguous = x.is_contiguous() and name in _AT and type(temperature) is float
    if out is not None:
        # What autograd has saved of it is not what it was; PyTorch has to be told, as it did not see it happen.
        torch.autograd.graph.increment_version(out)
        contiguous = contiguous and out.is_contiguous()
    elif name == "state":
        out = x.new_empty((*x.shape[:-1], 7), dtype=torch.float64)
    else:
        out = x.new_empty(x.shape[:-1]) if name == "logsumexp" else torch.empty_like(x)
    if contiguous:
        n, at = x.shape[-1], getattr(_engine, _AT[name])
        at(x.data_ptr(), out.data_ptr(), x.numel() // n, n, DTYPES[x.dtype], temperature, threads())
    else:
        kernels.run(name, memory(x), per_row(temperature), memory(out), threads(), per_row(alpha))
    return out
