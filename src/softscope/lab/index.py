"""The index page: the lessons in order, the learner's progress, and where to continue."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.lab.course import LESSONS, Lesson, after
from softscope.lab.homework import IDS
from softscope.lab.theme import buttons

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._text import Lang
    from softscope.lab.progress import LessonProgress

TITLE = Text(zh="softscope 实验室", en="The softscope lab")
TAGLINE = Text(
    zh="动手学 softmax 与注意力：拖动图形，看数字当场算出来。",
    en="Softmax and attention, hands-on: drag the pictures and watch every number being computed.",
)
PRIVATE = Text(
    zh="一切都在这台电脑上运行，不向外发送任何请求。",
    en="Everything runs on this computer, and no requests are sent elsewhere.",
)
START = Text(zh="从第一课开始", en="Start with the first lesson")
RESUME = Text(zh="继续：{title}", en="Continue: {title}")
FINISHED = Text(zh="全部学完了，恭喜！再看一遍：{title}", en="All done, congratulations! Go through it again: {title}")
TALLY = Text(zh="已完成 {done} / {all} 课", en="{done} of {all} lessons done")
EXERCISES = Text(zh="已通过 {passed} / {all} 道练习", en="{passed} of {all} exercises passed")
MINUTES = Text(zh="约 {minutes} 分钟", en="about {minutes} minutes")
STATES = {
    "new": Text(zh="未开始", en="not started"),
    "open": Text(zh="学习中", en="in progress"),
    "done": Text(zh="已完成", en="done"),
}
MARKS = {"new": "", "open": "◐", "done": "✓"}
OTHER = Text(zh="English", en="中文")


def page(lang: Lang, progress: LessonProgress, passed: int = 0) -> str:
    """Return the whole page as HTML; `passed` is the number of passed exercises."""
    say = _speaker(lang)
    done = sum(progress.state(lesson.name) == "done" for lesson in LESSONS)
    items = "".join(_item(lesson, lang, progress) for lesson in LESSONS)
    other = "en" if lang == "zh" else "zh"
    return f"""<!doctype html>
<html lang="{"zh-CN" if lang == "zh" else "en"}" data-theme="{progress.theme}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{say(TITLE)}</title>
<link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="/assets/index.css">
</head>
<body>
<header>
<div class="language">{buttons(progress.theme, lang)}
<a href="/?lang={other}" hreflang="{other}" lang="{other}">{say(OTHER)}</a></div>
<h1>{say(TITLE)}</h1>
<p>{say(TAGLINE)}</p>
<p class="resume">{_resume(lang, progress)}</p>
<p class="tally"><progress max="{len(LESSONS)}" value="{done}"></progress> {say(TALLY, done=done, all=len(LESSONS))}
· {say(EXERCISES, passed=passed, all=len(IDS))}</p>
</header>
<main><ol>{items}</ol></main>
<footer><p>{say(PRIVATE)}</p></footer>
</body>
</html>
"""


def _speaker(lang: Lang) -> Callable[..., str]:
    """Return a function that gives texts in one language as HTML, with their values filled in."""

    def say(text: Text, **values: object) -> str:
        return html.escape(text.of(lang).format(**values))

    return say


def _resume(lang: Lang, progress: LessonProgress) -> str:
    """Choose where to continue: the lesson read last, or the next one if that is done."""
    say = _speaker(lang)
    target, words = _target(progress)
    return f'<a class="button" href="/lesson/{target.name}/?lang={lang}">{say(words, title=target.title.of(lang))}</a>'


def _target(progress: LessonProgress) -> tuple[Lesson, Text]:
    todo = [lesson for lesson in LESSONS if progress.state(lesson.name) != "done"]
    if not todo:
        return LESSONS[0], FINISHED
    known = {lesson.name: lesson for lesson in LESSONS}
    last = known.get(progress.last or "")
    if last is None:
        return todo[0], START
    if progress.state(last.name) != "done":
        return last, RESUME
    following = after(last.name)
    while following is not None and following not in todo:
        following = after(following.name)
    return following or todo[0], RESUME


def _item(lesson: Lesson, lang: Lang, progress: LessonProgress) -> str:
    say = _speaker(lang)
    state = progress.state(lesson.name)
    return f"""
<li class="{state}"><a href="/lesson/{lesson.name}/?lang={lang}">
<span class="number" aria-hidden="true">{lesson.number}</span>
<span class="text"><strong>{say(lesson.title)}</strong>
<span class="teaches">{say(lesson.teaches)}</span>
<span class="meta">{say(MINUTES, minutes=lesson.minutes)} · {MARKS[state]} {say(STATES[state])}</span>
</span></a></li>"""
