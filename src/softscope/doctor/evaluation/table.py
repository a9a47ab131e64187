"""Counts the heads that were found, missed and named without cause, and formats the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from torch.nn import functional

from softscope._text import Lang, Text
from softscope.doctor.diagnosis import Diagnosis
from softscope.doctor.evaluation import truth
from softscope.doctor.evaluation.spoiled_models import WAYS, SpoiledModel


@dataclasses.dataclass
class Count:
    """Counts for one method: all heads, touched, spoiled, spoiled and named (found), named without cause (alarms)."""

    heads: int = 0
    touched: int = 0
    spoiled: int = 0
    found: int = 0
    alarms: int = 0
    losses: list[float] = dataclasses.field(default_factory=list)

    def __add__(self, other: Count) -> Count:
        return Count(*(getattr(self, x.name) + getattr(other, x.name) for x in dataclasses.fields(Count)))

    @property
    def missed(self) -> int:
        """Spoiled heads that were not named."""
        return self.spoiled - self.found

    @property
    def recall(self) -> str:
        """The share of spoiled heads that were named."""
        return "–" if not self.spoiled else f"{self.found / self.spoiled:.0%}"

    @property
    def precision(self) -> str:
        """The share of named heads that are spoiled."""
        named = self.found + self.alarms
        return "–" if not named else f"{self.found / named:.0%}"


def named(diagnosis: Diagnosis) -> set[tuple[int, int]]:
    """The heads named by a finding; a finding on a whole layer names all of its heads."""
    found = set()
    for outcome in diagnosis.outcomes:
        for head in outcome.heads if outcome.kind == "finding" else ():
            many = range(diagnosis.view.site(head).heads) if head.head is None else (head.head,)
            found |= {(head.site, j) for j in many}
    return found


def spoiled(patient: SpoiledModel) -> set[tuple[int, int]]:
    """The touched heads that are frozen; an untouched frozen head has learned to be frozen."""
    return truth.frozen(patient.model, patient.batch) & patient.touched


def counted(patients: Iterable[SpoiledModel]) -> dict[tuple[str, bool], Count]:
    """Counts by method, and by whether there was a loss."""
    counts = {(way, loss): Count() for way in WAYS for loss in (True, False)}
    for patient in patients:
        sick = spoiled(patient)
        logits = patient.model(*patient.batch.inputs).detach()
        lost = float(functional.cross_entropy(logits.flatten(0, -2), patient.batch.clean_target.flatten()))
        for loss, diagnosis in ((True, patient.with_loss), (False, patient.without_loss)):
            said, heads = named(diagnosis), len(diagnosis.view.heads)
            losses = [lost] if patient.task == "text" else []
            counts[patient.way, loss] += Count(
                heads, len(patient.touched), len(sick), len(said & sick), len(said - sick), losses
            )
    return counts


def table(counts: dict[tuple[str, bool], Count], lang: Lang) -> str:
    """The table as Markdown."""
    titles = Text(
        zh="| 弄坏的方式 | 头 | 动过 | 真的坏了 | 文本的损失 | 找到 | 漏掉 | 误报 | 没有损失时：找到 | 漏掉 | 误报 |",
        en="| way | heads | touched | spoiled | loss on text | found | missed | false alarms | without a loss: found | "
        "missed | false alarms |",
    ).of(lang)
    lines = [titles, "|---" + "|---:" * 10 + "|"]
    sums = {loss: Count() for loss in (True, False)}
    for way, title in WAYS.items():
        one, other = counts[way, True], counts[way, False]
        lines.append(_line(title.of(lang), one, other))
        sums = {True: sums[True] + one, False: sums[False] + other}
    lines.append(_line(Text(zh="合计", en="all").of(lang), sums[True], sums[False], loss=False))
    told = [
        Text(zh="精确率", en="precision"),
        Text(zh="召回率", en="recall"),
        Text(zh="没有损失时", en="without a loss"),
    ]
    precision, recall, without = (x.of(lang) for x in told)
    lines += ["", f"{precision} {sums[True].precision}, {recall} {sums[True].recall}; "
              f"{without}: {precision} {sums[False].precision}, {recall} {sums[False].recall}"]  # fmt: skip
    return "\n".join(lines)


def _line(title: str, one: Count, other: Count, *, loss: bool = True) -> str:
    mean = f"{sum(one.losses) / len(one.losses):.2f}" if loss and one.losses else ""
    cells = [one.heads, one.touched, one.spoiled, mean, one.found, one.missed, one.alarms,
             other.found, other.missed, other.alarms]  # fmt: skip
    return f"| {title} | " + " | ".join(map(str, cells)) + " |"
