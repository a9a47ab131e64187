"""Does each remedy revive a starving model, applied before training or once it is stuck?"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

from softscope._one_thread import one_thread
from softscope._text import Lang, Text, same
from softscope.doctor.treat.treatment import REST
from softscope.experiments import chart
from softscope.experiments.fold import crossed
from softscope.experiments.learning import OUTCOME, bars, told
from softscope.experiments.recall import LEARNED, PAIRS, RecallRun, learn
from softscope.experiments.table import NATS, Cell, Column, Table, label

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result
    from softscope.tasks import RecallModel

QUESTION = Text(
    en="Does each remedy revive a starving model, applied from the start or once it is stuck?",
    zh="每种补救办法能否救活挨饿的模型：从一开始就用，或卡住以后再用？",
)
SECONDS = 17.0
NEEDS = ("torch",)

SITE = "attention"  # the path of the model's only attention layer
CAP = TAU = REST
WHEN = {"start": Text(en="from the start", zh="从一开始"), "stuck": Text(en="when stuck", zh="卡住以后")}
REMEDIES = {
    "none": Text(en="none", zh="不处理"),
    "temperature": Text(en="temperature", zh="温度"),
    "temperature-weights": Text(en="the same temperature, in W_Q", zh="同样的温度，写进 W_Q"),
    "qk-norm-unit": Text(en="QK-norm, unit, logits up to √d", zh="QK 归一化（单位长），分数不超过 √d"),
    "qk-norm-rms": Text(en="QK-norm, RMS", zh="QK 归一化（RMS）"),
    "softcap": Text(en=f"soft cap {CAP:g}", zh=f"软上限 {CAP:g}"),
    "qk-clip": Text(en=f"QK-clip, τ = {TAU:g}, once", zh=f"QK-clip，τ = {TAU:g}，一次"),
    "sink": Text(en="sink from 0", zh="sink，从 0 开始"),
    "scalable": Text(en=f"scalable softmax, unchanged at {PAIRS} keys", zh=f"可伸缩 softmax，{PAIRS} 个键时不变"),
    "entmax": same("entmax 1.5"),
}


def apply(name: str, model: RecallModel, seed: int = 0) -> None:
    """Treat the model's single head with the same code that treats any user's model."""
    from softscope.doctor.treat import remedies

    top = largest(model, seed)[SITE][0]
    match name:
        case "temperature":
            remedies.temperature(model, {SITE: {0: dose(model, top)}})
        case "temperature-weights":
            remedies.temperature(model, {SITE: {0: dose(model, top)}}, way="weights")
        case "qk-norm-unit":
            remedies.qk_norm(model, kind="unit")
        case "qk-norm-rms":
            remedies.qk_norm(model, kind="rms")
        case "softcap":
            remedies.softcap(model, cap=CAP)
        case "qk-clip":
            remedies.qk_clip(model, {SITE: [top]}, tau=TAU)
        case "sink":
            remedies.sink(model)
        case "scalable":
            remedies.scalable(model, length=PAIRS)
        case "entmax":
            remedies.entmax(model)


def dose(model: RecallModel, top: float) -> float:
    """Return the temperature for a head with largest logit `top`: √d, or more if needed to bring that logit to 5."""
    return max(math.sqrt(model.attention.w_q.out_features), top / REST)


def largest(model: RecallModel, seed: int) -> dict[str, list[float]]:
    """Find the largest logit on 64 new sequences."""
    import torch

    from softscope.doctor.treat import remedies
    from softscope.tasks import recall_batch

    new = torch.Generator().manual_seed(seed + 2_000_003)
    batch = recall_batch(64, pairs=PAIRS, vocabulary=model.vocabulary, generator=new)
    with torch.no_grad(), remedies.largest_logits(model) as found:
        model(*batch.inputs)
    return found


def measure(
    progress: ProgressBar,
    *,
    seed: int = 0,
    d: int = 256,
    steps: int = 60,
    more: int = 80,
    remedies: tuple[str, ...] = tuple(REMEDIES),
) -> tuple[list[Table], list[Text]]:
    """Train without 1/√d: each remedy for `steps` from the start, and for `more` after `steps` without it."""
    from softscope.tasks import AttentionOptions, RecallModel

    def fresh() -> RecallModel:
        return RecallModel(d, vocabulary=PAIRS, options=AttentionOptions(scale=1.0), seed=seed)

    with one_thread():
        stuck = fresh()
        untreated = learn(stuck, d=d, steps=steps, seed=seed)
        tops = [largest(model, seed)[SITE][0] for model in (fresh(), stuck)]
        doses = [dose(stuck, top) for top in tops]
        runs: list[tuple[str, str, RecallRun]] = []
        whole = len(remedies) * (steps + more)

        def taught(name: str, when: str, make: Callable[[], RecallModel], length: int) -> None:
            before = sum(steps if at == "start" else more for _, at, _ in runs)
            model = make()
            apply(name, model, seed)
            seeds = seed if when == "start" else seed + 1  # not the sequences it got stuck on
            runs.append((name, when, learn(
                model, d=d, steps=length, seed=seeds, progress=lambda at, _: progress((before + at) / whole)
            )))  # fmt: skip

        for name in remedies:
            taught(name, "start", fresh, steps)
            taught(name, "stuck", lambda: copy.deepcopy(stuck), more)
    table = _table(runs, d)
    short = crossed(
        table,
        "accuracy",
        Text(en=f"Accuracy with unscaled q·k, d = {d}", zh=f"未缩放 q·k 的正确率，d = {d}"),
        down=("remedy", "d"),
        across="when",
        values=("accuracy",),
    )
    return [short, table, _course(runs)], _notes(table, untreated, list(zip(tops, doses, strict=True)), steps, more)


def _table(runs: list[tuple[str, str, RecallRun]], d: int) -> Table:
    rows: list[tuple[Cell, ...]] = [(REMEDIES[name], WHEN[when], d, *told(o)) for name, when, o in runs]
    return Table(
        "remedies",
        Text(en=f"Remedies for unscaled q·k, d = {d}", zh=f"未缩放 q·k 的补救办法，d = {d}"),
        (
            label("remedy", Text(en="remedy", zh="补救办法")),
            label("when", Text(en="applied", zh="使用时机")),
            label("d", same("d")),
            *OUTCOME,
        ),
        rows,
        dense=True,
    )


def _course(runs: list[tuple[str, str, RecallRun]]) -> Table:
    return Table(
        "course",
        Text(en="Loss at each step", zh="每一步的损失"),
        (
            label("remedy", Text(en="remedy", zh="补救办法")),
            label("when", Text(en="applied", zh="使用时机")),
            label("step", Text(en="step", zh="步")),
            Column("loss", Text(en="loss", zh="损失"), NATS),
        ),
        [(REMEDIES[name], WHEN[when], step, loss) for name, when, o in runs for step, loss in enumerate(o.losses)],
        dense=True,
    )


def revived(table: Table, when: str) -> list[Text]:
    """List the remedies under which the model learned."""
    rows = [r for r in table.records() if r["when"] == WHEN[when] and r["remedy"] != REMEDIES["none"]]
    return [r["remedy"] for r in rows if r["accuracy"].value >= LEARNED]


def _notes(table: Table, untreated: RecallRun, given: list[tuple[float, float]], steps: int, more: int) -> list[Text]:
    tried = {r["remedy"]: None for r in table.records() if r["remedy"] != REMEDIES["none"]}

    def listed(when: str, lang: Lang) -> tuple[str, str]:
        good = revived(table, when)
        between, nothing = Text(en="; ", zh="；").of(lang), Text(en="none", zh="无").of(lang)
        return (
            between.join(text.of(lang) for text in tried if text in good) or nothing,
            between.join(text.of(lang) for text in tried if text not in good) or nothing,
        )

    notes = [
        Text(
            en=f"Every sequence shows the same {PAIRS} keys. Untreated, the accuracy after {steps} steps is "
            f"{untreated.accuracy.value:.2f} (chance "
            f"{1 / PAIRS:.2f}); the largest logit is {given[0][0]:.0f} before training and {given[1][0]:.0f} after. "
            f"The temperature is √d, or more if needed to bring that logit to {REST:g}: {given[0][1]:.0f} from the "
            f"start, {given[1][1]:.0f} when stuck.",
            zh=f"每个序列都是同样的 {PAIRS} 个键。不处理时，{steps} 步后的正确率为 "
            f"{untreated.accuracy.value:.2f}（随机猜测为 {1 / PAIRS:.2f}）；最大"
            f"分数在训练前为 {given[0][0]:.0f}，训练后为 {given[1][0]:.0f}。温度取 √d，若还不足以把最大分数降到 "
            f"{REST:g}，则取更高：从一开始用时为 {given[0][1]:.0f}，卡住以后用时为 {given[1][1]:.0f}。",
        )
    ]
    for when, length in (("start", steps), ("stuck", more)):
        en, zh = listed(when, "en"), listed(when, "zh")
        notes.append(
            Text(
                en=f"Applied {WHEN[when].en}, what revives it within {length} steps: {en[0]}. What does not: {en[1]}.",
                zh=f"{WHEN[when].zh}使用，{length} 步之内能救活的：{zh[0]}。救不活的：{zh[1]}。",
            )
        )
    both = [table.row(remedy=REMEDIES[name], when=WHEN["start"]) for name in ("temperature", "temperature-weights")
            if REMEDIES[name] in tried]  # fmt: skip
    if len(both) == 2:
        on, inside = (row["accuracy"].value for row in both)
        notes.append(
            Text(
                en=f"The same temperature, applied to the logits or folded into W_Q, gives the same model at step 0 "
                f"but an accuracy of {on:.2f} or {inside:.2f} after {steps} steps: Adam moves small weights as far as "
                f"large ones.",
                zh=f"同一个温度，作用在分数上或并入 W_Q，第 0 步的模型完全一样，{steps} 步后的正确率却分别为 {on:.2f} "
                f"和 {inside:.2f}：Adam 每一步移动小权重和大权重的幅度一样大。",
            )
        )
    return notes


def draw(result: Result, lang: Lang) -> Any:
    """Plot the accuracy under each remedy, applied from the start and when stuck."""
    records = result["remedies"].records()
    panels = [
        bars([r for r in records if r["when"] == when], Text(en=f"Applied {when.en}", zh=f"{when.zh}使用"), lang, 300)
        for when in WHEN.values()
    ]
    return chart.beside(*panels)
