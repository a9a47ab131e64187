"""Lesson 10 in the page: every claim with its verdict, hidden until the reader has judged."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from softscope._text import Text, said
from softscope.lab import puzzles

if TYPE_CHECKING:
    from softscope._text import Lang

VERDICTS = {
    "holds": Text(zh="成立", en="holds"),
    "only-if": Text(zh="有条件地成立", en="holds only if …"),
    "fails": Text(zh="不成立", en="fails"),
}
RIGHT, WRONG = Text(zh="判断正确：", en="You are right: "), Text(zh="再想想：", en="Not quite: ")
MEASURED, CONDITION = Text(zh="测得：", en="Measured: "), Text(zh="条件：", en="Condition: ")
ANSWER = Text(zh="看测量结果", en="See the measurement")
TALLY = Text(zh="答了 {given} 题，判断正确 {right} 题。", en="Answered: {given}. Correct: {right}.")


def section(lang: Lang) -> str:
    """Return all the puzzles; without a script, the answer is a fold below each."""
    parts = "".join(_puzzle(i, name, lang) for i, name in enumerate(puzzles.CHOSEN, 1))
    tally = html.escape(TALLY.of(lang))
    return f'<div class="quiz">{parts}<p class="tally" data-says="{tally}" aria-live="polite"></p></div>'


def _puzzle(number: int, name: str, lang: Lang) -> str:
    claim, outcome = puzzles.claim(name), puzzles.puzzle(name).outcome
    choices = "".join(
        f'<button type="button" value="{key}" aria-pressed="false">{html.escape(text.of(lang))}</button>'
        for key, text in VERDICTS.items()
    )
    cases = "".join(f"<li>{'✓' if case.held else '✗'} {_(said(case.label, lang))}</li>" for case in outcome.cases)
    condition = ""
    if outcome.only_if and outcome.verdict == "only-if":
        condition = f"<p>{CONDITION.of(lang)}{_(said(outcome.only_if, lang))}</p>"
    return (
        f'<article class="puzzle" data-verdict="{outcome.verdict}"><h3>{number} / {len(puzzles.CHOSEN)}</h3>'
        f'<blockquote>{_(said(claim.says, lang))}</blockquote><p class="choices">{choices}</p>'
        f'<p class="told" data-right="{RIGHT.of(lang)}" data-wrong="{WRONG.of(lang)}" aria-live="polite"></p>'
        f"<details><summary>{ANSWER.of(lang)}</summary><p><strong>{VERDICTS[outcome.verdict].of(lang)}</strong></p>"
        f"<p>{MEASURED.of(lang)}{_(said(outcome.measured, lang))}</p>{condition}"
        f"<p>{_(said(outcome.because, lang))}</p><ul>{cases}</ul></details></article>"
    )


def _(text: str) -> str:
    return html.escape(text)
