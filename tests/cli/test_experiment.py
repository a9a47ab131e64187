"""`softscope experiment`: the list, the formats, the chart file, and the messages for wrong usage."""

import json
import re
import sys

import pytest

from cli.commands import columns, program
from softscope import experiments
from softscope._text import LANGS, Text

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("lang", LANGS)
def test_the_list_has_name_time_and_question(run, lang):
    text = run.text("experiment", "--list", "--lang", lang)
    for name in experiments.NAMES:
        (line,) = [line for line in text.splitlines() if line.startswith(name + " ")]
        assert re.search(r"(\d+|<) *\d* (s|秒) ", line)
        assert experiments.entry(name).question.of(lang)[:8] in line
    assert max(map(columns, text.splitlines())) <= 80


@pytest.mark.parametrize("lang", LANGS)
def test_text(run, lang):
    text = run.text("experiment", "overflow", "--lang", lang)
    assert "0.0900, 0.2447, 0.6652" in text
    assert "709.783" in text
    assert bool(CHINESE.search(text)) == (lang == "zh")
    assert max(map(columns, text.splitlines())) <= 80
    result = experiments.run("overflow")
    assert result.question.of(lang)[:20] in text
    assert all(table.title.of(lang) in text for table in result.readable)


def test_json_is_the_same_in_both_languages(run):
    made = {lang: run.json("experiment", "extremes", "--lang", lang) for lang in LANGS}
    for document in made.values():
        assert document["schema"] == "softscope.experiment"
        assert document["schema_version"] == 1
        assert document.pop("seconds") >= 0
    assert made["en"] == made["zh"]


def test_markdown(run):
    text = run.text("experiment", "overflow", "--format", "markdown", "--lang", "zh")
    assert text == experiments.run("overflow", lang="zh").markdown()


def test_another_seed(run):
    first, second = (run.json("experiment", "extremes", "--seed", seed) for seed in ("0", "7"))
    assert second["settings"]["seed"] == 7
    assert first["tables"][2]["rows"] != second["tables"][2]["rows"]


@pytest.mark.parametrize("suffix", ["html", "svg", "png"])
def test_the_chart_is_written_and_named(run, tmp_path, suffix):
    path = tmp_path / f"chart.{suffix}"
    text = run.text("experiment", "overflow", "--plot", path, "--lang", "zh")
    assert f"chart.{suffix}" in text.splitlines()[-1] + text.splitlines()[-2]
    data = path.read_bytes()
    assert data[:4] in (b"<!DO", b"<svg", b"\x89PNG")
    assert suffix == "png" or "减去最大值" in data.decode("utf-8")


def test_the_chart_and_json_together(run, tmp_path):
    document = run.json("experiment", "overflow", "--plot", tmp_path / "x.svg")
    assert document["experiment"] == "overflow"
    assert (tmp_path / "x.svg").stat().st_size > 1000


WRONG = {
    (): Text(en="no experiment was given", zh="没有写实验的名字"),
    ("overflw",): Text(en="did you mean overflow?", zh="是不是想写 overflow？"),
    ("zzzzzz",): Text(en="choose from overflow, extremes", zh="可用的有 overflow, extremes"),
    ("overflow", "extremes"): Text(en="but got 2 names;", zh="2 个名字"),
    ("--list", "overflow"): Text(en="--list takes no name", zh="--list 不需要名字"),
    ("overflow", "--plot", "a.pdf"): Text(en=".html, .svg, .png", zh=".html, .svg, .png"),
    ("overflow", "--plot", "no/such/folder/a.svg"): Text(
        en="there is no folder no/such/folder", zh="没有 no/such/folder"
    ),
    ("overflow", "--format", "xml"): Text(en="text, json, markdown", zh="text, json, markdown"),
    ("overflow", "--large"): Text(en="overflow has no larger sizes", zh="overflow 没有更大的规模"),
    ("overflow", "--seed", "-1"): Text(en="--seed must be a whole number", zh="--seed 必须是不小于 0 的整数"),
    ("overflow", "--fast"): Text(en="experiment has no option --fast", zh="experiment 没有 --fast"),
}


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_use_is_one_sentence(run, words, lang):
    code, out, err = run("experiment", *words, "--lang", lang)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert WRONG[words].of(lang) in err
    assert bool(CHINESE.search(err)) == (lang == "zh")


def test_a_folder_is_no_file_and_what_cannot_be_written_is_said(run, tmp_path):
    (tmp_path / "x.svg").mkdir()
    code, out, err = run("experiment", "overflow", "--plot", tmp_path / "x.svg")
    assert (code, out) == (2, "")
    assert "is a folder; name a file in it" in err
    code, out, err = run("experiment", "overflow", "--plot", "/proc/x.svg")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot write /proc/x.svg" in err


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["overflow", "--plot", "x.svg"], "altair"),
        (["overflow", "--plot", "x.svg"], "vl_convert"),
        (["learning"], "torch"),
        (["saturation"], "sympy"),
    ],
)
def test_a_missing_package_is_named_before_the_work(tmp_path, words, package):
    code = (
        f"import sys; sys.modules[{package!r}] = None; from softscope.cli import main; "
        f"sys.exit(main({['experiment', *words]!r}))"
    )
    done = program("-c", code, command=(sys.executable,), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    wanted = f"this needs {package.replace('_', '-')}, which is not installed; run pip install 'softscope[experiments]'"
    assert done.stderr.startswith(f"softscope: {wanted}")
    assert list(tmp_path.iterdir()) == []


def test_help_has_examples_that_work(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run.text("experiment", "--help")
    examples = re.findall(r"^  softscope (experiment .*)$", text, re.MULTILINE)
    assert len(examples) >= 3
    quick = [line.split() for line in examples if "learning" not in line and "entropy" not in line]
    assert len(quick) == 2
    for words in quick:
        assert run.text(*words)
    assert json.loads(experiments.run("overflow").json())["experiment"] == "overflow"
