"""The learner's files: we write them once with the task on top, never overwrite them, and read them with care."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from softscope.cli.layout import wrap
from softscope.cli.problems import UsageError, shown
from softscope.lab import homework
from softscope.lab.homework import LIMITS, Exercise

if TYPE_CHECKING:
    import pathlib

    from softscope.cli.console import Console
    from softscope.lab.homework import Quiz

_MARK = "# softscope homework: "
_COLUMNS = 88


def content(exercise: Exercise, console: Console) -> str:
    """Return the file to complete: a marker naming the exercise, the task as a comment, and the starter."""
    lines = [_MARK + exercise.id, "#"]
    number = homework.number(exercise)
    title = exercise.title.of(console.lang)
    lines.append("# " + console.say("homework.head", number=number, all=len(homework.IDS), title=title))
    lines.append("#")
    for paragraph in exercise.task.of(console.lang).split("\n"):
        lines += [line.rstrip() for line in wrap(paragraph, _COLUMNS, "# ")] if paragraph else ["#"]
    command = f"softscope homework check {number}"
    lines += ["#", "# " + console.say("homework.file.check", command=command), ""]
    return "\n".join(lines) + "\n" + exercise.starter.of(console.lang)


def write(exercise: Exercise, console: Console) -> None:
    """Write the file into the current folder, unless one with that name exists."""
    try:
        with open(exercise.file, "x", encoding="utf-8") as stream:
            stream.write(content(exercise, console))
    except FileExistsError:
        raise UsageError("homework.exists", file=exercise.file) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError("homework.unwritable", file=exercise.file, reason=reason) from None


def read(path: pathlib.Path, exercise: Exercise) -> str:
    """Read the text of an answer."""
    try:
        with path.open("rb") as stream:
            # A character has at most four bytes; the grader rejects anything longer, and says why.
            return stream.read(4 * LIMITS.source + 4).decode("utf-8-sig")
    except FileNotFoundError:
        number = homework.number(exercise)
        raise UsageError("homework.absent", file=shown(path), number=number) from None
    except UnicodeDecodeError as error:
        found = _encoding(error.object)
        if not found:
            raise UsageError("homework.no_text", file=shown(path)) from None
        raise UsageError("homework.encoding", file=shown(path), found=found) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError("homework.unreadable", file=shown(path), reason=reason) from None


def _encoding(content: bytes) -> str:
    """Guess what a text that is not UTF-8 was saved in; "" if it is no text. Editors on Chinese Windows write GBK."""
    for name, codec in (("UTF-16", "utf-16"), ("GBK", "gb18030")):
        if name == "UTF-16" and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
            continue
        with contextlib.suppress(UnicodeDecodeError):
            if all(line.isprintable() for line in content.decode(codec).replace("\t", " ").splitlines()):
                return name
    return ""


def exercise_of(path: pathlib.Path) -> Exercise | Quiz:
    """Find which exercise a file answers, by its marker or its name."""
    by_name = {exercise.file: exercise for exercise in homework.EXERCISES if isinstance(exercise, Exercise)}
    found = by_name.get(path.name)
    if path.is_file():
        anything = next(iter(by_name.values()))
        mark = re.search(rf"^{_MARK}([a-z-]+)\s*$", read(path, anything), re.MULTILINE)
        if mark is not None and mark[1] in homework.IDS:
            return homework.find(mark[1])
    elif found is None:
        raise UsageError("homework.unreadable", file=shown(path), reason="No such file")
    if found is None:
        raise UsageError("homework.whose", file=shown(path))
    return found
