"""Read the numbers from the arguments, standard input or a .npy file."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]

_SEPARATORS = re.compile(r"[\s,;，；、\[\]()]+")  # so that a pasted list, [1, 2, 3], works too
_MOST_BYTES = 64 * 2**20  # of text on standard input; an endless stream must not fill the memory
_MAGIC = b"\x93NUMPY"


@dataclasses.dataclass(frozen=True)
class Row:
    """The numbers to explain; if a file has several rows, also which row this is, and all of them."""

    logits: Array
    kind: str  # arguments, stdin, file
    name: str = ""
    shape: tuple[int, ...] = ()
    index: int = 0
    chosen: bool = False  # with --row
    rows: Array | None = None


def read(words: Sequence[str], file: str | None, row: int | None) -> Row:
    """Read the row the command line asks for; `words` are its arguments, `file` and `row` its options."""
    files = [word for word in words if word.endswith(".npy")] + ([] if file is None else [file])
    sources = len(files) + ("-" in words) + any(word != "-" and word not in files for word in words)
    if sources > 1:
        raise UsageError("source.several")
    if files:
        return _from_file(files[0], row)
    if row is not None:
        raise UsageError("row.needless")
    if words and words != ["-"]:
        return Row(_finite(_parsed(" ".join(words))), "arguments")
    if not words and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("source.none")
    values = _parsed(_stdin())
    if values.size == 0:
        raise UsageError("source.none")
    return Row(_finite(values), "stdin")


def _stdin() -> str:
    if sys.stdin is None:
        raise UsageError("source.none")
    try:
        # In-process callers may have put a text stream without a buffer here.
        data = getattr(sys.stdin, "buffer", sys.stdin).read(_MOST_BYTES + 1)
        if isinstance(data, str):
            return data
        if data.startswith(_MAGIC):
            raise UsageError("stdin.npy")
        if len(data) > _MOST_BYTES:
            raise UsageError("stdin.long", most=_MOST_BYTES // 2**20)
        return str(data.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError("stdin.unreadable", reason=error.strerror or type(error).__name__) from None
    except UnicodeDecodeError:
        raise UsageError("stdin.binary") from None


def _parsed(text: str) -> Array:
    """Parse the numbers in a text."""
    values = []
    for word in filter(None, _SEPARATORS.split(text)):
        try:
            values.append(float(word.replace("−", "-")))
        except ValueError:
            raise UsageError("number.wrong", value=shown(word), place=len(values) + 1) from None
    return np.array(values, dtype=np.float64)


def _from_file(name: str, row: int | None) -> Row:
    array = _loaded(name)
    label = shown(pathlib.PurePath(name).name)
    if array.dtype.kind not in "fiu":
        raise UsageError("file.dtype", name=label, dtype=shown(array.dtype))
    if array.ndim < 2:
        if row is not None:
            raise UsageError("row.needless")
        return Row(_finite(array.reshape(-1)), "file", label, array.shape)
    if array.size == 0:
        raise UsageError("source.empty")
    rows = array.reshape(-1, array.shape[-1])
    index = 0 if row is None else row
    if not -len(rows) <= index < len(rows):
        raise UsageError("row.outside", value=index, last=len(rows) - 1, name=label)
    index %= len(rows)
    return Row(_finite(rows[index]), "file", label, array.shape, index, row is not None, rows)


def _loaded(name: str) -> Array:
    """Memory-map the array in a .npy file: from a large one we need just one row."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about old headers; they would print to stderr
            return np.asarray(np.lib.format.open_memmap(name, mode="r"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError("file.unreadable", name=shown(name), reason=reason) from None
    except Exception:
        # NumPy raises a different exception for each way a header can be broken, from ValueError to
        # tokenize.TokenError, and one for Python objects, which we never unpickle.
        raise UsageError("file.not_npy", name=shown(name)) from None


def _finite(values: Array) -> Array:
    """Return the numbers as float64, if there are any and none is NaN or infinite."""
    if values.size == 0:
        raise UsageError("source.empty")
    numbers = values.astype(np.float64)
    strange = np.flatnonzero(~np.isfinite(numbers))
    if strange.size:
        raise UsageError("number.infinite", value=float(numbers[strange[0]]), place=int(strange[0]) + 1)
    return numbers
