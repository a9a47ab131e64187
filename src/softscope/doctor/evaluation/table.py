"""Formats the counts as the table of docs/telling-apart.md."""

from __future__ import annotations

from softscope._text import Lang, Text
from softscope.doctor.evaluation.counts import Count, wilson
from softscope.doctor.evaluation.spoil import WAYS

COLUMNS: dict[str, Text] = {
    "models": Text(zh="模型", en="models"),
    "learned": Text(zh="学会了", en="learned"),
    "judged": Text(zh="判断过的头", en="heads judged"),
    "useful": Text(zh="有用", en="useful"),
    "starving": Text(zh="有用却说饥饿", en="useful, called starving"),
    "suspected": Text(zh="没有试验：有用却受怀疑", en="without a trial: useful, suspected"),
    "blind": Text(zh="没有损失：有用却点名", en="without a loss: useful, named"),
    "spoiled": Text(zh="弄坏且没用", en="spoiled, not useful"),
    "named": Text(zh="点名", en="named"),
    "named_blind": Text(zh="没有损失：点名", en="without a loss: named"),
    "stuck": Text(zh="其中卡住的", en="of these stuck"),
    "stuck_named": Text(zh="点名", en="named"),
    "given": Text(zh="处方", en="prescriptions"),
    "helped": Text(zh="有效", en="helped"),
    "hurt": Text(zh="有害", en="hurt"),
    "beat": Text(zh="不差于重新初始化", en="no worse than drawn anew"),
}
TITLES = Text(zh="弄坏的方式", en="way")
ALL = Text(zh="合计", en="all")


def table(counts: dict[str, Count], lang: Lang) -> str:
    """The table as Markdown, and below it the shares that matter with their 95% intervals."""
    lines = ["| " + " | ".join([TITLES.of(lang), *(title.of(lang) for title in COLUMNS.values())]) + " |"]
    lines.append("|---" + "|---:" * len(COLUMNS) + "|")
    total = sum(counts.values(), Count())
    rows = [(title.of(lang), counts[way]) for way, title in WAYS.items() if way in counts]
    for title, count in [*rows, (ALL.of(lang), total)]:
        lines.append("| " + " | ".join([title, *(str(getattr(count, name)) for name in COLUMNS)]) + " |")
    return "\n".join([*lines, "", *shares(total, lang)])


def shares(total: Count, lang: Lang) -> list[str]:
    """The shares that matter, one line each."""
    told = [
        (Text(zh="有用却被说成饥饿的头", en="useful heads called starving"), total.starving, total.useful),
        (Text(zh="没有试验时受怀疑的有用的头", en="useful heads suspected without a trial"), total.suspected,
         total.useful),
        (Text(zh="弄坏且没用、被点名的头", en="spoiled heads, not useful, that are named"), total.named,
         total.spoiled),
        (Text(zh="有效的处方", en="prescriptions that helped"), total.helped, total.given),
    ]  # fmt: skip
    lines = [f"- {title.of(lang)}: {_share(hits, of)}" for title, hits, of in told]
    cost = total.cost
    passes = cost.passes / max(total.models, 1)
    heads, remedies = (x / max(cost.training, 1e-9) for x in (cost.seconds, cost.remedies))
    said = Text(
        zh=f"- 试验的头：每个模型平均 {passes:.1f} 次前向，占训练时间的 {heads:.1%}；试验的处方：{remedies:.1%}",
        en=f"- trials of heads: {passes:.1f} forward passes per model on average, {heads:.1%} of the training time; "
        f"trials of remedies: {remedies:.1%}",
    )
    return [*lines, said.of(lang)]


def _share(hits: int, of: int) -> str:
    if not of:
        return "–"
    low, high = wilson(hits, of)
    return f"{hits}/{of} = {hits / of:.1%} ({low:.1%} – {high:.1%})"
