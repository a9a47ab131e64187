"""The page is self-contained, correct in both languages, escapes every name, stays small, and opens in a browser."""

import html.parser
import json
import math
import re
import shutil
import subprocess

import numpy as np
import pytest

from doctor.judge.histories import RESTING, RIGHT, STUCK, history, per_head, starving
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.read.snapshot import History, Snapshot
from softscope.doctor.report import document, lines, page

EVIL = '<script>alert("x")</script>\'&'
CHINESE = re.compile(r"[\u3400-\u9fff]")
SICK = starving(
    history(
        sites=2,
        unseen=[(EVIL, "<b>own kernel</b>")],
        **{name: {(0, 1): value} for name, value in STUCK.items() if ":" not in name}
        | {"blocked_mass": {(1, 0): 0.97}, "q_norm": {(1, 3): 240.0}},
    ),
    1,
)


class Page(html.parser.HTMLParser):
    """Tags, attributes, and whether every opened tag is closed."""

    VOID = frozenset({"meta", "br", "circle", "path", "rect"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def renamed(found, name):
    sites = tuple(type(site)(**{**vars(site), "name": f"{name}{i}"}) for i, site in enumerate(found.sites))
    return History(sites, found.snapshots, found.unseen, found.facts)


def model(sites=12, heads=12, readings=40):
    """Noisy readings for a whole model."""
    rng = np.random.default_rng(0)
    calm = history(sites=sites, heads=heads, steps=range(0, 10 * readings, 10))
    snapshots = tuple(
        Snapshot(s.step, s.seconds, s.loss, {n: x * rng.lognormal(0, 0.3, x.shape) for n, x in s.readings.items()})
        for s in calm.snapshots
    )
    return renamed(History(calm.sites, snapshots), "model.encoder.layers.self_attention.")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_stands_alone(lang):
    text = page([diagnose(SICK)], lang)
    parsed = Page(text)
    assert ("html", "lang", lang) in parsed.attributes
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(parsed.tags)
    assert not [a for a in parsed.attributes if a[1] in ("src", "srcset", "action", "xlink:href")]
    assert all(value.startswith("#") for _, name, value in parsed.attributes if name == "href")
    assert "url(" not in text
    assert "@import" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert any(name == "content" and "default-src 'none'" in value for _, name, value in parsed.attributes)


def test_names_are_escaped():
    text = page([diagnose(renamed(SICK, EVIL), title=EVIL), diagnose(SICK)], "en")
    parsed = Page(text)
    assert parsed.tags.count("script") == 1
    assert "<script>alert" not in text
    assert "<b>own kernel" not in text
    assert any(EVIL in data for data in parsed.texts), "and yet it is shown"
    assert not [a for a in parsed.attributes if a[1].startswith("on")]


@pytest.mark.parametrize(
    "found", [SICK, history(loss=False), history(steps=[]), history(sites=0, heads=0), history(steps=[7])]
)
def test_every_history_has_a_page(found):
    Page(page([diagnose(found)]))
    json.dumps(document([diagnose(found)]), allow_nan=False)
    assert list(lines(diagnose(found), "zh"))


def test_wild_readings_break_no_rendering():
    for value in (math.nan, math.inf, -math.inf, 0.0):
        wild = {name.replace(":", "__"): value for name in history().snapshots[0].readings}
        diagnosis = diagnose(history(**wild))
        Page(page([diagnosis]))
        json.dumps(document([diagnosis]), allow_nan=False)


def test_both_languages_say_the_same():
    text = page([diagnose(SICK)], "en")
    spans = re.findall(r'class="(zh|en)"[^>]*>([^<]*)<', text)
    assert len(spans) > 200
    for (left, english), (right, chinese) in zip(spans[::2], spans[1::2], strict=True):
        assert {left, right} == {"en", "zh"}
        english, chinese = (english, chinese) if left == "en" else (chinese, english)
        assert not CHINESE.search(english), english
        assert CHINESE.search(chinese), chinese
        assert sorted(re.findall(r"\d+\.\d+", english)) == sorted(re.findall(r"\d+\.\d+", chinese))


def test_tables_say_what_their_cells_are():
    parsed = Page(page([diagnose(SICK)]))
    assert parsed.tags.count("caption") == parsed.tags.count("table") > 8
    scopes = [value for tag, name, value in parsed.attributes if (tag, name) == ("th", "scope")]
    assert parsed.tags.count("th") == len(scopes)
    assert {"row", "col"} == set(scopes)
    labelled = [a for a in parsed.attributes if a[:2] == ("svg", "aria-label")]
    assert len(labelled) == 2  # the plane and the loss; the small curves have their numbers next to them


def test_every_head_is_on_the_plane():
    text = page([diagnose(SICK)])
    assert text.count('<g class="mark') == 8
    assert len(re.findall(r'<g class="mark starving"', text)) == 1
    assert "mark" not in re.sub(
        r"<style>.*?</style>|<script>.*?</script>", "", page([diagnose(history(loss=False))]), flags=re.S
    )


def test_144_heads_fit_in_300_kb():
    text = page([diagnose(model())])
    assert len(text.encode()) < 300_000
    assert text.count('<g class="mark') == 144


def test_json_is_versioned_and_complete():
    diagnosis = diagnose(SICK, title="run 7")
    found = json.loads(json.dumps(document([diagnosis]), allow_nan=False))
    assert (found["schema"], found["schema_version"]) == ("softscope.checkup", 1)
    (case,) = found["cases"]
    assert case["counts"] == diagnosis.counts
    assert sum(outcome["count"] for outcome in case["outcomes"]) == sum(diagnosis.counts.values())
    assert len(case["heads"]) == 8
    assert case["heads"][1]["state"] == "starving"
    assert case["heads"][1]["trial"]["verdict"] == "starving"
    assert case["heads"][1]["trial"]["softened"] == {"change": -0.3, "error": 0.1}
    assert case["heads"][0]["trial"] is None
    assert case["heads"][1]["readings"]["blocked"] == pytest.approx(0.9)
    assert {outcome["code"] for outcome in case["outcomes"] if outcome["kind"] == "finding"} == {"SS001", "SS004"}
    assert case["unseen"] == [{"name": EVIL, "why": "<b>own kernel</b>"}]
    assert case["verdict"].keys() == {"en", "zh"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_lines(lang):
    said = "\n".join(line.text for line in lines(diagnose(SICK), lang))
    for word in ("SS001", "SS004", "layers.1.attention", EVIL):
        assert word in said
    assert bool(CHINESE.search(said)) == (lang == "zh")
    many = "\n".join(line.text for line in lines(diagnose(history(heads=12, blocked=0.9)), lang))
    assert ("还有" if lang == "zh" else "and 4 more") in many


def test_right_and_resting_are_no_findings_in_words():
    found = diagnose(history(**per_head(0, RIGHT)))
    assert next(iter(lines(found, "en"))).style == "passed"
    assert next(iter(lines(diagnose(history(**per_head(0, RESTING))), "en"))).style == "passed"


def test_a_browser_opens_it_without_a_request(tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here; install it to see the page rendered")
    evil = diagnose(renamed(SICK, EVIL), title=EVIL)
    file = tmp_path / "report.html"
    # The page reports its own state after its script has run; an error or a request would show.
    watch = (
        "<script>addEventListener('load', () => { const d = document; d.querySelector('.plane .mark').focus();"
        "const tip = d.getElementById('tip').textContent; d.querySelector('button[data-lang=zh]').click();"
        "d.getElementById('theme').click(); d.title = ['seen', d.documentElement.lang, d.documentElement.dataset.theme,"
        "performance.getEntriesByType('resource').length, tip.includes('advantage')].join(' '); });</script>"
    )
    file.write_text(page([evil], "en").replace("</body>", watch + "</body>"), "utf-8")
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", "--dump-dom", file.as_uri()],
        capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (title,) = re.findall(r"<title>(.*?)</title>", done.stdout)
    assert title in ("seen zh dark 0 true", "seen zh light 0 true")


def test_print_is_light_whatever_the_screen_is():
    """Dark colours, including pale text, are for screens only: paper is white."""
    import importlib.resources

    css = importlib.resources.files("softscope.doctor.report").joinpath("page.css").read_text("utf-8")
    dark = re.findall(r"(@media [^{]*)?\{ :root[^{]*\{ color-scheme: dark", css)
    assert len(dark) == css.count("color-scheme: dark;") == 2
    assert all(rule.startswith("@media screen") for rule in dark)
