"""The facts about a release agree everywhere they appear."""

import pathlib
import re
import tomllib

import softscope

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = (ROOT / "CITATION.cff").read_text("utf-8")


def field(name: str) -> str:
    """One plain field of CITATION.cff."""
    (value,) = re.findall(rf'^{name}: "?([^"\n]*)"?$', CITATION, re.MULTILINE)
    return value


def test_one_version_everywhere() -> None:
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert heading is not None
    assert {PROJECT["version"], softscope.__version__, field("version"), heading[1]} == {PROJECT["version"]}


def test_the_citation_says_what_the_package_says() -> None:
    assert field("cff-version") == "1.2.0"
    assert field("license") == PROJECT["license"]
    assert re.findall(r'^  - name: "(.*)"$', CITATION, re.MULTILINE) == [a["name"] for a in PROJECT["authors"]]
    keywords = CITATION.partition("\nkeywords:\n")[2]
    assert re.findall(r"^  - (.*)$", keywords, re.MULTILINE) == PROJECT["keywords"]
    assert not re.search(r"^(title|message|abstract): *$", CITATION, re.MULTILINE)


def test_the_release_date_stands_in_both_places_or_in_none() -> None:
    unreleased = re.search(r"^## \S+ \(unreleased\)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert bool(unreleased) == ("date-released:" not in CITATION)


def test_the_schemas_that_are_promised_are_those_that_are_written() -> None:
    written = set()
    for file in (ROOT / "src").rglob("*.py"):
        written |= set(
            re.findall(r'"?schema"?[\w,]* ?[:=,][^\n]*?"(softscope\.\w+)"', file.read_text("utf-8"), re.IGNORECASE)
        )
    promised = re.search(r"^\| JSON \|.*$", (ROOT / "RELEASING.md").read_text("utf-8"), re.MULTILINE)
    assert promised is not None
    assert set(re.findall(r"`(softscope\.\w+)`", promised[0])) == written
