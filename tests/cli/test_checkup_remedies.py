"""`softscope checkup` tries remedies by itself where it has a model, a batch and a loss, and tells what that cost."""

import json
import re

import pytest

from cli.test_checkup_models import CHINESE, module

pytest.importorskip("torch")
__all__ = ["module"]

STUCK = """
from torch.nn import functional
from softscope import tasks

class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = tasks.RecallModel(256, vocabulary=16, options=tasks.AttentionOptions(scale=1.0))

    def forward(self, keys, values, query, answer):
        return self.inner(keys, values, query)

def loss(output, batch):
    return functional.cross_entropy(output.flatten(0, -2), batch[-1].flatten())

def build():
    torch.set_num_threads(1)
    made = tasks.recall_batch(120, pairs=16, generator=torch.Generator().manual_seed(0))
    return Recall(), (*made.inputs, made.target), loss

def fails_in_training():
    model, batch, _ = build()

    def once(output, batch):
        if output.requires_grad and batch[0].shape[0] < 20:
            raise RuntimeError("no")
        return loss(output, batch)

    return model, batch, once
"""


def test_the_remedy_that_helps_is_prescribed_with_its_figures(run, module):
    name = module(STUCK)
    code, out, err = run("checkup", f"{name}:build")
    assert (code, err) == (1, "")
    said = " ".join(out.split())
    assert re.search(r"Tried: loss [23]\.\d+ → [\d.e-]+ ± [\d.e-]+ after 20 steps; untreated [23]\.\d+", said), said
    assert "remedies." in said
    assert "Also tried: " in said
    assert re.search(r"Cost of trying: as much as \d+ forward passes over the batch", said)
    assert "candidate, not tried" not in said
    _, out, _ = run("checkup", f"{name}:build", "--lang", "zh")
    assert "试过：20 步后损失" in "".join(out.split()).replace("20步后", " 20 步后").replace("试过： ", "试过：")
    assert CHINESE.search(out)


def test_the_figures_are_in_the_json(run, module):
    name = module(STUCK)
    _, out, _ = run("checkup", f"{name}:build", "--format", "json")
    (entry,) = json.loads(out)["cases"][0]["prescriptions"]
    assert entry["tried"]["helps"]
    assert entry["tried"]["loss_treated"] < entry["tried"]["loss_untreated"]
    assert entry["tried"]["after"]["change"] < 0
    assert entry["tried"]["also_tried"]
    assert "…" not in entry["code"]


def test_a_muted_check_has_no_remedy_to_try(run, module):
    name = module(STUCK)
    _, out, _ = run("checkup", f"{name}:build", "--format", "json", "--mute", "SS001,SS005,SS009,SS003,SS013")
    assert json.loads(out)["cases"][0]["prescriptions"] == []


def test_a_model_that_fails_in_training_is_compared_at_once(run, module):
    name = module(STUCK)
    code, out, err = run("checkup", f"{name}:fails_in_training", "--format", "json")
    assert (code, err) == (1, "")
    for entry in json.loads(out)["cases"][0]["prescriptions"]:
        assert entry["tried"] is None or entry["tried"]["steps"] == 0
