"""The tables of docs/faults.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from softscope._text import Lang, Text
from softscope.doctor.evaluation.counts import wilson
from softscope.doctor.faults.catalogue import CHINESE, FAULTS
from softscope.doctor.faults.measure import Band, alarms, lead, places_right, right, wrong
from softscope.doctor.faults.runs import RATE, Result

Bands = Callable[[Result], Band]


HEADS = Text(
    zh="| 错误 | 检查 | 次数 | 有害 | 其中：说对原因 | 层也全对 | 还说了别的 | 提前的步数 | 无害：说对原因 | "
    "说了别的 |",
    en="| fault | checks | runs | harmed | of these: cause named | layers exact | another cause, too | lead, steps | "
    "unharmed: cause named | another cause |",
)
NEVER = Text(zh="（{} 次损失看不出）", en="({} never show)")
NONE = Text(zh="无", en="none")
OF = Text(zh="{1} 中 {0}", en="{0} of {1}")
SHARE = Text(zh="{of} 中 {hits}（{share:.1%}，95% 区间 {low:.1%}–{high:.1%}）",
             en="{hits} of {of} ({share:.1%}, 95% interval {low:.1%}–{high:.1%})")  # fmt: skip
SUMS = (
    Text(
        zh="有害的次数里说对原因的：{}；层也全对的：{}。",
        en="Harmed runs whose cause is named: {}; in exactly its layers: {}.",
    ),
    Text(
        zh="健康而报警的：{}；无害却说了别的原因的：{}；合计：{}。",
        en="Healthy runs with an alarm: {}. Unharmed runs with an alarm of another cause: {}. Both: {}.",
    ),
    Text(
        zh="没有错误、因学习率太高而变坏的：{} 次，其中报警 {} 次。",
        en="Runs without a fault that went wrong because of their learning rate: {}, of which {} have an alarm.",
    ),
)


def share(hits: int, of: int, lang: Lang) -> str:
    """A share with its 95% interval."""
    if not of:
        return "–"
    low, high = wilson(hits, of)
    return SHARE.of(lang).format(hits=hits, of=of, share=hits / of, low=low, high=high)


def table(results: Sequence[Result], bands: Bands, lang: Lang = "en") -> str:
    """One row for each fault, and the sums that matter."""
    lines = [HEADS.of(lang), "|---|---" + "|---:" * 8 + "|"]
    faulty = [result for result in results if result.case.fault is not None]
    harmed = [result for result in faulty if bands(result).harmed(result)]
    unharmed = [result for result in faulty if result not in harmed]
    for fault in FAULTS:
        hurt, well = ([result for result in some if result.case.name == fault.name] for some in (harmed, unharmed))
        if not hurt and not well:
            continue
        cells = [
            fault.name if lang == "en" else CHINESE[fault.name], " ".join(fault.codes) or NONE.of(lang),
            len(hurt) + len(well), len(hurt), _count(hurt, right), _count(hurt, places_right), _count(hurt, wrong),
            _leads(hurt, bands, lang), OF.of(lang).format(_count(well, right), len(well)), _count(well, wrong),
        ]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    controls = [result for result in results if result.case.fault is None]
    hasty = [result for result in controls if result.case.rate > RATE and bands(result).harmed(result)]
    healthy = [result for result in controls if result not in hasty]
    alarmed, mistaken = _count(healthy, alarms), _count(unharmed, wrong)
    figures = (
        (share(_count(harmed, right), len(harmed), lang), share(_count(harmed, places_right), len(harmed), lang)),
        (
            share(alarmed, len(healthy), lang), share(mistaken, len(unharmed), lang),
            share(alarmed + mistaken, len(healthy) + len(unharmed), lang),
        ),
        (len(hasty), _count(hasty, alarms)),
    )  # fmt: skip
    sums = [f"- {text.of(lang).format(*numbers)}" for text, numbers in zip(SUMS, figures, strict=True)]
    return "\n".join([*lines, "", *sums])


def _count(results: Sequence[Result], of: Callable[[Result], object]) -> int:
    return sum(bool(of(result)) for result in results)


def _leads(results: Sequence[Result], bands: Bands, lang: Lang) -> str:
    found = [x for result in results if (x := lead(result, bands(result))) is not None]
    shown = [steps for steps, ever in found if ever]
    never = len(found) - len(shown)
    told = f"{statistics.median(shown):.0f}" if shown else ""
    return " ".join(filter(None, [told, NEVER.of(lang).format(never) if never else ""])) or "–"
