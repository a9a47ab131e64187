"""Does a model learn to look things up with and without 1/√d, what starves for good, and what helps?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from softscope._arguments.checks import whole_number
from softscope._one_thread import one_thread
from softscope._text import Lang, Text, same
from softscope.experiments import by_keys, chart, starving
from softscope.experiments.by_keys import HIGHEST, LOWEST, names
from softscope.experiments.recall import LEARNED, PAIRS, RecallRun, learn, pooled
from softscope.experiments.starving import KEYS
from softscope.experiments.table import NATS, Cell, Column, Table, label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result
    from softscope.tasks import RecallModel

QUESTION = Text(
    en="Does a model learn to look things up with and without 1/√d, what starves for good, and what helps?",
    zh="缩放与不缩放时，模型能否学会“查找”？什么让它一直挨饿？哪些补救办法能救活？",
)
SECONDS = 50.0
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


class Job(NamedTuple):
    """One line of a table: the table and label it is reported under, its width and its model for a seed."""

    table: str
    name: Text
    d: int
    make: Callable[[int], RecallModel]


def measure(
    progress: ProgressBar,
    *,
    seed: int = 0,
    seeds: int = 5,
    steps: int = 80,
    dimensions: tuple[int, ...] = DIMENSIONS,
    remedies: tuple[str, ...] = tuple(REMEDIES),
    keys: tuple[int, ...] = KEYS,
    longer: int = 600,
    large: bool = False,
) -> tuple[list[Table], list[Text]]:
    """Train each setting with `seeds` seeds; `large` adds d = 1024 (minutes). Remedies run at the largest d up to 256.

    The runs over the number of keys in all have d = 64 and `longer` steps.
    """
    seeds = whole_number(seeds, "seeds", 2)  # one seed has no spread
    sizes = (*dimensions, LARGE) if large else dimensions
    patient = max((d for d in sizes if d <= 256), default=max(sizes))
    jobs, settings = _jobs(sizes, patient, remedies), by_keys.settings(keys)
    draws = range(seed, seed + seeds)
    # At large d a step costs about d², so the progress bar follows d² and the steps, not the run count.
    costs = [(200.0**2 + job.d**2) * steps for job in jobs] + [(200.0**2 + s.d**2) * longer for s in settings.values()]
    watch = _watches(progress, [cost for cost in costs for _ in draws])
    with one_thread():
        runs = [
            (job, [learn(job.make(i), d=job.d, steps=steps, seed=i, progress=next(watch)) for i in draws])
            for job in jobs
        ]
        swept = {
            name: [starving.run(setting, steps=longer, seed=i, progress=next(watch)) for i in draws]
            for name, setting in settings.items()
        }
    over = Text(en=f"± and range over {seeds} seeds", zh=f"± 和范围：{seeds} 个种子")
    scores = _table(
        "scores",
        Text(en=f"By score function and width ({over.en})", zh=f"按打分函数和宽度（{over.zh}）"),
        [x for x in runs if x[0].table == "scores"],
    )
    untreated = [
        (job._replace(name=REMEDIES["none"]), o) for job, o in runs if job.name == SCORES["dot"] and job.d == patient
    ]
    tried = _table(
        "remedies",
        Text(
            en=f"Remedies for the plain dot product, d = {patient}, always the same {PAIRS} keys ({over.en})",
            zh=f"未缩放点积的补救办法，d = {patient}，总是同样的 {PAIRS} 个键（{over.zh}）",
        ),
        untreated + [x for x in runs if x[0].table == "remedies"],
    )
    found = by_keys.table(settings, swept, draws, over)
    tables = [scores, tried, found, _course(runs), by_keys.course(swept)]
    return tables, [*_notes(scores, tried, patient, seeds), *by_keys.findings(found, longer)]


def _jobs(sizes: Sequence[int], patient: int, remedies: Sequence[str]) -> list[Job]:
    from softscope.experiments.layers import Additive, recall_model
    from softscope.tasks import RecallModel

    def plain(name: str, d: int) -> Callable[[int], RecallModel]:
        return lambda seed: RecallModel(d, vocabulary=PAIRS, options=remedy_options(name, d), seed=seed)

    def additive(d: int) -> Callable[[int], RecallModel]:
        return lambda seed: recall_model(d, Additive(d, seed), vocabulary=PAIRS, seed=seed)

    jobs: list[Job] = []
    for d in sizes:
        jobs += [
            Job("scores", SCORES["scaled"], d, plain("scaled", d)),
            Job("scores", SCORES["dot"], d, plain("none", d)),
            Job("scores", SCORES["additive"], d, additive(d)),
        ]
    tried = [name for name in remedies if name != "none"]  # the plain dot product above already covers it
    return jobs + [Job("remedies", REMEDIES[name], patient, plain(name, patient)) for name in tried]


def _watches(progress: ProgressBar, costs: list[float]) -> Iterator[Callable[[int, int], None]]:
    """Yield a progress callback for each run, in turn, which moves the bar by its share of the cost."""
    done = 0.0
    for cost in costs:
        before = done

        def watch(at: int, of: int, *, before: float = before, cost: float = cost) -> None:
            progress((before + cost * at / of) / sum(costs))

        yield watch
        done += cost


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


def verdict(*accuracies: float) -> Text:
    """Turn the accuracies on new sequences, one per seed, into a verdict: what they all say, or "partly"."""
    if min(accuracies) >= LEARNED:
        return Text(en="learned", zh="学会")
    return Text(en="stuck", zh="卡住") if max(accuracies) < LEARNED / 2 else Text(en="partly", zh="部分学会")


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


def _table(key: str, title: Text, runs: list[tuple[Job, list[RecallRun]]]) -> Table:
    head = (
        label("score", Text(en="score", zh="打分函数"))
        if key == "scores"
        else label("remedy", Text(en="remedy", zh="补救办法"))
    )
    rows: list[tuple[Cell, ...]] = []
    for job, by_seed in runs:
        found = [o.accuracy.value for o in by_seed]
        rows.append((job.name, job.d, verdict(*found), *told(pooled(by_seed))[1:], min(found), max(found)))
    return Table(key, title, (head, label("d", same("d")), *OUTCOME, LOWEST, HIGHEST), rows)


def _course(runs: list[tuple[Job, list[RecallRun]]]) -> Table:
    return Table(
        "course",
        Text(en="Loss at each step, mean over seeds", zh="每一步的损失，对种子取平均"),
        (
            label("score", Text(en="run", zh="运行")),
            label("d", same("d")),
            label("step", Text(en="step", zh="步")),
            Column("loss", Text(en="loss", zh="损失"), NATS),
        ),
        [(job.name, job.d, at, loss) for job, by_seed in runs for at, loss in enumerate(pooled(by_seed).losses)],
        dense=True,
    )


def _notes(scores: Table, tried: Table, patient: int, seeds: int) -> list[Text]:
    by = {(r["score"].en.partition(":")[0], r["d"]): r for r in scores.records()}
    sizes = sorted({d for _, d in by})

    def listed(name: str, lang: Lang) -> str:
        found = [(d, by[name, d]) for d in sizes]
        parts = [f"{r['accuracy'].value:.2f} ({r['lowest']:.2f}–{r['highest']:.2f}, d = {d})" for d, r in found]
        return Text(en=", ", zh="，").of(lang).join(parts)

    remedied = [r for r in tried.records() if r["remedy"] != REMEDIES["none"]]
    revived = [r["remedy"] for r in remedied if r["lowest"] >= LEARNED]
    partly = [r["remedy"] for r in remedied if r["lowest"] < LEARNED <= r["highest"]]
    failed = [r["remedy"] for r in remedied if r["highest"] < LEARNED]
    right, stuck = by["scaled", patient], by["dot", patient]
    return [
        Text(
            en=f"Accuracy on new sequences, always of the same {PAIRS} keys: mean of {seeds} seeds, lowest and highest "
            f"(chance {1 / PAIRS:.2f}). Scaled: {listed('scaled', 'en')}. Plain dot product: "
            f"{listed('dot', 'en')}. Additive: {listed('additive', 'en')}.",
            zh=f"新序列上的正确率，每个序列都是同样的 {PAIRS} 个键：{seeds} 个种子的平均，以及最低和最高（随机猜测为 "
            f"{1 / PAIRS:.2f}）。缩放：{listed('scaled', 'zh')}。未缩放点积：{listed('dot', 'zh')}。"
            f"加性：{listed('additive', 'zh')}。",
        ),
        Text(
            en=f"Blocked rows alone do not mean a stuck model: at d = {patient}, {right['blocked'].value:.0%} of the "
            f"rows are blocked in the model that learned and {stuck['blocked'].value:.0%} in the stuck one. The "
            f"advantage tells them apart: {right['advantage'].value:.2f} ± {right['advantage'].error:.2f} against "
            f"{stuck['advantage'].value:.2f} ± {stuck['advantage'].error:.2f} (± over seeds).",
            zh=f"行被阻断并不等于模型卡住：d = {patient} 时，学会的模型有 {right['blocked'].value:.0%} 的行被阻断，"
            f"卡住的模型有 {stuck['blocked'].value:.0%}。能区分两者的是优势：前者为 {right['advantage'].value:.2f} ± "
            f"{right['advantage'].error:.2f}，后者为 {stuck['advantage'].value:.2f} ± "
            f"{stuck['advantage'].error:.2f}（± 是种子之间的）。",
        ),
        Text(
            en=f"What revives it with every seed: {names(revived, 'en')}. With some seeds: {names(partly, 'en')}. "
            f"With none, within these steps: {names(failed, 'en')}.",
            zh=f"每个种子都能救活的：{names(revived, 'zh')}。有些种子能救活的：{names(partly, 'zh')}。在这些步数内，"
            f"没有一个种子能救活的：{names(failed, 'zh')}。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Plot loss by score function and width, how well each remedy works, and accuracy over keys and steps."""
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
    return chart.beside(*panels, *by_keys.panels(result, lang))


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
