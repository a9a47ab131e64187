"""Where a text makes a claim, in both languages; chapters and lines are written once, in English."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softscope._text import Lang

WORDS = {
    "Comment": "注释",
    "Essence": "本质",
    "Header": "页眉",
    "Homework": "作业",
    "Part": "第",
    "Philosophy": "设计哲学",
    "Proof": "证明",
    "Related": "相关主题",
    "Summary": "总结",
    "code": "代码",
    "fix": "解决方案",
    "intro": "引言",
    "mermaid": "流程图",
    "output": "输出",
    "table": "表格",
    "title": "标题",
    # The texts number their parts with Chinese numerals.
    "VIII": "八", "VII": "七", "III": "三", "II": "二", "IV": "四", "VI": "六", "IX": "九", "I": "一", "V": "五",
}  # fmt: skip


def place(where: str, lang: Lang) -> str:
    """Return the place in the given language.

    >>> place("Part 4 table, L131", "zh"), place("Summary, L191-209", "zh"), place("Summary, L191", "en")
    ('第 4 部分表格，第 131 行', '总结，第 191–209 行', 'Summary, L191')
    >>> place("IV mermaid, L115", "zh")
    '四、流程图，第 115 行'
    """
    if lang == "en":
        return where
    text = re.sub(r"Part (\d+)", r"Part \1 部分", where)
    text = re.sub(r"L(\d+)(?:-(\d+))?", lambda m: f"第 {m[1]}{'–' + m[2] if m[2] else ''} 行", text)
    text = re.sub(r"\b([IVX]+) (?=[a-z])", r"\1、", text)
    text = re.sub(r"[A-Za-z]{3,}|\b[IVX]+\b", lambda m: WORDS.get(m[0], m[0]), text)
    text = text.replace(", ", "，").replace("; ", "；")
    return re.sub(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])", "", text)
