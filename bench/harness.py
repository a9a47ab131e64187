"""What the benchmarks share: taking turns, computing ratios, and drawing them."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Contenders = dict[str, Callable[[], object]]  # "ours" among them

# From many short rows to one long one.
SHAPES = [(500_000, 8), (125_000, 32), (40_000, 100), (16_384, 256), (4096, 1024), (1024, 4096), (128, 32_768),
          (32, 131_072), (4, 1_000_000), (1, 8_000_000)]  # fmt: skip


def shape_name(shape: tuple[int, ...]) -> str:
    """The shape as text, such as 4096 × 1024."""
    return " × ".join(map(str, shape))


def best(contenders: Contenders, turns: int, *, calls: int = 1, slow: tuple[str, ...] = ()) -> dict[str, float]:
    """The shortest time of each in seconds; they take turns, so that a slow moment hits all of them.

    The `slow` ones take only three turns, which hardly changes the result and saves most of the time.
    """
    times = dict.fromkeys(contenders, math.inf)
    for turn in range(turns):
        for name, function in contenders.items():
            if name in slow and turn > 2:
                continue
            start = time.perf_counter()
            for _ in range(calls):
                function()
            times[name] = min(times[name], (time.perf_counter() - start) / calls)
    return times


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """A float32 array that starts on a cache line, as all of PyTorch's do; NumPy's large ones start 16 bytes after."""
    import torch

    return torch.empty(shape).numpy()


def geometric_mean(values: Iterable[float]) -> float:
    """The right mean for ratios."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


@dataclass
class Ratios:
    """Each contender's time divided by ours, by task and shape. A limit cannot be beaten, only approached."""

    title: str
    limits: tuple[str, ...] = ("copy",)
    values: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)  # (task, contender) → shape → ratio

    def add(self, task: str, shape: str, times: dict[str, float]) -> None:
        """Store and print one line of ratios."""
        line = f"{shape:>18}  {task:22}"
        for name, seconds in times.items():
            if name == "ours":
                continue
            ratio = times["ours"] / seconds if name in self.limits else seconds / times["ours"]
            self.values.setdefault((task, name), {})[shape] = ratio
            line += f"  {name} {ratio:6.2f}"
        print(line, flush=True)

    def summary(self) -> None:
        """Print the means, each with its worst shape."""
        print("\ngeometric means, and the worst shape")
        for (task, name), by_shape in self.values.items():
            limit = name in self.limits
            shape = (max if limit else min)(by_shape, key=by_shape.__getitem__)
            what = f"{'of a ' + name if limit else 'against ' + name:18}"
            print(f"  {task:22} {what} {geometric_mean(by_shape.values()):6.2f}   {by_shape[shape]:6.2f} at {shape}")

    def draw(self, path: Path) -> None:
        """Draw the ratios to the contenders as bars in an SVG file: longer is better, the line is at 1."""
        rows = [(task, name, shapes) for (task, name), shapes in self.values.items() if name not in self.limits]
        top = max(max(shapes.values()) for *_, shapes in rows)
        scale = 420.0 / math.log2(max(top, 2.0) * 2.0)

        def at(ratio: float) -> float:
            return 240.0 + max(0.0, scale * math.log2(max(ratio, 0.5) * 2.0))

        parts, y = [], 46.0
        for task, name, shapes in rows:
            mean = geometric_mean(shapes.values())
            parts.append(f'<text x="12" y="{y + 11}" class="h">{task} against {name}: {mean:.2f}</text>')
            y += 20.0
            for shape, ratio in shapes.items():
                color = "#2a7f62" if ratio >= 1.0 else "#c0392b"
                parts.append(f'<text x="228" y="{y + 9}" text-anchor="end">{shape}</text>')
                parts.append(f'<rect x="240" y="{y}" width="{at(ratio) - 240.0:.1f}" height="11" fill="{color}"/>')
                parts.append(f'<text x="{at(ratio) + 5.0:.1f}" y="{y + 9}">{ratio:.2f}</text>')
                y += 14.0
            y += 8.0
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="740" height="{y + 10:.0f}" font-family="sans-serif" '
            f'font-size="10"><style>.h{{font-size:12px;font-weight:bold}}</style>'
            f'<rect width="100%" height="100%" fill="white"/><text x="12" y="18" class="h">{self.title}</text>'
            f'<text x="12" y="31">times as fast (logarithmic); the line is at 1</text>'
            f'<line x1="{at(1):.1f}" x2="{at(1):.1f}" y1="34" y2="{y:.0f}" stroke="#888"/>'
            + "".join(parts)
            + "</svg>\n",
            encoding="utf-8",
        )
        print(f"\nchart written to {path}")


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with --quick and --chart, which every benchmark has."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="few shapes, few turns")
    options.add_argument("--chart", type=Path, metavar="FILE.svg", help="also draw the ratios")
    return options


def arguments(description: str | None) -> argparse.Namespace:
    """The parsed arguments of a benchmark that has no further options."""
    given = parser(description).parse_args()
    print(machine())
    return given


def machine() -> str:
    """What a figure must say beside it: the processor, our level and PyTorch's."""
    import torch

    from softscope import _engine

    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    known = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
    name = f"{known.get('model name', 'unknown processor')} (family {known.get('cpu family', '?')})"
    theirs = (
        f"PyTorch {torch.__version__}: {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"
    )
    return f"{name}; our kernels: {_engine.isa()}; {theirs}"


def finish(ratios: Ratios, chart: Path | None) -> None:
    """Print the summary and draw the chart if asked: the end of every benchmark."""
    ratios.summary()
    if chart is not None:
        ratios.draw(chart)
