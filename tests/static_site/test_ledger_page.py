"""The ledger's page in a real browser: no error, no request; filters, languages and links work; it fits a phone."""

import pytest

from cli.commands import program

pytestmark = pytest.mark.xdist_group("site")
NAMES = ("S0-01", "S0-02", "S1-18", "S3-12", "S4-05")


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    file = tmp_path_factory.mktemp("claims") / "claims.html"
    done = program("claims", *NAMES, "--format", "html", "--lang", "en")
    assert done.returncode == 0, done.stderr
    file.write_text(done.stdout, "utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.troubles = []
    page.on("console", lambda message: page.troubles.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("request", lambda request: page.troubles.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    page.address = file.as_uri()
    return page


def visible(page):
    return page.evaluate("[...document.querySelectorAll('article[id]')].filter(a => !a.hidden).map(a => a.id)")


def test_it_opens_without_an_error_or_a_request(opened):
    assert opened.troubles == []
    assert visible(opened) == sorted(NAMES)


def test_it_fits_a_phone(opened):
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390


def test_filters_and_languages(opened):
    opened.click("button[data-filter=text][value='004']")
    assert visible(opened) == ["S4-05"]
    opened.click("button[data-filter=text][value='']")
    opened.click("button[data-filter=verdict][value='fails']")
    assert visible(opened) == ["S0-01", "S3-12"]
    opened.click("button[data-filter=verdict][value='']")
    opened.click("button[data-lang=zh]")
    assert opened.inner_text("h1") == "论断总账"
    opened.click("button[data-lang=en]")
    assert opened.inner_text("h1") == "The ledger of claims"


def test_a_link_leads_to_its_claim(opened):
    opened.goto(opened.address + "#S4-05")
    top = opened.evaluate("document.getElementById('S4-05').getBoundingClientRect().top")
    assert 0 <= top < 800
    assert opened.evaluate("getComputedStyle(document.getElementById('S4-05')).outlineStyle") == "solid"
    opened.click("#S3-12 .id")
    assert opened.url.endswith("#S3-12")


def test_cases_are_open_and_the_code_is_folded(opened):
    assert opened.is_visible("#S0-02 details[open] li")
    assert not opened.is_visible("#S0-02 pre")
    opened.click("#S0-02 .code summary")
    assert "def _s0_02()" in opened.inner_text("#S0-02 pre")


def test_print_shows_no_buttons(opened):
    opened.emulate_media(media="print")
    assert not opened.is_visible("nav")
    assert opened.is_visible("#S0-02 .says")
    opened.emulate_media(media="screen")
