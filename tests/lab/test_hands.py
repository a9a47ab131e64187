"""A hand on a picture: a swipe scrolls the page, a knob is dragged, and a button that can do no more is disabled."""

import json

import pytest
from playwright.sync_api import expect

from lab import chromium
from softscope.lab.page import Page
from softscope.lab.widgets import pictures

pytestmark = pytest.mark.xdist_group("lab")
STYLE = (pictures.FOLDER.parent / "assets" / "lesson.css").read_text("utf-8")
SHELL = """<!doctype html><meta name=viewport content="width=device-width"><style>{style}</style>
<body style="--background: white"><div style="height: 300px"></div><div id=here>{body}</div><div style="height: 3000px">
</div>"""
# A picture on a bare page, with a model that remembers what it is told.
MODEL = """const values = {values};
const model = {{ get: (name) => values[name], set: (name, value) => {{ values[name] = value; }}, on() {{}}, off() {{}},
  save_changes() {{ window.told = structuredClone(values); }} }};
render({{ model, el: document.getElementById("here") }});"""


@pytest.fixture(scope="module")
def phone():
    with chromium.browser() as opened:
        yield opened.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True).new_page()


def bare(page, style, body=""):
    page.set_content(SHELL.format(style=style, body=body))
    page.evaluate("scrollTo(0, 0)")


def show(page, name, **values):
    bare(page, (pictures.FOLDER / "style.css").read_text("utf-8"))
    script = pictures.source(name) + MODEL.format(values=json.dumps({"lang": "en"} | values))
    page.add_script_tag(content=script, type="module")
    page.wait_for_selector(".ss-widget[data-updates]")


def swipe(page, x, y, distance):
    """Move a finger upwards; a browser scrolls the page unless the element under it took the touch."""
    hand = page.context.new_cdp_session(page)
    points = [y - distance * step / 10 for step in range(11)]
    hand.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": points[0]}]})
    for point in points[1:]:
        hand.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": point}]})
    hand.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(200)
    return page.evaluate("scrollY")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("steps", {"logits": [0.0, 1.0, 2.0]}),
        ("softmax", {"logits": [0.0, 1.0, 2.0], "temperature": 1.0}),
        ("jacobian", {"logits": [1.0, 0.5, 0.0], "gain": 1.0}),
        ("scaling", {"dimension": 16, "seed": 1}),
    ],
)
def test_a_swipe_over_a_picture_scrolls_the_page(phone, name, values):
    show(phone, name, **values)
    box = phone.locator(".ss-panel svg").first.bounding_box()
    before = phone.evaluate("document.querySelector('.ss-widget').dataset.updates")
    low = box["y"] + box["height"] * 0.9  # in a column of bars, but far from its knob
    assert swipe(phone, box["x"] + box["width"] * 0.8, low, 150) > 80
    assert phone.evaluate("document.querySelector('.ss-widget').dataset.updates") == before


@pytest.mark.parametrize("name", ["steps", "softmax"])
def test_a_finger_on_a_knob_drags_it_and_the_page_stays(phone, name):
    show(phone, name, logits=[0.0, 1.0, 2.0], temperature=1.0)
    grip = phone.locator(".ss-grip").first
    knob = grip.locator(".ss-knob").bounding_box()
    assert swipe(phone, knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2, 40) == 0
    assert float(grip.get_attribute("aria-valuenow")) > 0.9
    assert phone.evaluate("told.logits[0]") > 0.9, "Python is told"


def test_a_button_that_can_do_no_more_is_disabled(phone):
    show(phone, "softmax", logits=[1.0, 2.0, 3.0], temperature=1.0)
    more, twice, reset = (phone.get_by_role("button", name=name) for name in ("add 1 to all", "times 2", "reset"))
    expect(reset).to_be_disabled()
    for _ in range(3):
        more.click()
    expect(more).to_be_disabled()  # 6 is the picture's edge
    expect(twice).to_be_disabled()
    reset.click()
    expect(reset).to_be_disabled()
    expect(more).to_be_enabled()
    show(phone, "softmax", logits=[0.0, 0.0], temperature=1.0)
    expect(phone.get_by_role("button", name="times 2")).to_be_disabled()  # it would change nothing
    show(phone, "steps", logits=[0.0, 1.0, 2.0])
    phone.get_by_role("button", name="add 1 to all").click()
    expect(phone.get_by_role("button", name="add 1 to all")).to_be_disabled()


def test_the_two_steps_are_drawn(phone):
    show(phone, "steps", logits=[0.0, 1.0, 2.0])
    assert phone.locator(".ss-share").all_text_contents() == ["0.090", "0.245", "0.665"]
    widths = [float(one.get_attribute("width")) for one in phone.locator(".ss-piece").all()]
    heights = [float(one.get_attribute("height")) for one in phone.locator(".ss-power").all()]
    assert heights[1] / heights[0] == pytest.approx(heights[2] / heights[1]) == pytest.approx(2.71828, rel=1e-4)
    phone.get_by_role("button", name="add 1 to all").click()
    assert [float(one.get_attribute("width")) for one in phone.locator(".ss-piece").all()] == pytest.approx(widths)
    assert float(phone.locator(".ss-power").first.get_attribute("height")) == pytest.approx(
        2.71828 * heights[0], rel=1e-4
    )


def right_edge(page):
    box = page.locator(".lab-scroll").bounding_box()
    return page.screenshot(
        clip={"x": box["x"] + box["width"] - 12, "y": box["y"], "width": 12, "height": box["height"]}
    )


@pytest.mark.parametrize(("columns", "marked"), [(2, False), (40, True)])
def test_a_table_that_scrolls_shows_it(phone, columns, marked):
    table = Page("overflow", "en").table([""] * columns, [[""] * columns] * 6).text
    bare(phone, f"{STYLE} .lab-table * {{ border: 0 !important; }}", table)
    scrolls = phone.locator(".lab-scroll").evaluate("(box) => box.scrollWidth > box.clientWidth")
    assert scrolls == marked
    first = right_edge(phone)
    phone.evaluate("document.querySelector('.lab-scroll').scrollLeft = 1e6")
    phone.wait_for_timeout(100)
    assert (right_edge(phone) != first) == marked
