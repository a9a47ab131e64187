"""The pages in a real browser: nothing fails, nothing leaves the machine, pictures move, progress survives."""

import re

import pytest

from lab import chromium
from softscope.lab.course import LESSONS

PATIENCE = 60_000  # ms: a busy machine is slow, and a page that never comes fails all the same
# Lessons that another test here opens anyway are left to it; the other languages are in the slow tier.
PLAYED = {"probabilities", "sharpness", "scaling", "attention", "mistakes"}
ALL = [(lesson.name, lang) for lesson in LESSONS for lang in ("zh", "en")]
QUICK = [(lesson.name, ("zh", "en")[lesson.number % 2]) for lesson in LESSONS if lesson.name not in PLAYED]
REST = [one for one in ALL if one not in QUICK]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    if chromium.found() is None:
        with chromium.browser():  # skips, and says so
            pass
    with chromium.lab(tmp_path_factory.mktemp("lab")) as started:
        yield started


@pytest.fixture(scope="module")
def browser():
    with chromium.browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def known(browser, running):
    """A browser that has been let in, and keeps what it loads: marimo's scripts are megabytes."""
    return admitted(browser, running)


def admitted(browser, running, **options):
    context = browser.new_context(**options)
    page = context.new_page()
    page.goto(running.address, wait_until="networkidle")
    page.close()
    return context


class Watched:
    """A page whose every complaint and request is kept."""

    def __init__(self, context, running):
        self.page, self.running, self.wrong = context.new_page(), running, []
        self.page.on("console", lambda said: said.type == "error" and self.wrong.append(f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("requestfailed", lambda request: self.wrong.append(f"failed: {request.url} {request.failure}"))
        self.page.on("response", lambda got: got.status >= 400 and self.wrong.append(f"{got.status}: {got.url}"))
        self.page.on("request", lambda asked: self._outside(asked.url))
        self.page.on("websocket", lambda opened: self._outside(opened.url))

    def _outside(self, url):
        if not re.match(rf"(http|ws)://127\.0\.0\.1:{self.running.port}/|data:|blob:", url):
            self.wrong.append(f"outside: {url}")

    def open(self, name, lang="en"):
        self.page.goto(f"{self.running.origin}/lesson/{name}/?lang={lang}")
        self.page.wait_for_selector(".lab-next", timeout=PATIENCE)
        self.page.wait_for_load_state("networkidle")


@pytest.fixture
def watched(known, browser, running):
    """Makes watched pages; with options, in a context of their own."""
    contexts, pages = [], []

    def make(**options):
        if options:
            contexts.append(admitted(browser, running, **options))
        pages.append(Watched(contexts[-1] if options else known, running))
        return pages[-1]

    yield make
    for one in [*(seen.page for seen in pages), *contexts]:
        one.close()


def check_lesson(watched, name, lang):
    seen = watched()
    seen.open(name, lang)
    title = next(lesson.title.of(lang) for lesson in LESSONS if lesson.name == name)
    assert seen.page.locator("h1.lab-title").text_content() == title
    assert seen.page.locator(".marimo-error").count() == 0
    assert seen.wrong == []


@pytest.mark.parametrize(("name", "lang"), QUICK)
def test_a_lesson_opens_without_a_complaint(watched, name, lang):
    check_lesson(watched, name, lang)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lang"), REST)
def test_a_lesson_opens_in_the_other_language(watched, name, lang):
    check_lesson(watched, name, lang)


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("width", [390, 1200])
def test_the_index_fits(watched, lang, width):
    seen = watched(viewport={"width": width, "height": 800})
    seen.page.goto(f"{seen.running.origin}/?lang={lang}")
    assert seen.page.locator("main li").count() == len(LESSONS)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.wrong == []


def test_the_language_is_changed_by_a_link_and_stays_in_the_address(watched):
    seen = watched()
    seen.open("sharpness", "en")
    seen.page.locator("a[hreflang=zh]").click()
    seen.page.wait_for_selector("text=下一课", timeout=PATIENCE)
    assert "lang=zh" in seen.page.url
    seen.page.locator(".lab-bar a").first.click()
    seen.page.wait_for_selector("main li")
    assert "lang=zh" in seen.page.url
    assert seen.wrong == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_follow_the_theme(watched, theme):
    seen = watched(color_scheme=theme)
    ground = "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)"
    seen.page.goto(f"{seen.running.origin}/?lang=en")
    index = seen.page.evaluate(ground)
    assert (sum(index) / 3 > 128) == (theme == "light"), index
    seen.open("probabilities")
    dark = seen.page.evaluate(
        "document.body.classList.contains('dark') || document.documentElement.classList.contains('dark')"
    )
    assert dark == (theme == "dark")


def test_the_softmax_is_dragged_and_keyed(watched):
    seen = watched()
    seen.open("probabilities")
    grip = seen.page.locator(".ss-grip").first
    shares = seen.page.locator(".ss-panel").nth(1).locator("text.ss-number:not(.ss-faint)")
    before = shares.first.text_content()
    assert before == "0.090"
    grip.focus()
    for _ in range(3):
        seen.page.keyboard.press("PageUp")
    seen.page.wait_for_timeout(200)
    given = [float(text) for text in shares.all_text_contents()]
    assert sum(given) == pytest.approx(1.0, abs=0.002)
    assert shares.first.text_content() == "0.665", "logits 4, 2, 3"
    box = grip.bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.9, steps=5)
    seen.page.mouse.up()
    assert float(grip.get_attribute("aria-valuenow")) < 0
    seen.page.wait_for_function("[...document.querySelectorAll('code')].some((c) => c.textContent.includes('[-'))")
    assert seen.wrong == []


def test_a_slider_moves_the_picture_of_root_d(watched):
    seen = watched()
    seen.open("scaling")
    slider = seen.page.locator(".ss-widget input[type=range]").first
    peak = seen.page.locator(".ss-readout b").nth(1)
    before = float(peak.text_content())
    slider.focus()
    for _ in range(5):
        seen.page.keyboard.press("ArrowRight")
    seen.page.wait_for_timeout(200)
    assert seen.page.locator(".ss-range output").first.text_content() == "512"
    assert float(peak.text_content()) > before + 0.05
    assert seen.wrong == []


def test_attention_is_stepped_through(watched):
    seen = watched()
    seen.open("attention")
    for _ in range(4):
        seen.page.get_by_role("button", name="next →").click()
    assert "Step 4" in seen.page.locator(".ss-caption").text_content()
    seen.page.locator(".ss-matrix:not([hidden]) .ss-square").last.click()
    assert "=" in seen.page.locator(".ss-answer").text_content()
    assert seen.wrong == []


def test_progress_survives_a_restart(browser, tmp_path):
    with chromium.lab(tmp_path) as first:
        context = admitted(browser, first)
        seen = Watched(context, first)
        seen.open("sharpness")
        seen.page.get_by_role("switch").click()
        seen.page.wait_for_timeout(1500)
        context.close()
    with chromium.lab(tmp_path) as again:
        context = admitted(browser, again)
        seen = Watched(context, again)
        seen.page.goto(f"{again.origin}/?lang=en")
        assert seen.page.locator("li.done strong").all_text_contents() == ["Sharpness: ratios to the power k"]
        assert "Temperature" in seen.page.locator(".resume").text_content()
        context.close()


def test_a_claim_is_judged(watched):
    seen = watched()
    seen.open("mistakes")
    seen.page.get_by_role("radio", name="fails").first.click()
    seen.page.wait_for_selector("text=You judged right", timeout=PATIENCE)
    assert seen.wrong == []


@pytest.mark.slow
def test_the_patient_is_trained_in_the_page(watched):
    seen = watched()
    seen.open("patient")
    seen.page.get_by_role("button", name="train three models").click()
    seen.page.wait_for_selector("td:has-text('starving')", timeout=3 * PATIENCE)
    assert seen.page.locator("td", has_text="100%").count() >= 1
    assert seen.wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["probabilities", "gradient", "scaling", "attention"])
def test_a_picture_is_drawn_fifty_times_a_second(watched, name):
    seen = watched()
    seen.open(name)
    rate = seen.page.evaluate(
        """() => {
            const find = (root) => {
                for (const element of root.querySelectorAll('*')) {
                    if (element.paintNow) return element;
                    const below = element.shadowRoot && find(element.shadowRoot);
                    if (below) return below;
                }
            };
            const widget = find(document), begun = performance.now();
            for (let i = 0; i < 100; i++) { widget.paintNow(); widget.getBoundingClientRect(); }
            return 100_000 / (performance.now() - begun);
        }"""
    )
    assert rate > 50, f"{rate:.0f} a second"
