"""Does a model learn to look things up, with 1/√d and without, and which remedy helps one that is stuck?"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from softscope.experiments import chart
from softscope.experiments.recall import PAIRS, RecallRun, learn, one_thread
from softscope.experiments.table import NATS, Cell, Column, Table, label
from softscope.experiments.text import Lang, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result
    from softscope.tasks import RecallModel

QUESTION = Text(
    "Does a model learn to look things up, with 1/√d and without, and what helps one that is stuck?",
    "缩放与不缩放时，模型能否学会“查找”？卡住的模型用什么办法能救？",
)
SECONDS = 11.0
NEEDS = ("torch",)

DIMENSIONS = (16, 64, 256)
LARGE = 1024
LEARNED = 0.9  # of the answers right: learned; below half of that: stuck
SCORES = {
    "scaled": Text("scaled: q·k/√d", "缩放：q·k/√d"),
    "dot": Text("dot: q·k", "点积：q·k"),
    "additive": Text("additive: v·tanh(…)", "加性：v·tanh(…)"),
}
REMEDIES = {
    "none": Text("none", "不处理"),
    "temperature": Text("temperature √d", "温度 √d"),
    "unit": Text("QK-norm, unit, T = 1/√d", "QK 归一化（单位长），T = 1/√d"),
    "init": Text("small init: gain 1/√d", "小初始化：增益 1/√d"),
    "init_unit": Text("small init: logits start with sd 1", "小初始化：分数标准差从 1 开始"),
    "entmax": Text("entmax 1.5", "entmax 1.5"),
    "softcap": Text("soft cap 5", "软上限 5"),
    "rms": Text("QK-norm, RMS", "QK 归一化（RMS）"),
    "learned": Text("learned temperature from 1", "可学习温度，从 1 开始"),
    "sink": Text("sink 0", "sink 0"),
}


OPENED = Text(f"none, but {2 * PAIRS} keys in all", f"不处理，但键共 {2 * PAIRS} 个")


class Job(NamedTuple):
    """One training run: where it is reported, as what, at which width, and its model."""

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
    """One run for each; `large` adds d = 1024, which takes a minute. Remedies are tried at the largest d up to 256."""
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
        if name != "none"  # that is the plain dot product above
    ]
    opened = partial(RecallModel, patient, vocabulary=2 * PAIRS, options=remedy_options("none", patient), seed=seed)
    jobs.append(Job("remedies", OPENED, patient, opened))
    results = _run(progress, jobs, steps, seed)
    runs = list(zip(jobs, results, strict=True))
    scores = _table(
        "scores", Text("By score function and width", "按打分函数和宽度"), [x for x in runs if x[0].table == "scores"]
    )
    untreated = [
        (job._replace(name=REMEDIES["none"]), o) for job, o in runs if job.name == SCORES["dot"] and job.d == patient
    ]
    tried = _table(
        "remedies",
        Text(f"Remedies for the plain dot product, d = {patient}", f"对未缩放点积的补救，d = {patient}"),
        untreated + [x for x in runs if x[0].table == "remedies"],
    )
    course = Table(
        "course",
        Text("Loss at each step", "每一步的损失"),
        (
            label("score", "run", "运行"),
            label("d", "d"),
            label("step", "step", "步"),
            Column("loss", Text("loss", "损失"), NATS),
        ),
        [(job.name, job.d, step, loss) for job, o in runs for step, loss in enumerate(o.losses)],
        dense=True,
    )
    return [scores, tried, course], _notes(scores, tried, patient)


def _run(progress: ProgressBar, jobs: list[Job], steps: int, seed: int) -> list[RecallRun]:
    """Every job in turn. A step costs about as much as d² at large d: the bar follows that, not the number of runs."""
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
    """How attention is formed under a remedy for the plain dot product, at width d; "scaled" is the healthy one."""
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
    """What the accuracy on new sequences says."""
    if accuracy >= LEARNED:
        return Text("learned", "学会")
    return Text("stuck", "卡住") if accuracy < LEARNED / 2 else Text("partly", "部分学会")


OUTCOME = (
    Column("verdict", Text("verdict", "结论")),
    Column("loss", Text("loss", "损失"), NATS),
    Column("accuracy", Text("accuracy", "正确率")),
    Column("transmission", Text("median transmission", "传导率中位数"), digits=2),
    Column("advantage", Text("advantage", "优势"), digits=2),
    Column("blocked", Text("share blocked", "被阻断的比例"), digits=2),
)


def told(o: RecallRun) -> tuple[Cell, ...]:
    """One run in the columns of `OUTCOME`."""
    return verdict(o.accuracy.value), o.loss, o.accuracy, o.transmission, o.advantage, o.blocked


def _table(key: str, title: Text, runs: list[tuple[Job, RecallRun]]) -> Table:
    head = label("score", "score", "打分函数") if key == "scores" else label("remedy", "remedy", "补救办法")
    rows: list[tuple[Cell, ...]] = [(job.name, job.d, *told(o)) for job, o in runs]
    return Table(
        key,
        title,
        (
            head,
            label("d", "d"),
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
        none = Text("none", "无")(lang)
        return Text("; ", "；")(lang).join(item(lang) for item in items) or none

    return [
        Text(
            f"Accuracy on new sequences (chance {chance:.2f}). Scaled: {listed('scaled')}. Plain dot product: "
            f"{listed('dot')}. Additive: {listed('additive')}.",
            f"新序列上的正确率（随机猜为 {chance:.2f}）。缩放：{listed('scaled')}。未缩放点积：{listed('dot')}。"
            f"加性：{listed('additive')}。",
        ),
        Text(
            f"Blocked alone does not mean stuck: at d = {patient} {right['blocked'].value:.0%} of the learned "
            f"model's rows "
            f"are blocked and {stuck['blocked'].value:.0%} of the stuck one's; the advantage tells them apart, "
            f"{right['advantage'].value:.2f} ± {right['advantage'].error:.2f} against {stuck['advantage'].value:.2f} ± "
            f"{stuck['advantage'].error:.2f}.",
            f"被阻断并不等于卡住：d = {patient} 时，学会的模型有 {right['blocked'].value:.0%} 的行被阻断，卡住的模型有 "
            f"{stuck['blocked'].value:.0%}；能区分两者的是优势：{right['advantage'].value:.2f} ± "
            f"{right['advantage'].error:.2f} 对 {stuck['advantage'].value:.2f} ± {stuck['advantage'].error:.2f}。",
        ),
        Text(
            f"What revives it: {names(revived, 'en')}. What does not, within these steps: {names(failed, 'en')}.",
            f"能救活的：{names(revived, 'zh')}。在这些步数内救不活的：{names(failed, 'zh')}。",
        ),
        Text(
            f"How stuck depends on the task: with {PAIRS} keys in all, all of them shown, a query always meets the "
            f"same ones, and {stuck['accuracy'].value:.2f} of the answers are right; with {2 * PAIRS} in all the wrong "
            f"key is now and then absent, and it is {opened:.2f}.",
            f"卡得多死取决于任务：键共 {PAIRS} 个、全部展示时，查询总是遇到同样的键，正确率 "
            f"{stuck['accuracy'].value:.2f}；共 {2 * PAIRS} 个时，错误的键偶尔缺席，正确率 {opened:.2f}。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Loss curves by score function at each width, and how well each remedy does."""
    widths = sorted({r["d"] for r in result["scores"].records()})
    texts = set(SCORES.values())
    panels = []
    for d in widths:
        rows = [
            {"step": r["step"], "loss": r["loss"], "name": r["score"](lang)}
            for r in result["course"].records()
            if r["d"] == d and r["score"] in texts
        ]
        panels.append(
            chart.curves(
                rows,
                chart.Axis("step", Text("step", "步")(lang)),
                chart.Axis("loss", Text("loss (nats)", "损失（奈特）")(lang)),
                ("name", Text("score", "打分函数")(lang)),
                points=False,
                title=f"d = {d}",
                width=240,
            )
        )
    records = result["remedies"].records()
    d = records[0]["d"]
    title = Text(f"Remedies for q·k without a scale, d = {d}", f"对未缩放 q·k 的补救，d = {d}")
    panels.append(bars(records, title, lang, 240))
    return chart.beside(*panels)


def bars(records: list[dict[str, Any]], title: Text, lang: Lang, width: int) -> Any:
    """How well the model answers with each remedy, and twice the error of that."""
    rows = [
        {
            "name": r["remedy"](lang),
            "accuracy": r["accuracy"].value,
            "low": max(0.0, r["accuracy"].value - 2 * r["accuracy"].error),
            "high": min(1.0, r["accuracy"].value + 2 * r["accuracy"].error),
        }
        for r in records
    ]
    return chart.bars(
        rows,
        ("name", ""),
        chart.Axis("accuracy", Text("accuracy on new sequences", "新序列上的正确率")(lang), domain=(0.0, 1.2)),
        error=("low", "high"),
        title=title(lang),
        width=width,
    )
