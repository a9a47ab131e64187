"""Which values can be looked at: a compiler, vmap or a tracer shows tensors without numbers in them."""

from __future__ import annotations

import sys
from typing import Any

from softscope._arguments.arrays import is_tensor, tracing


def seen(*arrays: Any) -> bool:
    """Tell whether the arrays' values can be looked at, as checks of values must.

    They can in NumPy and in PyTorch's eager mode, also under torch.func.grad and jvp. They cannot under torch.compile,
    vmap, FakeTensorMode and make_fx, nor on the meta device.
    """
    if tracing():
        return False
    tensors = [x for x in arrays if is_tensor(x)]
    if not tensors:
        return True
    torch = sys.modules["torch"]
    layers = torch._C._functorch.get_interpreter_stack() or ()
    if any(layer.key() == torch._C._functorch.TransformType.Vmap for layer in layers):
        return False
    modes = torch._C._TorchDispatchModeKey
    if any(torch._C._get_dispatch_mode(mode) is not None for mode in (modes.FAKE, modes.PROXY, modes.FUNCTIONAL)):
        return False
    return not any(x.is_meta or isinstance(x, torch._subclasses.FakeTensor) for x in tensors)


def numbers_needed(function: str, *arrays: Any, derivative: bool = True) -> None:
    """Refuse tensors without values, and those that torch.func or a dual level differentiates.

    For functions that search in NumPy: their result is a constant, whose derivative under a transform would silently
    be 0. Plain autograd needs no refusal; there the result says so itself, by requires_grad. Without `derivative`, the
    result is made of integers, and has none to miss.
    """
    tensors = [x for x in arrays if is_tensor(x)]
    if not seen(*tensors) or any(wrapped(x) or (derivative and _has_tangent(x)) for x in tensors):
        raise NotImplementedError(
            f"{function} needs the numbers in its tensors and gives no derivatives, but got a tensor under a transform "
            f"(torch.func, forward_ad, torch.compile, FakeTensorMode) or on the meta device; "
            f"call {function} outside, and pass its result in"
        )


def wrapped(x: Any) -> bool:
    """Tell whether a tensor is torch.func's wrapper around another, and has no memory of its own."""
    return bool(sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(x))


def _has_tangent(x: Any) -> bool:
    forward = sys.modules["torch"].autograd.forward_ad
    return forward._current_level >= 0 and forward.unpack_dual(x).tangent is not None
