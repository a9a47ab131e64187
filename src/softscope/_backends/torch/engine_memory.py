"""Check whether the engine may access a tensor's memory, view that memory as a NumPy array, and call the engine."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from softscope import _engine, _threads
from softscope._backends.engine import kernels

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from softscope._arguments.attention import Options

Array = np.ndarray[Any, Any]

# The engine's dtypes, numbered as in its enum Type.
DTYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}

# The engine takes contiguous rows by address: wrapping ten numbers in NumPy arrays costs more than their softmax.
AT = {name: f"{name}_at" for name in ("softmax", "log_softmax", "logsumexp", "state", "entmax")}
_TWO_INPUTS_AT = {name: f"{name}_at" for name in ("jacobian_product", "log_softmax_backward")}

# These types hold a plain tensor's memory; other subclasses may hold anything.
_KINDS = (Tensor, torch.nn.Parameter)

# Checks for modes that must see tensor operations, not just their results. Most have no public name.
_is_compiling = torch.compiler.is_compiling
_transforms = torch._C._functorch.get_dynamic_layer_stack_depth  # vmap, grad, jacrev, …
_layers = torch._C._functorch.get_interpreter_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._is_torch_function_mode_enabled
_jit_trace = torch._C._get_tracing_state

_torch_threads = torch.get_num_threads

if hasattr(Tensor, "__dlpack_c_exchange_api__"):  # from PyTorch 2.10 on; without it, the engine knows no tensors
    _engine.know_tensors(Tensor.__dlpack_c_exchange_api__, Tensor, torch.nn.Parameter)

# Copying the form of one of these is the quickest way to a tensor for a single number; numbered as DTYPES.
_SINGLES = [torch.empty((), dtype=dtype) for dtype in DTYPES]


def reachable(x: Any) -> bool:
    """Tell whether x is a dense CPU tensor in eager mode, so that its memory holds its values.

    Everything else uses tensor operations: compilers, transforms and modes must see them, a dual level carries
    tangents next to the values, and other devices and layouts have no memory that we could read.
    """
    return eager() and held(x)


def eager() -> bool:
    """Tell whether nothing but autograd watches the operations."""
    return not _is_compiling() and unwatched()


def unwatched() -> bool:
    """Tell the same where no compiler traces, which the quick ways have asked before."""
    return not (
        _transforms()
        or _dispatch_modes()
        or _function_modes()
        or forward_ad._current_level >= 0
        or _jit_trace() is not None
    )


def held(x: Any) -> bool:
    """Tell whether x is a dense CPU tensor with memory of its own, if in eager mode."""
    if type(x) not in _KINDS or not x.is_cpu or x.is_neg() or x.is_nested:
        return False
    try:
        address = x.data_ptr()
    except RuntimeError:  # no storage: sparse, or a transform's wrapper around another tensor
        return False
    return address != 0 and address % x.itemsize == 0


def transformed() -> bool:
    """Tell whether a torch.func transform or a dual level is active; both must see the operations, even compiled ones.

    The compiler itself reads `_current_level`, so that code compiled outside a dual level is not reused inside one.
    """
    return forward_ad._current_level >= 0 or _inside_transform()


def recorded() -> bool:
    """Tell whether a compiler or torch.jit.trace records the operations, and so knows only those of PyTorch's kind."""
    return _is_compiling() or _jit_trace() is not None


def differentiated() -> bool:
    """Tell whether one of the active transforms differentiates, as all but vmap do."""
    return forward_ad._current_level >= 0 or _inside_derivative()


def constants() -> AbstractContextManager[Any]:
    """Record no gradients, for the readings that autograd sees as constants; a transform gets their derivatives.

    Under autograd, requires_grad says that they have none. Under a transform, nothing would: the derivative would be 0.
    """
    return contextlib.nullcontext() if transformed() else torch.no_grad()


# A compiler enters the transforms that it traces, and does not understand these questions, only their answers.
@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _inside_transform() -> bool:
    return bool(_transforms()) or forward_ad._current_level >= 0


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _inside_derivative() -> bool:
    vmap = torch._C._functorch.TransformType.Vmap
    return any(layer.key() != vmap for layer in _layers() or ()) or forward_ad._current_level >= 0


def flows(x: Any) -> bool:
    """Tell whether autograd records operations on x."""
    return isinstance(x, Tensor) and x.requires_grad and torch.is_grad_enabled()


def memory(x: Tensor) -> Array:
    """Return the memory of a reachable tensor; bfloat16, which NumPy lacks, as integers with the same bits."""
    x = x.detach()
    return (x.view(torch.uint16) if x.dtype is torch.bfloat16 else x).numpy()


def memory_of(options: Options) -> Options:
    """Replace the tensors in the options with their memory."""

    def array(x: Any) -> Any:
        return memory(x) if isinstance(x, Tensor) else x

    return dataclasses.replace(
        options, scale=array(options.scale), positions=array(options.positions), mask=array(options.mask),
        sink=array(options.sink), alpha=array(options.alpha),
    )  # fmt: skip


def per_row(value: Any) -> Any:
    """Return a number as is, and a tensor with one number per row, such as temperatures, in the engine's float64."""
    return memory(value.double()) if isinstance(value, Tensor) else value


def threads() -> int:
    """Return the thread limit, never above PyTorch's: a limit on PyTorch, as in a data loader, is meant for us, too."""
    mine, theirs = _threads.count, _torch_threads()
    return theirs if theirs < mine else mine


def single(dtype: int) -> Tensor:
    """Return a new tensor for one number of the dtype with this number."""
    return torch.empty_like(_SINGLES[dtype])


def rows_at(x: Tensor) -> tuple[int, int, int]:
    """Describe contiguous rows to the engine: how many, their length and dtype."""
    n = x.shape[-1]
    return x.numel() // n, n, DTYPES[x.dtype]


def engine(name: str, x: Tensor, temperature: Any, out: Tensor | None = None, alpha: Any = None) -> Tensor:
    """Run the engine on the rows of x, which must be reachable, nonempty and supported."""
    contiguous = x.is_contiguous() and type(temperature) is float
    if out is not None:
        # PyTorch does not see this write, so tell it that `out` no longer holds what autograd may have saved.
        torch.autograd.graph.increment_version(out)
        contiguous = contiguous and out.is_contiguous()
    elif name == "state":
        out = torch.empty((*x.shape[:-1], 7), dtype=torch.float64)
    else:
        out = torch.empty(x.shape[:-1], dtype=x.dtype) if name == "logsumexp" else torch.empty_like(x)
    numbers = () if alpha is None else (alpha,)
    if contiguous and (alpha is None or type(alpha) is float):
        at = getattr(_engine, AT[name])
        at(x.data_ptr(), out.data_ptr(), rows_at(x), temperature, *numbers, threads())
    else:
        kernels.run(name, memory(x), per_row(temperature), memory(out), threads(), *map(per_row, numbers))
    return out


def two_inputs(name: str, x: Tensor, y: Tensor, temperature: Any, alpha: float = 1.0) -> Tensor | None:
    """Run a kernel on two tensors of contiguous rows, at one temperature and alpha; None if they are not."""
    if not (type(temperature) is float and x.dtype is y.dtype and x.is_contiguous() and y.is_contiguous()):
        return None
    if x.shape != y.shape or not kernels.offers(x.itemsize, temperature):
        return None
    out = torch.empty_like(x)
    at = getattr(_engine, _TWO_INPUTS_AT[name])
    at(x.data_ptr(), y.data_ptr(), out.data_ptr(), rows_at(x), temperature, alpha, threads())
    return out
