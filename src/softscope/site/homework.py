"""The homework: each task, what to start from, hints, and how to have it marked."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.lab.homework import EXERCISES, Exercise, Quiz
from softscope.lab.homework.quiz import LETTERS
from softscope.site import frame

if TYPE_CHECKING:
    from softscope._text import Lang

LEAD = Text(
    zh="答案由程序批改：它在自己的进程里运行你的代码，说出哪条性质不成立，并给出反例。批改需要安装 softscope。",
    en="A program marks the answers: it runs your code in a process of its own, names the property that fails "
    "and shows an input where it does. Marking needs softscope installed.",
)
MARKED = Text(zh="怎样得到批改", en="How to have it marked")
HINT = Text(zh="提示 {place}", en="Hint {place}")
OR_LAB = Text(zh="也可以运行 {command}，在课程的网页里作答。", en="Or run {command} and answer in the course itself.")
START, CHECK = Text(zh="写出文件", en="write the file"), Text(zh="批改", en="mark it")
MINUTES = Text(zh="约 {minutes} 分钟", en="about {minutes} minutes")


def page(site: frame.Frame, lang: Lang) -> str:
    """Return the page of all exercises."""
    title = frame.HOMEWORK.name.of(lang)
    lab = OR_LAB.of(lang).format(command="<code>softscope lab</code>")
    parts = "".join(_exercise(number, one, lang) for number, one in enumerate(EXERCISES, 1))
    body = f'<h1>{title}</h1>\n<p class="lead">{LEAD.of(lang)}</p>\n<p class="quiet">{lab}</p>\n{parts}'
    return site.page(lang, frame.HOMEWORK.path, title, body)


def marked(exercise: Exercise | Quiz, lang: Lang) -> str:
    """Return the commands that have an exercise marked."""
    if isinstance(exercise, Quiz):
        lines = f"softscope homework check {exercise.id}"
    else:
        begin, check = f"softscope homework start {exercise.id}", f"softscope homework check {exercise.id}"
        lines = f"{begin.ljust(len(check))}   # {START.of(lang)}\n{check}   # {CHECK.of(lang)}"
    return f'<div class="note"><p>{MARKED.of(lang)}</p><pre><code>{html.escape(lines)}</code></pre></div>'


def _exercise(number: int, exercise: Exercise | Quiz, lang: Lang) -> str:
    minutes = MINUTES.of(lang).format(minutes=exercise.minutes)
    parts = [
        f'<h2 id="{exercise.id}">{number}. {html.escape(exercise.title.of(lang))}</h2><p class="quiet">{minutes}</p>',
        _paragraphs(exercise.task.of(lang)),
    ]
    if isinstance(exercise, Quiz):
        for place, question in enumerate(exercise.questions, 1):
            choices = "".join(
                f"<li>{letter}. {html.escape(choice.says.of(lang))}</li>"
                for letter, choice in zip(LETTERS, question.choices, strict=False)
            )
            parts.append(f"<p>{place}. {html.escape(question.asks.of(lang))}</p><ul>{choices}</ul>")
    else:
        parts.append(f"<pre><code>{html.escape(exercise.starter.of(lang))}</code></pre>")
    for place, hint in enumerate(exercise.hints, 1):
        parts.append(
            f"<details><summary>{HINT.of(lang).format(place=place)}</summary>{_paragraphs(hint.of(lang))}</details>"
        )
    return "\n".join([*parts, marked(exercise, lang)])


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{html.escape(part).replace(chr(10), '<br>')}</p>" for part in text.split("\n\n"))
