"""The front page: a softmax to drag at once, and the way to everything else."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.lab.course import LESSONS as COURSE
from softscope.lab.index import MINUTES
from softscope.lab.widgets import SoftmaxWidget
from softscope.site import frame, pictures

if TYPE_CHECKING:
    from softscope._text import Lang

TITLE = Text(zh="拖一拖，看懂 softmax", en="Drag it, and see what softmax does")
LEAD = Text(
    zh="softmax 把任意几个分数变成权重：都不小于零，加起来是 1。拖动左边的柱子，右边的权重当场算出来。",
    en="Softmax turns any scores into weights: none is negative, and they add up to 1. Drag the bars on the left; the "
    "weights on the right are computed as you drag.",
)
START = Text(zh="从第一课开始", en="Start with the first lesson")
WHAT = Text(zh="这里有什么", en="What is here")
TRAIN = Text(zh="在网页里训练一个注意力头", en="Train an attention head in the page")
TRAIN_WHAT = Text(
    zh="去掉 1/√d，看它挨饿；再用一种疗法救活它。", en="Without 1/√d it starves; a remedy brings it back."
)
ABOUT = {
    frame.LESSONS: Text(
        zh="十节课，从 softmax 的两步讲到注意力。", en="Ten lessons, from softmax's two steps to attention."
    ),
    frame.HOMEWORK: Text(zh="八道练习，以及怎样得到批改。", en="Eight exercises, and how to have them marked."),
    frame.LEDGER: Text(
        zh="流传的说法哪些对、哪些错，每一条都有测量。",
        en="What people say about softmax: each claim with its measurement.",
    ),
    frame.REPORT: Text(zh="“医生”怎样检查三个小模型。", en="How the doctor examines three small models."),
    frame.GLOSSARY: Text(zh="中英文术语、符号和代码名。", en="Terms in both languages, symbols and names in code."),
    frame.SPEED: Text(
        zh="与 PyTorch、SciPy 的比较，附机器和日期。", en="Against PyTorch and SciPy, with machine and date."
    ),
    frame.REFERENCE: Text(zh="每个函数，附可运行的例子。", en="Every function, with examples that run."),
}
FULL = Text(
    zh="完整的课程会当场运行 Python，并批改练习：安装后运行 {command}。",
    en="The full course runs Python as you go and marks your homework: install it and run {command}.",
)
LESSONS_LEAD = Text(
    zh="每节课都能直接读、直接玩。滑块从事先算好的状态里取值；图形由网页自己计算。",
    en="Every lesson can be read and played with right here. Sliders step through states computed beforehand; the "
    "pictures compute in the page.",
)
# A reader who has not chosen a language and reads Chinese goes to the Chinese page, once.
LANGUAGE = """(() => {
  const KEY = "softscope-language";
  try {
    for (const link of document.querySelectorAll("[data-language]"))
      link.addEventListener("click", () => localStorage.setItem(KEY, link.dataset.language));
    if (!localStorage.getItem(KEY) && navigator.language.startsWith("zh") && document.documentElement.lang === "en") {
      localStorage.setItem(KEY, "zh");
      location.replace("zh/index.html");
    }
  } catch { }
})();
"""


def page(site: frame.Frame, lang: Lang) -> str:
    """Return the front page; its picture stands in the page itself, so that nothing has to be fetched first."""
    here = frame.FRONT.path
    widget = SoftmaxWidget(lang=lang)
    cards = [(frame.link(lang, here, "lessons/patient.html"), TRAIN.of(lang), TRAIN_WHAT.of(lang))]
    cards += [
        (frame.link(lang, here, place.path), place.name.of(lang), ABOUT[place].of(lang))
        for place in site.places
        if place in ABOUT
    ]
    listed = "".join(
        f'<li><a href="{to}"><strong>{html.escape(name)}</strong><span>{html.escape(what)}</span></a></li>'
        for to, name, what in cards
    )
    first = frame.link(lang, here, f"lessons/{COURSE[0].name}.html")
    body = (
        f'<h1>{TITLE.of(lang)}</h1>\n<p class="lead">{LEAD.of(lang)}</p>\n'
        f'<div class="stage">{pictures.mount(widget, lang)}</div>\n'
        f'<p><a class="button" href="{first}">{START.of(lang)}</a></p>\n'
        f'<h2>{WHAT.of(lang)}</h2>\n<ul class="cards">{listed}</ul>\n<p class="quiet">{full(lang)}</p>'
    )
    inline = pictures.script(widget) + frame.asset("pictures.js") + LANGUAGE
    return site.page(lang, here, "softscope", body, styles=("pictures.css",), inline=inline)


def full(lang: Lang) -> str:
    """Say where the full course is."""
    return FULL.of(lang).format(command="<code>softscope lab</code>")


def lessons(site: frame.Frame, lang: Lang) -> str:
    """Return the list of lessons."""
    items = "".join(
        f'<li><a href="{one.name}.html"><b aria-hidden="true">{one.number}</b><div>'
        f"<strong>{html.escape(one.title.of(lang))}</strong><span>{html.escape(one.teaches.of(lang))}</span>"
        f"<span>{MINUTES.of(lang).format(minutes=one.minutes)}</span></div></a></li>"
        for one in COURSE
    )
    title = frame.LESSONS.name.of(lang)
    body = (
        f'<h1>{title}</h1>\n<p class="lead">{LESSONS_LEAD.of(lang)}</p>\n<ol class="lessons">{items}</ol>\n'
        f'<p class="quiet">{full(lang)}</p>'
    )
    return site.page(lang, frame.LESSONS.path, title, body)
