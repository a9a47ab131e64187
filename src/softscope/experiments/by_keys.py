"""The runs of `learning` without 1/√d, by the keys that a sequence shows: what starves for good, what only slows?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope._text import Lang, Text
from softscope.experiments import chart, starving
from softscope.experiments.recall import PAIRS
from softscope.experiments.starving import Setting
from softscope.experiments.table import Cell, Column, Measured, Table, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.experiments.result import Result

ALWAYS = Text(en=f"{PAIRS}, always the same", zh=f"总是同样的 {PAIRS} 个")
SLOWER = Text(en=f"{PAIRS}, always the same, a tenth of the rate", zh=f"总是同样的 {PAIRS} 个，学习率为十分之一")
FATES = {
    "learned": Text(en="learned", zh="学会"),
    "seed": Text(en="depends on the seed", zh="看种子"),
    "slow": Text(en="slow", zh="慢"),
    "starves": Text(en="starves", zh="一直挨饿"),
}
LOWEST = Column("lowest", Text(en="lowest accuracy", zh="最低正确率"), digits=2)
HIGHEST = Column("highest", Text(en="highest accuracy", zh="最高正确率"), digits=2)


def settings(keys: Sequence[int]) -> dict[Text, Setting]:
    """Name the runs without 1/√d: over the number of keys in all, and two that change only one thing."""
    most = max(keys)
    if most <= PAIRS:
        raise ValueError(f"keys must hold a number above {PAIRS}, but got {keys}; pass ({PAIRS}, {4 * PAIRS})")
    drawn = {
        Text(en=f"{PAIRS} of {n}, drawn", zh=f"从 {n} 个中抽 {PAIRS} 个"): Setting(keys=n) for n in keys if n > PAIRS
    }
    return {
        ALWAYS: Setting(),
        **drawn,
        Text(
            en=f"{most} keys, in fixed groups of {PAIRS}", zh=f"{most} 个键，固定分成每组 {PAIRS} 个"
        ): Setting(keys=most, company="fixed"),
        SLOWER: Setting(slower=10.0),
    }  # fmt: skip


def names(items: list[Text], lang: Lang) -> str:
    """List texts, or say that there are none."""
    none = Text(en="none", zh="无").of(lang)
    return Text(en="; ", zh="；").of(lang).join(item.of(lang) for item in items) or none


def table(
    settings: dict[Text, Setting], swept: dict[Text, list[starving.Run]], draws: Sequence[int], over: Text
) -> Table:
    """Put the runs beside what was open before training; half-way and final accuracies tell slow from starving."""
    steps = len(swept[ALWAYS][0].answers)
    half = steps // 2
    rows: list[tuple[Cell, ...]] = []
    for name, runs in swept.items():
        setting = settings[name]
        early, late = ([run.accuracy(after) for run in runs] for after in (half, steps))
        before = [starving.openings(setting, i) for i in draws]
        rows.append((
            name, setting.keys, len(runs), FATES[starving.fate(early, late)], setting.absent,
            *(Measured.of(x) for x in zip(*before, strict=True)),
            Measured.of(early), Measured.of(late), min(late), max(late), Measured.of([run.misled for run in runs]),
        ))  # fmt: skip
    return Table(
        "keys",
        Text(
            en=f"Without 1/√d, by the keys that a sequence shows, d = 64 ({over.en})",
            zh=f"没有 1/√d，按序列中出现的键，d = 64（{over.zh}）",
        ),
        (
            label("keys", Text(en="keys in a sequence", zh="序列中的键")),
            label("total", Text(en="keys in all", zh="键的总数")),
            Column("runs", Text(en="seeds", zh="种子")),
            Column("fate", Text(en="verdict", zh="结论")),
            Column("absent", Text(en="sequences without a given wrong key", zh="缺某个错误的键的序列"), digits=2),
            Column("open_rows", Text(en="rows open before training", zh="训练前开放的行"), digits=2),
            Column("open_keys", Text(en="keys with an open row", zh="有开放行的键"), digits=2),
            Column("early", Text(en=f"accuracy after {half} steps", zh=f"{half} 步后的正确率"), digits=2),
            Column("accuracy", Text(en=f"after {steps} steps", zh=f"{steps} 步后"), digits=2),
            LOWEST,
            HIGHEST,
            Column("misled", Text(en="rows blocked on a wrong key", zh="被阻断在错误的键上的行"), digits=2),
        ),
        rows,
    )


def course(swept: dict[Text, list[starving.Run]]) -> Table:
    """Keep the accuracy as training goes on."""
    return Table(
        "answers",
        Text(en="Accuracy over the last 20 steps, mean over seeds", zh="最近 20 步的正确率，对种子取平均"),
        (
            label("keys", Text(en="keys", zh="键")),
            label("step", Text(en="step", zh="步")),
            Column("accuracy", Text(en="accuracy", zh="正确率")),
        ),
        [
            (name, at, Measured.of([run.accuracy(at) for run in swept[name]]).value)
            for name in swept
            for at in range(starving.LAST, len(swept[name][0].answers) + 1, starving.LAST)
        ],
        dense=True,
    )


def flip_point(by_keys: Table) -> starving.Flip:
    """Find where the drawn rows of the table flip, by its lowest and highest accuracies."""
    rows = [r for r in by_keys.records() if r["keys"] == ALWAYS or r["absent"] > 0]
    return starving.flip({r["total"]: (r["lowest"], r["highest"]) for r in rows})


def findings(by_keys: Table, steps: int) -> list[Text]:
    """Say what starves for good, what only slows, where it flips, and what the openings before training say."""
    rows = by_keys.records()
    always, slower = by_keys.row(keys=ALWAYS), by_keys.row(keys=SLOWER)
    drawn, fixed = max((r for r in rows if r["absent"] > 0), key=lambda r: r["total"]), rows[-2]
    groups = {name: [r["keys"] for r in rows if r["fate"] == text] for name, text in FATES.items()}
    flipped = _flipped(flip_point(by_keys))
    return [
        Text(
            en=f"Without 1/√d at d = 64, after {steps} steps. Starves for good (no seed learns, and the second half of "
            f"the steps adds next to nothing): {names(groups['starves'], 'en')}. Slow, but still rising: "
            f"{names(groups['slow'], 'en')}. Depends on the seed: {names(groups['seed'], 'en')}. Learned with every "
            f"seed: {names(groups['learned'], 'en')}. {flipped.en}",
            zh=f"没有 1/√d，d = 64，{steps} 步之后。一直挨饿（没有一个种子学会，后一半步数几乎没有进步）："
            f"{names(groups['starves'], 'zh')}。慢，但还在上升：{names(groups['slow'], 'zh')}。看种子："
            f"{names(groups['seed'], 'zh')}。每个种子都学会：{names(groups['learned'], 'zh')}。{flipped.zh}",
        ),
        Text(
            en=f"Why: a row that is blocked on a wrong key opens only in a sequence without that key. Before training, "
            f"about as many rows are open with {PAIRS} keys ({always['open_rows'].value:.0%}) as with "
            f"{drawn['total']} ({drawn['open_rows'].value:.0%}). But if the keys are always the same, so are these "
            f"rows: {always['open_keys'].value:.0%} of the keys have one. If they are drawn, the keys take turns: "
            f"{drawn['open_keys'].value:.0%} have one in some sequence. In the end, {always['misled'].value:.1%} and "
            f"{drawn['misled'].value:.1%} of the rows are blocked on a wrong key.",
            zh=f"原因：被阻断在错误的键上的行，只有在没有这个键的序列里才开放。训练前开放的行差不多一样多：{PAIRS} 个键"
            f"时占 {always['open_rows'].value:.0%}，{drawn['total']} 个键时占 {drawn['open_rows'].value:.0%}。但如果总"
            f"是同样的键，开放的也总是同样的行：有开放行的键占 {always['open_keys'].value:.0%}。如果键是抽取的，就轮流"
            f"开放：在某个序列里有开放行的键占 {drawn['open_keys'].value:.0%}。最后，被阻断在错误的键上的行分别占 "
            f"{always['misled'].value:.1%} 和 {drawn['misled'].value:.1%}。",
        ),
        Text(
            en=f"It is not the number of keys: {fixed['total']} keys that always come in the same groups of {PAIRS} "
            f"give an accuracy of {_told(fixed)}, drawn keys {_told(drawn)}. And it is large steps that block the "
            f"rows: with the same {PAIRS} keys and a tenth of the learning rate, {slower['misled'].value:.0%} of the "
            f"rows end blocked on a wrong key, and the accuracy is {_told(slower)}, not {_told(always)}.",
            zh=f"关键不是键的总数：{fixed['total']} 个键总是同样的 {PAIRS} 个一组时，正确率为 {_told(fixed)}；抽取时为 "
            f"{_told(drawn)}。另外，把行阻断的是大的步子：同样的 {PAIRS} 个键，学习率为十分之一时，最后有 "
            f"{slower['misled'].value:.0%} 的行被阻断在错误的键上，正确率为 {_told(slower)}，而不是 {_told(always)}。",
        ),
    ]


def _told(row: dict[str, Any]) -> str:
    return f"{row['accuracy'].value:.2f} ({row['lowest']:.2f}–{row['highest']:.2f})"


def _flipped(found: starving.Flip) -> Text:
    """Say where the drawn keys flip."""
    never, always = found
    parts_en = [f"up to {never} keys in all, no seed learns"] * (never is not None)
    parts_en += [f"from {always} on, every seed does"] * (always is not None)
    parts_zh = [f"键的总数不超过 {never} 时，没有一个种子学会"] * (never is not None)
    parts_zh += [f"从 {always} 起，每个种子都学会"] * (always is not None)
    en, zh = "; ".join(parts_en) or "it does not flip here", "；".join(parts_zh) or "这里没有转折"
    return Text(en=f"Flip point: {en}.", zh=f"转折点：{zh}。")


def panels(result: Result, lang: Lang) -> list[Any]:
    """Draw the accuracy over the number of keys in all, with the range over seeds, and its course."""
    table = result["keys"]
    accuracy = chart.Axis("accuracy", Text(en="accuracy", zh="正确率").of(lang), domain=(0.0, 1.0))
    drawn = [r for r in table.records() if r["keys"] == ALWAYS or r["absent"] > 0]
    rows = [
        {"total": r["total"], "accuracy": r["accuracy"].value, "low": r["lowest"], "high": r["highest"], "name": ""}
        for r in drawn
    ]
    over_keys = chart.curves(
        rows,
        chart.Axis("total", Text(en="keys in all", zh="键的总数").of(lang), values=tuple(r["total"] for r in drawn)),
        accuracy,
        ("name", ""),
        error=("low", "high"),
        title=Text(
            en=f"Without 1/√d, {PAIRS} keys a sequence (lines: range over seeds)",
            zh=f"没有 1/√d，每个序列 {PAIRS} 个键（竖线：种子之间的范围）",
        ).of(lang),
        width=240,
    )
    course = [
        {"step": r["step"], "accuracy": r["accuracy"], "name": r["keys"].of(lang)} for r in result["answers"].records()
    ]
    over_steps = chart.curves(
        course,
        chart.Axis("step", Text(en="step", zh="步").of(lang)),
        accuracy,
        ("name", Text(en="keys in a sequence", zh="序列中的键").of(lang)),
        points=False,
        title=Text(en="For good, or slow?", zh="一直挨饿，还是只是慢？").of(lang),
        width=240,
    )
    return [over_keys, over_steps]
