"""HTML as a tree, to find marimo's elements and put plain ones in their place."""

from __future__ import annotations

import html
import html.parser
from dataclasses import dataclass, field

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Element:
    """A tag with attributes and children; a child that is a string is text."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return an attribute; empty if it is not there."""
        return self.attributes.get(name) or ""


class _Parser(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, dict(attrs))
        self.open[-1].children.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if any(one.tag == tag for one in self.open[1:]):
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(text: str) -> list[Element | str]:
    """Return what an HTML fragment holds.

    >>> parse("<p>a <b>b</b></p>")[0].children[1].tag
    'b'
    """
    parser = _Parser()
    parser.feed(text)
    parser.close()
    return parser.open[0].children


def opening(element: Element) -> str:
    """Return an element's opening tag."""
    attributes = "".join(
        f" {name}" if value is None else f' {name}="{html.escape(value)}"' for name, value in element.attributes.items()
    )
    return f"<{element.tag}{attributes}>"
