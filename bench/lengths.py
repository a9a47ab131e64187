"""Is any length of a row slow? Time per entry for rows of 1 to 300 entries, of each function that has a row kernel.

    .venv/bin/python bench/lengths.py [--quick] [--chart bench/lengths.svg]

Unit: nanoseconds of processor time for one entry, on one thread, in arrays of 100,000 float32 entries, which the
second-level cache holds; the lengths take turns, and the best of several turns counts. "worst" compares each length
from 4 on with the quicker one of the two beside it. The chart in this folder comes from the
processor that its title names.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import aligned, arguments, machine

import softscope as ss

ENTRIES = 100_000
LONGEST = 300
SHOWN = (1, 8, 16, 32, 33, 48, 64, 65, 100, 128, 256, 300)
COLORS = ["#1b6ca8", "#c0392b", "#2a7f62", "#8e44ad", "#d68910", "#555", "#17a589"]

Call = Callable[[], object]


def calls(x: np.ndarray) -> dict[str, Call]:
    """Each function on the rows of x."""
    out, p = aligned(x.shape), np.asarray(ss.softmax(x))
    return {
        "softmax": lambda: ss.softmax(x, out=out),
        "log_softmax": lambda: ss.log_softmax(x, out=out),
        "logsumexp": lambda: ss.logsumexp(x),
        "partition": lambda: ss.partition(x),
        "jacobian_product": lambda: ss.jacobian_product(p, x),
        "sparsemax": lambda: ss.sparsemax(x, out=out),
        "entmax 1.5": lambda: ss.entmax(x, 1.5, out=out),
    }


def measure(lengths: list[int], turns: int) -> dict[str, dict[int, float]]:
    """Nanoseconds for an entry, by function and length."""
    rng = np.random.default_rng(0)
    by_length = {}
    for n in lengths:
        x = aligned((max(1, ENTRIES // n), n))
        x[...] = rng.standard_normal(x.shape, dtype=np.float32)
        by_length[n] = (x.size, calls(x))
    found: dict[str, dict[int, float]] = {}
    for _ in range(turns):
        for n, (size, functions) in by_length.items():
            for name, call in functions.items():
                times = found.setdefault(name, {})
                for _ in range(3):  # the first one brings the array into the cache
                    start = time.thread_time_ns()
                    call()
                    times[n] = min(times.get(n, math.inf), (time.thread_time_ns() - start) / size)
    return found


def worst(times: dict[int, float]) -> tuple[float, int]:
    """The largest ratio of a length's time to that of the quicker one beside it, and the length."""
    lengths = sorted(times)
    beside = zip(lengths, lengths[1:], lengths[2:], strict=False)
    return max((times[b] / min(times[a], times[c]), b) for a, b, c in beside)


def draw(found: dict[str, dict[int, float]], title: str, path: Path) -> None:
    """Draw the times as lines over the length; the axis of the times is logarithmic."""
    width, height, left, top = 860.0, 420.0, 50.0, 40.0
    low, high = 0.05, 10.0

    def at(n: int, value: float) -> str:
        x = left + (width - left - 130.0) * n / LONGEST
        y = top + (height - top - 40.0) * (1.0 - math.log(max(value, low) / low) / math.log(high / low))
        return f"{x:.1f},{min(max(y, top), height - 40.0):.1f}"

    parts = []
    for tick in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0):
        start, end = at(0, tick), at(LONGEST, tick)
        parts.append(f'<path d="M{start} L{end}" stroke="#ddd"/>')
        x, y = start.split(",")
        parts.append(f'<text x="{float(x) - 5:.1f}" y="{float(y) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for n in range(0, LONGEST + 1, 50):
        x = at(n, low).split(",")[0]
        parts.append(f'<text x="{x}" y="{height - 22:.0f}" text-anchor="middle">{n}</text>')
    for color, times in zip(COLORS, found.values(), strict=True):
        points = " ".join(at(n, value) for n, value in sorted(times.items()))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.4"/>')
    last = sorted((times[max(times)], name, color) for color, (name, times) in zip(COLORS, found.items(), strict=True))
    y_before = math.inf
    for value, name, color in last:
        x, y = at(LONGEST, value).split(",")
        y_before = min(float(y) + 4.0, y_before - 13.0)  # names do not overlap
        parts.append(f'<text x="{float(x) + 6:.1f}" y="{y_before:.1f}" fill="{color}">{name}</text>')
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/><text x="12" y="16" font-size="13" '
        f'font-weight="bold">Nanoseconds for an entry, by the length of the row (float32, one thread)</text>'
        f'<text x="12" y="31">{title}</text>{"".join(parts)}'
        f'<text x="{width / 2 - 60:.0f}" y="{height - 6:.0f}" text-anchor="middle">entries in a row</text></svg>\n',
        encoding="utf-8",
    )
    print(f"chart written to {path}")


def main() -> None:
    options = arguments(__doc__)
    ss.set_num_threads(1)
    found = measure(list(range(1, LONGEST + 1, 10 if options.quick else 1)), 3 if options.quick else 12)
    for name, times in found.items():
        ratio, n = worst({n: value for n, value in times.items() if n >= 4})
        picked = "  ".join(
            f"{n}: {times[n]:.2f}" for n in (1, 8, 16, 32, 33, 48, 64, 65, 100, 128, 256, 300) if n in times
        )
        print(f"{name:17} worst {ratio:4.2f} at {n:3}   {picked}")
    if options.chart is not None:
        draw(found, machine().split("; PyTorch")[0], options.chart)


if __name__ == "__main__":
    main()
