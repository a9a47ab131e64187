"""Records made to break their reader: altered as SQL, altered as bytes, or no files at all.

Reading, judging, reporting and watching them gives a result, or one documented sentence: no traceback, no endless work,
nothing in the output that a terminal or a browser would obey.
"""

import collections
import contextlib
import io
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import tracemalloc
import unicodedata
import warnings

import pytest

from cli.commands import Runner
from doctor.record.runs import SITES, snapshot
from hostile.budget import attempts
from softscope._text import LANGS
from softscope.cli import language
from softscope.cli.checkup import writing
from softscope.cli.console import Console
from softscope.cli.problems import UsageError
from softscope.cli.watch.following import Follower
from softscope.doctor import diagnose, export
from softscope.doctor.record import Record, RecordError, file, news, read_record
from softscope.doctor.record.problems import reasons
from softscope.doctor.report import page

PATIENCE = 60  # seconds: only work without an end takes this long
MARKUP = "<img src=x onerror=alert(1)>"
NASTY = f"a\x1b[2J\x9b31m\u202e\u2028\x07{MARKUP}\"'{{}}{{0}}%s"


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """A small record of everything: two models, three sessions, a resumed run, what was not seen, how it ended."""
    path = tmp_path_factory.mktemp("genuine") / "run.db"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sites, steps in ((SITES, (0, 10, 20)), (SITES, (15, 25, 35)), (SITES[:1], (0, 1, 2, 3))):
            with Record(path) as record:
                record.sites(sites)
                record.unseen([("pooler", "no softmax seen")])
                record.note({"model": "Small", "nested": {"list": [1, 2.5, None]}})
                for step in steps:
                    record.add(snapshot(step, sites=sites))
    return path.read_bytes()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A record with its log, as a killed run leaves them."""
    path = tmp_path_factory.mktemp("killed") / "run.db"
    record = Record(path)
    record.sites(SITES)
    for step in range(3):
        record.add(snapshot(step))
    return path.read_bytes(), pathlib.Path(f"{path}-wal").read_bytes()


# What a reader may do with any file


@contextlib.contextmanager
def in_time():
    """Raise in code that does not end."""

    def late(*_):
        raise TimeoutError(f"still busy after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def examined(path):
    """Read, judge, report, watch and export; the reason why that was refused, or None."""
    with in_time(), warnings.catch_warnings():
        warnings.simplefilter("error")
        refused = _refused(read_record, path)
        _refused(news, path)
        if refused is None:
            history = read_record(path)
            for part in range(history.facts["parts"]):
                _refused(lambda path, part=part: read_record(path, part=part), path)
            _reported(history, path.parent)
        if _refused(lambda path: news(path, -(2**63)), path) is None:
            _watched(path)
    return refused


def _refused(reader, path):
    try:
        reader(path)
    except RecordError as refused:
        error = refused
    else:
        return None
    sentence = str(error).replace(str(path), "")
    assert error.reason in reasons()
    assert len(sentence) < 500, sentence[:2000]
    assert not unsafe(sentence), sentence
    for lang in LANGS:
        assert language.say(lang, f"record.{error.reason}", **error.values)
    return error.reason


def unsafe(text):
    """Characters that a terminal or a page obeys instead of showing."""
    return {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} - {"\n"}


def _reported(history, folder):
    diagnosis = diagnose(history, "run.db")
    for lang in LANGS:
        for form in ("text", "json", "html"):
            out = io.StringIO()
            writing.show([diagnosis], form, Console(out, lang))
            assert not unsafe(out.getvalue()), (form, unsafe(out.getvalue()))
            out.getvalue().encode("utf-8")
            if form == "json":
                json.loads(out.getvalue())
    assert MARKUP not in page([diagnosis])
    for suffix in ("csv", "json"):
        export(history, folder / f"out.{suffix}")
    json.loads((folder / "out.json").read_text("utf-8"))


def _watched(path):
    """Once, and to its end, if it has one; events and the exit code need all checks."""
    for lang in LANGS:
        out, refused = io.StringIO(), None
        try:
            Follower(path, Console(out, lang), "informative", ()).once()
            if news(path).ended is not None:
                Follower(path, Console(out, lang), None, ()).follow()
        except UsageError as error:
            refused = error
        if refused is not None:
            assert refused.key.startswith("record.") or refused.key == "checkup.record.none"
            assert language.say(lang, refused.key, **refused.values)
        assert not unsafe(out.getvalue()), out.getvalue()


# Altered as SQL

DEEP = "[" * 100_000 + "]" * 100_000
VALUES = (
    None, 0, 1, -1, 2, 10**12, 2**62, 2**63 - 1, -(2**63), 0.5, -0.5, 1e308, float("inf"), float("-inf"),
    "", "nan", "inf", "1e999", "12", "x", "{}", "[]", "null", "true", '"text"', "[1]", "[{}]", '{"a": NaN}',
    '{"a": 1e999}', '{"a": ' + "9" * 4000 + "}", '{"a": ' + "9" * 5000 + "}", DEEP, '{"a":' * 5_000 + "1" + "}" * 5_000,
    '{"a": "\\ud800"}', '["heads", "4", "8"]', '["failed", "\\ud800"]', '["told"]', '[["x"]]', NASTY,
    json.dumps([NASTY]), "it had " * 3_000, "x" * 100_000, b"", b"\0", b"\xff\xfe", b"\0" * 4,
    b"\x00\x00\xc0\x7f" * 8, b"x" * 100_000,
)  # fmt: skip
IN_SITES = (
    None, 0, 1, -1, 10**12, 10**400, 1e308, 1e-320, float("inf"), float("nan"), True, "", "12", NASTY, "\ud800",
    "x" * 100_000, [], {}, [1], 70_000, 65_536,
)  # fmt: skip
ENDLESS = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT"
SCHEMAS = (
    "CREATE VIEW extra AS SELECT * FROM steps",
    "CREATE VIEW [a\x1b[2Jb] AS SELECT 1",
    "CREATE TRIGGER extra AFTER INSERT ON steps BEGIN DELETE FROM readings; END",
    "CREATE INDEX extra ON steps (part)",
    "CREATE INDEX extra ON steps (abs(step))",
    "CREATE TABLE extra (x)",
    "CREATE VIRTUAL TABLE extra USING fts5(x)",
    "CREATE VIRTUAL TABLE extra USING rtree(id, a, b)",
    "ALTER TABLE steps ADD COLUMN extra",
    "ALTER TABLE steps ADD COLUMN extra AS (zeroblob(1000000000))",
    "ALTER TABLE steps RENAME COLUMN loss TO cost",
    "ALTER TABLE readings RENAME TO values_",
    "DROP TABLE readings", "DROP TABLE parts", "DROP TABLE sessions", "DROP TABLE unseen", "DROP TABLE steps",
    f"DROP TABLE steps; CREATE VIEW steps AS {ENDLESS} x AS id, 1 AS part, 1 AS session, x AS step, 0.0 AS seconds, "
    "NULL AS loss, 0 AS sites, 0 AS heads FROM t",
    f"DROP TABLE sessions; CREATE VIEW sessions AS {ENDLESS} x AS id, '{{}}' AS facts, NULL AS ended FROM t",
    "DROP TABLE parts; CREATE VIEW parts AS SELECT 1 AS id, printf('%.*c', 2000000000, 'x') AS sites",
    "DROP TABLE parts; CREATE TABLE parts (id INTEGER PRIMARY KEY, sites TEXT AS (hex(zeroblob(900000000))))",
    "PRAGMA application_id = 7", "PRAGMA user_version = 0", "PRAGMA user_version = -5", "PRAGMA user_version = 2",
    "PRAGMA journal_mode = WAL",
    "PRAGMA page_size = 512; VACUUM", "PRAGMA page_size = 65536; VACUUM", "PRAGMA auto_vacuum = 1; VACUUM", "ANALYZE",
)  # fmt: skip
COLUMNS = {
    "sessions": ("id", "facts", "ended"), "parts": ("id", "sites"), "unseen": ("part", "module", "why"),
    "steps": ("id", "part", "session", "step", "seconds", "loss", "sites", "heads"),
    "readings": ("snapshot", "name", "data"),
}  # fmt: skip


def altered_as_sql(data, path, rng):
    path.write_bytes(data)
    database = sqlite3.connect(path, isolation_level=None)
    done = []
    for _ in range(rng.integers(1, 4)):
        kind = rng.choice(["value", "sites", "schema", "text", "root", "copy"], p=[0.45, 0.2, 0.15, 0.08, 0.06, 0.06])
        # One change may preclude the next.
        with contextlib.suppress(sqlite3.Error, TypeError, AttributeError, ValueError, KeyError, RecursionError):
            done.append(CHANGES[kind](database, rng))
    database.close()
    return done


def _value(database, rng):
    name = rng.choice(list(COLUMNS))
    column, value = rng.choice(COLUMNS[name]), VALUES[rng.integers(len(VALUES))]
    if isinstance(value, bytes) and rng.random() < 0.3:  # bytes that are no UTF-8, as text
        change = f"UPDATE OR IGNORE {name} SET {column} = CAST(? AS TEXT)"
    else:
        change = f"UPDATE OR IGNORE {name} SET {column} = ?"
    if rng.random() < 0.5:
        key = COLUMNS[name][0]
        change += f" WHERE {key} = (SELECT {key} FROM {name} ORDER BY random() LIMIT 1)"
    database.execute(change, (value,))
    return change, repr(value)[:60]


def _sites(database, rng):
    """Change one field of one site."""
    number, text = database.execute("SELECT id, sites FROM parts ORDER BY random() LIMIT 1").fetchone()
    sites = json.loads(text)
    site, field = sites[rng.integers(len(sites))], rng.choice([*sites[0], "unknown"])
    value = IN_SITES[rng.integers(len(IN_SITES))]
    if rng.random() < 0.1:
        site.pop(field, None)
    else:
        site[str(field)] = value
    sites *= int(rng.choice([1, 1, 1, 500]))
    database.execute("UPDATE parts SET sites = ? WHERE id = ?", (json.dumps(sites), number))
    return "sites", str(field), repr(value)[:60]


def _schema(database, rng):
    change = SCHEMAS[rng.integers(len(SCHEMAS))]
    database.executescript(change)
    return change


def _text(database, rng):
    """Change the text of a table in the schema itself."""
    name = rng.choice(list(COLUMNS))
    swaps = (("INTEGER", "TEXT"), ("NOT NULL", ""), ("(", "(extra, "), ("part", "[par t]"), ("CREATE", "CREAT"),
             ("TABLE", "TEMP TABLE"), ("BLOB", "BLOB CHECK (abs(1))"), (")", ") STRICT"))  # fmt: skip
    old, new = swaps[rng.integers(len(swaps))]
    database.execute("PRAGMA writable_schema = ON")
    database.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?", (old, new, name))
    return "schema text", str(name), old, new


def _root(database, rng):
    """Let one table's name lead to another table's pages."""
    database.execute("PRAGMA writable_schema = ON")
    page = int(rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 10**9]))
    name = rng.choice(list(COLUMNS))
    database.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", (page, name))
    return "root page", str(name), page


def _copy(database, _):
    """More rows of every kind, with the same or other keys."""
    for name, columns in COLUMNS.items():
        key = {"sessions": "NULL", "parts": "NULL", "steps": "NULL", "unseen": "part + 1", "readings": "snapshot + 7"}
        rest = ", ".join(columns[1:])
        database.execute(f"INSERT OR IGNORE INTO {name} SELECT {key[name]}, {rest} FROM {name}")
    return "copies"


CHANGES = {"value": _value, "sites": _sites, "schema": _schema, "text": _text, "root": _root, "copy": _copy}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(file, "_READER_WAITS", 0.0)


# Altered as bytes


def altered_as_bytes(data, rng):
    """Flip, cut, move, blank or repeat parts of the file; more often in its header and in what points to pages."""
    found = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        if not found:
            break
        kind = rng.integers(7)
        at = int(rng.integers(min(len(found), 100 if rng.random() < 0.2 else len(found))))
        size = int(rng.integers(1, 1 + min(4096, len(found))))
        if kind <= 1:
            for place in rng.integers(len(found), size=rng.integers(1, 40)):
                found[place] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            found[at] = int(rng.integers(256))
        elif kind == 3:
            del found[at : at + size]
        elif kind == 4:
            other = int(rng.integers(len(found)))
            found[at : at + size] = found[other : other + size]
        elif kind == 5:
            # One page in the place of another: tables whose pages point to themselves.
            pages = max(1, len(found) // 4096)
            one, two = (4096 * int(page) for page in rng.integers(pages, size=2))
            found[one : one + 4096] = found[two : two + 4096]
        else:
            found[at : at + size] = rng.bytes(size)
    return bytes(found[: rng.integers(len(found) + 1)] if rng.random() < 0.05 else found)


def beside_and_inside(genuine, killed, path, rng):
    """Alter the bytes of a record, of the files beside it, or of the log of a killed run."""
    if rng.random() < 0.7:
        path.write_bytes(altered_as_bytes(genuine, rng))
        beside = rng.choice(["", "-wal", "-journal", "-shm"], p=[0.85, 0.05, 0.05, 0.05])
        if beside:
            pathlib.Path(f"{path}{beside}").write_bytes(altered_as_bytes(genuine, rng))
        return f"bytes, {beside}"
    whole, log = killed
    path.write_bytes(altered_as_bytes(whole, rng) if rng.random() < 0.3 else whole)
    pathlib.Path(f"{path}-wal").write_bytes(altered_as_bytes(log, rng))
    return "bytes of a killed run"


def test_altered_records(genuine, killed, tmp_path):
    met = collections.Counter()
    for seed, rng in attempts(100):
        path = tmp_path / f"{seed}.db"
        if rng.random() < 0.5:
            done = altered_as_sql(genuine, path, rng)
        else:
            done = beside_and_inside(genuine, killed, path, rng)
        try:
            met[examined(path)] += 1
        except Exception as error:
            raise AssertionError(f"SOFTSCOPE_ATTACK_SEED={seed}, {done}: {type(error).__name__}: {error}") from error
        for name in tmp_path.glob(f"{seed}.db*"):
            name.unlink()
    print(sum(met.values()), "records:", dict(met))
    assert met.keys() >= {None, "damaged", "altered", "foreign"}  # it reaches both what is read and what is refused


# Made by hand: each with its sentence, from every command


def altered(path, *statements):
    database = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        database.executescript(statement) if isinstance(statement, str) else database.execute(*statement)
    database.close()


def sites_with(**changes):
    row = {"name": "a", "kind": "sdpa", "heads": 4, "kv_heads": 2, "scale": 0.125, "head_size": 64} | changes
    return ("UPDATE parts SET sites = ?", (json.dumps([row]),))


MADE = {
    "a view without end": (SCHEMAS[17], "altered", "a view named steps"),
    "a view that no query asks for": (SCHEMAS[0], "altered", "a view named extra"),
    "a trigger": (SCHEMAS[2], "altered", "a trigger named extra"),
    "an index": (SCHEMAS[3], "altered", "an index named extra"),
    "another table": (SCHEMAS[5], "altered", "another table named extra"),
    "a generated column": (SCHEMAS[9], "altered", "another table named steps"),
    "a trillion heads": (
        sites_with(heads=10**12),
        "damaged",
        "heads must be an integer from 1 to 65536, but got 10000",
    ),
    "minus four heads": (sites_with(heads=-4), "damaged", "heads must be an integer from 1 to 65536, but got -4"),
    "heads as text": (sites_with(heads="4"), "damaged", "heads must be an integer from 1 to 65536, but got str"),
    "heads without a number": (sites_with(heads=None), "damaged", "but got None"),
    "a scale of 400 digits": (sites_with(scale=10**400), "damaged", "scale must be a number, but got a huge integer"),
    "a name of 10 MB": (
        sites_with(name="x" * 10**7),
        "damaged",
        "at most 1000 characters, but got 10000000 characters",
    ),
    "a value of 40 MB": (
        ("UPDATE parts SET sites = zeroblob(40000000)",),
        "excessive",
        "a value of over 33554432 bytes",
    ),
    "sites that are no list": (("UPDATE parts SET sites = '{}'",), "damaged", "sites must be a JSON list of objects"),
    "sites that are no JSON": (("UPDATE parts SET sites = '['",), "damaged", "sites must be JSON, but"),
    "sites that lack a field": (("UPDATE parts SET sites = '[{}]'",), "damaged", "no 'scale'"),
    "facts without a bottom": (("UPDATE sessions SET facts = ?", (DEEP,)), "damaged", "nested too deeply"),
    "facts that are NaN": (("UPDATE sessions SET facts = '{\"a\": NaN}'",), "damaged", "must be a finite number"),
    "text that is no UTF-8": (("UPDATE sessions SET facts = CAST(x'7b22ff' AS TEXT)",), "damaged", "utf-8"),
    "a step as text": (("UPDATE steps SET step = 'x'",), "damaged", "step must be an integer from"),
    "a loss as text": (("UPDATE steps SET loss = 'x'",), "damaged", "loss must be a number, but got str"),
    "endless seconds": (("UPDATE steps SET seconds = 9e999",), "damaged", "seconds must be a finite number"),
    "a negative width": (("UPDATE steps SET heads = -1",), "damaged", "heads must be an integer from 0 to 65536"),
    "a blob of another length": (("UPDATE readings SET data = x'00'",), "damaged", "but got 1 bytes"),
    "a reading as text": (("UPDATE readings SET data = 'x'",), "damaged", "but got str"),
    "a session that is not there": (("UPDATE steps SET session = 99",), "damaged", "a session that is not in it"),
    "an older version": (("PRAGMA user_version = 0",), "older", "version 0"),
    "a newer version": (("PRAGMA user_version = 9",), "newer", "version 9"),
}


@pytest.fixture
def run(capsys, monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return Runner(capsys, monkeypatch)


def says(run, path, words, commands=("checkup", "watch", "export")):
    """Every command must refuse the file with one line and exit code 2."""
    with in_time():
        for lang in LANGS:
            for command in commands:
                more = {"watch": ["--once"], "export": [path.with_name("out.csv")]}.get(command, [])
                code, out, err = run(command, path, *more, "--lang", lang)
                assert (code, out) == (2, ""), (command, out, err)
                assert err.count("\n") == 1
                assert err.startswith("softscope: ")
                assert not unsafe(err), err
                if lang == "en":
                    assert words in err, err


@pytest.mark.parametrize("name", MADE)
def test_made_by_hand(genuine, tmp_path, run, name):
    change, reason, words = MADE[name]
    path = tmp_path / "run.db"
    path.write_bytes(genuine)
    altered(path, change)
    assert examined(path) == reason
    parts = "watch" if reason == "damaged" and news_reads(path) else ""
    says(run, path, words, [command for command in ("checkup", "watch", "export") if command != parts])


def news_reads(path):
    """Whether `watch`, which reads less than all of it, meets nothing wrong."""
    with contextlib.suppress(RecordError):
        news(path, 0)
        return True
    return False


def test_names_that_a_terminal_or_a_browser_would_obey_are_shown_as_they_are(genuine, tmp_path, run):
    path = tmp_path / "run.db"
    path.write_bytes(genuine)
    altered(
        path,
        sites_with(name=NASTY, kind=NASTY, dtype=NASTY),
        ("UPDATE unseen SET module = ?, why = ?", (NASTY, NASTY)),
        ("UPDATE sessions SET ended = ?, facts = ?", (NASTY, json.dumps({NASTY: NASTY}))),
    )
    assert examined(path) is None
    out = run("checkup", path)[1] + run("watch", path, "--once")[1] + run("watch", path)[1]
    assert "\\x1b[2J" in out
    assert not unsafe(out)
    for form in ("json", "html"):
        out = run("checkup", path, "--format", form)[1]
        assert not unsafe(out)
        assert (MARKUP in out) == (form == "json")


def test_half_surrogate_pairs_are_shown_as_escapes(genuine, tmp_path):
    path = tmp_path / "run.db"
    path.write_bytes(genuine)
    altered(path, sites_with(name="half \ud800"))
    assert examined(path) is None
    assert read_record(path).sites[0].name == "half \\ud800"


def test_a_small_file_does_not_make_us_allocate(genuine, tmp_path):
    """65,536 heads cost 6 GB if each of 2,000 steps, which hold no reading, becomes a row of NaN per reading."""
    path = tmp_path / "run.db"
    path.write_bytes(genuine)
    rows = "WITH RECURSIVE t(x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM t LIMIT 2000)"
    altered(
        path,
        sites_with(heads=65_536),
        f"{rows} INSERT INTO steps SELECT NULL, (SELECT max(id) FROM parts), 3, x, 0.0, NULL, 0, 0 FROM t",
    )
    tracemalloc.start()
    try:
        with in_time():
            assert _refused(read_record, path) == "excessive"
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


def test_a_site_of_many_heads_is_judged_in_time(genuine, tmp_path):
    """Each head used to be compared with each other one, reading by reading: minutes for a file of 100 kB."""
    path = tmp_path / "run.db"
    path.write_bytes(genuine)
    altered(path, sites_with(heads=3_072), "DELETE FROM steps WHERE step > 1")
    assert examined(path) is None


def test_a_table_that_leads_to_one_page_again_and_again_ends(genuine, tmp_path):
    """Twelve pages, each of which names the next one fifty times, are a table of 10^20 rows in 50 kB."""
    path = tmp_path / "run.db"
    path.write_bytes(genuine)
    with contextlib.closing(sqlite3.connect(path)) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'steps'").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    first = len(data) // size + 1
    leaf = first + 12
    for number in (root, *range(first, leaf)):
        child = (first if number == root else number + 1).to_bytes(4, "big")
        cells = b"".join(child + bytes([key]) for key in range(1, 51))
        start = size - len(cells)
        head = b"\x05" + bytes(2) + (50).to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0" + child
        places = b"".join((start + 5 * i).to_bytes(2, "big") for i in range(50))
        made = (head + places).ljust(start, b"\0") + cells
        if number == root:
            kept = bytes(data[(root - 1) * size : root * size])
            data[(root - 1) * size : root * size] = made
        else:
            data += made
    data += kept  # the rows themselves
    data[28:32] = leaf.to_bytes(4, "big")  # how many pages there are
    path.write_bytes(data)
    assert examined(path) == "excessive"


# No files at all


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs, which Windows lacks")
def test_a_pipe_is_not_waited_for(tmp_path, run):
    path = tmp_path / "run.db"
    os.mkfifo(path)
    assert examined(path) == "special"
    says(run, path, "is a pipe or a device, not a file")
    with in_time(), pytest.warns(UserWarning, match="is a pipe or a device.*training goes on without a record"):
        Record(path).close()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_not_read(tmp_path, run, device):
    if not os.path.exists(device):
        pytest.skip(f"needs {device}, which Linux has")
    assert examined(pathlib.Path(device)) == "special"
    path = tmp_path / "run.db"
    path.symlink_to(device)
    says(run, path, "is a pipe or a device, not a file")


def test_a_socket_is_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("run.db")
        assert examined(tmp_path / "run.db") == "special"


def test_links_that_lead_nowhere(tmp_path, run):
    (tmp_path / "a.db").symlink_to("b.db")
    (tmp_path / "b.db").symlink_to("a.db")
    assert examined(tmp_path / "a.db") in {"missing", "unreadable"}
    says(run, tmp_path / "a.db", "softscope")


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b", "run\udcff.db"], ids=["long", "null", "bytes"])
def test_names_that_no_file_has(tmp_path, run, name):
    assert examined(tmp_path / name) in {"missing", "unreadable"}
    says(run, tmp_path / name, "softscope")
    assert "write" not in run("checkup", tmp_path / name)[2]  # nothing was written yet


def test_a_name_that_is_no_utf8(genuine, tmp_path):
    path = pathlib.Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff.db"))
    path.write_bytes(genuine)
    assert examined(path) is None


def test_a_folder_and_an_empty_file(tmp_path, run):
    says(run, tmp_path, "is a folder", ["watch", "export"])
    (tmp_path / "run.db").touch()
    says(run, tmp_path / "run.db", "is empty")


def test_garbage_beside_a_record_is_not_taken_for_its_log(genuine, tmp_path):
    for beside in ("-wal", "-shm"):
        path = tmp_path / f"{beside}.db"
        path.write_bytes(genuine)
        pathlib.Path(f"{path}{beside}").write_bytes(b"garbage" * 1_000)
        assert examined(path) is None
        assert len(read_record(path).snapshots) == 4


def test_a_write_that_was_killed_is_undone_by_the_next_run_and_by_no_reader(tmp_path, run, monkeypatch):
    """On a filesystem without WAL the file alone is half a transaction: to read it as it is would be wrong."""
    monkeypatch.setattr(file, "_wal", lambda _: True)  # stay in rollback mode
    path, kept = tmp_path / "run.db", tmp_path / "kept"
    with Record(path) as record:
        record.sites(SITES)
        record.add(snapshot(0))
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA cache_size = 1")  # so that changed pages reach the file before the commit
    database.execute("BEGIN IMMEDIATE")
    database.execute("UPDATE readings SET data = zeroblob(3000)")
    kept.write_bytes(path.read_bytes())
    journal = pathlib.Path(f"{path}-journal").read_bytes()
    database.close()
    path.write_bytes(kept.read_bytes())
    pathlib.Path(f"{path}-journal").write_bytes(journal)
    assert examined(path) == "unfinished"
    says(run, path, "was being written when its run was killed")
    assert pathlib.Path(f"{path}-journal").read_bytes() == journal
    with Record(path) as record:
        assert record.last_step == 0
        record.add(snapshot(1))
    assert [s.step for s in read_record(path).snapshots] == [0, 1]


def test_a_writer_touches_no_record_that_was_altered(genuine, tmp_path):
    path = tmp_path / "run.db"
    path.write_bytes(genuine)
    altered(path, SCHEMAS[2])
    before = path.read_bytes()
    with pytest.warns(UserWarning, match="a trigger named extra.*training goes on without a record"):
        Record(path).close()
    assert path.read_bytes() == before


def test_reading_does_not_drop_the_locks_of_a_record_in_this_process(tmp_path):
    """POSIX drops all locks that a process has on a file when the process closes any descriptor of it."""
    path = tmp_path / "run.db"
    record = Record(path)
    record.sites(SITES)
    before = _locks(path)
    altered(path, "CREATE TABLE extra (x)")
    assert _refused(read_record, path) == "altered"
    altered(path, "DROP TABLE extra; UPDATE parts SET sites = '['")
    assert _refused(read_record, path) == "damaged"
    assert _locks(path) == before
    record.close()


def _locks(path):
    if not os.path.exists("/proc/locks"):
        pytest.skip("needs /proc/locks, which Linux has")
    inode = path.stat().st_ino
    lines = pathlib.Path("/proc/locks").read_text("ascii").splitlines()
    return [re.sub(r"^\d+: ", "", line) for line in lines if f":{inode} " in line]
