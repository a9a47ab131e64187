"""The pages in a real browser: nothing fails, nothing leaves the machine, pictures move, answers are graded."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from lab import chromium
from lab.homework.answers import NUMPY, RIGHT
from lab.watching import PATIENCE, Watched
from softscope.lab.course import LESSONS
from softscope.lab.homework import EXERCISES

pytestmark = pytest.mark.xdist_group("lab")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
FINE = NUMPY + RIGHT["softmax"][0]
HOSTILE = {
    "while True: pass": "No result within",
    "import os; os._exit(0)": "exited by itself (exit code 0)",
    "while True: print('x' * 1000)": "printed more than",
    "import numpy as np; big = np.ones(10**10 // 8)": "not enough memory",
    "import os\nwhile True: os.fork()": "may not use files, the network, processes or signals",
}


@pytest.fixture(scope="module")
def browser():
    with chromium.browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def seen(browser, running):
    """One page for all tests: a browser that has marimo's scripts cached opens a lesson in half the time."""
    return Watched(browser.new_context(viewport={"width": 1100, "height": 800}), running)


def drag_the_two_steps(page):
    grip, shares = page.locator(".ss-grip").first, page.locator(".ss-share")
    expect(shares.first).to_have_text("0.090")
    grip.focus()
    for _ in range(3):
        page.keyboard.press("PageUp")
    expect(shares.first).to_have_text("0.665")  # for the scores 3, 1, 2
    assert sum(map(float, shares.all_text_contents())) == pytest.approx(1.0, abs=0.002)
    box = grip.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.9, steps=5)
    page.mouse.up()
    expect(grip).to_have_attribute("aria-valuenow", re.compile("^-"))
    page.wait_for_function("[...document.querySelectorAll('code')].some((c) => c.textContent.includes('[-'))")


def warm_the_softmax(page):
    shares = page.locator(".ss-panel").nth(1).locator("text.ss-number:not(.ss-faint)")
    expect(shares.first).to_have_text("0.090")
    warmth = page.get_by_label("temperature T").first
    warmth.focus()
    page.keyboard.press("End")
    expect(warmth.locator("xpath=following-sibling::output")).to_have_text("10.00")
    assert max(map(float, shares.all_text_contents())) < 0.5


def let_the_jacobian_fade(page):
    trace = page.locator(".ss-readout b").nth(1)
    before = float(trace.text_content())
    gain = page.locator(".ss-widget").get_by_label("gain k")
    gain.focus()
    page.keyboard.press("End")
    expect(gain.locator("xpath=following-sibling::output")).to_have_text("31.62")
    assert 0.0 < float(trace.text_content().replace("−", "-")) < 1e-6 < before


def widen_the_dot_products(page):
    peak = page.locator(".ss-readout b").nth(1)
    before = float(peak.text_content())
    page.locator(".ss-widget input[type=range]").first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".ss-range output").first).to_have_text("512")
    assert float(peak.text_content()) > before + 0.05


def step_through_attention(page):
    for step in range(1, 5):
        page.get_by_role("button", name="next →").focus()
        page.keyboard.press("Enter")
        assert f"Step {step}" in page.locator(".ss-caption").text_content()
        if step == 1:
            assert page.locator(".ss-name", has_text="green").count() >= 2, "real words name rows and columns"
            assert page.locator(".ss-sign:visible").all_text_contents() == ["×", "="]
            lit = page.locator(".ss-matrix:not([hidden]) .ss-lit")
            assert lit.count() == 8, "a row of Q and a column of Kᵀ"
            terms = [float(text.replace("−", "-")) for text in lit.all_text_contents()]
            said = page.locator(".ss-answer").text_content().replace("−", "-")
            assert said.count("×") == 4
            assert float(said.rpartition("= ")[2]) == pytest.approx(np.dot(terms[:4], terms[4:]), abs=0.01)
    page.locator(".ss-matrix:not([hidden]) .ss-square").last.click()
    before = page.locator(".ss-answer").text_content()
    assert "=" in before
    seed = page.get_by_label("random seed").first
    seed.fill("12")
    seed.press("Enter")
    expect(page.locator(".ss-answer")).not_to_have_text(before, timeout=PATIENCE)
    assert "Step 4" in page.locator(".ss-caption").text_content(), "new numbers, the same step"


def judge_a_claim(page):
    page.get_by_role("radio", name="fails").first.click()
    page.wait_for_selector("text=You are right", timeout=PATIENCE)


PLAYS = {
    "probabilities": drag_the_two_steps,
    "temperature": warm_the_softmax,
    "gradient": let_the_jacobian_fade,
    "scaling": widen_the_dot_products,
    "attention": step_through_attention,
    "mistakes": judge_a_claim,
}


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_lesson_opens_in_both_languages_and_is_played_with(seen, lesson):
    for lang in ("zh", "en"):
        seen.open(lesson.name, lang)
        assert seen.page.locator("h1.lab-title").text_content() == lesson.title.of(lang)
        assert seen.page.locator(".marimo-error").count() == 0
        text = seen.page.locator("#App").inner_text().replace("中文", "")
        assert len(CHINESE.findall(text)) > 150 if lang == "zh" else CHINESE.findall(text) == []
        assert seen.wrong() == []
    if lesson.name in PLAYS:
        PLAYS[lesson.name](seen.page)
        assert seen.wrong() == []


def test_homework_is_graded_again_whenever_it_changes(seen):
    seen.open("overflow")
    assert "sum to 1" in seen.answer("import numpy as np\ndef softmax(x):\n    return np.exp(x - x.max())")
    assert "Passed!" in seen.answer(FINE)
    for code, says in HOSTILE.items():
        assert says in seen.answer(f"{FINE}\n{code}\n")
    assert "Passed!" in seen.answer(FINE), "the page lives"
    hint = seen.page.get_by_text(EXERCISES[0].hints[0].en.split("\n\n")[0])
    expect(hint).to_have_count(0)
    seen.page.get_by_role("button", name="Hint 1").click()
    hint.wait_for()
    assert "sum to 1" in seen.answer("import numpy as np\ndef softmax(x):\n    return np.exp(x - x.max())")
    expect(hint).to_be_visible()  # a check does not close what is being read
    heights = [
        part.bounding_box()["y"]
        for part in (
            seen.page.get_by_role("button", name="Check"),
            seen.page.locator(".lab-told"),
            seen.page.get_by_role("button", name="Hint 1"),
        )
    ]
    assert heights == sorted(heights), "the verdict stands under the editor, the hints below it"
    assert heights[1] - heights[0] < 150
    assert seen.wrong() == []


def test_a_page_that_complains_is_heard(seen):
    """Otherwise the tests above would prove nothing."""
    seen.index()
    assert seen.wrong() == []
    seen.page.evaluate(
        """async () => {
            console.error("spoken");
            setTimeout(() => { throw new Error("thrown"); });
            for (const url of ["/nothing", "http://127.0.0.1:1/", "http://example.invalid/x"])
                await fetch(url).catch(() => {});
            try { new WebSocket("ws://127.0.0.1:1/"); } catch { }
        }"""
    )
    seen.page.wait_for_timeout(200)
    heard = "\n".join(seen.wrong())
    for word in ("console: spoken", "thrown", "404", "127.0.0.1:1/", "example.invalid"):
        assert word in heard, f"{word} is missing: {heard}"


def test_the_index_fits_a_phone_too(seen):
    for width in (390, 1200):
        seen.page.set_viewport_size({"width": width, "height": 800})
        for lang in ("zh", "en"):
            seen.index(lang)
            assert seen.page.locator("main li").count() == len(LESSONS)
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.wrong() == []


def test_language_and_theme_are_changed_and_stay(seen):
    page = seen.page
    ground = "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)"
    dark = "document.body.classList.contains('dark') || document.documentElement.classList.contains('dark')"
    for system in ("dark", "light"):
        page.emulate_media(color_scheme=system)
        seen.index("en")
        assert (sum(page.evaluate(ground)) < 3 * 128) == (system == "dark"), "without a choice, as the system has it"
    page.locator("form[action*='theme/dark'] button").click()
    page.wait_for_selector("html[data-theme=dark]")
    assert sum(page.evaluate(ground)) < 3 * 128
    seen.open("attention", "en")
    assert page.evaluate(dark)
    page.locator("a[hreflang=zh]").click()
    page.wait_for_selector("text=下一课", timeout=PATIENCE)
    assert "lang=zh" in page.url
    page.locator("form[action*='theme/system'] button").click()
    page.wait_for_url("**/lesson/attention/?lang=zh")
    seen.arrived()
    assert not page.evaluate(dark)
    page.locator(".lab-bar a").first.click()
    page.wait_for_selector("main li")
    assert "lang=zh" in page.url
    assert seen.wrong() == []


def test_progress_survives_a_restart(browser, tmp_path):
    with chromium.lab(tmp_path) as first:
        seen = Watched(browser.new_context(), first)
        seen.open("overflow")
        assert "Passed!" in seen.answer(FINE)
        seen.page.get_by_role("switch").click()
        seen.page.wait_for_timeout(1000)
        seen.page.context.close()
    with chromium.lab(tmp_path) as again:
        seen = Watched(browser.new_context(), again)
        assert seen.page.locator("li.done strong").all_text_contents() == ["Overflow and the shift"]
        assert "Sharpness" in seen.page.locator(".resume").text_content()
        assert "1 of 8 exercises" in seen.page.locator(".tally").text_content()
        assert seen.wrong() == []
        seen.page.context.close()
