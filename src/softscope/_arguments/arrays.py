"""Accept NumPy arrays, lists, torch tensors and DLPack arrays, and return results as the same kind."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

Array: TypeAlias = Any  # a NumPy array, a torch tensor, or another library's array

FLOATS = ("float16", "bfloat16", "float32", "float64")


def is_tensor(x: object) -> bool:
    """Tell whether x is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def namespace(x: Array) -> Any:
    """Return the module whose functions work on x: torch for tensors, else NumPy."""
    return sys.modules["torch"] if is_tensor(x) else np


def tracing() -> bool:
    """Tell whether torch.compile is tracing us; tensor values cannot be inspected then."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling())


def dtype_name(x: Array) -> str:
    """Return the dtype's name, such as 'float32', for a NumPy array or tensor."""
    return str(x.dtype).rpartition(".")[2]


def floating(x: object, name: str) -> Array:
    """Return x as a NumPy array or tensor of a supported floating dtype; integers and booleans are promoted."""
    if is_tensor(x):
        torch = sys.modules["torch"]
        tensor: Any = x
        _check_dense(tensor, name)
        if dtype_name(tensor) in FLOATS:
            return tensor
        if tensor.is_complex() or tensor.is_floating_point() or tensor.is_quantized:
            raise TypeError(_dtype_rule(name, dtype_name(tensor)))
        return tensor.to(torch.get_default_dtype())
    array = _to_numpy(x, name)
    if dtype_name(array) in FLOATS or array.dtype.newbyteorder("=").name in FLOATS:
        return array
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    raise TypeError(_dtype_rule(name, dtype_name(array)))


def _dtype_rule(name: str, came: str) -> str:
    return f"{name} must be real numbers in {', '.join(FLOATS)} or integers, but its dtype is {came}; convert it"


def _to_numpy(x: Any, name: str) -> np.ndarray[Any, Any]:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be a plain array, but got a masked array, whose mask would be lost; "
            f"pass its .data, and where=~mask"
        )
    if isinstance(x, np.ndarray | np.generic | list | tuple | int | float):
        return _from_sequence(x, name)
    if hasattr(x, "__dlpack__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            # NumPy's DLPack supports neither bfloat16 nor other devices; the array protocol supports bfloat16.
            if not hasattr(x, "__array__"):
                raise TypeError(
                    f"{name} must be in CPU memory, in a dtype that NumPy can import, but importing a "
                    f"{type(x).__name__} failed ({error}); move it to the CPU or to a torch tensor"
                ) from None
    return _from_sequence(x, name)


def _from_sequence(x: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(x)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} must be a rectangular array of numbers, but {type(x).__name__} cannot be converted to one "
            f"({error}); make all its rows the same length"
        ) from None


def giver(x: object) -> Callable[[Array], Array]:
    """Return a function that converts a result to x's kind of array.

    Tensors stay tensors. NumPy 0-d results become scalars, as in NumPy itself. Arrays of other libraries go back
    through DLPack if they name their library (`__array_namespace__`).
    """
    if is_tensor(x):
        return unchanged
    if isinstance(x, np.ndarray | np.generic) or not hasattr(x, "__array_namespace__"):
        return scalar_if_0d
    return functools.partial(_through_dlpack, x.__array_namespace__())


def unchanged(result: Array) -> Array:
    """Return the result as is, for tensors."""
    return result


def scalar_if_0d(result: Array) -> Array:
    """Return a scalar instead of a 0-d array, as NumPy's own reductions do."""
    return result[()] if isinstance(result, np.ndarray) else result


def _through_dlpack(library: Any, result: Array) -> Array:
    result = np.asarray(result)
    try:
        return library.from_dlpack(result)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return library.asarray(result)  # NumPy's DLPack does not support bfloat16


def quiet(x: Array) -> AbstractContextManager[Any]:
    """Silence NumPy's warnings where overflow to inf is the right answer; tensors never warn."""
    return contextlib.nullcontext() if is_tensor(x) else np.errstate(over="ignore")


def as_numpy(value: Any, name: str) -> np.ndarray[Any, Any]:
    """Convert numbers or booleans of any kind to a NumPy array, with checks."""
    return values(value) if is_tensor(value) else _native(_to_numpy(value, name), name)


def values(x: Array) -> np.ndarray[Any, Any]:
    """Return a tensor's or array's values as a NumPy array, detached: for searches that need no gradient."""
    if not is_tensor(x):
        return np.asarray(x)
    x = x.detach().cpu()
    return np.asarray((x.float() if dtype_name(x) == "bfloat16" else x).numpy())


def _check_dense(tensor: Any, name: str) -> None:
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"{name} must be a dense tensor, but its layout is {tensor.layout}; call .to_dense() first")


def beside(value: object, x: Array, name: str) -> Array:
    """Convert a second argument (mask, temperature, v, …) to the same kind of array as x, on x's device."""
    if is_tensor(x):
        torch = sys.modules["torch"]
        if is_tensor(value):
            tensor: Any = value
            _check_dense(tensor, name)
            if tensor.device != x.device and tensor.ndim > 0:
                raise ValueError(
                    f"{name} must be on the device of the first argument ({x.device}), but is on "
                    f"{tensor.device}; move one of them"
                )
            return tensor
        if tracing():  # a compiler cannot follow the way through NumPy
            found = torch.as_tensor(value, device=x.device)
            listed = isinstance(value, (list, tuple)) and found.is_floating_point()  # PyTorch would round to float32
            return torch.as_tensor(value, dtype=torch.float64, device=x.device) if listed else found
        array = _native(_to_numpy(value, name), name)
        array = array.astype(np.float32) if dtype_name(array) == "bfloat16" else array
        return torch.as_tensor(np.ascontiguousarray(array) if array.ndim else array, device=x.device)
    if is_tensor(value):
        raise TypeError(
            f"{name} must be of the same kind as the first argument, a NumPy array, but got a torch tensor, whose "
            f"gradient would be lost; pass both as tensors or both as arrays"
        )
    return _native(_to_numpy(value, name), name)


def _native(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Convert numbers or booleans to the machine's byte order."""
    if array.dtype.kind not in "fiub" and dtype_name(array) != "bfloat16":
        raise TypeError(f"{name} must be numbers or booleans, but its dtype is {dtype_name(array)}; convert it")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
