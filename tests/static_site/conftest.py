"""One small site for the default tier: every kind of page, and lessons that run in a few seconds."""

import pytest

from lab import chromium
from softscope.site import frame
from softscope.site.build import build
from softscope.site.lessons import trainer

SMALL = ("front", "homework", "glossary", "speed", "probabilities", "overflow", "mistakes")


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(folder, ledger=lambda lang: f"<html lang='{lang}'><body>{lang}</body></html>", only={*SMALL, "ledger"})
    for lang in ("en", "zh"):  # lesson 9 itself trains for a quarter of a minute; its head in the page does not
        made = frame.Frame(frame.PLACES).page(
            lang, "lessons/trainer.html", "trainer", trainer.section(lang),
            scripts=("maths.js", "head.js", "trainer.js"), styles=("lesson.css",),
        )  # fmt: skip
        (folder / frame.home("lessons/trainer.html", lang)).write_text(made, "utf-8")
    return folder


@pytest.fixture(scope="module")  # closed before the next module: a second one cannot open beside it
def browser():
    with chromium.browser() as opened:
        yield opened
