"""What the temperatures that people recommend do to a sampler: four uses, measured instead of promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.table import NATS, Cell, Column, Measured, Table, label

if TYPE_CHECKING:
    from softscope.experiments.result import Result

DRAWS = 10
# Each use with the ends of the range that is recommended for it, and what it is recommended for. For distillation any
# T above 1 is; we take 2 and 4, two usual choices.
USES: tuple[tuple[Text, tuple[float, ...], Text], ...] = (
    (Text(en="code", zh="写代码"), (0.2, 0.5), Text(en="steadier", zh="更稳定")),
    (Text(en="translation, summaries", zh="翻译、摘要"), (1.0,), Text(en="unchanged", zh="不改变")),
    (Text(en="creative writing", zh="创意写作"), (1.2, 1.5), Text(en="more varied", zh="更多样")),
    (Text(en="distillation", zh="蒸馏"), (2.0, 4.0), Text(en="softer targets", zh="目标更软")),
)


def uses(logits: Any, rng: np.random.Generator) -> Table:
    """Draw ten answers to each row of logits at each temperature: how many differ, and how often is it the top one?"""
    many = np.repeat(logits, DRAWS, axis=0)
    top = logits.argmax(axis=-1)[:, None]
    rows: list[tuple[Cell, ...]] = []
    for use, temperatures, promise in USES:
        for t in temperatures:
            drawn = np.sort(softscope.sample(many, temperature=t, rng=rng).reshape(len(logits), DRAWS), axis=-1)
            different = 1 + (np.diff(drawn, axis=-1) != 0).sum(axis=-1)
            entropy = Measured.of(softscope.partition(logits, temperature=t).entropy)
            likeliest = Measured.of((drawn == top).mean(axis=-1))
            rows.append((use, t, promise, entropy, Measured.of(different), likeliest, len(logits)))
    return Table(
        "uses",
        Text(
            en=f"Temperatures that are recommended, and what they do: {DRAWS} draws from {logits.shape[-1]} candidates",
            zh=f"常被推荐的温度及其实际效果：从 {logits.shape[-1]} 个候选中抽 {DRAWS} 次",
        ),
        (
            label("use", Text(en="use", zh="用途")),
            label("T", same("T")),
            Column("promise", Text(en="meant to be", zh="目的")),
            Column("entropy", Text(en="entropy", zh="熵"), NATS),
            Column("different", Text(en="different answers", zh="不同的答案数")),
            Column("top", Text(en="share of the likeliest answer", zh="最可能答案的比例")),
            Column("problems", Text(en="problems", zh="题数")),
        ),
        rows,
    )


def note(table: Table) -> Text:
    """Say how far the uses are apart."""
    plain = table.row(T=1.0)
    cold, hot = table.row(use=USES[0][0]), table.row(use=USES[2][0], T=USES[2][1][-1])

    def said(r: dict[str, Any]) -> tuple[str, str]:
        return f"{r['different'].value:.1f}", f"{r['top'].value:.2f}"

    return Text(
        en=f"{DRAWS} draws give {said(cold)[0]} different answers at T = {cold['T']:g}, recommended for code, "
        f"{said(plain)[0]} at T = 1 and {said(hot)[0]} at T = {hot['T']:g}, recommended for creative writing; the "
        f"share of the likeliest answer is {said(cold)[1]}, {said(plain)[1]} and {said(hot)[1]}.",
        zh=f"抽 {DRAWS} 次，得到的不同答案：T = {cold['T']:g}（推荐用于写代码）有 {said(cold)[0]} 个，T = 1 有 "
        f"{said(plain)[0]} 个，T = {hot['T']:g}（推荐用于创意写作）有 {said(hot)[0]} 个；最可能答案的比例分别为 "
        f"{said(cold)[1]}、{said(plain)[1]} 和 {said(hot)[1]}。",
    )


def draw(result: Result, lang: Lang) -> Any:
    """Draw how many of the answers differ, for each use."""
    rows = [
        {
            "name": f"T = {r['T']:g}" + Text(en=", ", zh="，").of(lang) + r["use"].of(lang),
            "different": r["different"].value,
            "low": r["different"].value - 2 * r["different"].error,
            "high": r["different"].value + 2 * r["different"].error,
        }
        for r in result["uses"].records()
    ]
    return chart.bars(
        rows,
        ("name", ""),
        chart.Axis(
            "different", Text(en=f"different answers in {DRAWS} draws", zh=f"{DRAWS} 次抽样中不同的答案数").of(lang)
        ),
        error=("low", "high"),
        digits=".1f",
        title=Text(en=f"Four uses of temperature, {DRAWS} draws each", zh=f"温度的四种用途，各抽 {DRAWS} 次").of(lang),
    )
