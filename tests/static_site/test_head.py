"""The head that trains in the page: its numbers are the library's, it starves without 1/√d, and a remedy saves it."""

import json

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import softscope
from softscope.experiments.learning import remedy_options
from softscope.experiments.recall import learning_rate
from softscope.site import frame, pictures
from softscope.tasks import RecallModel
from softscope.tasks.recall import RecallBatch
from softscope.tasks.training import train
from static_site.opened import opened

pytestmark = pytest.mark.xdist_group("site")
D, KEYS, STEPS = 16, 16, 25
TABLES = {"key_table": "key_table", "value_table": "value_table", "readout": "readout"}
PLACES = {**{name: f"attention.{name}" for name in ("w_q", "w_k", "w_v", "w_o")}, **TABLES}

RUN = """([remedy, d, vocabulary, steps]) => {
  const { Head, initial, batch, rate, REMEDIES } = window.softscopeHead, plain = (weights) =>
    Object.fromEntries(Object.entries(weights).map(([name, values]) => [name, Array.from(values)]));
  const weights = initial(d, vocabulary, 5), first = plain(weights);
  const head = new Head({ d, vocabulary, weights, rate: rate(d), remedy: REMEDIES[remedy](d) });
  const sequences = Array.from({ length: steps }, (_, step) => batch(100 + step, { vocabulary }));
  return { first, sequences, course: sequences.map((one) => head.train(one)), last: plain(head.weights) };
}"""


@pytest.fixture(scope="module")
def scripts(browser):
    page = browser.new_page()
    for text in (pictures.maths(), frame.asset("head.js")):
        page.add_script_tag(content=text)
    yield page
    page.close()


def model_of(made, remedy, d, keys):
    """The library's model with the page's initial numbers, in the page's precision."""
    model = RecallModel(d, vocabulary=keys, options=remedy_options(remedy, d)).double()
    with torch.no_grad():
        for name, place in PLACES.items():
            weight = model.get_submodule(place).weight
            weight.copy_(torch.tensor(made[name], dtype=torch.float64).reshape(weight.shape))
    return model


def batches_of(made):
    """The page's sequences as the library's batches, one after the other."""
    for sequences in made:
        keys, values, query, target = (
            torch.tensor([one[name] for one in sequences]) for name in ("keys", "values", "query", "target")
        )
        yield RecallBatch(keys, values, query, target, target)


@pytest.mark.parametrize("remedy", ["none", "scaled", "unit", "softcap"])
@pytest.mark.parametrize("keys", [KEYS, 20])
def test_it_trains_as_the_library_does(scripts, remedy, keys):
    made = scripts.evaluate(RUN, [remedy, D, keys, STEPS])
    model = model_of(made["first"], remedy, D, keys)
    batches = batches_of(made["sequences"])
    with softscope.probe(model, every=1, max_rows=None) as scope:
        history = train(
            model, lambda _: next(batches), steps=STEPS, learning_rate=learning_rate(D),
            on_step=lambda _, loss, __: scope.step(loss=loss),
        )  # fmt: skip
        snapshots = scope.history().snapshots
    course = {name: [one[name] for one in made["course"]] for name in ("loss", "right", "blocked", "advantage")}
    np.testing.assert_allclose(course["loss"], history.loss, rtol=1e-9)
    np.testing.assert_allclose(course["right"], history.accuracy, rtol=1e-6)
    for name in ("blocked", "advantage"):
        read = [float(one.readings[name][0, 0]) for one in snapshots]
        assert len(read) == STEPS
        np.testing.assert_allclose(course[name], read, rtol=1e-4, atol=1e-5, err_msg=name)
    for name, place in PLACES.items():
        wanted = model.get_submodule(place).weight.detach().flatten().numpy()
        np.testing.assert_allclose(made["last"][name], wanted, rtol=1e-7, atol=1e-9, err_msg=name)
    assert history.loss[-1] != pytest.approx(history.loss[0], rel=1e-3), "nothing moved, so nothing was compared"


def test_the_remedies_are_the_librarys(scripts):
    for d in (16, 256):
        found = scripts.evaluate(
            "(d) => Object.entries(softscopeHead.REMEDIES).map(([name, make]) => [name, make(d)])", d
        )
        for name, options in found:
            wanted = remedy_options(name, d)
            assert options["scale"] == pytest.approx(wanted.factor(d), rel=1e-12)
            assert options["unit"] == (wanted.qk_norm == "unit")
            assert options["softcap"] == wanted.softcap
        assert scripts.evaluate("(d) => softscopeHead.rate(d)", d) == learning_rate(d)


def test_its_sequences_are_those_of_the_task(scripts):
    made = scripts.evaluate(
        "() => Array.from({ length: 40 }, (_, i) => softscopeHead.batch(i, { vocabulary: 20 })).flat()"
    )
    assert len({json.dumps(one) for one in made}) == len(made), "every sequence is new"
    values = []
    for one in made:
        assert len(set(one["keys"])) == len(one["keys"]) == 16
        assert one["target"] == [one["values"][one["keys"].index(asked)] for asked in one["query"]]
        values += one["values"]
    counts = np.bincount(values, minlength=20)
    assert len(counts) == 20
    assert ((counts - len(values) / 20) ** 2).sum() / (len(values) / 20) < 60, "values are uniform"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_in_the_page_it_starves_without_the_scale_and_recovers_with_a_remedy(browser, small, lang):
    with opened(browser, small, viewport={"width": 1100, "height": 900}) as seen:
        page = seen.open(frame.home("lessons/trainer.html", lang))
        head = page.locator("[data-trainer]")

        def choose(what, value):
            page.locator(f"[data-choice={what}]").select_option(value)

        def trained():
            page.locator("[data-do=train]").click()
            expect(head).not_to_have_attribute("data-state", "busy", timeout=60_000)
            return head.get_attribute("data-state"), float(head.get_attribute("data-right"))

        def diagonal():
            shares = page.locator(".head-map rect").evaluate_all(
                "(all) => all.map((one) => Number(one.getAttribute('fill-opacity')))"
            )
            return float(np.trace(np.reshape(shares, (16, 16)))) / 16

        choose("width", "64")
        state, right = trained()
        assert (state, right < 0.2) == ("starving", True)
        assert float(head.get_attribute("data-blocked")) > 0.9
        assert diagonal() < 0.3
        choose("remedy", "unit")
        state, right = trained()
        assert (state, right > 0.9) == ("learned", True)
        assert diagonal() > 0.7
        assert page.locator(".head-plot path").first.get_attribute("d").count("M") == 1, (
            "the change of remedy is marked"
        )
        choose("remedy", "scaled")
        page.locator("[data-do=again]").click()
        assert head.get_attribute("data-step") == "0"
        state, right = trained()
        assert (state, right > 0.9) == ("learned", True)
        assert page.locator(".head-plot path").nth(1).get_attribute("d").startswith("M"), "the earlier run stays"
        assert seen.wrong() == []
