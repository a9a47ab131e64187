"""The diagnosis as text, JSON or an HTML page, on the console and in a file."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from softscope._text import safe
from softscope.cli.layout import wrap
from softscope.cli.problems import UsageError, shown
from softscope.doctor.report import document, lines, page

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Sequence

    from softscope.cli.console import Console
    from softscope.doctor.diagnosis import Diagnosis

_STYLES = {
    "title": "bold", "finding": "negative", "tip": "caution", "informative": "bar", "passed": "code", "dim": "dim"
}  # fmt: skip


def show(diagnoses: Sequence[Diagnosis], form: str, console: Console) -> None:
    """Write all diagnoses in one format."""
    if form == "json":
        console.write(_as_json(document(diagnoses)))
    elif form == "html":
        console.write(page(diagnoses, console.lang).rstrip("\n"))
    else:
        for diagnosis in diagnoses:
            text(diagnosis, console)


def _as_json(made: dict[str, Any]) -> str:
    r"""JSON that keeps Chinese as it is, and escapes whatever would change the terminal.

    >>> print(_as_json({"a": "熵\x9b\u202e"}))
    {
      "a": "熵\u009b\u202e"
    }
    """
    written = json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False)
    return re.sub(r"[^\n -~]", lambda c: c[0] if safe(c[0]) == c[0] else json.dumps(c[0])[1:-1], written)


def text(diagnosis: Diagnosis, console: Console) -> None:
    """Write the lines, wrapped to the console and in its colours."""
    for line in lines(diagnosis, console.lang):
        blanks = " " * line.indent
        for part in wrap(safe(line.text), console.width, blanks):
            console.write(console.paint(part.rstrip(), _STYLES[line.style]) if line.style else part.rstrip())


def check(path: pathlib.Path) -> None:
    """Fail before the work starts if we could not write the report."""
    if path.is_dir():
        raise UsageError("experiment.folder", path=shown(path))
    if not path.parent.is_dir():
        raise UsageError("experiment.nowhere", path=shown(path), folder=shown(path.parent))


def page_to(path: pathlib.Path, diagnoses: Sequence[Diagnosis], console: Console, *, tell: bool) -> None:
    """Write the page to a file, and say so."""
    try:
        path.write_text(page(diagnoses, console.lang), "utf-8")
    except OSError as error:
        raise UsageError(
            "checkup.unwritable", path=shown(path), reason=error.strerror or type(error).__name__
        ) from None
    if tell:
        console.write()
        console.write(console.say("checkup.report.written", path=path))
