"""The kinds of array a caller may have, how to make each one, and how to look into a result."""

import dataclasses
from collections.abc import Callable
from typing import Any

import array_api_strict
import ml_dtypes
import numpy as np
import torch

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES_AND_FLOATS = ("float16", "bfloat16", "float32", "float64")


class OnlyDLPack:
    """An array from a library that speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@dataclasses.dataclass(frozen=True)
class Kind:
    """`make` turns a NumPy array into this kind; `back` tells whether a result is of the kind the caller gets back."""

    make: Callable[[np.ndarray], Any]
    back: Callable[[Any], bool]


def is_numpy(result: object) -> bool:
    return isinstance(result, np.ndarray | np.generic)


KINDS = {
    "numpy": Kind(np.array, is_numpy),
    "list": Kind(lambda a: a.tolist(), is_numpy),
    "torch": Kind(lambda a: tensor(a), lambda r: isinstance(r, torch.Tensor)),
    "array_api_strict": Kind(
        lambda a: array_api_strict.asarray(a.copy()), lambda r: isinstance(r, type(array_api_strict.asarray(0.0)))
    ),
    "dlpack only": Kind(OnlyDLPack, is_numpy),
}


def tensor(a: Any) -> torch.Tensor:
    """A tensor with the array's values and dtype, in its own memory."""
    a = np.asarray(a)
    if a.dtype == BFLOAT16:
        return torch.tensor(a.astype(np.float32)).to(torch.bfloat16)
    return torch.tensor(a)


def numpy(result: Any) -> np.ndarray:
    """The values of any kind of result; half precision as float32, so NumPy can compare it."""
    if isinstance(result, torch.Tensor):
        result = result.detach()
        result = result.float() if result.dtype in (torch.float16, torch.bfloat16) else result
        return result.numpy()
    a = np.asarray(result)
    return a.astype(np.float32) if a.dtype in (BFLOAT16, np.float16) else a


def dtype_of(result: Any) -> str:
    """'float32', whatever the library and byte order."""
    dtype = result.dtype
    return np.dtype(dtype).name if isinstance(dtype, np.dtype) else str(dtype).rpartition(".")[2]


def cast(a: np.ndarray, dtype: str) -> np.ndarray:
    """Floating arrays in the named dtype; integers and booleans unchanged."""
    return a.astype(BFLOAT16 if dtype == "bfloat16" else dtype) if a.dtype.kind == "f" else a


def same(got: Any, wanted: Any, rtol: float = 1e-12, atol: float = 1e-14) -> None:
    """Assert equal shapes and equal values, with NaN equal to NaN."""
    g, w = numpy(got), numpy(wanted)
    assert g.shape == w.shape, f"shape {g.shape}, wanted {w.shape}"
    np.testing.assert_allclose(g, w, rtol=rtol, atol=atol, equal_nan=True)
