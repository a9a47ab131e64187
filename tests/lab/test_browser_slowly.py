"""Slower browser tests: a model trained in the page, and how often a picture is redrawn."""

import pytest
from playwright.sync_api import expect

from lab import chromium
from lab.watching import PATIENCE, Watched

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("lab")]
# Move something every frame, as a hand would. Returns how many pictures were drawn per second, and how many frames the
# browser made in a second while nothing moved.
DRAWN = """async ({ selector, seconds }) => {
    const find = (root) => {
        for (const element of root.querySelectorAll("*")) {
            if (element.paintNow) return element;
            const below = element.shadowRoot && find(element.shadowRoot);
            if (below) return below;
        }
    };
    const widget = find(document), moved = widget.querySelectorAll(selector), begun = performance.now();
    let frames = 0;
    while (performance.now() - begun < 1000) { await new Promise(requestAnimationFrame); frames++; }
    const still = frames / ((performance.now() - begun) / 1000), again = performance.now();
    const first = Number(widget.dataset.updates);
    for (let i = 0; performance.now() - again < 1000 * seconds; i++) {
        await new Promise(requestAnimationFrame);
        const one = moved[i % moved.length];
        if (one.type === "range") {
            one.value = Number(one.min) + (one.max - one.min) * (0.5 + 0.5 * Math.sin(i / 9));
            one.dispatchEvent(new Event("input", { bubbles: true }));
        } else one.click();
    }
    return [(Number(widget.dataset.updates) - first) / ((performance.now() - again) / 1000), still];
}"""
MOVED = {
    "temperature": "input[type=range]",
    "gradient": "input[type=range]",
    "scaling": "input[type=range]",
    "attention": ".ss-square",
}


@pytest.fixture(scope="module")
def seen(running):
    with chromium.browser() as opened:
        yield Watched(opened.new_context(viewport={"width": 1100, "height": 800}), running)


@pytest.mark.parametrize("name", MOVED)
def test_a_picture_is_drawn_fifty_times_a_second(seen, name):
    seen.open(name)
    rates = [seen.page.evaluate(DRAWN, {"selector": MOVED[name], "seconds": 2}) for _ in range(3)]
    print(f"{name}: {', '.join(f'{rate:.0f} of {still:.0f}' for rate, still in rates)} pictures a second")
    # Take the best of three, and require 50/60 of the frames the browser makes when nothing moves, or of 60 if it makes
    # more: other programs can take frames away, but none can add one.
    assert max(rate / min(still, 60.0) for rate, still in rates) > 50 / 60, rates
    assert seen.wrong() == []


def test_the_patient_is_trained_in_the_page(seen):
    seen.open("patient")
    seen.page.get_by_role("button", name="train three models").click()
    seen.page.wait_for_selector("td:has-text('starving')", timeout=3 * PATIENCE)
    assert seen.page.locator("td", has_text="100%").count() >= 1
    assert seen.page.locator(".lab-reads td.right").count() > 100
    assert seen.page.locator(".lab-reads td.wrong").count() > 100
    seen.page.get_by_role("button", name="train three models").click()
    first = seen.page.locator("tr", has_text="scaled by 1/√d").filter(has=seen.page.locator("td", has_text="256"))
    expect(first).to_have_count(2, timeout=3 * PATIENCE)  # the earlier run is kept beside the new one
    assert "Prescription" in seen.page.locator("#App").inner_text()
    assert seen.wrong() == []
