"""What the cells of a record may hold. Writer and reader ask the same functions, so one accepts what the other does."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import numpy as np

from softscope.doctor.read.snapshot import Array, Site

# Far above any model, and low enough that no number in a file makes us allocate or loop for long.
HEADS: Final = 2**16  # of all sites together
CELLS: Final = 2**18  # sites × the most heads of any site, the size of one reading
NAME: Final = 1_000  # characters of a name
TEXT: Final = 10_000  # characters of a sentence
_DEPTH: Final = 32  # of nested facts
_STEP: Final = 2**53  # beyond it, steps are no longer exact in float64


def whole(what: str, value: Any, least: int = 0, most: int = 2**31 - 1) -> int:
    """An integer within bounds."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{what} must be an integer from {least} to {most}, but got {_brief(value)}")
    return value


def number(what: str, value: Any, *, finite: bool = True) -> float:
    """A float; NaN and infinity only where they mean something."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float) or (finite and not math.isfinite(value)):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):  # the latter: an integer of hundreds of digits
        raise ValueError(f"{what} must be a {'finite ' * finite}number, but got {_brief(value)}") from None


def text(what: str, value: Any, most: int = NAME) -> str:
    """Text of a limited length; half a surrogate pair, which no file can hold, becomes its escape."""
    if not isinstance(value, str) or len(value) > most:
        came = f"{len(value)} characters" if isinstance(value, str) else _brief(value)
        raise ValueError(f"{what} must be text of at most {most} characters, but got {came}")
    return encodable(value)


def encodable(value: str) -> str:
    r"""The text with half surrogate pairs as escapes: `"\ud800"` as six characters."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def shortened(value: str, most: int) -> str:
    """The text as `text` accepts it."""
    return encodable(value[:most])[:most]


def facts(found: Any) -> dict[str, Any]:
    """Facts about a run: what JSON can hold, without NaN and infinity, nested no deeper than anyone needs."""
    if not isinstance(found, dict):
        raise ValueError(f"facts must be a JSON object, but got {_brief(found)}")
    return {encodable(str(name)): _fact(value, _DEPTH) for name, value in found.items()}


def _fact(value: Any, depth: int) -> Any:
    if depth < 0:
        raise ValueError(f"facts must be nested at most {_DEPTH} deep")
    if isinstance(value, dict):
        return {encodable(str(name)): _fact(inner, depth - 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fact(inner, depth - 1) for inner in value]
    if isinstance(value, str):
        return encodable(value)
    return number("a fact", value) if isinstance(value, float) else value


def parsed(what: str, written: Any) -> Any:
    """Parse JSON."""
    if not isinstance(written, str):
        raise ValueError(f"{what} must be JSON, but got {_brief(written)}")
    try:
        return json.loads(written)
    except ValueError as error:
        raise ValueError(f"{what} must be JSON, but {error}") from None
    except RecursionError:
        raise ValueError(f"{what} must be JSON, but it is nested too deeply") from None


def sites(rows: Any) -> tuple[Site, ...]:
    """Sites from parsed JSON; fields added by a later softscope are ignored."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("sites must be a JSON list of objects")
    found = tuple(_site(row) for row in rows)
    total, widest = sum(site.heads for site in found), max((site.heads for site in found), default=0)
    if total > HEADS or len(found) * widest > CELLS:
        raise ValueError(
            f"sites must have at most {HEADS} heads, and sites × most heads must be at most {CELLS}, but got "
            f"{len(found)} sites, {total} heads, at most {widest} in one"
        )
    return found


def _site(row: dict[str, Any]) -> Site:
    scale = row["scale"]
    return Site(
        name=text("a site's name", row["name"]),
        kind=text("kind", row["kind"]),
        heads=whole("heads", row["heads"], 1, HEADS),
        kv_heads=whole("kv_heads", row["kv_heads"]),
        scale=math.nan if scale is None else number("scale", scale, finite=False),
        head_size=whole("head_size", row["head_size"]),
        causal=bool(row.get("causal", Site.causal)),
        fused=bool(row.get("fused", Site.fused)),
        dropout=number("dropout", row.get("dropout", Site.dropout)),
        dtype=text("dtype", row.get("dtype", Site.dtype)),
        expects=text("expects", row.get("expects", Site.expects)),
    )


def step(value: Any) -> int:
    """The number of a step."""
    return whole("step", value, -_STEP, _STEP)


def loss(cell: Any) -> float | None:
    """A loss; SQLite cannot store NaN, so the file has it as text."""
    return None if cell is None else math.nan if cell == "nan" else number("loss", cell, finite=False)


def array(data: Any, written: tuple[int, int], wanted: tuple[int, int]) -> Array:
    """Decode a blob to a (sites, heads) array, with NaN for sites and heads unknown when it was written."""
    size = len(data) if isinstance(data, bytes) else -1
    if size != 4 * written[0] * written[1] or written[0] > wanted[0] or written[1] > wanted[1]:
        raise ValueError(
            f"a reading must be {written[0]} × {written[1]} float32 values, of {wanted[0]} sites with up to "
            f"{wanted[1]} heads, but got {_brief(data) if size < 0 else f'{size} bytes'}"
        )
    found = np.frombuffer(data, "<f4").reshape(written).astype(np.float32)
    if written == wanted:
        return found
    every = np.full(wanted, np.nan, np.float32)
    every[: written[0], : written[1]] = found
    return every


def _brief(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= 10**20:  # printing 5,000 digits raises
        return "a huge integer"
    told = repr(value) if isinstance(value, int | float | None) else ""
    return told or type(value).__name__
