"""Does the variance of q·k grow like d, and when does it not?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.fold import crossed
from softscope.experiments.table import Cell, Column, Table, label

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="Does the variance of q·k grow like d, and when does it not?",
    zh="q·k 的方差是否随 d 线性增长？什么时候不是这样？",
)
SECONDS = 3.0
Array = np.ndarray[Any, Any]

DIMENSIONS = (1, 4, 16, 64, 256, 512, 1024)
BLOCK = 1 << 20  # components per block, so a whole sample is never in memory


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return math.sqrt(12.0) * (rng.random(shape, dtype=np.float32) - 0.5)


def _signs(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return 2.0 * rng.integers(0, 2, shape, dtype=np.int8).astype(np.float32) - 1.0


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.standard_normal(shape, dtype=np.float32)


# Each comes with its E x⁴: the excess kurtosis of q·k is ((E x⁴)² − 3)/d.
COMPONENTS: dict[str, tuple[Text, Callable[..., Array], float]] = {
    "normal": (Text(en="normal", zh="正态"), _normal, 3.0),
    "uniform": (Text(en="uniform", zh="均匀"), _uniform, 1.8),
    "signs": (same("±1"), _signs, 1.0),
}


def measure(
    progress: ProgressBar, *, seed: int = 0, samples: int = 20_000, dimensions: tuple[int, ...] = DIMENSIONS
) -> tuple[list[Table], list[Text]]:
    """Draw independent pairs (q, k); measure the variance of q·k with its interval, and the distribution's shape."""
    rng = np.random.default_rng(seed)
    law_rows: list[tuple[Cell, ...]] = []
    shape_rows: list[tuple[Cell, ...]] = []
    histogram: list[tuple[Cell, ...]] = []
    jobs = [(kind, d) for kind in COMPONENTS for d in dimensions]
    for kind, d in progress.through(jobs, 0.0, 0.8):
        name, draw_components, fourth = COMPONENTS[kind]
        products = _products(rng, samples, d, draw_components, draw_components)
        variance, low, high = interval(products)
        law_rows.append((name, d, float(products.mean()), variance, low, high, low <= d <= high, samples))
        scaled = products / math.sqrt(d)
        shape_rows.append(
            (name, d, _distance(scaled), _kurtosis(scaled), (fourth**2 - 3.0) / d, _beyond(scaled), samples)
        )
        if kind == "normal" and d in (1, 16, 1024):
            counts, edges = np.histogram(scaled, bins=60, range=(-4.5, 4.5), density=True)
            middles = 0.5 * (edges[1:] + edges[:-1])
            histogram += [(d, float(x), float(y)) for x, y in zip(middles, counts, strict=True)]
    breaks = _breaks(rng, progress, samples)
    law = Table(
        "law",
        Text(
            en="Var(q·k) for independent components with mean 0 and variance 1",
            zh="分量独立、均值 0、方差 1 时的 Var(q·k)",
        ),
        (
            label("components", Text(en="components", zh="分量")),
            label("d", same("d")),
            Column("mean", Text(en="mean", zh="均值"), digits=2),
            Column("variance", Text(en="variance", zh="方差"), digits=4),
            Column("low", Text(en="95% from", zh="95% 区间下限"), digits=4),
            Column("high", Text(en="to", zh="上限"), digits=4),
            Column("holds", Text(en="contains d", zh="包含 d")),
            Column("samples", Text(en="pairs", zh="样本数")),
        ),
        law_rows,
        dense=True,
    )
    shape = Table(
        "shape",
        Text(en="Shape of q·k/√d against N(0, 1)", zh="q·k/√d 的分布形状与 N(0, 1) 的比较"),
        (
            label("components", Text(en="components", zh="分量")),
            label("d", same("d")),
            Column(
                "distance",
                Text(en="largest distance between distribution functions", zh="分布函数的最大距离"),
                digits=2,
            ),
            Column("kurtosis", Text(en="excess kurtosis", zh="超额峰度"), digits=2),
            Column("predicted", Text(en="expected", zh="理论值"), digits=2),
            Column(
                "beyond", Text(en="share beyond ±3 (N(0, 1): 0.0027)", zh="超出 ±3 的比例（N(0, 1)：0.0027）"), digits=2
            ),
            Column("samples", Text(en="pairs", zh="样本数")),
        ),
        shape_rows,
        dense=True,
    )
    density = Table(
        "density",
        Text(en="Histogram of q·k/√d, normal components", zh="q·k/√d 的直方图，正态分量"),
        (label("d", same("d")), Column("x", same("q·k/√d")), Column("density", Text(en="density", zh="密度"))),
        histogram,
        dense=True,
    )
    by_d = crossed(
        law, "law_by_d", law.title, down="d", across="components", values=("variance", "holds"), also=("samples",)
    )
    distance = Text(
        en="Largest distance between the distribution functions of q·k/√d and N(0, 1)",
        zh="q·k/√d 与 N(0, 1) 的分布函数的最大距离",
    )
    shape_by_d = crossed(shape, "distance", distance, down="d", across="components", values=("distance",))
    return [by_d, breaks, shape_by_d, law, shape, density], _notes(law, breaks, shape)


def _notes(law: Table, breaks: Table, shape: Table) -> list[Text]:
    within, all_rows = sum(law.column("holds")), len(law.rows)
    large = max(law.column("d"))
    broken = {r["case"].en.partition(":")[0]: r for r in breaks.records()}
    normal = [r for r in shape.records() if r["components"].en == "normal"]
    shared = broken["shared factor"]
    return [
        Text(
            en=f"Var(q·k) = d: the 95% interval contains d in {within} of {all_rows} cases (19 of 20 are expected), "
            f"whatever the components' distribution.",
            zh=f"Var(q·k) = d：{all_rows} 种情形中有 {within} 种的 95% 区间包含 d（理论上约占 19/20），与分量的分布无"
            f"关。",
        ),
        Text(
            en=f"This needs the assumptions. Components of variance 4 give {broken['sd 2']['ratio']:.1f}·d; a mean of "
            f"1 gives {broken['mean 1']['ratio']:.1f}·d and a mean product of {broken['mean 1']['mean']:.0f}; "
            f"components that share a factor give {shared['ratio']:.1f}·d, and the variance grows like d².",
            zh=f"这需要假设成立。分量方差为 4 时，方差为 {broken['sd 2']['ratio']:.1f}·d；分量均值为 1 时，方差为 "
            f"{broken['mean 1']['ratio']:.1f}·d，且 q·k 的均值为 {broken['mean 1']['mean']:.0f}；"
            f"分量有共同因子时，方差为 {shared['ratio']:.1f}·d，并按 d² 增长。",
        ),
        Text(
            en=f"q·k/√d approaches N(0, 1) as d grows: at d = {normal[0]['d']} its distribution function is "
            f"{normal[0]['distance']:.3f} away, at d = {large} it is {normal[-1]['distance']:.3f} away (sampling alone "
            f"gives about {0.87 / math.sqrt(normal[-1]['samples']):.3f}).",
            zh=f"d 增大时，q·k/√d 趋近 N(0, 1)：d = {normal[0]['d']} 时，分布函数相差 {normal[0]['distance']:.3f}；d = "
            f"{large} 时，相差 {normal[-1]['distance']:.3f}（仅采样误差就约有 "
            f"{0.87 / math.sqrt(normal[-1]['samples']):.3f}）。",
        ),
    ]


def _products(
    rng: np.random.Generator, samples: int, d: int, left: Callable[..., Array], right: Callable[..., Array]
) -> Array:
    """Sample q·k block by block."""
    step = max(1, BLOCK // d)
    parts = []
    for start in range(0, samples, step):
        shape = (min(step, samples - start), d)
        parts.append(np.einsum("nd,nd->n", left(rng, shape), right(rng, shape), dtype=np.float64))
    return np.concatenate(parts)


def interval(x: Array) -> tuple[float, float, float]:
    """Return the sample variance with its 95% interval; its standard error is √((m₄ − σ⁴)/N)."""
    centred = x - x.mean()
    variance = float(np.mean(centred**2)) * len(x) / (len(x) - 1)
    error = math.sqrt(max(float(np.mean(centred**4)) - variance**2, 0.0) / len(x))
    # ±1 with d = 1 has variance exactly 1 and no spread, so allow only for rounding.
    error = max(error, 1e-4 * variance)
    return variance, variance - 1.96 * error, variance + 1.96 * error


def _distance(x: Array) -> float:
    """Return the Kolmogorov–Smirnov distance from N(0, 1)."""
    ordered = np.sort(x)
    wanted = np.array([0.5 * math.erfc(-v / math.sqrt(2.0)) for v in ordered])
    steps = np.arange(len(x) + 1) / len(x)
    return float(max(np.max(steps[1:] - wanted), np.max(wanted - steps[:-1])))


def _kurtosis(x: Array) -> float:
    centred = x - x.mean()
    return float(np.mean(centred**4) / np.mean(centred**2) ** 2 - 3.0)


def _beyond(x: Array) -> float:
    return float(np.mean(np.abs(x) > 3.0))


def _breaks(rng: np.random.Generator, progress: ProgressBar, samples: int, d: int = 64) -> Table:
    """Drop each assumption in turn, and compare with what theory then predicts."""
    correlation = 0.5

    def shifted(g: np.random.Generator, shape: tuple[int, int]) -> Array:
        return _normal(g, shape) + 1.0

    def wide(g: np.random.Generator, shape: tuple[int, int]) -> Array:
        return 2.0 * _normal(g, shape)

    def shared(g: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draw vectors whose components have correlation ρ."""
        common = _normal(g, (shape[0], 1))
        return math.sqrt(correlation) * common + math.sqrt(1.0 - correlation) * _normal(g, shape)

    def alike(g: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
        q = _normal(g, shape)
        return q, correlation * q + math.sqrt(1.0 - correlation**2) * _normal(g, shape)

    q, k = alike(rng, (samples, d))
    cases: list[tuple[Text, Array, float, float]] = [
        (Text(en="none: as assumed", zh="无：假设成立"), _products(rng, samples, d, _normal, _normal), 0.0, d),
        (
            Text(en="sd 2: components of variance 4", zh="标准差 2：分量方差为 4"),
            _products(rng, samples, d, wide, wide),
            0.0,
            16.0 * d,
        ),
        (
            Text(en="mean 1: shifted components", zh="均值 1：分量整体平移"),
            _products(rng, samples, d, shifted, shifted),
            d,
            3.0 * d,
        ),
        (
            Text(en="q like k: correlation 0.5", zh="q 与 k 相关：相关系数 0.5"),
            np.einsum("nd,nd->n", q, k, dtype=np.float64),
            0.5 * d,
            1.25 * d,
        ),
        (
            Text(en="shared factor: correlation 0.5 within q and within k", zh="共同因子：q、k 内部的相关系数均为 0.5"),
            _products(rng, samples, d, shared, shared),
            0.0,
            d + d * (d - 1) * correlation**2,
        ),
    ]
    progress(0.95)
    rows: list[tuple[Cell, ...]] = []
    for name, products, mean, wanted in cases:
        variance, low, high = interval(products)
        rows.append((name, float(products.mean()), mean, variance, low, high, wanted, variance / d, samples))
    return Table(
        "breaks",
        Text(en=f"One assumption dropped, d = {d}", zh=f"去掉一个假设，d = {d}"),
        (
            label("case", Text(en="what is dropped", zh="去掉的假设")),
            Column("mean", Text(en="mean", zh="均值"), digits=3),
            Column("mean_expected", Text(en="expected", zh="理论值"), digits=3),
            Column("variance", Text(en="variance", zh="方差"), digits=4),
            Column("low", Text(en="95% from", zh="95% 区间下限"), digits=4),
            Column("high", Text(en="to", zh="上限"), digits=4),
            Column("expected", Text(en="expected", zh="理论值"), digits=4),
            Column("ratio", Text(en="variance/d", zh="方差/d"), digits=3),
            Column("samples", Text(en="pairs", zh="样本数")),
        ),
        rows,
    )


def draw(result: Result, lang: Lang) -> Any:
    """Plot variance over d with its interval, and the shape against N(0, 1)."""
    law = [
        {"d": r["d"], "name": r["components"].of(lang)}
        | {name: r[key] / r["d"] for name, key in (("ratio", "variance"), ("low", "low"), ("high", "high"))}
        for r in result["law"].records()
    ]
    ratio = chart.curves(
        law,
        chart.Axis("d", "d", log=True, values=DIMENSIONS),
        chart.Axis("ratio", "Var(q·k)/d", domain=(0.8, 1.2)),
        ("name", Text(en="components", zh="分量").of(lang)),
        error=("low", "high"),
        title=Text(en="Var(q·k)/d with 95% intervals", zh="Var(q·k)/d 及 95% 区间").of(lang),
    )
    bell = [
        {"x": x, "density": math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi), "name": "N(0, 1)"}
        for x in np.linspace(-4.5, 4.5, 61).tolist()
    ]
    seen = [{"x": r["x"], "density": r["density"], "name": f"d = {r['d']}"} for r in result["density"].records()]
    shape = chart.curves(
        bell + seen,
        chart.Axis("x", "q·k/√d"),
        chart.Axis("density", Text(en="density", zh="密度").of(lang)),
        ("name", ""),
        points=False,
        title=Text(en="Normal components: nearly N(0, 1) from d = 16 on", zh="正态分量：d ≥ 16 时已接近 N(0, 1)").of(
            lang
        ),
    )
    broken = [{"name": r["case"].of(lang), "ratio": r["ratio"]} for r in result["breaks"].records()]
    bars = chart.bars(
        broken,
        ("name", ""),
        chart.Axis("ratio", "Var(q·k)/d"),
        title=Text(en="Where it breaks, d = 64", zh="何时不成立，d = 64").of(lang),
        digits=".2f",
    )
    return chart.beside(ratio, shape, bars)
