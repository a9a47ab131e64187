"""Every term has all its names, those names exist, and our texts use them."""

import ast
import dataclasses
import pathlib
import re

import pytest

import softscope
from lab.homework.test_exercises import texts
from lab.notebooks import PAGES, said, spoken, taken_apart
from softscope._text import Text
from softscope.cli.words import WORDS
from softscope.lab import index, practice
from softscope.lab.course import LESSONS
from softscope.lab.glossary import TERMS, disagreements, exists, find
from softscope.lab.homework import EXERCISES
from softscope.lab.theme import THEMES
from softscope.testing.sentences import CLAIMS, SENTENCES

SOURCE = pathlib.Path(softscope.__file__).parent


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.en)
def test_every_term_is_whole(term):
    assert all((term.en, term.zh, term.symbol, term.code))
    assert exists(term.code), term.code
    assert find(term.en) is find(term.zh) is find(f"{term.en}s") is find(term.en.upper()) is term
    assert term.pattern.search(f"the {term.en}, and so on")


def test_there_are_terms_and_none_twice():
    assert len(TERMS) > 30
    for name in ("en", "zh"):
        names = [getattr(term, name) for term in TERMS]
        assert len(names) == len(set(names))
    assert find("fish") is None
    assert find("") is None


@pytest.mark.parametrize(("en", "zh"), [("advantage", "优势"), ("blocked", "被阻断"), ("gain", "增益")])
def test_what_the_lessons_lean_on_is_there(en, zh):
    assert find(en).zh == zh


def test_an_unknown_code_name_is_found_out():
    assert not exists("softmin")
    assert not exists("softmax(beta)")
    assert not exists("Partition.heat")


@pytest.mark.parametrize("key", WORDS)
def test_the_command_line_uses_the_words(key):
    assert disagreements(zh=WORDS[key].zh, en=WORDS[key].en) == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_homework_uses_the_words(exercise):
    for _, text in texts(exercise):
        assert disagreements(zh=text.zh, en=text.en) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_lessons_use_the_words(path):
    assert [wrong for one in said(path) for wrong in disagreements(zh=one.zh, en=one.en)] == []


def test_the_index_and_the_course_use_the_words():
    places = (*(vars(module).values() for module in (index, practice)), *((x.title, x.teaches) for x in LESSONS))
    pairs = [text for values in places for text in values if isinstance(text, Text)]
    assert len(pairs) > 35
    for text in (*pairs, *index.STATES.values(), *(label for _, label in THEMES.values())):
        assert disagreements(zh=text.zh, en=text.en) == []


def test_the_doctor_uses_the_words():
    """Texts assembled from parts are checked the same way."""
    checked = 0
    for path in (SOURCE / "doctor").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            said_by = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if said_by not in ("Text", "words"):
                continue
            languages = {keyword.arg: keyword.value for keyword in node.keywords}
            if all(isinstance(x, ast.JoinedStr | ast.Constant) for x in languages.values()):
                (zh, _), (en, _) = taken_apart(languages["zh"]), taken_apart(languages["en"])
                assert disagreements(zh=zh, en=en) == [], f"{path.name}:{node.lineno}"
                checked += 1
    assert checked > 200


@pytest.mark.parametrize("name", ["steps", "softmax", "jacobian", "scaling", "attention"])
def test_the_pictures_use_the_words(name):
    for _, chinese, english in spoken(name):
        assert disagreements(zh=chinese, en=english) == []


def test_the_contract_battery_uses_the_words():
    for text in (*SENTENCES.values(), *(claim for _, claim in CLAIMS.values())):
        assert disagreements(zh=text.zh, en=text.en) == []


def test_no_text_uses_a_word_that_is_avoided():
    """Check all Chinese in the package, wherever it is; only the glossary itself may name the words to avoid.

    打分 (to score) is a good word unless it means logits, and only a pair of texts can tell.
    """
    seen = 0
    for path in SOURCE.rglob("*.py"):
        if path.parent.name == "glossary":
            continue
        for line in path.read_text("utf-8").splitlines():
            if re.search(r"[\u4e00-\u9fff]", line):
                seen += 1
                for term in TERMS:
                    # English on the same line may well say Jacobian.
                    wrong = [
                        word for word in term.avoid if not word.isascii() and word != "打分" and re.search(word, line)
                    ]
                    assert not wrong, f"{path.name}: {line}"
    assert seen > 500


def test_the_checker_finds_what_is_wrong():
    assert disagreements(zh="", en="the entropy of the weights")[0].startswith("weight is 权重")
    assert len(disagreements(zh="", en="the entropy of the weights")) == 2
    assert disagreements(zh="打分很大", en="the logits are large")
    assert disagreements(zh="三种打分", en="three ways to score") == []
    assert disagreements(zh="打分函数", en="the score function") == []
    assert disagreements(zh="把 `softmax` 除以 T", en="divide by `temperature` and {weights}") == []
    assert disagreements(zh="softmax", en="Softmax(x)") == []
    term = dataclasses.replace(TERMS[0], loose=True)
    assert term.loose
