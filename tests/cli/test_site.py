"""`softscope site`: what it says about folders that will not do, and that it hands the work to `softscope.site`."""

import io
import os

import pytest

from softscope.cli import claims, language
from softscope.cli import site as command
from softscope.cli.commands import parse
from softscope.cli.console import Console
from softscope.site import build as building
from softscope.site import frame


@pytest.fixture
def built(monkeypatch):
    """Stand in for the work of minutes; tests/static_site does it."""
    asked = []

    def build(folder, *, ledger, progress):
        assert callable(ledger)
        asked.append(folder)
        progress("front", 0.5)
        return [frame.SPEED]

    monkeypatch.setattr(building, "build", build)
    return asked


def test_it_writes_into_a_new_folder_and_says_what_is_left_out(run, tmp_path, built):
    folder = tmp_path / "deep" / "public"
    said = run.text("site", folder, "--lang", "en")
    assert built == [folder]
    assert list(folder.iterdir()) == []
    assert f"Open {folder / 'index.html'} in a browser." in said
    assert "not here: Speed." in said
    assert "用浏览器打开" in run.text("site", folder, "--lang", "zh"), "an empty folder will do"


def test_a_folder_that_holds_something_stays_as_it_is(run, tmp_path, built):
    (tmp_path / "mine.txt").write_text("mine")
    code, out, err = run("site", tmp_path, "--lang", "en")
    assert (code, out, built) == (2, "", [])
    assert "is not empty; empty it or name another one" in err
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("words", [[], ["a", "b"]])
def test_it_takes_one_folder(run, words, built):
    code, _, err = run("site", *words, "--lang", "en")
    assert (code, built) == (2, [])
    assert f"takes one folder, but got {len(words)}" in err


def test_a_file_in_the_way_is_named(run, tmp_path, built):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        code, _, err = run("site", folder, "--lang", "en")
        assert (code, built) == (2, [])
        assert "cannot write to" in err
        assert err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere; run as another user to lift this")
def test_a_folder_without_permission_is_named(run, tmp_path, built):
    tmp_path.chmod(0o500)
    code, _, err = run("site", tmp_path, "--lang", "en")
    assert (code, built) == (2, [])
    assert "cannot write to" in err


def test_a_missing_package_is_named(run, tmp_path, built, monkeypatch):
    monkeypatch.setattr(command, "missing", lambda _: ["vl_convert"])
    code, _, err = run("site", tmp_path / "new", "--lang", "en")
    assert (code, built) == (2, [])
    assert "the site needs vl-convert: pip install 'softscope[lab]'" in err
    assert not (tmp_path / "new").exists()


def test_a_disk_that_fails_on_the_way_is_named(run, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(building, "build", full)
    code, _, err = run("site", tmp_path / "new", "--lang", "en")
    assert code == 2
    assert "(No space left on device)" in err


def test_the_ledger_is_the_page_of_claims_opening_in_each_language(monkeypatch):
    """Checked once: a second check would take as long again."""
    checks = []
    short, whole = parse(claims.COMMAND, ["S1-03", "--format", "html"]), claims.run
    monkeypatch.setattr(claims, "run", lambda _, console: checks.append(1) or whole(short, console))
    page = command._ledger(Console(None, "en"))
    for lang in ("en", "zh"):
        stream = io.StringIO()
        whole(short, Console(stream, lang))
        wanted = stream.getvalue()
        assert f'<html lang="{lang}" data-lang="{lang}">' in page(lang)
        assert language.say(lang, "claims.title") in page(lang)[: page(lang).index("</title>")]
        assert page(lang).split("<body>")[1] == wanted.split("<body>")[1]
    assert len(checks) == 1
