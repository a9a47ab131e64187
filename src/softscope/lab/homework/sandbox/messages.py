"""JSON encoding of values between grader and answer: arrays, numbers, text, and lists and dicts of these.

Never pickle: whatever comes from the answer's process is untrusted. Any other type travels as its repr.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_DEEPEST = 8
_LONGEST = 160  # longest repr, in characters
_MOST = 2**17  # most numbers in one value
_FLOATS = ("<f2", "<f4", "<f8")
KINDS: dict[str, type] = {}  # named tuples that `decode` may make: in the answer's process, those it defines


class ForeignError(ValueError):
    """A message that `encode` cannot have written."""


class Foreign:
    """A value that messages cannot carry: its type's name and its repr."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = printable(kind), printable(text)

    def __repr__(self) -> str:
        return self.text


class Named(tuple[Any, ...]):
    """A named tuple of the answer: here a plain tuple, which remembers its type's name."""

    kind = ""


def encode(value: Any, depth: int = 0) -> Any:
    """Convert the value to something json can write.

    >>> encode((1.0, np.array([1, 2])))["list"][1]["shape"]
    (2,)
    """
    if value is None or isinstance(value, bool | str):
        return value if not isinstance(value, str) or len(value) <= _MOST else value[:_MOST]
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return {"float": float(value)}
    if isinstance(value, int | np.integer) and abs(int(value)) < 2**63:
        return int(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size <= _MOST:
        return _array(value)
    if isinstance(value, list | tuple) and depth < _DEEPEST and len(value) <= _MOST:
        kind = value.kind if isinstance(value, Named) else type(value).__name__ if hasattr(value, "_fields") else ""
        parts = [encode(part, depth + 1) for part in value]
        return {"list": parts, "tuple": isinstance(value, tuple), "kind": str(kind)[:60]}
    if isinstance(value, dict) and depth < _DEEPEST and len(value) <= _MOST:
        return {"dict": [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in value.items()]}
    return {"foreign": described(value), "type": type(value).__name__[:60]}


def too_large(value: Any) -> bool:
    """Tell whether it is an array of numbers, but with more of them than a message carries."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size > _MOST


def _array(value: Any) -> dict[str, Any]:
    plain = np.array(value)
    if plain.dtype.kind == "f" and plain.dtype.str not in _FLOATS:
        plain = plain.astype("<f8")
    data = plain.ravel().tolist()
    return {"array": data, "shape": plain.shape, "dtype": plain.dtype.str, "locked": not value.flags.writeable}


def decode(message: Any, depth: int = 0) -> Any:
    """Recover the value given to `encode`; raise ForeignError on anything else.

    >>> decode(encode({"T": [0.5, float("inf")]}))
    {'T': [0.5, inf]}
    """
    if message is None or isinstance(message, bool | str):
        return message
    if isinstance(message, int) and abs(message) < 2**63:  # as `encode` writes them; no float holds 10**400
        return message
    if not isinstance(message, dict) or depth > _DEEPEST + 1:
        raise ForeignError
    try:
        if "float" in message:
            return float(message["float"])
        if "array" in message:
            return _numbers(message)
        if "list" in message:
            return _sequence([decode(part, depth + 1) for part in message["list"]], message)
        if "dict" in message:
            return {decode(k, depth + 1): decode(v, depth + 1) for k, v in message["dict"]}
        return Foreign(str(message["type"])[:60], str(message["foreign"])[: _LONGEST + 3])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ForeignError from error


def _sequence(parts: list[Any], message: dict[str, Any]) -> Any:
    if not message["tuple"]:
        return parts
    kind = str(message["kind"])
    if kind in KINDS:
        return KINDS[kind](*parts)
    made = Named(parts)
    made.kind = kind
    return made if kind else tuple(parts)


def _numbers(message: dict[str, Any]) -> Any:
    dtype = np.dtype(str(message["dtype"]))
    if dtype.kind not in "fiub":
        raise ForeignError
    array = np.array(message["array"], dtype=dtype).reshape(message["shape"])
    array.flags.writeable = not message["locked"]
    return array


def printable(text: str) -> str:
    r"""Put the text on one line, without characters that a terminal would obey.

    >>> printable("a\x1b[31m\nb")
    'a?[31m?b'
    """
    return "".join(c if c.isprintable() else "?" for c in text)


def described(value: object) -> str:
    """Return a short repr of a foreign object, even if its repr fails.

    >>> described(range(3)), len(described("x" * 1000))
    ('range(0, 3)', 160)
    """
    try:
        text = " ".join(repr(value).split())
    except BaseException:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
