"""The pages in a real browser, offline, from file://: nothing fails, nothing is fetched from elsewhere, things move."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

import softscope as ss
from softscope.lab.course import LESSONS
from softscope.lab.homework import EXERCISES
from softscope.lab.puzzles import CHOSEN
from softscope.site import frame
from static_site.opened import opened, pages
from static_site.weight import MEGABYTES, weight_of

pytestmark = pytest.mark.xdist_group("site")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def test_every_page_opens_in_both_languages_without_a_complaint_and_fits_a_phone(browser, small):
    found = pages(small)
    english = [path for path in found if not path.startswith("zh/")]
    assert sorted(f"zh/{path}" for path in english) == [path for path in found if path.startswith("zh/")]
    assert len(english) >= 9
    for theme, width in (("light", 1100), ("dark", 390)):
        viewport = {"width": width, "height": 800}
        with opened(browser, small, viewport=viewport, color_scheme=theme) as seen:
            for path in found:
                page = seen.open(path)
                assert seen.wrong() == [], path
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
                text = page.locator("body").inner_text()
                if path.startswith("zh/"):
                    assert CHINESE.search(text) or "ledger" in path, path
                elif "glossary" not in path:
                    assert CHINESE.findall(text.replace("中文", "")) == [], path


def test_a_page_that_complains_is_heard(browser, small):
    """Otherwise the test above would prove nothing."""
    with opened(browser, small) as seen:
        page = seen.open("index.html")
        assert seen.wrong() == []
        page.evaluate("""() => {
            console.error("spoken");
            setTimeout(() => { throw new Error("thrown"); });
            new Image().src = "http://example.invalid/x.png";
            const script = document.createElement("script");
            script.src = "nothing.js";
            document.body.append(script);
        }""")
        page.wait_for_timeout(300)
        heard = "\n".join(seen.wrong())
    for word in ("console: spoken", "thrown", "example.invalid", "failed:"):
        assert word in heard, f"{word} is missing: {heard}"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_drag_on_the_front_page_moves_the_weights(browser, small, lang):
    with opened(browser, small, viewport={"width": 1100, "height": 800}) as seen:
        page = seen.open(frame.home("index.html", lang))
        grip = page.locator(".ss-grip").first
        shares = page.locator(".ss-panel").nth(1).locator("text.ss-number:not(.ss-faint)")
        expect(shares.first).to_have_text("0.090")
        knob = grip.locator(".ss-knob").bounding_box()
        x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y - 60, steps=5)
        page.mouse.up()
        logits = [float(one.get_attribute("aria-valuenow")) for one in page.locator(".ss-grip").all()]
        assert logits[0] > 2.0
        assert logits[1:] == [2.0, 3.0]
        expect(shares.first).to_have_text(f"{ss.softmax(logits)[0]:.3f}")
        assert seen.wrong() == []


def test_a_control_replays_what_the_library_computes(browser, small):
    with opened(browser, small) as seen:
        page = seen.open("lessons/probabilities.html")
        sliders = page.locator("input[data-control]")
        assert sliders.count() == 3
        row = page.locator("tr", has=page.get_by_text("softmax(x)", exact=True))
        before = row.inner_text()
        sliders.first.focus()
        page.keyboard.press("Home")
        expect(row).not_to_have_text(before)
        x = [float(one.inner_text()) for one in page.locator(".control output").all()]
        assert x[0] == -3.0
        shown = [float(cell) for cell in row.locator("td").all_inner_texts()[1:4]]
        np.testing.assert_allclose(shown, ss.softmax(x), rtol=0.01)
        assert seen.wrong() == []


def test_text_computed_for_the_first_picture_says_so_once_it_has_moved(browser, small):
    with opened(browser, small) as seen:
        page = seen.open("lessons/probabilities.html")
        note = page.locator(".stale-note").first
        expect(note).to_be_hidden()
        page.locator(".ss-grip").first.focus()
        page.keyboard.press("PageUp")
        expect(note).to_be_visible()
        assert seen.wrong() == []


def test_claims_are_judged_before_they_are_measured(browser, small):
    with opened(browser, small) as seen:
        page = seen.open("lessons/mistakes.html")
        first = page.locator(".puzzle").first
        assert page.locator(".puzzle").count() == len(CHOSEN)
        expect(first.locator("details")).not_to_have_attribute("open", "")
        verdict = first.get_attribute("data-verdict")
        wrong = "holds" if verdict != "holds" else "fails"
        first.locator(f"button[value={wrong}]").click()
        expect(first.locator(".told")).to_contain_text("Not quite")
        first.locator(f"button[value={verdict}]").click()
        expect(first.locator(".told")).to_contain_text("You are right")
        expect(page.locator(".tally")).to_have_text("Answered: 1. Correct: 1.")
        assert page.locator("main").inner_text().count("Answered:") == 1, "the lab's own count is not there"
        assert seen.wrong() == []


def test_the_theme_is_changed_and_stays(browser, small):
    ground = "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3)"
    dark = f"() => {ground}.every((x) => Number(x) < 128)"
    with opened(browser, small, color_scheme="light") as seen:
        page = seen.open("index.html")
        assert not page.evaluate(dark)
        page.locator("button.theme").click()
        assert page.evaluate(dark)
        page = seen.open("zh/lessons/overflow.html")
        assert page.evaluate(dark)
        assert seen.wrong() == []


def test_a_reader_of_chinese_starts_in_chinese_and_may_go_back(browser, small):
    with opened(browser, small, locale="zh-CN") as seen:
        page = seen.open("index.html")
        page.wait_for_url("**/zh/index.html")
        page.locator("[data-language=en]").click()
        expect(page.locator("html")).to_have_attribute("lang", "en")
        assert page.url.endswith("/index.html")
        assert "/zh/" not in page.url


def test_without_scripts_the_texts_formulas_and_tables_are_there(browser, small):
    with opened(browser, small, java_script_enabled=False) as seen:
        page = seen.open("lessons/overflow.html")
        assert page.locator("math").count() >= 2
        assert page.locator("table").count() >= 3
        assert "def softmax_naive(x):" in page.locator("pre").first.inner_text()
        assert "graded when you leave" not in page.locator("main").inner_text(), "nobody grades it here"
        assert "Why does subtracting the maximum change nothing?" in page.locator("main").inner_text()
        page = seen.open("homework.html")
        for exercise in EXERCISES:
            assert exercise.title.en in page.locator("main").inner_text()
            assert f"softscope homework check {exercise.id}" in page.locator("main").inner_text()


def test_a_page_with_all_it_loads_is_small(small):
    for path in pages(small):
        if "ledger" not in path:
            assert weight_of(small, path) < MEGABYTES, path


def test_every_link_leads_somewhere(small):
    """The small site lacks some pages, and those alone."""
    absent = {"report.html", "reference/index.html", *(f"lessons/{one.name}.html" for one in LESSONS)}
    for path in pages(small):
        for to in re.findall(r'<a [^>]*?href="([^"#]+)', (small / path).read_text("utf-8")):
            target = ((small / path).parent / to).resolve()
            name = str(target.relative_to(small.resolve())).removeprefix("zh/")
            assert target.exists() or name in absent, f"{path}: {to}"
