"""How do initialisation, LayerNorm and batch-normalising the logits change the spread of q·k/√d?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.fold import crossed, part
from softscope.experiments.table import NATS, Cell, Column, Measured, Table, label

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="What do initialisation, LayerNorm and batch normalisation do to the spread of the logits?",
    zh="初始化、LayerNorm 和批归一化各自怎样影响分数的分散程度？",
)
SECONDS = 1.0
Array = np.ndarray[Any, Any]

# The variance of one entry of W (d_in × d_out), times d_in, for d_in = d_out.
INITS: dict[str, tuple[Text, float]] = {
    "xavier": (same("Xavier: 2/(in+out)"), 1.0),
    "kaiming": (same("Kaiming: 2/in"), 2.0),
    "torch": (same("nn.Linear: 1/(3·in)"), 1.0 / 3.0),
    "gpt": (same("N(0, 0.02²)"), math.nan),  # depends on the width
}
INPUTS: dict[str, tuple[Text, float, float]] = {
    "unit": (Text(en="variance 1", zh="方差 1"), 1.0, 0.0),
    "wide": (Text(en="variance 9", zh="方差 9"), 3.0, 0.0),
    "shifted": (Text(en="variance 1, mean 1", zh="方差 1、均值 1"), 1.0, 1.0),
}
WIDTHS = (64, 256)
TOKENS = 10


def measure(
    progress: ProgressBar, *, seed: int = 0, runs: int = 60, widths: tuple[int, ...] = WIDTHS
) -> tuple[list[Table], list[Text]]:
    """Compute q = W_Q x and k = W_K x for one sequence's tokens x; each run draws new weights, so errors are over runs.

    Within a run, the initialisations share their draws up to a factor: only the variance of W matters here.
    """
    rng = np.random.default_rng(seed)
    kept: dict[tuple[int, str, str, bool], tuple[list[float], list[float]]] = {}
    for d in widths:
        for _ in progress.through(range(runs)):
            w_q, w_k = rng.standard_normal((2, d, d))
            x = rng.standard_normal((TOKENS, d))
            cases = [(given, norm) for given in INPUTS for norm in (False, True)]
            tokens = np.concatenate(
                [_tokens(x, *case) for case in cases]
            )  # one product for all cases: threads sync once
            q, k = ((tokens @ w).reshape(len(cases), TOKENS, d) for w in (w_q, w_k))
            base = q @ k.swapaxes(-1, -2) / math.sqrt(d)
            for init in INITS:
                scores = _variance(init, d) * base
                variances = scores.var(axis=-1, ddof=1).mean(axis=-1)
                entropies = softscope.partition(scores).entropy.mean(axis=-1)
                for i, (given, norm) in enumerate(cases):
                    variance, entropy = kept.setdefault((d, init, given, norm), ([], []))
                    variance.append(float(variances[i]))
                    entropy.append(float(entropies[i]))
    rows: list[tuple[Cell, ...]] = [
        (
            INITS[init][0],
            d,
            INPUTS[given][0],
            norm,
            Measured.root(kept[d, init, given, norm][0]),
            _predicted(d, _variance(init, d), INPUTS[given], norm),
            Measured.of(kept[d, init, given, norm][1]),
            runs,
        )
        for d in widths
        for init in INITS
        for given in INPUTS
        for norm in (False, True)
    ]
    spreads = Table(
        "spread",
        Text(en=f"Spread of q·k/√d within a row, {TOKENS} tokens", zh=f"q·k/√d 的行内分散程度，{TOKENS} 个 token"),
        (
            label("init", Text(en="variance of W", zh="W 的方差")),
            label("d", same("d")),
            label("inputs", Text(en="inputs x", zh="输入 x")),
            label("layernorm", same("LayerNorm")),
            Column("spread", Text(en="sd of q·k/√d", zh="q·k/√d 的标准差")),
            Column("predicted", same("d·Var(W)·√(E x²·Var x)")),
            Column("entropy", Text(en="entropy", zh="熵"), NATS),
            Column("runs", Text(en="runs", zh="运行次数")),
        ),
        rows,
        dense=True,
    )
    d = max(widths)
    widest = crossed(
        part(spreads, "", lambda r: r["d"] == d),
        "widest",
        Text(en=f"Standard deviation of q·k/√d in a row, d = {d}", zh=f"一行 q·k/√d 的标准差，d = {d}"),
        down=("init", "inputs"),
        across="layernorm",
        values=("spread",),
        name=lambda norm: same("LayerNorm") if norm else Text(en="no LayerNorm", zh="无 LayerNorm"),
        also=("runs",),
    )
    batch = _batch(rng, runs * 5)
    return [widest, batch, spreads], _notes(spreads, batch)


def layer_norm(x: Array) -> Array:
    """Normalise each token to mean 0 and variance 1."""
    return np.asarray((x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True))


def _tokens(x: Array, given: str, norm: bool) -> Array:
    _, sd, mean = INPUTS[given]
    return layer_norm(mean + sd * x) if norm else mean + sd * x


def _variance(init: str, d: int) -> float:
    share = INITS[init][1]
    return 0.02**2 if math.isnan(share) else share / d


def _predicted(d: int, variance: float, given: tuple[Text, float, float], norm: bool) -> float:
    """Predict the spread of the logits.

    Within a row, the mean of x shifts every logit alike and cancels. It still makes q larger: E x² = sd² + mean².
    """
    _, sd, mean = (same(""), 1.0, 0.0) if norm else given
    return d * variance * math.sqrt((sd**2 + mean**2) * sd**2)


def _batch(rng: np.random.Generator, rows: int, d: int = 64) -> Table:
    """Compare dividing by √d with standardising each row of logits, with the assumptions met and broken."""
    table: list[tuple[Cell, ...]] = []
    for name, sd, mean in INPUTS.values():
        q = mean + sd * rng.standard_normal((rows, 1, d))
        k = mean + sd * rng.standard_normal((rows, TOKENS, d))
        raw = (k @ q.swapaxes(-1, -2))[..., 0]
        root = raw / math.sqrt(d)
        standard = (raw - raw.mean(axis=-1, keepdims=True)) / raw.std(axis=-1, ddof=1, keepdims=True)
        cells = [
            part
            for x in (root, standard)
            for part in (Measured.root(x.var(axis=-1, ddof=1)), Measured.of(softscope.partition(x).entropy))
        ]
        table.append((name, *cells, rows))
    return Table(
        "batch",
        Text(en=f"Dividing by √d against (x−μ)/σ in each row, d = {d}", zh=f"除以 √d 与逐行 (x−μ)/σ 的比较，d = {d}"),
        (
            label("components", Text(en="components of q and k", zh="q、k 的分量")),
            Column("root", Text(en="/√d: sd", zh="/√d：标准差")),
            Column("root_entropy", Text(en="entropy", zh="熵"), NATS),
            Column("standard", Text(en="(x−μ)/σ: sd", zh="(x−μ)/σ：标准差")),
            Column("standard_entropy", Text(en="entropy", zh="熵"), NATS),
            Column("rows", Text(en="rows", zh="行数")),
        ),
        table,
    )


def _notes(spreads: Table, batch: Table) -> list[Text]:
    d = max(spreads.column("d"))

    def at(init: str, given: str, norm: bool) -> float:
        row = spreads.row(init=INITS[init][0], d=d, inputs=INPUTS[given][0], layernorm=norm)
        return float(row["spread"].value)

    ratios = [r["spread"].value / r["predicted"] for r in spreads.records()]
    wide = batch.row(components=INPUTS["wide"][0])
    return [
        Text(
            en=f"With inputs of variance 1 and d = {d}, the logits start with a spread of "
            f"{at('xavier', 'unit', False):.2f} (Xavier), {at('kaiming', 'unit', False):.2f} (Kaiming), "
            f"{at('torch', 'unit', False):.2f} (nn.Linear), {at('gpt', 'unit', False):.2f} (N(0, 0.02²)).",
            zh=f"输入方差为 1、d = {d} 时，分数的初始分散程度：Xavier {at('xavier', 'unit', False):.2f}，Kaiming "
            f"{at('kaiming', 'unit', False):.2f}，nn.Linear {at('torch', 'unit', False):.2f}，N(0, 0.02²) "
            f"{at('gpt', 'unit', False):.2f}。",
        ),
        Text(
            en=f"√d corrects for d alone: with Xavier, inputs of variance 9 give a spread of "
            f"{at('xavier', 'wide', False):.1f}, and {at('xavier', 'wide', True):.2f} after a LayerNorm.",
            zh=f"√d 只抵消 d 的影响：用 Xavier 初始化、输入方差为 9 时，分散程度为 "
            f"{at('xavier', 'wide', False):.1f}，先经过 LayerNorm 则为 {at('xavier', 'wide', True):.2f}。",
        ),
        Text(
            en=f"The analogy with batch norm holds only while the assumptions do: with components of variance 9, "
            f"dividing by √d leaves a spread of {wide['root'].value:.1f}, while (x−μ)/σ always gives "
            f"{wide['standard'].value:.0f}. The first divides by a constant, the second by what it measures.",
            zh=f"与批归一化的类比只在假设成立时有效：分量方差为 9 时，除以 √d 后的分散程度为 {wide['root'].value:.1f}，"
            f"(x−μ)/σ 则总是 {wide['standard'].value:.0f}。前者除以常数，后者除以实测值。",
        ),
        Text(
            en=f"The measured spread is within {max(abs(1 - r) for r in ratios):.0%} of the formula "
            f"d·Var(W)·√(E x²·Var x).",
            zh=f"实测值与公式 d·Var(W)·√(E x²·Var x) 相差不超过 {max(abs(1 - r) for r in ratios):.0%}。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Plot the spread at the largest width, with and without LayerNorm."""
    d = max(result["spread"].column("d"))
    panels = []
    for norm, title in (
        (False, Text(en=f"Without LayerNorm, d = {d}", zh=f"无 LayerNorm，d = {d}")),
        (True, Text(en=f"After a LayerNorm, d = {d}", zh=f"有 LayerNorm，d = {d}")),
    ):
        rows = [
            {
                "name": r["init"].of(lang) + Text(en=", ", zh="，").of(lang) + r["inputs"].of(lang),
                "spread": r["spread"].value,
                "low": r["spread"].value - 2 * r["spread"].error,
                "high": r["spread"].value + 2 * r["spread"].error,
            }
            for r in result["spread"].records()
            if r["d"] == d and r["layernorm"] == norm
        ]
        value = chart.Axis(
            "spread",
            Text(en="sd of q·k/√d (±2 SE)", zh="q·k/√d 的标准差（±2 标准误）").of(lang),
            domain=(0.0, 24.0) if not norm else (0.0, 3.0),
        )
        panels.append(chart.bars(rows, ("name", ""), value, error=("low", "high"), title=title.of(lang), width=240))
    return chart.beside(*panels)
