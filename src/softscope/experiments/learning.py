"""Does a model learn to look things up with and without 1/√d, and which remedy helps a stuck one?"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from softscope._one_thread import one_thread
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.recall import LEARNED, PAIRS, RecallRun, learn
from softscope.experiments.table import NATS, Cell, Column, Table, label

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result
    from softscope.tasks import RecallModel

QUESTION = Text(
    en="Does a model learn to look things up with and without 1/√d, and which remedy helps a stuck one?",
    zh="缩放与不缩放时，模型能否学会“查找”？卡住的模型，哪些补救办法能救活？",
)
SECONDS = 11.0
NEEDS = ("torch",)

DIMENSIONS = (16, 64, 256)
LARGE = 1024
SCORES = {
    "scaled": Text(en="scaled: q·k/√d", zh="缩放：q·k/√d"),
    "dot": Text(en="dot: q·k", zh="点积：q·k"),
    "additive": Text(en="additive: v·tanh(…)", zh="加性：v·tanh(…)"),
}
REMEDIES = {
    "none": Text(en="none", zh="不处理"),
    "temperature": Text(en="temperature √d", zh="温度 √d"),
    "unit": Text(en="QK-norm, unit, T = 1/√d", zh="QK 归一化（单位长），T = 1/√d"),
    "init": Text(en="small init: gain 1/√d", zh="小初始化：增益 1/√d"),
    "init_unit": Text(en="small init: logits start with sd 1", zh="小初始化：分数的初始标准差为 1"),
    "entmax": same("entmax 1.5"),
    "softcap": Text(en="soft cap 5", zh="软上限 5"),
    "rms": Text(en="QK-norm, RMS", zh="QK 归一化（RMS）"),
    "learned": Text(en="learned temperature, starting at 1", zh="可学习的温度，初值为 1"),
    "sink": same("sink 0"),
}


OPENED = Text(en=f"none, but {2 * PAIRS} keys in total", zh=f"不处理，但键共 {2 * PAIRS} 个")


class Job(NamedTuple):
    """One training run: the table and label it is reported under, its width and its model."""

    table: str
    name: Text
    d: int
    make: Callable[[], RecallModel]


def measure(
    progress: ProgressBar,
    *,
    seed: int = 0,
    steps: int = 80,
    dimensions: tuple[int, ...] = DIMENSIONS,
    remedies: tuple[str, ...] = tuple(REMEDIES),
    large: bool = False,
) -> tuple[list[Table], list[Text]]:
    """Train each setting once; `large` adds d = 1024 (about a minute). Remedies run at the largest d up to 256."""
    from softscope.experiments.layers import Additive, recall_model
    from softscope.tasks import RecallModel

    sizes = (*dimensions, LARGE) if large else dimensions
    patient = max((d for d in sizes if d <= 256), default=max(sizes))
    plain = partial(RecallModel, vocabulary=PAIRS, seed=seed)
    jobs: list[Job] = []
    for d in sizes:
        additive = partial(recall_model, d, Additive(d, seed), vocabulary=PAIRS, seed=seed)
        jobs += [
            Job("scores", SCORES["scaled"], d, partial(plain, d, options=remedy_options("scaled", d))),
            Job("scores", SCORES["dot"], d, partial(plain, d, options=remedy_options("none", d))),
            Job("scores", SCORES["additive"], d, additive),
        ]
    jobs += [
        Job("remedies", REMEDIES[name], patient, partial(plain, patient, options=remedy_options(name, patient)))
        for name in remedies
        if name != "none"  # the plain dot product above already covers it
    ]
    opened = partial(RecallModel, patient, vocabulary=2 * PAIRS, options=remedy_options("none", patient), seed=seed)
    jobs.append(Job("remedies", OPENED, patient, opened))
    results = _run(progress, jobs, steps, seed)
    runs = list(zip(jobs, results, strict=True))
    scores = _table(
        "scores",
        Text(en="By score function and width", zh="按打分函数和宽度"),
        [x for x in runs if x[0].table == "scores"],
    )
    untreated = [
        (job._replace(name=REMEDIES["none"]), o) for job, o in runs if job.name == SCORES["dot"] and job.d == patient
    ]
    tried = _table(
        "remedies",
        Text(en=f"Remedies for the plain dot product, d = {patient}", zh=f"未缩放点积的补救办法，d = {patient}"),
        untreated + [x for x in runs if x[0].table == "remedies"],
    )
    course = Table(
        "course",
        Text(en="Loss at each step", zh="每一步的损失"),
        (
            label("score", Text(en="run", zh="运行")),
            label("d", same("d")),
            label("step", Text(en="step", zh="步")),
            Column("loss", Text(en="loss", zh="损失"), NATS),
        ),
        [(job.name, job.d, step, loss) for job, o in runs for step, loss in enumerate(o.losses)],
        dense=True,
    )
    return [scores, tried, course], _notes(scores, tried, patient)


def _run(progress: ProgressBar, jobs: list[Job], steps: int, seed: int) -> list[RecallRun]:
    """Run every job in turn. At large d a step costs about d², so the progress bar follows d², not the run count."""
    costs = [200.0**2 + job.d**2 for job in jobs]
    done = 0.0
    results: list[RecallRun] = []

    def step(at: int, of: int) -> None:
        progress((done + costs[len(results)] * at / of) / sum(costs))

    with one_thread():
        for job, cost in zip(jobs, costs, strict=True):
            results.append(learn(job.make(), d=job.d, steps=steps, seed=seed, progress=step))
            done += cost
    return results


def remedy_options(name: str, d: int) -> Any:
    """Return the attention options for a remedy of the plain dot product at width d; "scaled" is the healthy model."""
    from softscope.tasks import AttentionOptions

    root = math.sqrt(d)
    match name:
        case "scaled":
            return AttentionOptions()
        case "temperature":
            return AttentionOptions(scale=1.0, temperature=root)
        case "unit":
            return AttentionOptions(scale=1.0, qk_norm="unit", temperature=1.0 / root)
        case "rms":
            return AttentionOptions(scale=1.0, qk_norm="rms")
        case "init":
            return AttentionOptions(scale=1.0, init_gain=1.0 / root)
        case "init_unit":  # gain² · √d = 1
            return AttentionOptions(scale=1.0, init_gain=d**-0.25)
        case "entmax":
            return AttentionOptions(scale=1.0, alpha=1.5)
        case "softcap":
            return AttentionOptions(scale=1.0, softcap=5.0)
        case "learned":
            return AttentionOptions(scale=1.0, learn_temperature=True)
        case "sink":
            return AttentionOptions(scale=1.0, sink=0.0)
        case _:
            return AttentionOptions(scale=1.0)


def verdict(accuracy: float) -> Text:
    """Turn the accuracy on new sequences into a verdict."""
    if accuracy >= LEARNED:
        return Text(en="learned", zh="学会")
    return Text(en="stuck", zh="卡住") if accuracy < LEARNED / 2 else Text(en="partly", zh="部分学会")


OUTCOME = (
    Column("verdict", Text(en="verdict", zh="结论")),
    Column("loss", Text(en="loss", zh="损失"), NATS),
    Column("accuracy", Text(en="accuracy", zh="正确率")),
    Column("transmission", Text(en="median transmission", zh="传导率中位数"), digits=2),
    Column("advantage", Text(en="advantage", zh="优势"), digits=2),
    Column("blocked", Text(en="share blocked", zh="被阻断的比例"), digits=2),
)


def told(o: RecallRun) -> tuple[Cell, ...]:
    """Format one run as the columns of `OUTCOME`."""
    return verdict(o.accuracy.value), o.loss, o.accuracy, o.transmission, o.advantage, o.blocked


def _table(key: str, title: Text, runs: list[tuple[Job, RecallRun]]) -> Table:
    head = (
        label("score", Text(en="score", zh="打分函数"))
        if key == "scores"
        else label("remedy", Text(en="remedy", zh="补救办法"))
    )
    rows: list[tuple[Cell, ...]] = [(job.name, job.d, *told(o)) for job, o in runs]
    return Table(
        key,
        title,
        (
            head,
            label("d", same("d")),
            *OUTCOME,
        ),
        rows,
    )


def _notes(scores: Table, tried: Table, patient: int) -> list[Text]:
    chance = 1.0 / PAIRS
    by = {(r["score"].en.partition(":")[0], r["d"]): r for r in scores.records()}
    sizes = sorted({d for _, d in by})

    def listed(name: str) -> str:
        return ", ".join(f"{by[name, d]['accuracy'].value:.2f} (d = {d})" for d in sizes)

    remedied = [r for r in tried.records() if r["remedy"] not in (REMEDIES["none"], OPENED)]
    revived = [r["remedy"] for r in remedied if r["accuracy"].value >= LEARNED]
    failed = [r["remedy"] for r in remedied if r["accuracy"].value < LEARNED]
    opened = tried.row(remedy=OPENED)["accuracy"].value
    right, stuck = by["scaled", patient], by["dot", patient]

    def names(items: list[Text], lang: Lang) -> str:
        none = Text(en="none", zh="无").of(lang)
        return Text(en="; ", zh="；").of(lang).join(item.of(lang) for item in items) or none

    return [
        Text(
            en=f"Accuracy on new sequences (chance {chance:.2f}). Scaled: {listed('scaled')}. Plain dot product: "
            f"{listed('dot')}. Additive: {listed('additive')}.",
            zh=f"新序列上的正确率（随机猜测为 {chance:.2f}）。缩放：{listed('scaled')}。未缩放点积：{listed('dot')}。"
            f"加性：{listed('additive')}。",
        ),
        Text(
            en=f"Blocked rows alone do not mean a stuck model: at d = {patient}, {right['blocked'].value:.0%} of the "
            f"rows are blocked in the model that learned and {stuck['blocked'].value:.0%} in the stuck one. The "
            f"advantage tells them apart: {right['advantage'].value:.2f} ± {right['advantage'].error:.2f} against "
            f"{stuck['advantage'].value:.2f} ± {stuck['advantage'].error:.2f}.",
            zh=f"行被阻断并不等于模型卡住：d = {patient} 时，学会的模型有 {right['blocked'].value:.0%} 的行被阻断，"
            f"卡住的模型有 {stuck['blocked'].value:.0%}。能区分两者的是优势：前者为 {right['advantage'].value:.2f} ± "
            f"{right['advantage'].error:.2f}，后者为 {stuck['advantage'].value:.2f} ± "
            f"{stuck['advantage'].error:.2f}。",
        ),
        Text(
            en=f"What revives it: {names(revived, 'en')}. What does not, within these steps: {names(failed, 'en')}.",
            zh=f"能救活的：{names(revived, 'zh')}。在这些步数内救不活的：{names(failed, 'zh')}。",
        ),
        Text(
            en=f"How badly it is stuck depends on the task: with {PAIRS} keys in total, all of them shown, a query "
            f"always meets the same keys, and the accuracy is {stuck['accuracy'].value:.2f}; with {2 * PAIRS} in "
            f"total, the wrong key is sometimes absent, and it is {opened:.2f}.",
            zh=f"卡得多死取决于任务：键共 {PAIRS} 个、全部展示时，查询总是遇到同样的键，正确率为 "
            f"{stuck['accuracy'].value:.2f}；键共 {2 * PAIRS} 个时，错误的键有时不出现，正确率为 {opened:.2f}。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Plot loss curves for each score function at each width, and how well each remedy works."""
    widths = sorted({r["d"] for r in result["scores"].records()})
    texts = set(SCORES.values())
    panels = []
    for d in widths:
        rows = [
            {"step": r["step"], "loss": r["loss"], "name": r["score"].of(lang)}
            for r in result["course"].records()
            if r["d"] == d and r["score"] in texts
        ]
        panels.append(
            chart.curves(
                rows,
                chart.Axis("step", Text(en="step", zh="步").of(lang)),
                chart.Axis("loss", Text(en="loss (nats)", zh="损失（奈特）").of(lang)),
                ("name", Text(en="score", zh="打分函数").of(lang)),
                points=False,
                title=f"d = {d}",
                width=240,
            )
        )
    records = result["remedies"].records()
    d = records[0]["d"]
    title = Text(en=f"Remedies for unscaled q·k, d = {d}", zh=f"未缩放 q·k 的补救办法，d = {d}")
    panels.append(bars(records, title, lang, 240))
    return chart.beside(*panels)


def bars(records: list[dict[str, Any]], title: Text, lang: Lang, width: int) -> Any:
    """Draw the accuracy under each remedy, with two standard errors."""
    rows = [
        {
            "name": r["remedy"].of(lang),
            "accuracy": r["accuracy"].value,
            "low": max(0.0, r["accuracy"].value - 2 * r["accuracy"].error),
            "high": min(1.0, r["accuracy"].value + 2 * r["accuracy"].error),
        }
        for r in records
    ]
    return chart.bars(
        rows,
        ("name", ""),
        chart.Axis("accuracy", Text(en="accuracy on new sequences", zh="新序列上的正确率").of(lang), domain=(0.0, 1.2)),
        error=("low", "high"),
        title=title.of(lang),
        width=width,
    )
