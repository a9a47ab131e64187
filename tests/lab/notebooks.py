"""The lessons as text: every `t(zh=…, en=…)` in them, taken apart, and the words in the pictures."""

import ast
import dataclasses
import importlib.util
import pathlib
import re

from softscope.lab.course import FOLDER, LESSONS, lesson
from softscope.lab.widgets import pictures

PAGES = sorted(FOLDER.glob("*.py"))
NAMES = [one.name for one in LESSONS]


@dataclasses.dataclass
class Said:
    """One call of t: its location, the fixed words in both languages, and the values filled into each."""

    where: str
    zh: str
    en: str
    values: tuple[list[str], list[str]]


def said(path: pathlib.Path) -> list[Said]:
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "t":
            languages = {keyword.arg: keyword.value for keyword in node.keywords}
            assert not node.args, f"{path.name}:{node.lineno}: a text names its languages"
            assert set(languages) == {"zh", "en"}, f"{path.name}:{node.lineno}: a text has both languages"
            (zh, filled_zh), (en, filled_en) = taken_apart(languages["zh"]), taken_apart(languages["en"])
            found.append(Said(f"{path.name}:{node.lineno}", zh, en, (filled_zh, filled_en)))
    return found


def taken_apart(node: ast.expr) -> tuple[str, list[str]]:
    """The fixed words of a string, and the expressions between them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value, []
    assert isinstance(node, ast.JoinedStr), f"line {node.lineno}: a text is a string, and nothing else"
    words = "".join(part.value for part in node.values if isinstance(part, ast.Constant))
    return words, sorted(ast.unparse(part.value) for part in node.values if isinstance(part, ast.FormattedValue))


def spoken(name: str) -> list[tuple[str, str, str]]:
    """The words in a picture: key, Chinese, English."""
    source = (pictures.FOLDER / f"{name}.js").read_text("utf-8")
    block = source[source.index("const WORDS") : source.index("};")]
    pairs = re.findall(r'^\s+(\w+): \{ zh: "(.*?)", en: "(.*?)" \},$', block, re.MULTILINE)
    assert len(pairs) == block.count("\n") - 1 >= 6
    return pairs


def opened(name: str):
    """The marimo app of a lesson."""
    notebook = lesson(name).notebook
    spec = importlib.util.spec_from_file_location(notebook.stem, notebook)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


def shown_by(name: str, lang: str) -> list[str]:
    """Run a lesson and return what each of its cells shows, as the browser gets it."""
    outputs, _ = opened(name).run(defs={"lang": lang})
    return [
        one.text if hasattr(one, "text") else one.to_json()
        for one in outputs
        if hasattr(one, "to_json") or hasattr(one, "text")
    ]
