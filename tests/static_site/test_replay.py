"""Controls are replayed: their values stay few, include the first one, and show what the notebook shows."""

import html
import itertools
import json
import re

import marimo as mo
import pytest

from softscope.lab.course import lesson
from softscope.site import frame
from softscope.site.lessons.controls import MOST, Plan, stops
from softscope.site.lessons.convert import Converter
from softscope.site.lessons.lesson import page
from softscope.site.lessons.run import Run


def elements():
    return {
        "slider": mo.ui.slider(-3.0, 3.0, 0.1, value=2.1),
        "steps": mo.ui.slider(steps=[4, 16, 64], value=16),
        "choice": mo.ui.dropdown({"a": 1, "b": 2, "c": 3}, value="b"),
        "seed": mo.ui.number(0, 999, value=70),
        "again": mo.ui.button(value=0, on_click=lambda value: value + 1),
        "typed": mo.ui.text("1, 2, 3"),
        "on": mo.ui.switch(True),
    }


def test_every_kind_starts_where_the_lesson_does():
    found = elements()
    for groups in itertools.chain([[]], itertools.combinations(found, 2), itertools.combinations(found, 3)):
        plan = Plan(found, [list(groups)] if groups else [])
        for name, element in found.items():
            assert plan.stops[name][plan.first(name)].value == element.value
            assert len({stop.value for stop in plan.stops[name]}) == len(plan.stops[name]) >= 2
        if groups:
            assert len(list(plan.states(groups))) <= MOST


def test_a_slider_keeps_its_ends():
    plan = Plan({"slider": elements()["slider"]}, [])
    values = [stop.value for stop in plan.stops["slider"]]
    assert (values[0], values[-1]) == (-3.0, 3.0)
    assert values == sorted(values)


def test_what_cannot_be_replayed_is_left_alone():
    assert stops(mo.ui.code_editor("x")) == []
    assert stops(mo.ui.run_button()) == []


@pytest.mark.parametrize(("name", "control"), [("attention", "width"), ("attention", "kind"), ("overflow", "lift")])
def test_a_state_is_what_the_notebook_shows_with_that_value(name, control):
    run = Run(lesson(name), "en")
    element, before = run.names[control], run.names[control].value
    cells = [cell for cell in run.cells if control in cell.controls and cell.shows and not cell.makes]
    assert cells
    other = stops(element)[-1].value
    assert other != before
    for cell in cells:
        values = {one: run.names[one].value for one in cell.controls}
        assert run.again(cell, values)[0] == cell.shows, "the first value shows the first page"
        assert run.again(cell, values | {control: other})[0] != cell.shows
    assert run.names[control].value == before, "nothing stays changed"


def test_a_picture_that_depends_on_a_control_is_drawn_anew_with_its_numbers():
    run = Run(lesson("gradient"), "en")
    plan = Plan({"size": run.names["size"]}, [])
    converter = Converter("en", "lessons/gradient.html", plan)
    cell = next(cell for cell in run.cells if cell.controls == ["size"] and "matrix" in cell.makes)
    first = converter.html(cell.shows, run.names)
    other = next(stop.value for stop in stops(run.names["size"]) if stop.value != run.names["size"].value)
    then, names = run.again(cell, {"size": other})
    again = converter.html(then, names)
    for shown, size in ((first, run.names["size"].value), (again, other)):
        state = json.loads(html.unescape(re.search('data-state="(.*?)"', shown)[1]))
        assert len(state["logits"]) == int(size)
    assert first != again


def test_a_control_that_moves_nothing_here_is_left_out():
    """In lesson 7 a new seed changes the picture by way of Python."""
    shown = page(frame.Frame(frame.PLACES), "attention", "en").html
    assert 'data-control="seed"' not in shown
    assert 'data-control="kind"' in shown
