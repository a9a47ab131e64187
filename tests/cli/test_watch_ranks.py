"""`softscope watch` of a run on several ranks, and of one that was killed."""

import json
import os
import re
import sqlite3
import subprocess

import pytest

from cli.commands import COLOUR, MODULE, columns, environment, on_terminal
from cli.test_watch import GREAT, played, sites, snapshot
from doctor.judge.histories import history
from doctor.record.runs import process
from softscope._text import LANGS
from softscope.doctor.record import Record, news, writer

GONE = {
    "en": r"The run was killed, or ended without closing its record: its process is gone\. It last wrote (\d+) s ago\.",
    "zh": r"训练被强制结束了，或没有关闭记录就退出了：它的进程已不在。最后一次写入在 (\d+) 秒前。",
}
RUN = """
record = Record(sys.argv[1]); record.sites(SITES)
for step in range(3):
    record.add(snapshot(step, names=("sharpness",)))
print("begun", flush=True); time.sleep(600)
"""


def running(path):
    """A run that records and does not end."""
    run = process(RUN, path)
    assert run.stdout.readline() == "begun\n"
    return run


@pytest.fixture
def killed(tmp_path):
    run = running(tmp_path / "run.db")
    run.kill()
    run.communicate(timeout=60)
    return tmp_path / "run.db"


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("extra", [(), ("--once",)])
def test_a_run_that_was_killed_is_over(run, killed, extra, lang):
    """It used to be waited for as long as anyone watched."""
    text = run.text("watch", killed, *extra, "--lang", lang)
    assert int(re.search(GONE[lang], " ".join(text.split()) if lang == "en" else text.replace("\n", ""))[1]) < 60
    assert run("watch", killed, *extra, "--fail-on", "finding", "--lang", lang)[0] == 0
    os.utime(killed, (0, 0))
    os.utime(f"{killed}-wal", (0, 0))
    text = " ".join(run.text("watch", killed, *extra, "--lang", lang).split())
    assert re.search({"en": r"wrote \d{5,} d ago", "zh": r"在 \d{5,} 天前"}[lang], text)


def test_a_run_that_is_killed_while_it_is_watched(tmp_path):
    run = running(tmp_path / "run.db")
    watcher = subprocess.Popen(
        [*MODULE, "watch", tmp_path / "run.db"], stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert watcher.stdout.readline().startswith("step 2 ")
    assert watcher.poll() is None
    run.kill()
    try:
        rest, _ = watcher.communicate(timeout=60)  # nobody has asked how the run ended, so its number is still taken
    finally:
        watcher.kill()
        run.communicate(timeout=60)
    assert watcher.returncode == 0
    assert re.fullmatch(GONE["en"], " ".join(rest.split()))


def test_on_a_terminal_it_ends_too(killed):
    code, text, errors = on_terminal("watch", str(killed))
    assert (code, errors) == (0, "")
    assert re.search(GONE["en"], " ".join(COLOUR.sub("", text).split()))
    assert "Ctrl-C" not in text


def test_a_killed_run_is_judged_like_one_that_ended(run, tmp_path):
    path = played(tmp_path / "run.db", history(max_logit={0: GREAT}))
    change(path, ended=None, process=2**31 - 1)
    assert run("watch", path, "--fail-on", "finding")[0] == 1


def change(path, ended=None, **facts):
    """Let the record's last session have another writer."""
    with sqlite3.connect(path) as database:
        (known,) = database.execute("SELECT facts FROM sessions").fetchone()
        known = json.loads(known)
        known["writer"] |= facts
        database.execute("UPDATE sessions SET facts = ?, ended = ?", (json.dumps(known), ended))
    database.close()


@pytest.fixture
def path(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(sites())
        record.add(snapshot(0, [[0, 0, 0, 0]] * 2))
    return tmp_path / "run.db"


def test_a_number_that_another_process_has_now_is_no_sign_of_life(path):
    change(path)
    assert not news(path).over
    change(path, began=1)
    assert news(path).over
    assert news(path).gone >= 0.0


@pytest.mark.parametrize(
    "strange",
    [
        {"machine": "0" * 12}, {"machine": None}, {"process": -1}, {"process": 0}, {"process": 10**30},
        {"process": "x"}, {"began": None}, {"began": "x"}, {"process": True}, {"process": 1.5},
    ],
)  # fmt: skip
def test_whoever_cannot_know_does_not_say_that_a_run_was_killed(path, strange):
    """On another machine, only the time without news is told; and a record may say anything."""
    change(path, **{"process": 2**31 - 1} | strange)
    assert not news(path).over
    assert not writer.is_gone([])
    assert not writer.is_gone(None)


def test_a_process_of_another_user_lives(monkeypatch):
    """Its number may not be signalled, and /proc may hide when it began."""

    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    known = writer.me()
    assert not writer.is_gone(known)
    assert not writer.is_gone(known | {"process": 2**31 - 1})


def test_a_run_that_ends_just_now_was_not_killed(path, monkeypatch):
    """Between the look at the record and the look at the process, it may write its end."""
    change(path)

    def ends(_):
        change(path, ended="")
        return True

    monkeypatch.setattr(writer, "is_gone", ends)
    found = news(path, 0)
    assert (found.ended, found.gone, len(found.snapshots)) == ("", None, 1)


TOLD = {
    "en": "ranks: 1 of 4; rank 1 was never read; rank 2 was last read at step 7; rank 3 was last read at step 120",
    "zh": "4 个 rank 中读到 1 个；rank 1 从未读到；rank 2 最后读到的是第 7 步；rank 3 最后读到的是第 120 步",
}


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [60, 100])
def test_ranks_that_are_behind_are_told_below_the_table(tmp_path, lang, width):
    with Record(tmp_path / "run.db") as record:
        record.note({"ranks": {"size": 4, "behind": {"1": None, "2": 7, "3": 120}}})
        record.sites(sites(60))
        record.add(snapshot(130, [[0, 0, 0, 0]] * 60))
    for extra in ((), ("--once",)):
        _, text, _ = on_terminal("watch", str(tmp_path / "run.db"), *extra, "--lang", lang, width=width)
        lines = COLOUR.sub("", text.removeprefix("\x1b[J")).splitlines()
        assert max(map(columns, lines)) <= width
        assert extra or len(lines) < 40
        assert TOLD[lang].replace(" ", "") in "".join(lines).replace(" ", "")


def test_few_of_many_ranks_are_named(run, tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.note({"ranks": {"size": 5000, "behind": {str(rank): 9 for rank in range(1, 5000)}}})
        record.sites(sites())
        record.add(snapshot(10, [[0, 0, 0, 0]] * 2))
    text = " ".join(run.text("watch", tmp_path / "run.db", "--once").split())
    assert "ranks: 1 of 5000; rank 1 was last" in text
    assert "rank 3 was last read at step 9; and 4996 more" in text
    assert "rank 4 " not in text


def test_elsewhere_a_line_when_a_rank_falls_behind_and_when_it_is_back(tmp_path):
    record = Record(tmp_path / "run.db")
    record.sites(sites())
    record.add(snapshot(0, [[0, 0, 0, 0]] * 2))
    record.note({"ranks": {"size": 2, "behind": {}}})
    watcher = subprocess.Popen(
        [*MODULE, "watch", tmp_path / "run.db"], stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert watcher.stdout.readline().startswith("step 0 ")
    told = []
    for step, behind in ((1, {}), (2, {"1": 1}), (3, {"1": 1}), (4, {})):
        record.note({"ranks": {"size": 2, "behind": behind}})
        record.add(snapshot(step, [[0, 0, 0, 0]] * 2))
        told.append(watcher.stdout.readline().partition("  ")[0].strip())
        if step in (2, 4):
            told.append(watcher.stdout.readline().strip())
    record.close()
    rest, _ = watcher.communicate(timeout=60)
    assert told == [
        "step 1", "step 2", "ranks: 1 of 2; rank 1 was last read at step 1", "step 3", "step 4", "ranks: 2 of 2",
    ]  # fmt: skip
    assert rest == "The run has ended.\n"


def test_one_process_has_no_line_of_ranks(run, path):
    assert "rank" not in run.text("watch", path, "--once")
