"""Every text exists in both languages, shows the same values in both, and is used."""

import ast
import importlib
import pathlib
import re
import string

import pytest

import softscope.cli
from softscope.cli import words
from softscope.cli.checkup.live import COLUMNS
from softscope.cli.commands import COMMANDS
from softscope.cli.tour.stops import STOPS
from softscope.cli.words import WORDS
from softscope.doctor.events import EVENT_KINDS
from softscope.doctor.judge.checks import SEVERITIES
from softscope.doctor.record.problems import reasons
from softscope.experiments.ledger import VERDICTS

FILES = sorted(pathlib.Path(words.__file__).parent.glob("*.py"))
ROOM = pathlib.Path(softscope.cli.__file__).parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")
SAME_IN_BOTH = {
    "source.arguments",
    "column.logistic",
    "name.logistic",
    "joint",
    "homework.state.new",
}  # a formula, a symbol, an empty string


def fields(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


@pytest.mark.parametrize("key", WORDS)
def test_both_languages(key):
    english, chinese = WORDS[key].en, WORDS[key].zh
    assert fields(english) == fields(chinese)
    assert not CHINESE.search(english)
    assert (CHINESE.search(chinese) is None) == (key in SAME_IN_BOTH)
    assert english.count("\n") == chinese.count("\n") == 0
    if key not in SAME_IN_BOTH:
        assert not re.search(r"[,;!?]|\.$", re.sub(r"\(.*?\)|\{.*?\}|-1\.5|\d\.\d", "", chinese)), "half-width marks"


def test_there_are_words_to_test():
    assert len(WORDS) > 100
    modules = [importlib.import_module(f"{words.__name__}.{path.stem}") for path in FILES if path.stem != "__init__"]
    tables = [getattr(module, module.__name__.rpartition(".")[2].upper()) for module in modules]
    assert len(WORDS) == sum(map(len, tables)), "a key stands in two tables, or a table is left out"


def code_strings():
    """Every string in the CLI's code except docstrings and `words`; only the fixed parts of f-strings."""
    for path in ROOM.rglob("*.py"):
        if path.parent.name == "words":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        documentation = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                yield path.name, node.value


def test_no_text_outside_the_tables():
    strings = list(code_strings())
    assert len(strings) > 200
    # Marks that the layout and the number parser recognise are not text.
    assert [(path, text) for path, text in strings if CHINESE.search(text) and text != "权"] == []


def test_every_text_is_used():
    built = {f"{name}.{part}" for name in (*COMMANDS, "softscope") for part in ("summary", "description")}
    built |= {f"tour.{stop.name}.{part}" for stop in STOPS for part in ("title", "why", "measured")}
    built |= {f"source.{kind}" for kind in ("arguments", "stdin", "file")}
    built |= {f"undefined.{name}" for name in ("linear", "relu")}
    built |= {
        f"reading.{name}"
        for name in ("entropy", "effective_support", "peak", "sharpness", "jacobian_trace", "weight_sum")
    }
    built |= {f"claims.text.{text}" for text in ("000", "001", "002", "003", "004")}
    built |= {f"claims.verdict.{verdict}" for verdict in VERDICTS}
    built |= {f"claims.source.{stance}" for stance in ("supports", "contradicts")}
    built |= {f"record.{reason}" for reason in reasons()}
    built |= {f"watch.what.{kind}" for kind in ("moving", "still")}
    built |= {f"watch.severity.{severity}" for severity in SEVERITIES}
    built |= {f"watch.event.{kind}" for kind in EVENT_KINDS}
    built |= {f"homework.state.{state}" for state in ("new", "tried", "skipped", "passed")}
    built |= {f"glossary.column.{column}" for column in ("en", "zh", "symbol", "code")}
    built |= {f"checkup.column.{name}" for name in COLUMNS}
    used = built | {text for _, text in code_strings()}
    assert sorted(set(WORDS) - used) == []
