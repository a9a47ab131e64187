"""The explanation as JSON, with the same machine-readable names in both languages; undefined values are null."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope

if TYPE_CHECKING:
    from softscope.cli.console import Console
    from softscope.cli.explain.measure import Explanation

VERSION = 1  # bump when a name disappears or changes meaning; adding names needs no bump


def show(explanation: Explanation, console: Console) -> None:
    """Print the document."""
    console.write(json.dumps(_plain(document(explanation)), indent=2, allow_nan=False))


def document(e: Explanation) -> dict[str, Any]:
    """Return the document as Python objects; numbers may still be NaN."""
    weights = e.now.weights
    slope = e.now.slope
    s_one_minus_s = e.now.response if e.map.logistic else weights * (1.0 - weights)
    return {
        "schema": "softscope.explain",
        "schema_version": VERSION,
        "softscope_version": softscope.__version__,
        "map": {"name": e.map.name, "alpha": e.map.alpha, "in_library": e.map.in_library},
        "temperature": e.now.temperature,
        "source": {"kind": e.row.kind, "shape": e.row.shape or weights.shape, "row": e.row.index},
        "count": len(weights),
        "entries": [
            {
                "index": i,
                "logit": e.row.logits[i],
                "weight": weights[i],
                "s_one_minus_s": s_one_minus_s[i],
                "slope": slope[i],
                "weight_at_temperature_1": e.plain.weights[i],
            }
            for i in range(len(weights))
        ],
        "readings": dataclasses.asdict(e.now.readings),
        "readings_at_temperature_1": dataclasses.asdict(e.plain.readings),
        "findings": e.findings,
        "rows": None if e.supports is None else _rows(e.supports),
    }


def _rows(supports: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Summarise all rows of the file."""
    known = supports[~np.isnan(supports)]
    low, middle, high = np.quantile(known, (0.0, 0.5, 1.0)) if known.size else (math.nan,) * 3
    return {
        "count": len(supports),
        "read": len(known),
        "effective_support": {"min": low, "median": middle, "max": high},
    }


def _plain(value: Any) -> Any:
    """Convert to plain Python numbers; NaN and infinity become None because JSON cannot hold them."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
