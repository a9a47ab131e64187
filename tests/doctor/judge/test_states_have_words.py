"""Heads that are not blocked may still not be learning: nothing to choose by, nothing to read, nothing that moves."""

import pytest
import torch
from torch import nn

import softscope as ss
from doctor.judge.histories import history
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.judge.history_view import HistoryView
from softscope.doctor.judge.nan_cause import ELSEWHERE, nan_cause


def trained(part, steps=4):
    """Two heads, of which the second has part of its projection at zero, and keeps it."""
    torch.manual_seed(0)
    model = nn.MultiheadAttention(16, 2, batch_first=True)
    rows = {"q": slice(8, 16), "k": slice(24, 32), "v": slice(40, 48)}[part]

    def clear():
        with torch.no_grad():
            model.in_proj_weight[rows] = 0.0
            model.in_proj_bias[rows] = 0.0

    clear()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(4, 12, 16)
    with ss.probe(model, every=1) as scope:
        for _ in range(steps):
            optimizer.zero_grad()
            model(x, x, x, need_weights=False)[0].square().mean().backward()
            optimizer.step()
            clear()
    return diagnose(scope.history())


@pytest.mark.parametrize("part", ["q", "k", "v"])
def test_a_head_whose_q_k_or_v_is_zero_is_empty(part):
    found = trained(part)
    assert [state.state for state in found.view.states.values()] == ["learning", "empty"]
    assert "1 is empty" in found.verdict.en
    assert "1 个是空的" in found.verdict.zh


def test_a_zero_at_the_start_is_not_empty():
    """Some initialise W_Q at zero: after one step it no longer is."""
    found = diagnose(history(q_norm={1: [0.0, 0.1, 0.2, 0.3, 0.4]}))
    assert found.states["learning"] == 4


def test_a_uniform_head_that_never_moved():
    found = diagnose(history(steps=range(0, 1000, 100), sharpness={1: [0.013] + 9 * [0.001]}))
    assert (found.states["uniform"], found.states["learning"]) == (1, 3)
    assert diagnose(history(steps=range(0, 400, 40), sharpness={1: 0.001})).states["uniform"] == 0  # too early to say


def test_nan_from_float16_names_its_cause_and_remedy():
    """q·k of 80,000 is infinite in float16, whatever the scale would make of it."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        attn_implementation="eager",
    )  # fmt: skip
    model = transformers.BertModel(config).half()
    attention = model.encoder.layer[0].attention.self
    with torch.no_grad():
        attention.query.weight.mul_(3000.0)
        attention.key.weight.mul_(3000.0)
    with ss.probe(model) as scope, torch.no_grad():
        model(torch.randint(0, 50, (2, 40)))
    diagnosis = diagnose(scope.history())
    (found,) = diagnosis.of("finding")["SS012"]
    assert "before the softmax q·k reaches" in found.says.en
    assert "softmax 之前的 q·k 达到" in found.says.zh
    assert found.values["raw_logit"] > 65504


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ({"sharpness": float("nan"), "q_norm": float("nan")}, "q has NaN or infinite entries"),
        ({"sharpness": float("nan")}, "arose in the logits or the mask"),
    ],
)
def test_where_a_nan_came_from(readings, words):
    assert words in nan_cause(HistoryView(history(**readings)), 0)[0].en
    assert nan_cause(HistoryView(history()), 0)[0] == ELSEWHERE


def test_a_query_that_is_scaled_before_is_no_wrong_scale():
    """Whisper multiplies q by 1/√d and passes a scale of 1: its logits are those of everybody else."""
    plain = {"site": {"scale": 1.0}, "steps": range(0, 50, 10), "blocked": 0.9}
    assert "SS005" in diagnose(history(**plain)).of("tip")
    assert "SS005" not in diagnose(history(**plain, q_norm=1.0)).of("tip")
    grown = [1.0, 2.0, 4.0, 8.0, 16.0]  # later, by training
    assert "SS005" not in diagnose(history(**plain, q_norm=grown)).of("tip")
