"""Both languages say everything, with the same values, and no number is typed in that a cell could compute."""

import ast
import re

import pytest

from lab.notebooks import NAMES, PAGES, said, spoken
from softscope.lab import course, index, practice
from softscope.lab.theme import THEMES
from softscope.lab.widgets import pictures

CHINESE = re.compile(r"[\u4e00-\u9fff]")
HALF_WIDTH = re.compile(r"[\u4e00-\u9fff][,;:!?]")
# Mathematics and code are not prose: they hold formulas or inputs, marked by `$` or ``` ` ```.
MARKED = re.compile(r"\$\$.*?\$\$|\$.*?\$|`.*?`", re.DOTALL)
# Numbers that are names, definitions or inputs chosen for the reader, each with the words around it.
ALLOWED = (
    "N(0, 1)", "1/√d", "Table 3", "总和为 1", "全部加 1", "add 1 to all", "乘 2", "times 2", "s(1−s)", "64 个",
    "64 queries", "64 keys", "除以 √d 后是 1",
)  # fmt: skip


def test_there_are_texts_to_test():
    assert len(PAGES) == len(NAMES) == 10
    assert all(len(said(path)) > 15 for path in PAGES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_both_languages(path):
    for one in said(path):
        assert not CHINESE.search(one.en), f"{one.where}: Chinese in the English text"
        if not re.fullmatch(r"[\W\d_a-zA-Z²√ᵀ]*", one.zh):
            assert CHINESE.search(one.zh), f"{one.where}: no Chinese in the Chinese text: {one.zh!r}"
        if len(one.zh) > 12:
            assert CHINESE.search(one.zh), f"{one.where}: no Chinese in {one.zh!r}"
        assert bool(one.zh.strip()) == bool(one.en.strip()) or len(one.zh) <= 2, f"{one.where}: one language is empty"
        assert one.values[0] == one.values[1], f"{one.where}: the languages show different values"
        assert not HALF_WIDTH.search(MARKED.sub("", one.zh)), f"{one.where}: half-width marks in {one.zh!r}"


def typed_numbers(text):
    """The digits in a text that are not part of a formula, of code or of an allowed name."""
    rest = MARKED.sub("", text)
    for name in ALLOWED:
        rest = rest.replace(name, "")
    return re.findall(r"\S*\d\S*", rest)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_number_is_typed_that_a_cell_could_compute(path):
    found = [(one.where, typed_numbers(text)) for one in said(path) for text in (one.zh, one.en)]
    assert [(where, numbers) for where, numbers in found if numbers] == []


def test_every_allowed_number_is_needed():
    texts = " ".join(MARKED.sub("", text) for path in PAGES for one in said(path) for text in (one.zh, one.en))
    assert [name for name in ALLOWED if name not in texts] == []


def test_a_typed_number_is_found():
    assert typed_numbers("the largest weight is 0.665, as N(0, 1) says") == ["0.665,"]
    assert typed_numbers("最大权重是 0.665") == ["0.665"]
    assert typed_numbers("softmax of `[1, 2, 3]` and $x^2$") == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_nothing_is_said_outside_of_both_languages(path):
    """Chinese in the code outside a call of t would be shown to everybody."""
    tree = ast.parse(path.read_text("utf-8"))
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "t"
        for part in ast.walk(node)
    }
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    outside = [node.value for node in strings if id(node) not in inside and CHINESE.search(node.value)]
    assert outside == []


def test_the_course_and_its_index_speak_both():
    texts = [text for lesson in course.LESSONS for text in (lesson.title, lesson.teaches)]
    texts += [value for value in vars(index).values() if isinstance(value, index.Text)]
    texts += [value for value in vars(practice).values() if isinstance(value, index.Text)]
    texts += [*index.STATES.values(), *(label for _, label in THEMES.values())]
    assert len(texts) > 30
    for text in texts:
        if text is index.OTHER:  # each language offers the other
            continue
        assert CHINESE.search(text.zh), text
        assert not CHINESE.search(text.en), text
        assert sorted(re.findall(r"{\w+}", text.zh)) == sorted(re.findall(r"{\w+}", text.en))


@pytest.mark.parametrize("name", ["steps", "softmax", "jacobian", "scaling", "attention"])
def test_the_pictures_speak_both(name):
    source = (pictures.FOLDER / f"{name}.js").read_text("utf-8")
    for key, chinese, english in spoken(name):
        assert not CHINESE.search(english), key
        assert chinese == english or CHINESE.search(chinese), key
        assert f'say("{key}")' in source or f"`{key[0]}$" in source or f'"{key}"' in source, f"{key} is not used"
