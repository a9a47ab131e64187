"""Run a notebook cell by cell, and again with other values in its controls."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import marimo as mo
from marimo._ast.app import InternalApp
from marimo._plugins.ui._core.ui_element import UIElement

from softscope.site.lessons.controls import stops

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from softscope._text import Lang
    from softscope.lab.course import Lesson


@dataclass
class Cell:
    """A cell: its code, what it shows as HTML, and the elements that this depends on: controls, pictures and others."""

    id: str
    code: str
    shows: str
    makes: list[str]
    elements: list[str] = field(default_factory=list)
    controls: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)


class Run:
    """A notebook that has run in one language."""

    def __init__(self, lesson: Lesson, lang: Lang) -> None:
        spec = importlib.util.spec_from_file_location(lesson.notebook.stem, lesson.notebook)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._app = InternalApp(module.app)
        self._order = [name for name in self._app.execution_order if "lang" not in self._graph[name].defs]
        self.names: dict[str, Any] = {"lang": lang}
        shown = {name: self._show(name, self.names) for name in self._order}
        # The page's order is the file's; cells run in the order of what they need.
        self.cells = [self._cell(str(name), shown[name]) for name in self._graph if name in shown]

    @property
    def _graph(self) -> Mapping[Any, Any]:
        return self._app.graph.cells

    def _cell(self, name: str, shows: str) -> Cell:
        found = self._graph[name]
        made = [one for one in found.defs if isinstance(self.names.get(one), UIElement)]
        above = self._above(name)
        elements = {one: self.names[one] for one in sorted(above) if isinstance(self.names.get(one), UIElement)}
        # A control that cannot be replayed keeps the value it starts with.
        controls = [one for one, element in elements.items() if len(stops(element)) > 1]
        pictures = [one for one, element in elements.items() if isinstance(element, mo.ui.anywidget)]
        return Cell(name, found.code, shows, made, list(elements), controls, pictures)

    def _above(self, name: str) -> set[str]:
        """Return every name that a cell uses, also by way of other cells."""
        found: set[str] = set()
        waiting = [name]
        homes = {one: other for other in self._order for one in self._graph[other].defs}
        while waiting:
            for one in self._graph[waiting.pop()].refs:
                if one in homes and one not in found:
                    found.add(one)
                    waiting.append(homes[one])
        return found

    def again(self, cell: Cell, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return what a cell shows with these values in its controls, and the notebook's names then."""
        names = dict(self.names)
        with contextlib.ExitStack() as stack:
            for name, value in values.items():
                stack.enter_context(_set(names[name], value))
            wanted = {cell.id}
            for name in reversed(self._order):  # what lies between the controls and the cell
                if set(self._graph[name].defs) & {ref for one in wanted for ref in self._graph[one].refs}:
                    wanted.add(name)
            shown = ""
            for name in self._order:
                depends = set(values) & self._above(name) and not set(values) & set(self._graph[name].defs)
                if name in wanted and depends:
                    shown = self._show(name, names)
            return shown, names

    def _show(self, name: Any, names: dict[str, Any]) -> str:
        """Run a cell and return what it shows as HTML."""
        cell = self._graph[name]
        with _without_waiting():
            if cell.body is not None:
                exec(cell.body, names)
            made = None if cell.last_expr is None else eval(cell.last_expr, names)
            if cell.code.rstrip().endswith("mo.show_code()"):
                made = mo.md(f"```python\n{inspect.cleandoc(cell.code).replace('mo.show_code()', '').strip()}\n```")
            return "" if made is None else str(mo.as_html(made).text)


@contextlib.contextmanager
def _set(element: UIElement[Any, Any], value: Any) -> Iterator[None]:
    kept = element._value
    element._value = value
    try:
        yield
    finally:
        element._value = kept


@contextlib.contextmanager
def _without_waiting() -> Iterator[None]:
    """Show at once what a lesson shows only when somebody opens it: on a plain page nobody could compute it."""
    kept = mo.lazy

    def now(element: Any, **_: Any) -> Any:
        return mo.as_html(element() if callable(element) else element)

    mo.lazy = now  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        mo.lazy = kept  # type: ignore[misc]
