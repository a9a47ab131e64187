"""Charts as pictures that need no script: drawn now, in the colours of the page's theme."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

# What the chart library draws in black or grey takes the page's ink, so that it can be read on both grounds.
INK = {"#000": "currentColor", "#888": "currentColor", "#ddd": "currentColor", "black": "currentColor"}

COLUMN = 640  # pixels, for a chart as wide as its column


def svg(spec: dict[str, Any]) -> str:
    """Return a Vega-Lite chart as an SVG that grows no wider than its column."""
    if spec.get("width") == "container":
        spec = {**spec, "width": COLUMN}
    return _svg(json.dumps(spec, sort_keys=True))


@functools.lru_cache(maxsize=64)
def _svg(spec: str) -> str:
    import vl_convert

    made = vl_convert.vegalite_to_svg(json.loads(spec))
    made = re.sub(r'(fill|stroke)="(#000|#888|#ddd|black)"', lambda found: f'{found[1]}="{INK[found[2]]}"', made)
    made = re.sub(r"(\.\d\d)\d+", r"\1", made)  # a hundredth of a pixel is enough
    return re.sub(r' (?:aria-hidden|pointer-events|role|aria-roledescription)="[^"]*"', "", made)
