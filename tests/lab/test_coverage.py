"""Every behaviour described in the source texts is shown by some lesson: we run the lessons and read what they show.

A line of `behaviours.txt` is a name and what a reader must see: patterns joined by `&&` stand in what one cell shows,
`##` separates cells of the same lesson. A comment in a notebook is not shown, so it cannot count.
"""

import functools
import html
import pathlib
import re

import pytest

from lab.notebooks import shown_by
from softscope.lab.course import LESSONS

LINES = (pathlib.Path(__file__).parent / "behaviours.txt").read_text("utf-8").splitlines()
WANTED = dict(line.split(maxsplit=1) for line in LINES)


@functools.cache
def cells(name):
    return [readable(text) for text in shown_by(name, "en")]


def readable(text):
    """What marimo sends to the browser, without its escapes."""
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    for _ in range(2):
        text = html.unescape(text)
    return re.sub(
        r"</?(span|code|strong|em|b|td|th|tr)\b[^>]*>|(\s|\\n)+", " ", text.replace('\\"', '"').replace("\\\\", "\\")
    )


def is_shown(looks, parts):
    """Whether the cells of one lesson show all that is looked for."""
    return all(
        any(all(re.search(one.strip(), part) for one in cell.split("&&")) for part in parts)
        for cell in looks.split("##")
    )


@pytest.mark.parametrize("name", WANTED)
def test_a_behaviour_is_shown_on_some_page(name):
    assert any(is_shown(WANTED[name], cells(lesson.name)) for lesson in LESSONS), f"no lesson shows {WANTED[name]}"


def test_the_list_is_complete():
    assert len(LINES) == len(WANTED) == 57
    found = {lesson.name for lesson in LESSONS for looks in WANTED.values() if is_shown(looks, cells(lesson.name))}
    assert len(found) >= 8, "some lesson shows nothing of the texts"


def test_what_is_not_on_a_page_is_not_found():
    assert not is_shown("no page says this", cells("scaling"))
    assert not is_shown("footnote 4 && Who is starving", cells("scaling")), "two cells are not one"
    assert is_shown("footnote 4 ## Who is starving", cells("scaling"))
