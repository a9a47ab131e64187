"""`softscope claims`: filters, formats, both languages, and a progress bar that shows only on a terminal."""

import html.parser
import json
import re
import sys

import pytest

import softscope
from cli.commands import columns, program
from softscope import _progress_bar
from softscope._text import LANGS, Text
from softscope.cli.claims import _VERDICTS, COMMAND, parts
from softscope.experiments import ledger

CHINESE = re.compile(r"[\u3400-\u9fff]")
QUICK = ("S0-02", "S1-03", "S1-20", "S1-09", "S4-05", "S0-01", "S1-18")  # each verdict once, and a contradiction
FORMATS = ("text", "json", "markdown", "html")


def test_one_claim(run):
    text = run.text("claims", "S1-03")
    assert "does not hold" in text
    assert "[0.3175, 0.3333, 0.3492]" in text
    assert "softscope experiment normalisers" in text
    assert text.endswith(f"claims: 1 · does not hold 1\nsoftscope {softscope.__version__}, seed 0.\n")
    assert "true is" in text
    assert run.text("claims", "s1-03") == text


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [60, 80])
def test_fits_the_terminal(run, monkeypatch, lang, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run.text("claims", *QUICK, "--lang", lang).splitlines()
    assert max(map(columns, lines)) <= width
    assert max(map(columns, lines)) > width - 8
    if lang == "en":
        assert not CHINESE.search("".join(lines))


def test_filters(run):
    def ids(*words):
        return [claim["id"] for claim in run.json("claims", *words)["claims"]]

    assert ids(*QUICK) == sorted(QUICK)
    assert ids(*QUICK, "--text", "004") == ["S4-05"]
    assert ids(*QUICK, "--text", "4") == ["S4-05"]
    assert ids(*QUICK, "--verdict", "fails") == ["S0-01", "S1-03"]
    assert ids(*QUICK, "--verdict", "cited") == ["S1-20"]
    assert ids("S1-01", "S1-02", "--fast") == ["S1-02"]
    assert ids("S1-03", "--verdict", "holds") == []
    assert "No claim matches" in run.text("claims", "S1-03", "--verdict", "holds")


def test_fast_says_what_it_left_out(run):
    document = run.json("claims", "S1-01", "S1-02", "--fast")
    assert document["left_out"] == ["S1-01"]
    for format_ in ("text", "markdown", "html"):
        text = run.text("claims", "S1-01", "S1-02", "--fast", "--format", format_)
        assert "Left out by --fast, because each takes longer: 1 (S1-01)." in text
        assert "Left out" not in run.text("claims", "S1-02", "--fast", "--format", format_)


def test_another_seed_draws_other_samples(run):
    first, again, other = (run.json("claims", "S0-21", "--seed", seed)["claims"][0]["measured"]["en"] for seed in "001")
    assert first == again != other
    assert run.json("claims", "S0-21", "--seed", "7")["seed"] == 7
    assert "seed 7." in run.text("claims", "S1-03", "--seed", "7", "--format", "html")


def test_the_choices_are_those_of_the_ledger(run):
    assert ledger.VERDICTS == _VERDICTS
    text = run.text("claims", "--help")
    for option in COMMAND.options:
        assert f"  {option.flags[0]}" in text


def test_json(run):
    document = run.json("claims", *QUICK)
    assert (document["schema"], document["schema_version"]) == ("softscope.claims", 1)
    assert document["counts"] == {"holds": 2, "only-if": 1, "fails": 2, "cited": 1, "opinion": 1}
    claims = {claim["id"]: claim for claim in document["claims"]}
    assert claims["S4-05"]["only_if"]["en"] == "a > 1, that is, x1 > x2"
    assert claims["S4-05"]["cases"][0] == {"label": {"en": "a = 0.5", "zh": "a = 0.5"}, "held": False, "kind": "input"}
    assert claims["S1-03"]["only_if"] is None
    assert claims["S1-20"]["source"].startswith("Goodfellow")
    assert all(CHINESE.search(claim["because"]["zh"]) for claim in claims.values())
    assert {claim["evidence"] for claim in claims.values()} >= {"measured", "quoted", "judged"}
    assert claims["S1-20"]["stance"] == "supports"
    assert claims["S1-03"]["stance"] is None
    assert claims["S1-03"]["instead"]["en"]
    assert claims["S0-02"]["instead"] is None
    assert claims["S1-03"]["code"].startswith("softscope.experiments.ledger.texts.text_001_")
    assert all(claim["quote"] for claim in claims.values())
    (found,) = document["contradictions"]
    assert (found["one"], found["other"], found["stands"]) == (["S0-01"], ["S1-18"], "other")
    same = run.json("claims", *QUICK, "--lang", "zh")
    for claim in (*document["claims"], *same["claims"]):
        claim.pop("seconds")
    assert document == same, "the document depends on the language"


def test_contradictions_are_settled_in_words(run):
    assert "Measurement sides with S1-18, against S0-01." in run.text("claims", "S0-01", "S1-18")
    assert "实测支持 S1-18，不支持 S0-01。" in run.text("claims", "S0-01", "S1-18", "--lang", "zh")
    condition = ledger.Settled(
        ledger.Contradiction(("S0-06",), ("S3-14",), Text(zh="问", en="Whether")),
        {"S0-06": "only-if", "S3-14": "holds"},
    )
    assert parts.ends(condition).en == "Measurement sides with S3-14; S0-06 holds only under a condition."
    one = ledger.Contradiction(("S0-01", "S0-02"), ("S1-01",), Text(zh="问", en="Whether"))
    settled = ledger.Settled(one, {"S0-01": "holds", "S0-02": "holds", "S1-01": "fails"})
    assert parts.ends(settled) == Text(
        zh="实测支持 S0-01、S0-02，不支持 S1-01。",
        en="Measurement sides with S0-01, S0-02, against S1-01.",
    )
    for verdicts, words in (
        ("holds holds holds", "Both hold"),
        ("fails holds fails", "Neither"),
        ("only-if holds cited", "Each"),
    ):
        drawn = ledger.Settled(one, dict(zip(one.ids, verdicts.split(), strict=True)))
        assert parts.ends(drawn).en.startswith(words)


@pytest.mark.parametrize("lang", LANGS)
def test_markdown(run, lang):
    text = run.text("claims", *QUICK, "--format", "markdown", "--lang", lang)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    assert sum(row.startswith("| S") for row in rows) == len(QUICK)
    ours = re.sub("<br>“[^”]*”", "", text)
    assert ours != text, "nothing is quoted"
    assert bool(CHINESE.search(ours)) == (lang == "zh")


class Page(html.parser.HTMLParser):
    """Count tags and track which are open."""

    def __init__(self, text):
        super().__init__()
        self.open, self.articles, self.outside, self.links = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.outside += [
            value for name, value in attrs.items() if name in ("src", "href") and not value.startswith("#")
        ]
        if tag == "a":
            self.links.append(attrs["href"])
        if tag == "article" and "id" in attrs:
            self.articles.append(attrs["id"])
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("lang", LANGS)
def test_page(run, lang):
    text = run.text("claims", *QUICK, "--format", "html", "--lang", lang)
    page = Page(text)
    assert page.articles == sorted(QUICK)
    links = [link for link in page.links if link.removeprefix("#") in QUICK]
    assert links[2:] == [f"#{name}" for name in sorted(QUICK)], "after those of the contradiction, one for each claim"
    assert text.index('id="contradictions"') < text.index('id="text-000"')
    assert text.count("<details open>") == sum(1 for claim in QUICK if claim not in ("S1-20", "S1-09"))
    assert "def _s1_03() -&gt; Outcome:" in text
    assert text.count("<blockquote>") == len(QUICK)
    assert page.open == []
    assert page.outside == []
    assert "http" not in re.sub(r"arXiv \d+", "", text)
    assert f'<html lang="{lang}" data-lang="{lang}">' in text
    assert "prefers-color-scheme: dark" in text
    assert text.count('class="zh"') == text.count('class="en"') > 50


@pytest.mark.parametrize("format_", FORMATS)
def test_nothing_but_the_ledger_is_written(format_):
    result = program("claims", "S1-03", "S1-05", "--format", format_)
    assert (result.returncode, result.stderr) == (0, "")
    assert "S1-05" in result.stdout
    if format_ == "json":
        json.loads(result.stdout)


def test_a_bar_on_a_terminal(run, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert run("claims", "S1-03")[2] == "", "what takes less than a second needs no bar"
    monkeypatch.setattr(_progress_bar, "PATIENCE", 0.0)
    code, out, err = run("claims", "S1-03", "S1-05")
    assert (code, "\r" in out) == (0, False)
    assert "S1-05 [###############...............]  50%" in err
    assert err.rpartition("\r")[2] == "", "the bar stays"
    assert not err[:-1].rpartition("\r")[2].strip(), "the bar stays"


def test_where_torch_is_missing(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, out, err = run("claims", "S0-10")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "need torch" in err
    assert run("claims", "S1-03")[0] == 0
