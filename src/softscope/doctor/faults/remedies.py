"""Does the remedy help? The fault is taken away half-way, against leaving it and against a lower learning rate."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Sequence

from softscope._text import Lang, Text
from softscope.doctor.faults.catalogue import CHINESE, FAULTS
from softscope.doctor.faults.models import KINDS
from softscope.doctor.faults.runs import STEPS, Case, Result

HALF = STEPS // 2


def cases(first: int, seeds: int) -> Iterator[Case]:
    """Every fault that has a check, in all layers, with one kind of model per seed: left, mended, trained slower."""
    for place, fault in enumerate(FAULTS):
        fitting = [kind for kind in KINDS if kind.family in fault.families]
        for seed in range(first, first + seeds) if fault.codes else ():
            case = Case(fitting[(place + seed) % len(fitting)].name, seed, fault.name)
            yield case
            yield dataclasses.replace(case, mended=HALF)
            yield dataclasses.replace(case, slower=HALF)


HEADS = Text(
    zh="| 错误 | 次数 | 不去掉 | 100 步后去掉 | 改把学习率 ÷ 10 | 比不去掉好 | 比学习率 ÷ 10 好 |",
    en="| fault | runs | left as it is | taken away after 100 steps | rate ÷ 10 instead | better than left | better "
    "than rate ÷ 10 |",
)
ALL = Text(zh="合计", en="all")


def table(results: Sequence[Result], lang: Lang = "en") -> str:
    """Mean held-out losses, and in how many runs the remedy lowered them."""
    lines = [HEADS.of(lang), "|---" + "|---:" * 6 + "|"]
    totals = [0, 0, 0]
    for fault in FAULTS:
        mine = [result for result in results if result.case.name == fault.name]
        left = [r.loss for r in mine if r.case.mended is None and r.case.slower is None]
        mended = [r.loss for r in mine if r.case.mended is not None]
        slower = [r.loss for r in mine if r.case.slower is not None]
        if not mine:
            continue
        better = [sum(a < b for a, b in zip(mended, other, strict=True)) for other in (left, slower)]
        totals = [a + b for a, b in zip(totals, (len(mended), *better), strict=True)]
        means = " | ".join(f"{statistics.fmean(x):.2f}" for x in (left, mended, slower))
        name = fault.name if lang == "en" else CHINESE[fault.name]
        lines.append(f"| {name} | {len(mended)} | {means} | {better[0]} | {better[1]} |")
    lines.append(f"| {ALL.of(lang)} | {totals[0]} | | | | {totals[1]} | {totals[2]} |")
    return "\n".join(lines)
