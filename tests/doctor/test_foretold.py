"""Nobody says how a model will fare unless that was measured."""

import dataclasses
import pathlib
import re

import pytest

from doctor.judge.histories import RESTING, RIGHT, STUCK, history, per_head, starving
from doctor.test_prognosis import COURSES
from softscope._text import LANGS
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.prognosis import NOT_MEASURED, Prognosis
from softscope.doctor.report import document, lines

ROOT = pathlib.Path(__file__).parents[2]
# Words that foretell. What a measured prognosis says is made of other words: "did not recover within 1,000 steps".
FORETOLD = re.compile(
    r"will not (help|recover)|won't (help|recover)|stuck for good|will (stay|remain|be) stuck"
    r"|more training (will|does) not|never recovers?"
    r"|(训练|等待|学习率)[^。；]{0,8}都?(没有用|没用)|(一直|永远|始终)(会)?卡住|会(一直|永远|始终)|无法恢复|不会恢复"
)
MODELS = {
    "starving": starving(history(**per_head(1, STUCK)), 1),
    "suspected": history(**per_head(1, STUCK)),
    "cut off": starving(history(**per_head(1, STUCK | {"transmission:median": 1e-9})), 1),
    "unscaled": starving(history(site={"scale": 1.0}, **per_head(1, STUCK)), 1),
    "large logits": starving(history(max_logit={1: 5000.0}, **per_head(1, STUCK)), 1),
    "right": history(**per_head(1, RIGHT)),
    "resting": history(**per_head(1, RESTING)),
    "no loss": history(loss=False),
}


@pytest.mark.parametrize(
    "said",
    [
        "no gradient reaches it: more training will not help.",
        "waiting or raising the learning rate will not help",
        "the second is cut off from the gradient and will stay stuck.",
        "may be stuck for good",
        "梯度又到不了，再训练也没有用。",
        "等待或提高学习率都没有用",
        "会一直卡住。",
        "也可能永远卡住",
    ],
)
def test_the_words_are_known(said):
    assert FORETOLD.search(said)


@pytest.mark.parametrize("name", MODELS)
def test_readings_foretell_nothing(name):
    diagnosis = diagnose(MODELS[name])
    for lang in LANGS:
        text = "\n".join(line.text for line in lines(diagnosis, lang))
        assert not FORETOLD.search(text), text
        assert (NOT_MEASURED.of(lang) in text) == bool(diagnosis.states["starving"])
    assert document([diagnosis])["cases"][0]["prognosis"] is None


def test_some_of_them_starve():
    assert sum(diagnose(model).states["starving"] for model in MODELS.values()) == 4


def test_what_was_measured_is_said():
    for course, arms in COURSES.items():
        found = dataclasses.replace(diagnose(MODELS["starving"]), prognosis=Prognosis(1000, 4.0, *arms))
        for lang in LANGS:
            assert found.prognosis.said.of(lang) in found.verdict.of(lang)
            assert NOT_MEASURED.of(lang) not in found.verdict.of(lang)
        assert document([found])["cases"][0]["prognosis"]["course"] == course


def test_nothing_that_is_written_foretells():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    assert len(pages) > 300
    found = {
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path in pages
        for hit in [FORETOLD.search(re.sub(r"""["']?\s+f?["']?""", " ", path.read_text("utf-8")))]
        if hit
    }
    assert not found
