"""`softscope watch` and `softscope export`: the table, the lines, a run still in progress, and wrong usage."""

import contextlib
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
from doctor.judge.histories import RESTING, STUCK, history, per_head, starving
from softscope._text import LANGS, Text
from softscope.cli.watch.states import letter, style
from softscope.doctor.judge.states import STATES
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
    title, *what, ruler, first, second, legend, end = text.splitlines()
    assert title == "run.db  step 10  loss 1.25  15.0 s"
    assert " ".join(what) == (
        "blocked rows of each head, % (over 10 is many), its state, then the smallest transmission"
    )
    assert ruler.split() == ["0", "1", "2", "3"]
    assert first.split() == ["blocks.0.attention", "0.", "<1.", "50.", ">99.", "0.001"]
    assert second.split() == ["blocks.1.attention", "25.", "100.", "–.", "8.", "0"]
    assert legend == ". learning 8"  # none of them was blocked three times in a row
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
        "step 10  loss 1.25  15.0 s  heads: 8 learning; most blocked 100% in blocks.1.attention head 1",
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


def test_cells_have_the_colour_of_their_state(tmp_path):
    _, text, _ = on_terminal("watch", str(played(tmp_path / "run.db", ill())), "--once")
    cells = {cell.strip(): colour for colour, cell in re.findall(r"\x1b\[(\d+;\d+)m(.{4})\x1b", text)}
    fine, doubtful, ill_indeed, read_only = "30;42", "30;43", "97;41", "30;46"
    assert cells.pop("90Z") == fine
    assert cells.pop("0.") == fine
    assert cells == {"90?": doubtful}
    _, text, _ = on_terminal("watch", str(played(tmp_path / "tried.db", starving(ill(), 1))), "--once")
    assert f"\x1b[{ill_indeed}m 90S" in text
    with Record(tmp_path / "still.db") as record:
        record.sites(sites(1))
        record.add(snapshot(3, [[0.0, 0.2, 0.3, 0.9]], loss=None))
    _, text, _ = on_terminal("watch", str(tmp_path / "still.db"), "--once")
    assert set(re.findall(r"\x1b\[(\d+;\d+)m", text)) == {read_only}  # no loss, no verdict


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [60, 80, 120])
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
    assert lines == 7
    assert f"\x1b[{lines}F\x1b[J" in sent.decode()  # moves up by as many lines as there are
    record.close()


def played(path, found, ended=""):
    """Record a history made by hand."""
    with contextlib.ExitStack() as closing:
        record = Record(path)
        closing.callback(record.close, ended)
        record.note(found.facts)
        record.sites(found.sites)
        for one in found.snapshots:
            record.add(one)
    return path


def ill(steps=6, **changes):
    """Head 0 rests; head 1 is sharp on the wrong keys."""
    readings = {name: {0: value} for name, value in per_head(0, RESTING).items() for value in value.values()}
    for name, value in per_head(1, STUCK).items():
        readings[name] = readings.get(name, {}) | {1: value[1]}
    return history(steps=range(steps), **readings | changes)


GREAT = 2000.0  # a largest logit that is a finding


def test_a_resting_head_does_not_look_like_a_starving_one(run, tmp_path):
    text = run.text("watch", played(tmp_path / "run.db", ill()), "--once")
    (row,) = [line for line in text.splitlines() if line.startswith("layers.0")]
    rests, stuck, *others = row.split()[1:5]
    assert rests == "90Z"
    assert stuck == "90?"
    assert others == ["0.", "0."]
    (legend,) = [line for line in text.splitlines() if "Z resting 1" in line]
    assert ". learning 2" in legend
    assert "heads: 1 suspected · 2 learning · 1 resting; most" in run.text("watch", tmp_path / "run.db")


def test_a_head_that_a_trial_found_starving_is_a_finding(run, tmp_path):
    path = played(tmp_path / "run.db", starving(ill(), 1))
    code, text, _ = run("watch", path, "--once", "--fail-on", "finding")
    assert code == 1
    assert "90S" in text
    assert "finding: SS001 Starving head  layers.0.attention head 1: " in text
    assert run("watch", path, "--fail-on", "finding")[0] == 1
    assert run("watch", played(tmp_path / "untried.db", ill()), "--fail-on", "finding")[0] == 0


def test_only_a_starving_head_is_red():
    assert [state for state in STATES if style(state) == "cell.most"] == ["starving"]
    assert all(style(state) == "cell.few" for state in ("learning", "right", "useful", "resting", "positional", "idle"))
    for doubtful in ("suspected", "uniform", "empty", "a-state-to-come"):
        assert style(doubtful) == "cell.many"


def test_every_state_has_a_letter_of_its_own():
    assert len({letter(state) for state in STATES}) == len(STATES)
    assert all(columns(letter(state)) == 1 for state in STATES)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_site_that_starves_is_shown_before_one_that_rests(tmp_path, width):
    readings = {name: {(site, 0): value for site in range(59)} for name, value in RESTING.items()}
    for name, value in STUCK.items():
        readings[name][59, 1] = value * 0.9 if name == "blocked" else value
    readings = {name.replace(":", "__"): change for name, change in readings.items()}
    path = played(tmp_path / "run.db", history(sites=60, steps=range(4), **readings))
    _, text, _ = on_terminal("watch", str(path), width=width)
    assert "59.attention" in COLOUR.sub("", text)
    assert "more site(s), none of them worse" in " ".join(COLOUR.sub("", text).split())


EVENTFUL = {"steps": range(7), "max_logit": {1: [6.0, GREAT, GREAT, GREAT, 6.0, 6.0, 6.0]}}


@pytest.mark.parametrize("lang", LANGS)
def test_an_event_is_a_line(tmp_path, lang):
    record = Record(tmp_path / "run.db")
    found = history(**EVENTFUL)
    record.sites(found.sites)
    record.add(found.snapshots[0])
    watcher = subprocess.Popen(
        [*MODULE, "watch", tmp_path / "run.db", "--lang", lang], stdout=subprocess.PIPE, env=environment(), text=True
    )
    first = watcher.stdout.readline()
    for one in found.snapshots[1:]:
        record.add(one)
    record.close()
    rest, _ = watcher.communicate(timeout=60)
    assert watcher.returncode == 0
    told = [line for line in (first + rest).splitlines() if "SS003" in line]
    assert (
        told
        == {
            "en": [
                "step 1  finding: SS003 Large or growing logits  layers.0.attention head 1: its largest logit is 2000, "
                "above 1000: training is unstable at this level",
                "step 6  ended: SS003 Large or growing logits  layers.0.attention head 1: it was absent from 3 "
                "readings in a row",
            ],
            "zh": [
                "第 1 步  问题：SS003 分数过大或持续增长  layers.0.attention 头 1：最大分数是 2000，超过 1000："
                "训练会不稳定",
                "第 6 步  结束：SS003 分数过大或持续增长  layers.0.attention 头 1：连续 3 次读数没有再出现",
            ],
        }[lang]
    )


def test_many_events_of_a_kind_are_few_lines(run, tmp_path):
    path = played(tmp_path / "run.db", history(sites=3, steps=range(2), max_logit=GREAT))
    told = [line for line in run.text("watch", path).splitlines() if "SS003" in line]
    assert len(told) == 3
    assert told[-1].endswith("; and 9 more")


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("extra", [(), ("--once",)])
def test_fail_on(run, tmp_path, extra, lang):
    """Exit code 1 for a finding at or above the severity, 0 without one, as `checkup` has it."""
    healthy, tip = {}, {"max_logit": {0: 500.0}}
    rests = per_head(0, RESTING)
    finding = {"max_logit": {0: GREAT}}
    codes = {"finding": [0, 0, 0, 1], "tip": [0, 0, 1, 1], "informative": [0, 1, 1, 1]}
    for severity, wanted in codes.items():
        for i, changes in enumerate((healthy, rests, tip, finding)):
            (tmp_path / "run.db").unlink(missing_ok=True)
            path = played(tmp_path / "run.db", history(**changes))
            code, out, err = run("watch", path, "--fail-on", severity, *extra, "--lang", lang)
            assert (code, err) == (wanted[i], ""), (severity, i)
            last = out.splitlines()[-1]
            assert last.startswith(f"--fail-on {severity}")
            assert bool(re.search(r"is 1\.|为 1。", last)) == bool(code)
            assert run("checkup", path, "--fail-on", severity)[0] == code
            assert run("watch", path, *extra)[0] == 0


def test_fail_on_ends_the_watch_while_the_run_goes_on(tmp_path):
    record = Record(tmp_path / "run.db")
    found = history(steps=range(3), max_logit={0: [6.0, 6.0, GREAT]})
    record.sites(found.sites)
    record.add(found.snapshots[0])
    watcher = subprocess.Popen(
        [*MODULE, "watch", tmp_path / "run.db", "--fail-on", "finding"], stdout=subprocess.PIPE, env=environment(),
        text=True,
    )  # fmt: skip
    assert watcher.stdout.readline().startswith("step 0")
    record.add(found.snapshots[1])
    assert watcher.stdout.readline().startswith("step 1")
    assert watcher.poll() is None
    record.add(found.snapshots[2])
    rest, _ = watcher.communicate(timeout=60)
    assert watcher.returncode == 1
    assert "step 2  finding: SS003" in rest
    record.close()


def test_fail_on_counts_though_nobody_reads_the_lines(tmp_path):
    path = played(tmp_path / "run.db", history(max_logit={0: GREAT}))
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*MODULE, "watch", path, "--fail-on", "finding"], stdout=writer, stderr=subprocess.PIPE, env=environment(),
        timeout=60, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_an_interrupted_watch_has_no_verdict(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(sites())
        record.add(snapshot(0, [[0, 0, 0, 0]] * 2))
        for words, wanted in ((("--fail-on", "tip"), 130), ((), 0)):
            watcher = subprocess.Popen(
                [*MODULE, "watch", tmp_path / "run.db", *words], stdout=subprocess.PIPE, env=environment(), text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip
            assert watcher.stdout.readline().startswith("step 0")
            watcher.send_signal(signal.SIGINT)
            watcher.communicate(timeout=60)
            assert watcher.returncode == wanted


@pytest.mark.parametrize("lang", LANGS)
def test_nothing_to_judge_is_no_success(run, tmp_path, lang):
    with Record(tmp_path / "run.db"):
        pass
    for extra in ((), ("--once",)):
        code, _, err = run("watch", tmp_path / "run.db", "--fail-on", "finding", *extra, "--lang", lang)
        assert (code, err.count("\n")) == (2, 1)
        assert ("no readings yet" in err) == (lang == "en")


def test_muted_checks_are_muted_here_too(run, tmp_path, monkeypatch):
    path = played(tmp_path / "run.db", history(max_logit={0: GREAT}))
    (tmp_path / "pyproject.toml").write_text('[tool.softscope]\nmute = ["SS003"]\n')
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("watch", path, "--fail-on", "finding")
    assert code == 0
    assert "SS003" not in out


def test_whoever_comes_late_sees_what_stands_and_what_was_learned_long_ago(run, tmp_path):
    """All readings count, not only the newest: the demand of the first steps tells that a head is right."""
    times = np.arange(300)
    satisfied = per_head(0, STUCK) | {
        "advantage": {0: 0.3}, "advantage_error": {0: 0.01}, "demand": {0: np.where(times < 30, 1.0, 1e-4)},
    }  # fmt: skip
    path = played(tmp_path / "run.db", history(steps=range(300), **satisfied))
    assert "R right 1" in run.text("watch", path, "--once", "--fail-on", "tip")
    assert "1 right" in run.text("watch", path)


WRONG = {
    (): Text(en="watch takes RECORD, but got 0 file name(s);", zh="0 个文件名"),
    ("a.db", "b.db"): Text(en="but got 2 file name(s);", zh="2 个文件名"),
    ("no-such.db",): Text(en="there is no file no-such.db", zh="没有 no-such.db"),
    ("text.db",): Text(en="text.db is not a softscope record", zh="不是 softscope 的记录"),
    ("empty.db",): Text(en="has not recorded anything yet", zh="尚未开始记录"),
    ("later.db",): Text(en="pip install -U softscope", zh="请升级"),
    (".",): Text(en=". is a folder", zh=". 是文件夹"),
    ("run.db", "--fast"): Text(en="watch has no option --fast", zh="watch 没有 --fast"),
    ("run.db", "--fail-on", "high"): Text(en="--fail-on must be finding, tip or", zh="--fail-on"),
    ("run.db", "--fail-on"): Text(en="--fail-on", zh="--fail-on"),
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
