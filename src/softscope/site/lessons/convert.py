"""What marimo shows, as plain HTML: formulas, charts, pictures, controls, folds and callouts."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any, cast

from marimo._plugins.ui._core.ui_element import UIElement

from softscope.lab.homework import EXERCISES, Exercise
from softscope.site import frame, homework, pictures
from softscope.site.lessons.charts import svg
from softscope.site.lessons.tex import mathml
from softscope.site.lessons.tree import VOID, Element, opening, parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._text import Lang
    from softscope.site.lessons.controls import Plan

DROPPED = {"marimo-switch", "marimo-code-editor", "script", "style"}
KEPT_STYLE = re.compile(
    r"(?:^|;)\s*(display: flex|flex-direction: [a-z]+|flex-wrap: [a-z]+|gap: [\d.]+rem|background:[^;]+|opacity:[^;]+)"
)


class Converter:
    """Converts the cells of one lesson in one language; it collects the pictures that they show."""

    def __init__(self, lang: Lang, here: str, plan: Plan) -> None:
        self.lang, self.here, self.plan = lang, here, plan
        self.widgets: dict[str, Any] = {}

    def html(self, text: str, names: dict[str, Any], *, chart: Callable[[str], str] | None = None) -> str:
        """Return marimo's HTML as plain HTML; `chart` may put something else in a chart's place.

        `names` are the notebook's at that moment: a cell that makes a picture makes a new one each time it runs.
        """
        self._elements = {str(one._id): (name, one) for name, one in names.items() if isinstance(one, UIElement)}
        self._chart = chart or (lambda drawn: f'<figure class="chart">{drawn}</figure>')
        return self._children(parse(text))

    def _children(self, children: list[Element | str]) -> str:
        made = ""
        for before, one in zip([None, *children], children, strict=False):
            if isinstance(one, str):
                made += html.escape(one, quote=False)
            elif not (_editor(before) and one.get("class") == "lab-meta"):  # it says when the lab marks an answer
                made += self._element(one)
        return made

    def _element(self, element: Element) -> str:
        made = {
            "marimo-tex": self._formula,
            "marimo-mime-renderer": self._mime,
            "marimo-accordion": self._accordion,
            "marimo-callout-output": self._callout,
            "marimo-ui-element": self._control,
            "form": _nothing,
        }.get(element.tag)
        if made is not None:
            return made(element)
        if element.tag in DROPPED or "lab-bar" in element.get("class").split():
            return ""
        if element.tag.startswith("marimo-"):
            raise ValueError(
                f"a lesson may show what softscope.site knows, but got <{element.tag}>; convert it in convert.py"
            )
        return self._plain(element)

    def _plain(self, element: Element) -> str:
        attributes = dict(element.attributes)
        if "style" in attributes:
            kept = "; ".join(KEPT_STYLE.findall(attributes["style"] or ""))
            attributes.pop("style")
            if kept:
                attributes["style"] = kept
        if "href" in attributes:
            attributes["href"] = self._link(attributes["href"] or "")
            attributes.pop("target", None)
        tag = element.tag
        classes = (attributes.get("class") or "").split()
        if tag == "span" and "paragraph" in classes:
            tag, attributes = "p", {}
        elif tag == "span" and "markdown" in classes:
            tag, attributes = "div", {"class": "markdown"}
        inner = self._children(element.children)
        begin = opening(Element(tag, attributes))
        if tag in VOID:
            return begin
        return f"{begin}{inner}</{tag}>"

    def _link(self, to: str) -> str:
        """Return the address on the site of a link in the lab."""
        lesson = re.match(r"/lesson/(\w+)/", to)
        if lesson:
            return frame.link(self.lang, self.here, f"lessons/{lesson[1]}.html")
        return frame.link(self.lang, self.here, frame.LESSONS.path) if to.startswith("/?") else to

    def _formula(self, element: Element) -> str:
        text = "".join(one for one in element.children if isinstance(one, str)).strip()
        display = text.startswith("||[")
        made = mathml(text[3:-3], display=display)
        return f'<div class="formula">{made}</div>' if display else made

    def _mime(self, element: Element) -> str:
        kind, data = json.loads(element.get("data-mime")), json.loads(element.get("data-data"))
        if "vegalite" not in kind:
            raise ValueError(f"a lesson may show charts of Vega-Lite, but got {kind}; convert it in convert.py")
        return self._chart(svg(json.loads(data) if isinstance(data, str) else data))

    def _accordion(self, element: Element) -> str:
        labels = json.loads(element.get("data-labels"))
        parts = [one for one in element.children if isinstance(one, Element)]
        made = ""
        for label, part in zip(labels, parts, strict=True):
            made += f"<details><summary>{self._inline(label)}</summary>{self._children(part.children)}</details>"
        return made

    def _callout(self, element: Element) -> str:
        kind = json.loads(element.get("data-kind"))
        inner = self._children(parse(json.loads(element.get("data-html"))))
        return f'<div class="callout {html.escape(kind)}">{inner}</div>'

    def _control(self, element: Element) -> str:
        inner = next((one for one in element.children if isinstance(one, Element)), Element(""))
        name, found = self._elements.get(element.get("object-id"), ("", None))
        if inner.tag == "marimo-anywidget" and name:
            widget = cast("Any", found).widget
            self.widgets[type(widget).__name__] = widget
            return pictures.mount(widget, self.lang, name)
        if inner.tag == "marimo-code-editor":
            return self._exercise(json.loads(inner.get("data-initial-value")))
        if inner.tag == "marimo-radio" and not name:  # a question of the homework
            choices = "".join(f"<li>{html.escape(one)}</li>" for one in json.loads(inner.get("data-options")))
            return f"<ul>{choices}</ul>"
        if name not in self.plan.stops:
            return ""
        return self.plan.markup(name, self._inline(json.loads(inner.get("data-label")) or ""))

    def _exercise(self, starter: str) -> str:
        """Show what an answer starts from, and how to have it marked."""
        programs = [one for one in EXERCISES if isinstance(one, Exercise)]
        found = next((one for one in programs if one.starter.of(self.lang).strip() == starter.strip()), None)
        how = "" if found is None else homework.marked(found, self.lang)
        return f"<pre><code>{html.escape(starter)}</code></pre>{how}"

    def _inline(self, label: str) -> str:
        """Return a label, which marimo wraps in a paragraph, as a few words."""
        return re.sub(r'</?p>|<div class="markdown">|</div>', "", self._children(parse(label)))


def _editor(one: Element | str | None) -> bool:
    return isinstance(one, Element) and any(
        isinstance(inner, Element) and inner.tag == "marimo-code-editor" for inner in one.children
    )


def _nothing(_: Element) -> str:
    return ""
