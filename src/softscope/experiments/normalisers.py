"""Why softmax? Other ways to turn scores into weights, compared property by property and trained on recall."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._one_thread import one_thread
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.fold import crossed
from softscope.experiments.maps import NAMES
from softscope.experiments.properties import FIVE, kept, report
from softscope.experiments.recall import LEARNED, PAIRS, learn
from softscope.experiments.table import NATS, Cell, Column, Measured, Table, bracketed, label
from softscope.testing import check_simplex_map
from softscope.testing.sentences import CLAIMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="Why softmax? What do other ways of turning scores into weights break, and can they be trained?",
    zh="为什么用 softmax？把分数变成权重的其他办法破坏了什么，能不能训练？",
)
SECONDS = 9.0
NEEDS = ("torch",)

VOCABULARIES = (PAIRS, 2 * PAIRS)


def maps() -> dict[str, Callable[[Any], Any]]:
    """Define the maps of `softscope.experiments.maps` on a tensor's last axis, for training."""
    import torch

    def linear(x: Any) -> Any:
        return x / x.sum(-1, keepdim=True)

    def hardmax(x: Any) -> Any:
        top = (x == x.amax(-1, keepdim=True)).to(x.dtype)
        return top / top.sum(-1, keepdim=True)

    return {
        "linear": linear,
        "relu": lambda x: linear(torch.relu(x)),
        "sigmoid": torch.sigmoid,
        "sigmoid_bias": lambda x: torch.sigmoid(x - math.log(x.shape[-1])),
        "hardmax": hardmax,
        "softmax": softscope.softmax,
        "entmax": softscope.entmax,
        "sparsemax": softscope.sparsemax,
    }


def measure(
    progress: ProgressBar, *, seed: int = 0, d: int = 32, steps: int = 100, repeats: int = 2
) -> tuple[list[Table], list[Text]]:
    """Run the contract battery on every map, then train recall with each in place of softmax; repeats vary the seed."""
    from softscope.experiments.layers import Weighted, recall_model

    functions = maps()
    reports, marks = {}, {}
    for name in progress.through(list(functions), 0.0, 0.2):
        reports[name] = check_simplex_map(_on_arrays(functions[name]))
        marks[name] = report(_on_arrays(functions[name]))
    five = Table(
        "five",
        Text(en="The five properties that the texts name", zh="文中所说的五条性质"),
        (
            label("map", Text(en="map", zh="映射")),
            *(Column(asked.key, asked.name) for asked in FIVE),
            Column("kept", Text(en="of five", zh="共满足")),
        ),
        [(NAMES[name], *(mark.held for mark in found.values()), kept(found)) for name, found in marks.items()],
    )
    shown = [p for p in CLAIMS if all(r[p].status != "not declared" for r in reports.values())]
    properties = Table(
        "properties",
        Text(en="Which properties of the contract each map keeps", zh="各映射满足契约中的哪些性质"),
        (label("property", Text(en="property", zh="性质")), *(Column(name, NAMES[name]) for name in functions)),
        [(CLAIMS[p][0], *(r[p].status == "held" for r in reports.values())) for p in shown],
        dense=True,
    )
    example = _example(functions)
    rows: list[tuple[Cell, ...]] = []
    with one_thread():
        for name in progress.through(list(functions), 0.2, 1.0):
            for tokens in VOCABULARIES:
                runs = [
                    learn(
                        recall_model(d, Weighted(d, seed + i, functions[name]), vocabulary=tokens, seed=seed + i),
                        d=d,
                        steps=steps,
                        seed=seed + i,
                    )
                    for i in range(repeats)
                ]
                loss, accuracy = ([getattr(o, part).value for o in runs] for part in ("loss", "accuracy"))
                stopped = sum(o.stopped_at is not None for o in runs)
                found = (Measured.of(loss), min(accuracy), max(accuracy), stopped, repeats)
                rows.append((NAMES[name], tokens, kept(marks[name]), *found))
    trained = Table(
        "trained",
        Text(
            en=f"Trained on recall: d = {d}, {steps} steps, {PAIRS} keys shown",
            zh=f"在联想回忆上训练：d = {d}，{steps} 步，展示 {PAIRS} 个键",
        ),
        (
            label("map", Text(en="map", zh="映射")),
            label("vocabulary", Text(en="keys in total", zh="键的总数")),
            Column("kept", Text(en="of the five", zh="五条性质中满足的")),
            Column("loss", Text(en="loss", zh="损失"), NATS),
            Column("worst", Text(en="worst run", zh="最差一次")),
            Column("best", Text(en="best run", zh="最好一次")),
            Column("stopped", Text(en="stopped by NaN", zh="因 NaN 中止")),
            Column("runs", Text(en="runs", zh="运行次数")),
        ),
        rows,
        dense=True,
    )
    closed, opened = VOCABULARIES
    by_map = crossed(
        trained,
        "accuracy",
        Text(
            en=f"Accuracy at recall: d = {d}, {steps} steps, {PAIRS} keys shown of {closed} or {opened}",
            zh=f"联想回忆的正确率：d = {d}，{steps} 步，从 {closed} 或 {opened} 个键中展示 {PAIRS} 个",
        ),
        down="map",
        across="vocabulary",
        values=("worst", "best", "stopped"),
        name=lambda tokens: Text(en=f"{tokens} keys", zh=f"{tokens} 个键"),
        also=("runs",),
    )
    rows_of_scores = np.random.default_rng(seed).standard_normal((200, PAIRS))
    zeros = [NAMES[name] for name, f in functions.items() if (_on_arrays(f)(rows_of_scores) == 0.0).any()]
    return [five, by_map, example, properties, trained], _notes(reports, five, trained, zeros)


def _on_arrays(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap the map for NumPy arrays; return an empty array unchanged, since amax fails on it."""
    import torch

    def on_arrays(x: Any) -> Any:
        array = np.array(x, dtype=np.float64)
        return array if array.size == 0 else f(torch.from_numpy(array)).numpy()

    return on_arrays


def _example(functions: dict[str, Callable[[Any], Any]]) -> Table:
    """Show each map on close scores and on scores of both signs."""
    rows: list[tuple[Cell, ...]] = []
    for name, f in functions.items():
        some = ([2.0, 2.1, 2.2], [1.0, -0.5, -1.0])
        rows.append((NAMES[name], *(bracketed(_on_arrays(f)(row), 3) for row in some)))
    return Table(
        "example",
        Text(en="Two rows of scores", zh="两行分数"),
        (
            label("map", Text(en="map", zh="映射")),
            Column("close", same("[2, 2.1, 2.2]")),
            Column("signs", same("[1, −0.5, −1]")),
        ),
        rows,
    )


def _notes(reports: dict[str, Any], five: Table, trained: Table, zeros: list[Text]) -> list[Text]:
    every = [r["map"] for r in five.records() if r["kept"] == len(FIVE)]
    fewer = [(r["map"], r["kept"]) for r in five.records() if r["kept"] < len(FIVE)]
    learned, not_learned = {}, {}  # by vocabulary
    for tokens in VOCABULARIES:
        some = [r for r in trained.records() if r["vocabulary"] == tokens]
        learned[tokens] = [r["map"] for r in some if r["worst"] >= LEARNED]
        not_learned[tokens] = [r["map"] for r in some if r["worst"] < LEARNED and r["map"] in zeros]
    closed, opened = VOCABULARIES

    def names(items: list[Text], lang: Lang) -> str:
        return Text(en=", ", zh="、").of(lang).join(item.of(lang) for item in items) or Text(en="none", zh="无").of(
            lang
        )

    broken = {name: len(r.broken) for name, r in reports.items()}
    return [
        Text(
            en=f"All five properties hold for {names(every, 'en')}: softmax is not the only one. Fewer hold for the "
            f"others: {', '.join(f'{name.en} {count}' for name, count in fewer)}.",
            zh=f"五条性质全部满足的有 {names(every, 'zh')}：softmax 并非唯一的选择。其余的满足得少："
            f"{'，'.join(f'{name.zh} {count} 条' for name, count in fewer)}。",
        ),
        Text(
            en=f"Of the contract's properties that count, sparsemax breaks {broken['sparsemax']}, though it has kinks; "
            f"x/Σx breaks {broken['linear']}, ReLU/Σ {broken['relu']}, sigmoid {broken['sigmoid']}, hardmax "
            f"{broken['hardmax']}.",
            zh=f"契约中计入的性质里，sparsemax 违反 {broken['sparsemax']} 条，但有折点；"
            f"x/Σx 违反 {broken['linear']} 条，ReLU/Σ {broken['relu']} 条，"
            f"sigmoid {broken['sigmoid']} 条，hardmax {broken['hardmax']} 条。",
        ),
        Text(
            en=f"Maps that learn recall in every run, with {closed} keys in total ({PAIRS} of them shown): "
            f"{names(learned[closed], 'en')}; with {opened}: {names(learned[opened], 'en')}. A map that breaks a "
            f"property may still train.",
            zh=f"每次运行都学会回忆的映射：键共 {closed} 个（每次展示 {PAIRS} 个）时有 "
            f"{names(learned[closed], 'zh')}；共 {opened} 个时有 {names(learned[opened], 'zh')}。"
            f"违反某条性质的映射也可能训练成功。",
        ),
        Text(
            en=f"A weight of exactly 0 passes no gradient: if a query always meets the same keys ({closed} of "
            f"{closed}), a key that starts at weight 0 stays there, and {names(not_learned[closed], 'en')} fall short. "
            f"Hardmax is flat and passes none at any weight.",
            zh=f"恰好为 0 的权重不传梯度：如果查询总是遇到同样的键（{closed} 个中的 {closed} 个），起初权重为 0 "
            f"的键就一直为 0，{names(not_learned[closed], 'zh')} 因此没能学好。"
            f"hardmax 处处平坦，任何权重都不传梯度。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Plot the five properties and the whole contract as grids of ✓ and ✗, and each map's accuracy."""
    import altair as alt

    five, contract = result["five"], result["properties"]
    grids = [
        _grid(
            [(asked.name.of(lang), r["map"].of(lang), r[asked.key]) for asked in FIVE for r in five.records()],
            Text(en="The five properties", zh="五条性质").of(lang),
        ),
        _grid(
            [
                (r["property"].of(lang), column.title.of(lang), r[column.key])
                for r in contract.records()
                for column in contract.columns[1:]
            ],
            Text(en="The contract", zh="契约").of(lang),
        ),
    ]
    trained = []
    for tokens in VOCABULARIES:
        accuracy = [
            {
                "name": r["map"].of(lang),
                "accuracy": 0.5 * (r["worst"] + r["best"]),
                "low": r["worst"],
                "high": r["best"],
            }
            for r in result["trained"].records()
            if r["vocabulary"] == tokens
        ]
        title = Text(en="Recall of {pairs} keys out of {all}", zh="回忆：{all} 个键中的 {pairs} 个").of(lang)
        across = Text(en="accuracy (line: worst to best run)", zh="正确率（线段：从最差到最好的一次）").of(lang)
        trained.append(
            chart.bars(
                accuracy,
                ("name", ""),
                chart.Axis("accuracy", across, domain=(0.0, 1.2)),
                error=("low", "high"),
                title=title.format(pairs=PAIRS, all=tokens),
                width=260,
            )
        )
    return chart.beside(alt.vconcat(*grids, spacing=24), alt.vconcat(*trained, spacing=24))


def _grid(cells: list[tuple[str, str, bool]], title: str) -> Any:
    """Draw (property, map, whether it holds) as a grid."""
    import altair as alt

    rows, columns = list(dict.fromkeys(p for p, _, _ in cells)), list(dict.fromkeys(m for _, m, _ in cells))
    marks = [{"property": p, "map": m, "mark": "✓" if held else "✗"} for p, m, held in cells]
    base = alt.Chart(chart.data(marks)).encode(
        x=alt.X("map:N", sort=columns, title=None, axis=alt.Axis(orient="top", labelAngle=-35, labelLimit=200)),
        y=alt.Y("property:N", sort=rows, title=None, axis=alt.Axis(labelLimit=260)),
    )
    kept = alt.Color("mark:N", scale=alt.Scale(domain=["✓", "✗"], range=["#e3f1fb", "#f6c7a8"]), legend=None)
    return alt.layer(
        base.mark_rect(stroke="white").encode(color=kept), base.mark_text(fontSize=13).encode(text="mark:N")
    ).properties(width=340, height=22 * len(rows), title=title)
