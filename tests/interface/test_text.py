"""One type for bilingual text: its languages are named, and no room defines its own."""

import ast
import pathlib

import pytest

import softscope
from softscope._text import LANGS, Text, same

SOURCE = pathlib.Path(softscope.__file__).parent


def test_the_languages_are_named():
    with pytest.raises(TypeError):
        Text("熵", "entropy")
    with pytest.raises(TypeError):
        Text(zh="熵")
    assert Text(zh="熵", en="entropy") == Text(en="entropy", zh="熵") != same("entropy")


def test_every_language_is_spoken():
    text = Text(zh="熵", en="entropy")
    assert {lang: text.of(lang) for lang in LANGS} == {"en": "entropy", "zh": "熵"}


def test_values_are_filled_in_by_language():
    text = Text(zh="{}：{name} {{n}}", en="{}: {name} {{n}}").format(Text(zh="头", en="head"), name="{x}")
    assert text == Text(zh="头：{x} {n}", en="head: {x} {n}")


def definitions(names):
    """Where the package's modules define these names, as a class, a function or a variable."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                    told = [name]
                case ast.Assign(targets=targets):
                    told = [target.id for target in targets if isinstance(target, ast.Name)]
                case ast.AnnAssign(target=ast.Name(id=name)):
                    told = [name]
                case _:
                    told = []
            found += [(name, path.relative_to(SOURCE).as_posix()) for name in told if name in names]
    return found


def test_no_room_has_a_text_type_of_its_own():
    names = {"Text", "Lang", "LANGS", "same", "said"}
    assert sorted(definitions(names)) == sorted((name, "_text.py") for name in names)


def test_no_text_is_written_by_position():
    """A type checker sees this, too, but not in the lessons' cells."""
    seen = 0
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Text", "t"):
                languages = {keyword.arg for keyword in node.keywords}
                assert not node.args, f"{path}:{node.lineno}"
                assert languages == {"zh", "en"}, f"{path}:{node.lineno}"
                seen += 1
    assert seen > 2000
