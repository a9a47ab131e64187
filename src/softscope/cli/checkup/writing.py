"""The diagnosis as text, JSON or an HTML page, on the console and in a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from softscope.cli.layout import wrap
from softscope.cli.problems import UsageError, safe, shown
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
        console.write(json.dumps(document(diagnoses), indent=2, ensure_ascii=False, allow_nan=False))
    elif form == "html":
        console.write(page(diagnoses, console.lang).rstrip("\n"))
    else:
        for diagnosis in diagnoses:
            text(diagnosis, console)


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
