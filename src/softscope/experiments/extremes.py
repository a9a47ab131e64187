"""When does softmax become one-hot, and what does a gain k do to the ratio of two weights?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.fold import crossed
from softscope.experiments.table import Cell, Column, Measured, Table, bracketed, label

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="When does softmax become one-hot, and what does a gain k do to the ratio a of two weights?",
    zh="softmax 何时变成 one-hot？分数乘以 k，两个权重之比 a 会怎样？",
)
SECONDS = 0.3

CASES = (
    (Text(en="uniform", zh="均匀"), (1.0, 1.0, 1.0)),
    (Text(en="slight", zh="轻微差异"), (1.0, 2.0, 3.0)),
    (Text(en="moderate", zh="中等差异"), (1.0, 5.0, 10.0)),
    (Text(en="huge", zh="巨大差异"), (1.0, 50.0, 100.0)),
    (Text(en="extreme", zh="极端差异"), (1.0, 500.0, 1000.0)),
    (Text(en="one high", zh="一枝独秀"), (1000.0, 1.0, 1.0)),
)
RATIOS = (2.0, 1.0, 0.5)
GAINS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def measure(progress: ProgressBar, *, seed: int = 0, rows: int = 2000) -> tuple[list[Table], list[Text]]:
    """Measure the cases, the law a′ = aᵏ, and the effect of 1/√d on fixed and random logits."""
    del progress
    cases, law, dimension = _cases(), _law(), _dimension(np.random.default_rng(seed), rows)
    worst = max(abs(r["measured"] / r["predicted"] - 1.0) for r in law.records())
    half = {r["k"]: r["measured"] for r in law.records() if r["a"] == 0.5}
    fixed = [r["fixed"].value for r in dimension.records()]
    random = [r["random"].value for r in dimension.records()]
    first, last = dimension.records()[0]["d"], dimension.records()[-1]["d"]
    notes = [
        Text(
            en=f"For [1, 2, 3], softmax gives a largest weight of {cases.row(case='slight')['peak']:.4f}, hard max 1; "
            f"at a gap of 5 softmax gives {cases.row(case='moderate')['peak']:.4f}. The largest weight falls short of "
            f"1 by at most (n−1)·exp(−gap).",
            zh=f"对 [1, 2, 3]，softmax 的最大权重为 {cases.row(case='slight')['peak']:.4f}，硬最大值则给出 1；差距为 5 "
            f"时，softmax 的最大权重为 {cases.row(case='moderate')['peak']:.4f}。最大权重与 1 之差不超过 "
            f"(n−1)·exp(−差距)。",
        ),
        Text(
            en=f"a′ = aᵏ holds to within {worst:.0e}. But k > 1 makes a larger only if a > 1: at k = 4, a = 0.5 falls "
            f"from {half[1.0]:g} to {half[4.0]:g}, and a = 1 stays the same. A larger k is sharper whenever a ≠ 1.",
            zh=f"a′ = aᵏ 成立（误差不超过 {worst:.0e}）。但只有 a > 1 时，k > 1 才使 a 变大：k = 4 时，a = 0.5 从 "
            f"{half[1.0]:g} 降到 {half[4.0]:g}，a = 1 则不变。只要 a ≠ 1，k 越大越尖锐。",
        ),
        Text(
            en=f"After dividing fixed logits by √d, a smaller d is sharper (largest weight {fixed[0]:.2f} at d = "
            f"{first}, {fixed[-1]:.2f} at d = {last}). For random q and k it is {random[0]:.2f} and {random[-1]:.2f}: "
            f"their logits grow like √d too, and the two cancel.",
            zh=f"同样除以 √d：分数固定时，d 越小越尖锐（最大权重在 d = {first} 时为 {fixed[0]:.2f}，在 d = {last} 时为 "
            f"{fixed[-1]:.2f}）；q、k 随机时，最大权重分别为 {random[0]:.2f} 和 {random[-1]:.2f}：分数也按 √d "
            f"增大，两者相消。",
        ),
    ]
    by_k = crossed(
        law,
        "law_by_k",
        law.title,
        down="k",
        across="a",
        values=("measured", "peak"),
        name=lambda a: same(f"a = {a:g}"),
    )
    return [cases, by_k, dimension, law], notes


def _cases() -> Table:
    table: list[tuple[Cell, ...]] = []
    for name, row in CASES:
        x = np.array(row)
        weights = softscope.softmax(x)
        top = np.sort(x)[::-1]
        gap = float(top[0] - top[1])
        state = softscope.partition(x)
        hard = np.where(x == x.max(), 1.0 / (x == x.max()).sum(), 0.0)
        rest = float(np.sort(weights)[:-1].sum())  # 1 − peak, without cancellation
        table.append(
            (name, bracketed(x, 0), bracketed(weights), bracketed(hard), state.peak, rest, 2.0 * math.exp(-gap),
             float(state.entropy))
        )  # fmt: skip
    return Table(
        "cases",
        Text(en="Logits further and further apart", zh="差距越来越大的分数"),
        (
            label("case", Text(en="case", zh="情形")),
            label("logits", Text(en="logits", zh="分数")),
            Column("weights", same("softmax")),
            Column("hard", Text(en="hard max", zh="硬最大值")),
            Column("peak", Text(en="largest weight", zh="最大权重"), digits=6),
            Column("rest", Text(en="sum of the others", zh="其余之和"), digits=2),
            Column("bound", same("(n−1)·exp(−gap)"), digits=2),
            Column("entropy", Text(en="entropy", zh="熵"), Text(en="nats", zh="奈特"), digits=3),
        ),
        table,
    )


def _law() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for a in RATIOS:
        for k in GAINS:
            weights = softscope.softmax(k * np.array([math.log(a), 0.0]))
            rows.append((a, k, float(weights[0] / weights[1]), a**k, float(weights.max())))
    return Table(
        "law",
        Text(en="Two logits times k: ratio of their weights", zh="两个分数乘以 k：权重之比"),
        (
            label("a", same("a = s₁/s₂")),
            label("k", same("k")),
            Column("measured", Text(en="ratio", zh="比值"), digits=4),
            Column("predicted", same("aᵏ"), digits=4),
            Column("peak", Text(en="larger weight", zh="较大的权重"), digits=4),
        ),
        rows,
        dense=True,
    )


def _dimension(rng: np.random.Generator, rows: int) -> Table:
    """Divide by √d over 10 keys: fixed logits of standard deviation 8, and the logits of random q and k."""
    logits = 8.0 * rng.standard_normal((rows, 10))
    table: list[tuple[Cell, ...]] = []
    for d in (1, 4, 16, 64, 256):
        q, k = rng.standard_normal((rows, 1, d)), rng.standard_normal((rows, 10, d))
        fixed = softscope.partition(logits, temperature=math.sqrt(d)).peak
        random = softscope.attention_partition(q[:, None], k[:, None]).peak
        table.append((d, Measured.of(fixed), Measured.of(random), rows))
    return Table(
        "dimension",
        Text(en="Largest of 10 weights after dividing by √d", zh="除以 √d 之后，10 个权重中的最大值"),
        (
            label("d", same("d")),
            Column("fixed", Text(en="fixed logits, sd 8", zh="固定分数，标准差 8")),
            Column("random", Text(en="random q and k", zh="随机 q、k")),
            Column("rows", Text(en="rows", zh="行数")),
        ),
        table,
    )


def draw(result: Result, lang: Lang) -> Any:
    """Plot the law, the larger weight against the gain, and the largest weight after dividing by √d."""
    rows = [{**r, "name": f"a = {r['a']:g}"} for r in result["law"].records()]
    gain = chart.Axis("k", Text(en="gain k", zh="增益 k").of(lang), log=True, values=GAINS)
    law = chart.curves(
        rows,
        gain,
        chart.Axis("measured", Text(en="ratio a′ of the weights", zh="权重之比 a′").of(lang), log=True),
        ("name", ""),
        title=Text(en="The ratio is a to the power k", zh="比值是 a 的 k 次方").of(lang),
    )
    peak = chart.curves(
        rows,
        gain,
        chart.Axis("peak", Text(en="larger weight", zh="较大的权重").of(lang), domain=(0.45, 1.02)),
        ("name", ""),
        title=Text(en="Sharper as k grows, unless a = 1", zh="只要 a ≠ 1，k 越大越尖锐").of(lang),
    )
    names = {"fixed": Text(en="fixed logits", zh="固定分数"), "random": Text(en="random q and k", zh="随机 q、k")}
    spread = [
        {"d": r["d"], "name": name.of(lang), "peak": r[key].value}
        for key, name in names.items()
        for r in result["dimension"].records()
    ]
    root = chart.curves(
        spread,
        chart.Axis("d", "d", log=True, values=(1, 4, 16, 64, 256)),
        chart.Axis("peak", Text(en="mean largest weight", zh="最大权重的均值").of(lang), domain=(0.0, 1.0)),
        ("name", ""),
        title=Text(en="After dividing by √d, 10 keys", zh="除以 √d 之后，10 个键").of(lang),
    )
    return chart.beside(law, peak, root)
