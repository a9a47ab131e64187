"""The whole site, as a user makes it: every page in both languages; the nightly tier, since it takes minutes."""

import os
import re
import subprocess
import sys

import pytest

from softscope.lab.course import LESSONS
from softscope.site import frame
from static_site.opened import opened, pages
from static_site.weight import MEGABYTES, weight_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "site"
    command = [sys.executable, "-m", "softscope.cli", "site", str(folder), "--lang", "en"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Open {folder / 'index.html'} in a browser.\n", "nothing is left out of a source tree"
    return folder


def test_every_page_opens_in_both_languages_themes_and_sizes(browser, whole):
    found = pages(whole)
    wanted = [place.path for place in frame.PLACES if place is not frame.REFERENCE]
    wanted += [f"lessons/{one.name}.html" for one in LESSONS]
    assert found == sorted([*wanted, *(f"zh/{path}" for path in wanted)])
    for theme, width in (("light", 1100), ("dark", 390)):
        with opened(browser, whole, viewport={"width": width, "height": 800}, color_scheme=theme) as seen:
            for path in [*found, "reference/softscope.html"]:  # its index leads there
                page = seen.open(path)
                page.wait_for_load_state("networkidle")
                assert seen.wrong() == [], path
                if page.locator(".brand").count():  # the ledger, the report and the reference have frames of their own
                    assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_every_control_of_every_lesson_can_be_moved(browser, whole):
    moved = 0
    with opened(browser, whole, viewport={"width": 1100, "height": 800}) as seen:
        for one in LESSONS:
            for lang in ("en", "zh"):
                page = seen.open(frame.home(f"lessons/{one.name}.html", lang))
                for control in page.locator("input[data-control][type=range]").all():
                    control.focus()
                    page.keyboard.press("Home")
                    page.keyboard.press("End")
                    moved += 1
                for control in page.locator("select[data-control]").all():
                    for i in range(control.locator("option").count()):
                        control.select_option(index=i)
                for control in page.locator("input[data-control][type=radio], button[data-control]").all():
                    control.click()
                assert "undefined" not in page.locator(".replay").all_inner_texts(), "a state is missing"
                assert seen.wrong() == [], one.name
    assert moved >= 20


def test_every_link_leads_somewhere_and_every_page_is_small(whole):
    for path in pages(whole):
        text = (whole / path).read_text("utf-8")
        for to in re.findall(r'<a [^>]*?href="([^"#]+)', text):
            assert ((whole / path).parent / to).exists(), f"{path}: {to}"
        if 'class="brand"' in text:
            assert weight_of(whole, path) < MEGABYTES, path
