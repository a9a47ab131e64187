"""The compiled kernels. Arrays go in by buffer or DLPack and are never copied or converted."""

from typing import Any, Protocol

class _Matrix(Protocol):
    """What the kernels take: NumPy arrays and torch tensors alike. They check the dtype when called."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...

def isa() -> str:
    """The instruction set in use: the best this processor runs, or what SOFTSCOPE_ISA names."""

def isas() -> list[str]:
    """The instruction sets that this build holds and this processor runs, lowest first."""

def softmax_f32(x: _Matrix, out: _Matrix) -> None:
    """Write the softmax of each row of x to out.

    A row with NaN or +inf, or with nothing but −inf, becomes NaN. An empty x leaves out as it is.

    Args:
        x: float32 (rows, n), C-contiguous, on the CPU; may be read-only.
        out: writable, else as x, of the same shape; x itself, or no part of its memory.

    Raises:
        TypeError: another dtype, layout, device or number of axes, or a read-only out.
        ValueError: shapes that differ, or memory that overlaps in part.
    """
