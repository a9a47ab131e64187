"""`softscope checkup`: patients, records, formats, settings and exit codes."""

import json
import re
import sys

import pytest

from cli.commands import Terminal, columns, program
from doctor.judge.histories import RESTING, STUCK, history, per_head, starving
from softscope._text import LANGS
from softscope.cli import checkup
from softscope.doctor import patients

CHINESE = re.compile(r"[\u3400-\u9fff]")
SICK = starving(history(**per_head(1, STUCK)), 1)
TIP = history(site={"fused": False})
NOTE = history(**per_head(1, RESTING))


@pytest.fixture
def record(monkeypatch, tmp_path):
    """A record with a history chosen by the test; reading real records is tested elsewhere."""
    from softscope.doctor import record as room

    kept, reader = {"history": SICK}, room.read_record

    def read(path):
        return kept["history"] if path.read_bytes() == b"record" else reader(path)

    monkeypatch.setattr(room, "read_record", read)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.db").write_bytes(b"record")
    return kept


def test_a_record(run, record):
    code, out, err = run("checkup", "run.db")
    assert (code, err) == (1, "")
    assert out.startswith("1 of 4 heads is starving: layers.0.attention head 1.")
    assert "SS001 Starving head" in out
    assert "Prescription" in out
    assert out.rstrip().splitlines()[-1].startswith("findings 1 · ")
    record["history"] = history()
    assert run("checkup", "run.db")[0] == 0


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [40, 80])
def test_fits_the_terminal(run, record, monkeypatch, lang, width):
    monkeypatch.setenv("COLUMNS", str(width))
    record["history"] = history(sites=3, heads=8, site={"scale": 1.0, "fused": False}, blocked=0.9, max_logit=2000.0)
    _, out, _ = run("checkup", "run.db", "--lang", lang)
    assert max(map(columns, out.splitlines())) <= width
    assert bool(CHINESE.search(out)) == (lang == "zh")


@pytest.mark.parametrize(
    ("found", "words", "wanted"),
    [
        (SICK, [], 1),
        (history(**per_head(1, STUCK)), [], 0),  # only suspected
        (history(**per_head(1, STUCK)), ["--fail-on", "tip"], 1),
        (SICK, ["--exit-zero"], 0),
        (SICK, ["--mute", "SS001"], 0),
        (SICK, ["--mute", "SS001:layers.1.*"], 1),
        (SICK, ["--mute", "SS002, SS001:layers.*"], 0),
        (TIP, [], 0),
        (TIP, ["--fail-on", "finding"], 0),
        (TIP, ["--fail-on", "tip"], 1),
        (TIP, ["--fail-on", "informative"], 1),
        (TIP, ["--fail-on", "tip", "--exit-zero"], 0),
        (NOTE, ["--fail-on", "tip"], 0),
        (NOTE, ["--fail-on", "informative"], 1),
        (history(loss=False), ["--fail-on", "informative"], 0),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_exit_codes(run, record, found, words, wanted, form):
    record["history"] = found
    code, out, err = run("checkup", "run.db", "--format", form, *words)
    assert (code, err) == (wanted, "")
    assert out


@pytest.mark.usefixtures("record")
def test_json_and_html(run, tmp_path):
    _, out, _ = run("checkup", "run.db", "--format", "json")
    found = json.loads(out)
    assert (found["schema"], found["schema_version"]) == ("softscope.checkup", 1)
    _, out, _ = run("checkup", "run.db", "--format", "html", "--lang", "zh")
    assert out.startswith("<!doctype html>")
    assert '<html lang="zh"' in out
    code, told, _ = run("checkup", "run.db", "--report", "a.html")
    assert "Report: a.html" in told
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<!doctype html>")
    assert code == 1


def test_settings(run, record, tmp_path):
    settings = tmp_path / "pyproject.toml"
    for text, wanted in (
        ("[tool.softscope]\nfail-on = 'tip'", 1),
        ("[tool.softscope]\nfail-on = 'tip'\nmute = ['SS010']", 0),
        ("[tool.other]\nx = 1", 0),
        ("", 0),
    ):
        settings.write_text(text, "utf-8")
        record["history"] = TIP
        assert run("checkup", "run.db")[0] == wanted, text
    settings.write_text("[tool.softscope]\nfail-on = 'tip'\nmute = ['SS010']", "utf-8")
    assert run("checkup", "run.db", "--mute", "")[0] == 1, "the command line goes before the file"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["a.db", "b.db"], "takes one path, but got 2 arguments;"),
        (["missing.db"], "there is no file missing.db"),
        (["broken.db"], "broken.db is not a softscope record; name the file"),
        (["run.db", "--text", "a"], "--text is for a model from a folder, but run.db is not one"),
        (["run.db", "--format", "pdf"], "--format must be text, json or html, but got pdf\n"),
        (["run.db", "--fail-on", "warning"], "--fail-on must be finding, tip or informative, but got warning\n"),
        (["run.db", "--mute", "SS999"], "--mute cannot mute SS999, there is no such check"),
        (["run.db", "--report", "no/such/a.html"], "no/such"),
        (["run.db", "--report", "."], "folder"),
        (["run.db", "--loud"], "no option --loud"),
    ],
)
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.usefixtures("record")
def test_mistakes(run, tmp_path, words, told, lang):
    (tmp_path / "broken.db").write_bytes(b"something else")
    code, out, err = run("checkup", *words, "--lang", lang)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("softscope: ")
    assert bool(CHINESE.search(err)) == (lang == "zh")
    if lang == "en":
        assert told in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.softscope", "cannot read pyproject.toml"),
        ("[tool.softscope]\nfailon = 'tip'", "has no setting failon"),
        ("[tool.softscope]\nfail-on = 3", "must be finding, tip or informative, but got 3\n"),
        ("[tool.softscope]\nmute = 'SS001'", "must be a list"),
        ("[tool.softscope]\nmute = ['SS1']", "cannot mute SS1, there is no such check"),
    ],
)
@pytest.mark.usefixtures("record")
def test_mistakes_in_settings(run, tmp_path, text, told):
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    code, _, err = run("checkup", "run.db")
    assert code == 2
    assert told in err


@pytest.mark.parametrize("lang", LANGS)
def test_the_patients(run, monkeypatch, tmp_path, lang):
    pytest.importorskip("torch")
    monkeypatch.setattr(patients, "STEPS", 40)
    monkeypatch.setattr(patients, "MORE", 30)
    monkeypatch.chdir(tmp_path)
    code, out, err = run("checkup", "--lang", lang, "--report", "a.html")
    assert (code, err) == (0, ""), "the patients are sick on purpose"
    assert "\x1b" not in out
    assert max(map(columns, out.splitlines())) <= 80
    for word in ("SS001", "1/√d", "a.html", "starving" if lang == "en" else "饥饿"):
        assert word in out
    assert len([line for line in out.splitlines() if re.search(r"\d%.*(\d%|–).*(\d%|–)$", line)]) == 3, "the prognosis"
    text = (tmp_path / "a.html").read_text("utf-8")
    assert text.count('<article class="case"') == 3


def test_the_patients_for_programs(run, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(patients, "STEPS", 30)
    monkeypatch.setattr(patients, "MORE", 30)
    code, out, _ = run("checkup", "--fail-on", "finding", "--format", "json")
    assert code == 1
    healthy, *ill = [case["prognosis"] for case in json.loads(out)["cases"]]
    assert healthy is None
    assert [(found["steps"], found["untreated"]["error"] > 0) for found in ill] == [(30, True)] * 2
    assert ill[0]["treated"]["loss"] != ill[0]["untreated"]["loss"]


def test_the_patients_report_has_one_place(run, monkeypatch, tmp_path):
    """Each run used to leave a new temporary folder behind."""
    pytest.importorskip("torch")
    monkeypatch.setattr(patients, "STEPS", 15)
    monkeypatch.setattr(patients, "MORE", 1)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("SOFTSCOPE_HOME", str(tmp_path / "state"))
    for _ in range(2):
        assert f"Report: {tmp_path / 'state' / 'checkup.html'}" in run.text("checkup")
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["checkup.html"]
    (tmp_path / "file").touch()
    for home, lang, told in (
        ("file", "en", "--report FILE writes it elsewhere"),
        ("file/in", "zh", "可以用 --report FILE"),
    ):
        monkeypatch.setenv("SOFTSCOPE_HOME", str(tmp_path / home))
        assert told in " ".join(run.text("checkup", "--lang", lang).split())
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_live_table_on_a_terminal(monkeypatch, width, lang):
    """It is drawn over itself, so only one table remains."""
    from softscope.cli.checkup.live import Table
    from softscope.cli.console import Console

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    table = Table(Console(screen, lang, width=width, colour=True), patients.PATIENTS, 10)
    found = history(heads=1, blocked=0.9, transmission__median=1e-18, advantage=-0.25, advantage_error=0.5)
    table.read("healthy", found)
    for step in range(1, 11):
        table.progress("healthy", step, 10)
    read = screen.getvalue()
    table.judged("healthy", "starving")
    table.close()
    drawn = screen.getvalue()
    assert drawn.count("\x1b[5A") == drawn.count("patient" if lang == "en" else "病人") - 1 == 5
    assert ("suspected" if lang == "en" else "可疑") in read, "readings only raise a suspicion"
    assert ("starving" if lang == "en" else "饥饿") in drawn.removeprefix(read), "and the trial decides"
    assert max(columns(re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line)) for line in drawn.splitlines()) <= width


def test_without_torch():
    block = (
        "import sys; sys.modules['torch'] = None\n"
        "from softscope.cli import main; sys.exit(main(['checkup', '--lang', sys.argv[1]]))"
    )
    for lang in LANGS:
        done = program(lang, command=(sys.executable, "-c", block))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert "pip install 'softscope[torch]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_help_names_every_option(run):
    text = run.text("checkup", "--help")
    for option in checkup.COMMAND.options:
        assert f"  {option.flags[0]}" in text


@pytest.mark.parametrize("lang", LANGS)
def test_a_record_of_another_version(run, tmp_path, lang):
    import sqlite3

    from doctor.record.runs import SITES, snapshot
    from softscope.doctor.record import Record

    path = tmp_path / "new.db"
    with Record(path) as kept:
        kept.sites(SITES)
        kept.add(snapshot(0))
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.commit()
    database.close()
    code, out, err = run("checkup", path, "--lang", lang)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "99" in err
    assert "pip install -U softscope" in err
    assert bool(CHINESE.search(err)) == (lang == "zh")
