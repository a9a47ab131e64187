"""`softscope homework` on files: start, check, hint, next, list; exit codes 0, 1 and 2."""

import json
import os

import pytest

from cli.commands import columns, on_terminal
from lab.homework.answers import NUMPY, RIGHT, WRONG
from softscope._text import LANGS
from softscope.lab import homework
from softscope.lab.homework import IDS, Exercise


@pytest.fixture
def work(run, tmp_path, monkeypatch):
    """The runner in an empty folder, with its own home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOFTSCOPE_HOME", str(tmp_path / "home"))
    return run


def passed(*names):
    """Mark exercises as passed."""
    os.makedirs("home", exist_ok=True)
    with open("home/homework.json", "w") as stream:
        json.dump({"version": 1, "states": dict.fromkeys(names, "passed"), "hints": {}}, stream)


def test_from_start_to_the_next(work, tmp_path):
    out = work.text("homework", "start")
    path = tmp_path / "homework_softmax.py"
    assert "softscope homework check 1" in out
    code, out, err = work("homework", "check")
    assert (code, err) == (1, "")
    assert "Not yet: A stable softmax by hand" in out
    assert "No weight may be negative" in out
    assert "Input: [-1, 2]" in out
    path.write_text(path.read_text().replace("    return x", "    e = np.exp(x - np.max(x))\n    return e / e.sum()"))
    out = work.text("homework", "check", "--seed", 7)
    assert "Passed: A stable softmax by hand" in out
    assert "random inputs have seed 7" in out
    assert "What to notice: Subtracting the maximum" in out
    assert "softscope homework start 2" in out
    assert "Passed: 1 of 8." in work.text("homework", "list")
    assert "softscope homework start 2" in work.text("homework", "next")


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", [name for name in IDS if isinstance(homework.find(name), Exercise)])
def test_the_file_that_start_writes(work, tmp_path, name, lang):
    exercise = homework.find(name)
    work.text("homework", "start", name, "--lang", lang)
    text = (tmp_path / exercise.file).read_text("utf-8")
    assert text.startswith(f"# softscope homework: {name}\n")
    assert text.endswith(exercise.starter.of(lang))
    assert all(
        columns(line) <= 88 for line in text.splitlines() if line.startswith("#") and "standard_normal" not in line
    )
    compile(text, exercise.file, "exec")
    code, out, err = work("homework", "check", name, "--lang", lang)
    assert (code, err) == (1, "")
    assert all(columns(line) <= 80 for line in out.splitlines())


def test_nothing_is_overwritten(work, tmp_path):
    (tmp_path / "homework_softmax.py").write_text("mine")
    code, out, err = work("homework", "start", 1)
    assert (code, out) == (2, "")
    assert "homework_softmax.py already exists and was not changed" in err
    assert (tmp_path / "homework_softmax.py").read_text() == "mine"


def test_a_file_of_another_name_says_whose_it_is(work, tmp_path):
    (tmp_path / "mine.py").write_text("# softscope homework: sparsemax\n" + NUMPY + RIGHT["sparsemax"][0])
    assert "Passed: Sparsemax" in work.text("homework", "check", "mine.py")
    (tmp_path / "homework_log_softmax.py").write_text(NUMPY + RIGHT["log-softmax"][0])
    assert "Passed: Log-softmax" in work.text("homework", "check", tmp_path / "homework_log_softmax.py")
    (tmp_path / "other.py").write_text("x = 1")
    assert "does not say which exercise" in work("homework", "check", "other.py")[2]


def test_hints_come_one_by_one(work):
    assert "Hint 1 of 3" in work.text("homework", "hint")
    second = work.text("homework", "hint", "softmax")
    assert "Hint 1 of 3" in second
    assert "Hint 2 of 3" in second
    assert "That was the last hint" not in second
    assert "That was the last hint" in work.text("homework", "hint", 1)
    assert work.text("homework", "hint", 1).count("Hint") == 3


def test_skipping_ahead_and_back(work):
    assert "Skipped for now: A stable softmax by hand" in work.text("homework", "next", "--skip")
    assert "2 · The temperature experiment" in work.text("homework", "next")
    assert "Skipped for now: Sparsemax" in work.text("homework", "next", "sparsemax", "--skip")
    listed = work.text("homework", "list")
    assert listed.count("skipped") == 2
    passed(*IDS[1:])
    assert "1 · A stable softmax by hand" in work.text("homework", "next")


@pytest.mark.parametrize("lang", LANGS)
def test_the_finish(work, lang):
    passed(*(name for name in IDS if name != "dividing-by-the-sum"))
    out = work.text("homework", "check", "--answers", "c,a,b,c", "--lang", lang)
    assert ("You have passed all 8" in out) or ("8 道全部通过" in out)
    assert "softscope claims" in out.replace("\n", " ")
    assert work("homework", "check")[0] == 2
    assert "softscope claims" in work.text("homework", "next").replace("\n", " ")


def test_the_quiz_by_option(work):
    code, out, err = work(
        "homework", "check", "dividing-by-the-sum", "--answers", WRONG["dividing-by-the-sum"]["second"].source
    )
    assert (code, err) == (1, "")
    assert "Question 2, b: The sum is negative" in out
    assert "softscope homework check 6" in work.text("homework", "start", "dividing-by-the-sum")


@pytest.mark.parametrize("lang", LANGS)
def test_the_quiz_at_a_terminal(tmp_path, lang):
    words = ("homework", "check", "dividing-by-the-sum", "--lang", lang)
    home = {"SOFTSCOPE_HOME": str(tmp_path), "NO_COLOR": "1"}
    code, seen, errors = on_terminal(*words, typed=b"c\nzebra\nA\nb\nc\n", cwd=tmp_path, **home)
    assert (code, errors) == (0, ""), seen
    assert seen.count("a/b/c") == 5  # asked again after "zebra"
    assert all(columns(line) <= 80 for line in seen.splitlines())
    code, seen, errors = on_terminal(*words, typed=b"c\n\x04", cwd=tmp_path, **home)
    assert (code, errors) == (130, ""), seen


def test_what_an_answer_prints_cannot_steer_the_terminal(work, tmp_path):
    evil = "print('\\x1b[2J\\x07')\nclass E(Exception): pass\nE.__name__ = '\\x1b[31m'\n"
    evil += "def softmax(x):\n    raise E('\\x1b[31m\\n')\n"
    (tmp_path / "homework_softmax.py").write_text(evil)
    code, out, _ = work("homework", "check", 1)
    assert code == 1
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "It printed:" in out


def test_a_spoilt_record_is_told_once(work, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "homework.json").write_text("{")
    assert "could not be read" in work.text("homework", "list")
    work.text("homework", "hint")
    assert "could not be read" not in work.text("homework", "list")


def test_a_home_that_cannot_be_written(work, tmp_path):
    (tmp_path / "home").write_text("")
    assert "Your progress could not be saved" in work.text("homework", "hint")


MISTAKES = {
    "nothing": (["homework"], "write one of list, start, check, hint, next after homework"),
    "unknown action": (["homework", "solve"], "homework has no action solve"),
    "unknown exercise": (["homework", "start", "9"], "there is no exercise 9; choose 1 to 8"),
    "unknown name": (["homework", "hint", "softmin"], "there is no exercise softmin"),
    "two exercises": (["homework", "check", "1", "2"], "one exercise at a time, but got 2 as well;"),
    "list of one": (["homework", "list", "1"], "list takes no exercise"),
    "no file": (
        ["homework", "check", "1"],
        "there is no homework_softmax.py here; softscope homework start 1 writes it",
    ),
    "no such file": (["homework", "check", "nowhere.py"], "cannot read nowhere.py"),
    "binary file": (["homework", "check", "binary.py"], "binary.py is not a text file"),
    "folder": (["homework", "check", "homework_sparsemax.py"], "cannot read homework_sparsemax.py: Is a directory"),
    "quiz without a terminal": (
        ["homework", "check", "dividing-by-the-sum"],
        "pass --answers with 4 letters, such as abcd",
    ),
    "answers for code": (["homework", "check", "1", "--answers", "a"], "--answers is for the quiz"),
    "answers elsewhere": (
        ["homework", "hint", "dividing-by-the-sum", "--answers", "a"],
        "--answers goes only with check",
    ),
    "skip elsewhere": (["homework", "start", "--skip"], "--skip goes only with next"),
    "seed": (["homework", "check", "--seed", "-1"], "--seed must be a whole number of at least 0, but got -1\n"),
    "seed word": (["homework", "check", "--seed", "x"], "but got x\n"),
    "option": (["homework", "check", "--fast"], "homework has no option --fast"),
    "next of one": (["homework", "next", "3"], "got 3 as well"),
    "term": (["glossary", "fish"], "the glossary has no fish"),
}


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", MISTAKES)
def test_one_sentence_and_exit_code_2(work, tmp_path, name, lang):
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "homework_sparsemax.py").mkdir()
    words, says = MISTAKES[name]
    code, out, err = work(*words, "--lang", lang, stdin="")
    assert (code, out) == (2, "")
    assert err.startswith("softscope: ")
    assert err.count("\n") == 1
    assert says in err or lang == "zh"


@pytest.mark.parametrize(("codec", "named"), [("gbk", "GBK"), ("gb18030", "GBK"), ("utf-16", "UTF-16")])
def test_a_file_in_another_encoding_is_told_which(work, tmp_path, codec, named):
    source = NUMPY + "# 减去最大值\n" + RIGHT["softmax"][0]
    (tmp_path / "homework_softmax.py").write_bytes(source.encode(codec))
    code, out, err = work("homework", "check", "1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"homework_softmax.py is not in UTF-8, but in {named}; save it again with the encoding UTF-8" in err
    (tmp_path / "homework_softmax.py").write_bytes(source.encode("utf-8-sig"))
    assert work("homework", "check", "1")[0] == 0


@pytest.mark.parametrize("lang", LANGS)
def test_the_glossary(run, lang):
    out = run.text("glossary", "--lang", lang)
    assert all(columns(line) <= 80 for line in out.splitlines())
    assert out.count("\n") > 30
    assert "熵" in run.text("glossary", "entropy", "--lang", lang)
    assert "jacobian_product" in run.text("glossary", "Jacobian", "product")
    assert "Partition.peak" in run.text("glossary", "peak")
