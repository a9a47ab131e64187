"""`softscope watch` and `softscope export`: the table, the lines, a run still in progress, and wrong usage."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cli.commands import COLOUR, MODULE, columns, environment, on_terminal, program
from softscope._text import LANGS, Text
from softscope.doctor.read.snapshot import Site, Snapshot
from softscope.doctor.record import Record, read_record

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def sites(layers=2, heads=4):
    return [Site(f"blocks.{i}.attention", "sdpa", heads, heads, 0.125, 64) for i in range(layers)]


def snapshot(step, shares, loss=2.0):
    """One share per site and head: blocked if there is a loss, sharpness otherwise."""
    shares = np.array(shares, np.float32)
    readings = {"sharpness": shares}
    if loss is not None:
        readings |= {"blocked": shares, "transmission": 1.0 - shares}
    return Snapshot(step, 1.5 * step, loss, readings)


@pytest.fixture
def path(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(sites())
        record.add(snapshot(0, [[0, 0, 0, 0]] * 2))
        record.add(snapshot(10, [[0.0, 0.004, 0.5, 0.999], [0.25, 1.0, np.nan, 0.08]], loss=1.25))
    return tmp_path / "run.db"


def test_one_look(run, path):
    text = run.text("watch", path, "--once")
    title, what, ruler, *rows, end = text.splitlines()
    assert title == "run.db  step 10  loss 1.25  15.0 s"
    assert what == "blocked rows of each head, % (over 10 is many), then the smallest transmission"
    assert ruler.split() == ["0", "1", "2", "3"]
    assert [row.split() for row in rows] == [
        ["blocks.0.attention", "0", "<1", "50", ">99", "0.001"],
        ["blocks.1.attention", "25", "100", "–", "8", "0"],
    ]
    assert end == "The run has ended."


def test_both_languages(run, path):
    chinese = run.text("watch", path, "--once", "--lang", "zh")
    assert "第 10 步  损失 1.25  15.0 秒" in chinese
    assert "被阻断" in chinese
    assert "训练已结束。" in chinese
    assert not CHINESE.search(run.text("watch", path, "--once"))


def test_without_a_loss_sharpness_and_no_verdict(run, tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(sites(1))
        record.add(snapshot(3, [[0.1, 0.2, 0.3, 0.9]], loss=None))
    text = run.text("watch", tmp_path / "run.db", "--once")
    assert "no loss seen, so we cannot tell what is blocked" in " ".join(text.split())
    assert re.search(r"blocks.0.attention +10 +20 +30 +90$", text, re.MULTILINE)
    assert "blocked:" not in run.text("watch", tmp_path / "run.db")
    assert "sharpest 90% in blocks.0.attention head 3" in run.text("watch", tmp_path / "run.db")


def test_a_loss_of_nan_is_named(run, tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(sites(1))
        record.add(snapshot(3, [[0.1, 0.2, 0.3, 0.9]], loss=float("nan")))
    assert "loss NaN" in run.text("watch", tmp_path / "run.db", "--once")


def test_before_the_first_reading(run, tmp_path):
    with Record(tmp_path / "run.db"):
        assert "the run has started, but there are no readings yet" in run.text("watch", tmp_path / "run.db", "--once")


def test_elsewhere_than_on_a_terminal_a_line_for_each_reading(path):
    done = program("watch", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "step 10  loss 1.25  15.0 s  blocked: 4 of 7 heads over 10%, most 100% in blocks.1.attention head 1",
        "The run has ended.",
    ]


def test_a_run_that_goes_on_is_followed_to_its_end(tmp_path):
    record = Record(tmp_path / "run.db")
    record.sites(sites())
    record.add(snapshot(0, [[0, 0, 0, 0]] * 2))
    watcher = subprocess.Popen(
        [*MODULE, "watch", tmp_path / "run.db"], stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert watcher.stdout.readline().startswith("step 0 ")
    for step in (1, 2, 3):  # all of them, even if several arrive between two looks
        record.add(snapshot(step, [[0.2, 0, 0, 0]] * 2))
    assert [watcher.stdout.readline().split("  ")[0] for _ in range(3)] == ["step 1", "step 2", "step 3"]
    record.close("KeyboardInterrupt")
    rest, _ = watcher.communicate(timeout=60)
    assert (watcher.returncode, rest) == (0, "The run ended with KeyboardInterrupt.\n")


def test_cells_have_the_colour_of_their_number(path, tmp_path):
    _, text, _ = on_terminal("watch", str(path), "--once")
    cells = {cell.strip(): colour for colour, cell in re.findall(r"\x1b\[(\d+;\d+)m(.{3})\x1b", text)}
    few, many, most, read_only = "30;42", "30;43", "97;41", "30;46"
    assert cells == {"0": few, "<1": few, "8": few, "25": many, "50": many, ">99": most, "100": most}
    with Record(tmp_path / "still.db") as record:
        record.sites(sites(1))
        record.add(snapshot(3, [[0.0, 0.2, 0.3, 0.9]], loss=None))
    _, text, _ = on_terminal("watch", str(tmp_path / "still.db"), "--once")
    assert set(re.findall(r"\x1b\[(\d+;\d+)m", text)) == {read_only}  # no loss, no verdict


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [60, 80])
def test_on_a_terminal_it_fits(tmp_path, width, lang):
    with Record(tmp_path / "run.db") as record:
        record.sites(sites(60, 20))  # more than 40 lines
        shares = np.zeros((60, 20))
        shares[37, 5], shares[55, 0] = 0.9, 0.2
        record.add(snapshot(0, shares))
    code, text, errors = on_terminal("watch", str(tmp_path / "run.db"), "--lang", lang, width=width)
    assert (code, errors) == (0, "")
    assert COLOUR.search(text)
    assert text.startswith("\x1b[J")
    lines = COLOUR.sub("", text.removeprefix("\x1b[J")).splitlines()
    assert max(map(columns, lines)) <= width
    assert 10 < len(lines) < 40
    names = [line.split()[0] for line in lines if "attention" in line]
    assert {"blocks.37.attention", "blocks.55.attention"} <= {name.replace("…", "") for name in names} or width == 60
    assert re.search(r"\d+ more site|另有 \d+ 个位置", "".join(lines))


def test_on_a_terminal_it_is_drawn_over_itself_and_ctrl_c_ends_it(tmp_path):
    import pty

    record = Record(tmp_path / "run.db")
    record.sites(sites())
    record.add(snapshot(7, [[0, 0, 0, 0]] * 2))
    ours, theirs = pty.openpty()
    watcher = subprocess.Popen(
        [*MODULE, "watch", tmp_path / "run.db"], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
        env=environment(COLUMNS="90", LINES="40"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored if we were started in the background
    )  # fmt: skip
    os.close(theirs)
    sent = b""

    def until(word):
        nonlocal sent
        give_up = time.monotonic() + 60
        while word not in sent:
            assert time.monotonic() < give_up, sent
            sent += os.read(ours, 65536)

    until(b"step 7 ")
    until(b"Ctrl-C stops watching, not the run.")
    record.add(snapshot(8, [[0, 0, 0, 0.3]] * 2))
    until(b"step 8 ")
    watcher.send_signal(signal.SIGINT)
    _, errors = watcher.communicate(timeout=60)
    os.close(ours)
    assert (watcher.returncode, errors) == (0, b"")
    frames = COLOUR.sub("", sent.decode()).split("\x1b[J")[1:]
    lines = frames[0].rpartition("\x1b[")[0].count("\n")
    assert lines == 6
    assert f"\x1b[{lines}F\x1b[J" in sent.decode()  # moves up by as many lines as there are
    record.close()


WRONG = {
    (): Text(en="watch takes RECORD, but got 0 file name(s);", zh="0 个文件名"),
    ("a.db", "b.db"): Text(en="but got 2 file name(s);", zh="2 个文件名"),
    ("no-such.db",): Text(en="there is no file no-such.db", zh="没有 no-such.db"),
    ("text.db",): Text(en="text.db is not a softscope record", zh="不是 softscope 的记录"),
    ("empty.db",): Text(en="has not recorded anything yet", zh="尚未开始记录"),
    ("later.db",): Text(en="pip install -U softscope", zh="请升级"),
    (".",): Text(en=". is a folder", zh=". 是文件夹"),
    ("run.db", "--fast"): Text(en="watch has no option --fast", zh="watch 没有 --fast"),
}


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_use_is_one_sentence(run, path, monkeypatch, words, lang):
    monkeypatch.chdir(path.parent)
    (path.parent / "text.db").write_text("hello")
    (path.parent / "empty.db").touch()
    (path.parent / "later.db").write_bytes(path.read_bytes()[:60] + (99).to_bytes(4, "big") + path.read_bytes()[64:])
    for extra in ((), ("--once",)):
        code, out, err = run("watch", *words, *extra, "--lang", lang)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert WRONG[words].of(lang) in err
        assert bool(CHINESE.search(err)) == (lang == "zh")


def test_torch_stays_unimported(path):
    code = "import sys; from softscope.cli import main; main(sys.argv[1:]); sys.exit('torch' in sys.modules)"
    assert program("-c", code, "watch", str(path), command=(sys.executable,)).returncode == 0
    assert program("-c", code, "export", str(path), f"{path}.csv", command=(sys.executable,)).returncode == 0


@pytest.mark.parametrize("lang", LANGS)
def test_export(run, path, tmp_path, lang, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a long path would be shortened
    text = run.text("export", path, "out.csv", "--lang", lang)
    assert "out.csv" in text
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text("utf-8").splitlines()))
    history = read_record(path)
    assert len([row for row in rows if row["site"]]) == 2 * 3 * 8
    assert {row["step"] for row in rows} == {"0", "10"}
    run.text("export", path, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["facts"] == history.facts


EXPORTS = {
    ("run.db",): Text(en="export takes RECORD FILE, but got 1", zh="1 个文件名"),
    ("run.db", "out.xlsx"): Text(en=".csv, .json, .parquet", zh=".csv, .json, .parquet"),
    ("no.db", "out.csv"): Text(en="there is no file no.db", zh="没有 no.db"),
    ("run.db", "no/folder/out.csv"): Text(en="cannot write no/folder/out.csv: No such file", zh="无法写入"),
}


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("words", EXPORTS)
def test_a_wrong_export_is_one_sentence(run, path, monkeypatch, words, lang):
    monkeypatch.chdir(path.parent)
    code, out, err = run("export", *words, "--lang", lang)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert EXPORTS[words].of(lang) in err
    assert os.listdir(path.parent) == ["run.db"]


def test_parquet_without_pyarrow_says_what_to_install(run, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, out, err = run("export", path, f"{path}.parquet")
    assert (code, out) == (2, "")
    assert "needs pyarrow, which is not installed; run pip install 'softscope[parquet]'" in err
