"""A prognosis: copies train on, the run itself is left as it was, and words follow from what was measured."""

import math

import pytest
import torch

from softscope._text import LANGS
from softscope.doctor import prognosis as room
from softscope.doctor.prognosis import Arm, Prognosis, prognosis
from softscope.doctor.read.effect import Effect


class Small(torch.nn.Module):
    """Dropout uses torch's random state, and the normalisation has buffers."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)
        )

    def forward(self, x):
        return self.layers(x)


def loss(output, batch):
    return (output - batch.sum(-1, keepdim=True)).square().mean()


def batch(step):
    return torch.randn(16, 4, generator=torch.Generator().manual_seed(step))


def trained(steps=3):
    torch.manual_seed(0)
    model = Small()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    go_on(model, optimizer, range(steps))
    return model, optimizer


def go_on(model, optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        loss(model(batch(step)), batch(step)).backward()
        optimizer.step()


def everything(model, optimizer):
    states = [x for state in optimizer.state.values() for x in state.values()]
    grads = [p.grad for p in model.parameters()]
    return [x.clone() for x in (*model.state_dict().values(), *states, *grads, torch.get_rng_state())]


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_run_is_left_as_it_was():
    model, optimizer = trained()
    model.layers[2].eval()
    before = everything(model, optimizer)
    found = prognosis(model, optimizer, lambda i: batch(3 + i), batch(99), steps=2, loss=loss, treat=_worse)
    assert same(before, everything(model, optimizer))
    assert model.training
    assert not model.layers[2].training
    assert found.untreated.loss != found.treated.loss


def _worse(model):
    with torch.no_grad():
        model.layers[0].weight.mul_(50.0)


def test_untreated_is_what_the_run_itself_would_have_done():
    """Bit for bit: with the optimizer's moments, the same batches and the same random state."""
    model, optimizer = trained()
    found = prognosis(model, optimizer, lambda i: batch(3 + i), batch(99), steps=4, loss=loss)
    go_on(model, optimizer, range(3, 7))
    assert same(list(model.state_dict().values()), list(found.untreated.model.state_dict().values()))


def test_both_copies_see_the_same():
    model, optimizer = trained()
    found = prognosis(model, optimizer, batch, batch(99), steps=3, loss=loss, treat=lambda _: None)
    assert found.treated.loss == found.untreated.loss


def test_the_share_that_is_done():
    model, optimizer = trained()
    shares = []
    prognosis(model, optimizer, batch, batch(9), steps=2, loss=loss, treat=lambda _: None, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]


def arm(change, error=0.01, before=4.0):
    return Arm(before + change, Effect(change, error), None)


COURSES = {
    "stuck": (arm(-0.1), arm(-3.9)),
    "slow": (arm(-2.0), arm(-3.9)),
    "recovers": (arm(-3.8), arm(-3.9)),
    "treatment-fails": (arm(-2.0), arm(0.0)),
    "improves": (arm(-2.0), None),
    "no-better": (arm(0.0), None),
    "open": (arm(-2.0, math.nan), arm(-3.9)),
}


@pytest.mark.parametrize("course", COURSES)
def test_courses(course):
    found = Prognosis(1000, 4.0, *COURSES[course])
    assert found.course == course
    for lang in LANGS:
        text = found.said.of(lang)
        assert "1,000" in text
        assert "{" not in text
        for one in COURSES[course]:
            assert one is None or course == "open" or f"{one.loss:.2f}" in text
    # A word about recovery needs a treated copy to compare with.
    assert ("recover" in found.said.en) == (course in ("stuck", "slow", "recovers", "open"))


def test_every_course_has_a_case():
    assert set(COURSES) == set(room._SAID)


@pytest.mark.parametrize(
    ("untreated", "treated", "wanted"),
    [
        (arm(-2.0, math.nan), None, "open"),  # one part has no standard error
        (arm(-2.0), arm(-3.9, math.nan), "open"),
        (arm(-2.0, 1.5), arm(-3.9), "open"),  # it may have fallen, or not
        (arm(-0.3), arm(-3.9), "stuck"),  # clearly, but by less than a tenth of what is possible
        (arm(math.nan, math.nan), arm(-3.9), "stuck"),  # its loss is no longer a number
        (arm(math.nan, math.nan), None, "no-better"),
        (arm(-2.0), arm(math.nan, math.nan), "treatment-fails"),
        (arm(0.5), arm(-3.9), "stuck"),
        (arm(-3.9), arm(-2.0), "recovers"),  # better without
    ],
)
def test_the_edges(untreated, treated, wanted):
    found = Prognosis(10, 4.0, untreated, treated)
    assert found.course == wanted
    assert "nan" not in found.said.en


def test_a_run_that_diverges_is_measured_to_the_end():
    model, optimizer = trained()

    def breaks(one):
        one.layers[3].bias.data.fill_(float("nan"))

    found = prognosis(model, optimizer, batch, batch(9), steps=3, loss=loss, treat=breaks)
    assert math.isnan(found.treated.loss)
    assert found.course == "treatment-fails"


def test_too_little_is_held_out():
    model, optimizer = trained()
    assert prognosis(model, optimizer, batch, batch(9)[:2], steps=1, loss=loss).course == "open"


def test_mistakes():
    model, optimizer = trained()
    with pytest.raises(TypeError, match="loss must return a tensor with one number, but got NoneType; pass loss="):
        prognosis(model, optimizer, batch, batch(9), steps=1)
    with pytest.raises(ValueError, match="steps must be"):
        prognosis(model, optimizer, batch, batch(9), steps=0, loss=loss)
    model.kept = model(batch(0))  # with its graph: PyTorch cannot copy it
    with pytest.raises(ValueError, match=r"model and optimizer must allow copy\.deepcopy, but it raised RuntimeError"):
        prognosis(model, optimizer, batch, batch(9), steps=1, loss=loss)
