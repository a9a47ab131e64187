"""The pages: both languages say the same, every link works, and every file they name exists."""

import pathlib
import re

import pytest

from softscope.lab.glossary.terms import TERMS

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md")])
PAPERS = [*PAGES, ROOT / "RELEASING.md", ROOT / "CONTRIBUTING.md"]
TWINS = [(page, page.with_name(f"{page.stem}.zh-CN.md")) for page in PAGES if not page.stem.endswith(".zh-CN")]


def name(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub generates them."""
    headings = re.findall(r"^#+ (.*)$", _without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(text: str, folder: pathlib.Path) -> list[str]:
    """Targets of links and pictures in a page of this folder whose file or heading does not exist."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", _without_blocks(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = folder / path if path else None
        lost = file is not None and not file.exists()
        if lost or (anchor and anchor not in anchors(text if file is None else file.read_text("utf-8"))):
            broken.append(target)
    return broken


def missing_files(text: str) -> list[str]:
    """Files and folders of the repository that a page names in backticks but that do not exist."""
    found = re.findall(
        r"(?<![\w/.-])(?:src|engine|tests|docs|bench)/[\w./-]*", " ".join(re.findall(r"`([^`\n]+)`", text))
    )
    named = [path for path in found if "nnn" not in path]  # SSnnn.md stands for any of them
    return [path for path in named if not (ROOT / path).exists()]


def figures(text: str) -> list[list[str]]:
    """The numbers in each table row, without its label; sorted, because the languages order them differently."""
    rows = [line.split("|", 2)[2] for line in text.splitlines() if line.startswith("|")]
    return [sorted(re.findall(r"\d+(?:\.\d+)?", row)) for row in rows]


def examples(text: str) -> list[str]:
    """What a page runs and what comes out, without the comments, which are in the page's language."""
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [re.sub(r"\s+#.*$", "", line) for block in blocks for line in block.splitlines()]


def _without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def test_the_checks_see_what_is_wrong() -> None:
    assert broken_links("# A b\n[x](no-such-page.md) [y](#c) [z](#a-b) ![p](no.png)", ROOT) == [
        "no-such-page.md",
        "#c",
        "no.png",
    ]
    assert missing_files("`src/softscope/nowhere.py` and `.venv/bin/python bench/nothing.py`") == [
        "src/softscope/nowhere.py",
        "bench/nothing.py",
    ]
    assert missing_files("`src/softscope/bounds.py`") == []
    assert figures("| a 4 | 3 (1.5) |\n2") == [["1.5", "3"]]
    assert len(TWINS) >= 8


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_it_is_there_in_both_languages(page: pathlib.Path) -> None:
    chinese = page.stem.endswith(".zh-CN")
    twin = page.with_name(f"{page.stem.removesuffix('.zh-CN')}.md" if chinese else f"{page.stem}.zh-CN.md")
    assert twin.exists(), f"{name(page)} has no {twin.name}"
    assert f"({twin.name})" in page.read_text("utf-8"), f"{name(page)} does not link to {twin.name}"


@pytest.mark.parametrize(("page", "twin"), TWINS, ids=[name(page) for page, _ in TWINS])
def test_both_languages_say_the_same(page: pathlib.Path, twin: pathlib.Path) -> None:
    english, chinese = page.read_text("utf-8"), twin.read_text("utf-8")
    assert figures(chinese) == figures(english), "the tables of the two languages differ in a number"
    assert examples(chinese) == examples(english)
    assert chinese.count("\n## ") == english.count("\n## "), "the two languages differ in their headings"
    assert set(re.findall(r"`((?:src|engine|tests|bench|docs)/[^`]*)`", chinese)) == set(
        re.findall(r"`((?:src|engine|tests|bench|docs)/[^`]*)`", english)
    )


@pytest.mark.parametrize("page", PAPERS, ids=name)
def test_every_link_leads_somewhere(page: pathlib.Path) -> None:
    assert broken_links(page.read_text("utf-8"), page.parent) == []


@pytest.mark.parametrize("page", [page for page in PAPERS if "telling-apart" not in page.name], ids=name)
def test_every_file_that_is_named_is_there(page: pathlib.Path) -> None:
    assert missing_files(page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT], ids=name)
def test_every_page_can_be_reached(page: pathlib.Path) -> None:
    others = [
        other for other in PAGES if other != page and other.stem.endswith(".zh-CN") == page.stem.endswith(".zh-CN")
    ]
    assert any(f"{page.name}" in other.read_text("utf-8") for other in others), f"no page links to {page.name}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem.endswith(".zh-CN")], ids=name)
def test_the_chinese_keeps_to_the_glossary(page: pathlib.Path) -> None:
    text = re.sub(r"`[^`]*`", "", _without_blocks(page.read_text("utf-8")))
    assert [word for term in TERMS for word in term.avoid if word in text] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "README.zh-CN.md"], ids=name)
def test_the_readme_is_short_and_shows_a_picture(page: pathlib.Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    assert len(lines) <= 120
    first = "\n".join(lines[:30])
    assert "make checkup" in first
    assert "make lab" in first
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", first)
    assert (ROOT / picture).stat().st_size < 300_000


@pytest.mark.parametrize("page", PAPERS, ids=name)
def test_it_speaks_of_nothing_outside_the_repository(page: pathlib.Path) -> None:
    text = page.read_text("utf-8")
    assert re.findall(r"\b(?:DESIGN|FINDINGS|CLAIMS|STYLE)\b|\bseeds/|/work/|/root/|/home/", text) == []
