"""The lab's pictures as classic scripts: a browser loads no module from `file://`."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

from softscope._text import Text

if TYPE_CHECKING:
    from softscope._text import Lang

NEEDS_SCRIPT = Text(zh="这幅图需要 JavaScript。", en="This picture needs JavaScript.")


def script(widget: Any) -> str:
    """Return a picture's source as a script that registers it under its class name."""
    source = re.sub(r"^export default (\{.*?\});?\s*$", r"return \1;", str(widget._esm), flags=re.MULTILINE)
    source = re.sub(r"^export ", "", source, flags=re.MULTILINE)
    return f"(window.softscopePictures ??= {{}}).{type(widget).__name__} = (() => {{\n{source}\n}})();\n"


def maths() -> str:
    """Return the pictures' mathematics as a script, for what computes in the page without being a picture."""
    from softscope.lab.widgets.pictures import FOLDER

    source = (FOLDER / "maths.js").read_text("utf-8")
    names = ", ".join(re.findall(r"^export function (\w+)", source, flags=re.MULTILINE))
    source = re.sub(r"^export ", "", source, flags=re.MULTILINE)
    return f"window.softscopeMaths = (() => {{\n{source}\nreturn {{ {names} }};\n}})();\n"


def mount(widget: Any, lang: Lang, name: str = "") -> str:
    """Return the place where the picture goes, with the numbers it starts from."""
    state = {key: value for key, value in widget.get_state().items() if not key.startswith("_") and key in _own(widget)}
    written = html.escape(json.dumps(state, ensure_ascii=False), quote=True)
    return (
        f'<div class="picture" data-picture="{type(widget).__name__}" data-name="{name}" data-state="{written}">'
        f"<noscript>{NEEDS_SCRIPT.of(lang)}</noscript></div>"
    )


def _own(widget: Any) -> set[str]:
    """Return the traits that the picture declares, without those of every widget."""
    from anywidget import AnyWidget

    return set(widget.traits(sync=True)) - set(AnyWidget.class_traits(sync=True))
