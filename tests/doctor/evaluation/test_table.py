"""The table in docs/telling-apart.md: spoiling a head spoils it, the ground truth is independent, the counts add up."""

from __future__ import annotations

import pathlib
import re

import pytest
import torch

from softscope import tasks
from softscope._text import LANGS
from softscope.doctor.evaluation import spoiled_models, table, truth
from softscope.doctor.evaluation.corpus import VOCABULARY, text_batch

DOCS = pathlib.Path(__file__).parents[3] / "docs"


def fresh(**options: float) -> tasks.SmallTransformer:
    return tasks.SmallTransformer(
        VOCABULARY, length=96, d=128, heads=4, layers=2, options=tasks.AttentionOptions(**options)
    )


def batch() -> object:
    return text_batch(4, length=96, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("spoil", [spoiled_models.multiply_q, spoiled_models.shift_k])
def test_a_spoiled_head_is_frozen_and_no_other(spoil: object) -> None:
    model = fresh()
    assert truth.frozen(model, batch()) == set()
    before = [layer.w_v.weight.clone() for layer in spoiled_models._layers(model)]
    spoil(spoiled_models._layers(model)[1], 2, torch.Generator().manual_seed(0))
    assert truth.frozen(model, batch()) == {(1, 2)}
    assert all(torch.equal(a, layer.w_v.weight) for a, layer in zip(before, spoiled_models._layers(model), strict=True))


def test_the_same_shift_of_every_key_is_no_spoiling() -> None:
    model = fresh()
    layer = spoiled_models._layers(model)[0]
    before = truth.written_down(model, batch())
    layer.w_k.register_forward_hook(lambda _, __, out: out + 30.0)
    after = truth.written_down(model, batch())
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(before, after, strict=True))


def test_weights_written_down_are_those_that_attention_used() -> None:
    model = fresh(scale=0.7)
    layer = spoiled_models._layers(model)[0]
    x = torch.randn(2, 40, 128, generator=torch.Generator().manual_seed(0))
    (weights,) = truth.written_down(_Alone(layer), _Given(x))
    mixed = weights @ layer.split(layer.w_v(x)).double()
    wanted = layer(x, x, x, causal=True)
    assert torch.allclose(layer.w_o(mixed.transpose(1, 2).flatten(-2).float()), wanted, atol=1e-4)


class _Alone(torch.nn.Module):
    def __init__(self, layer: tasks.Attention) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x, x, x, causal=True)


class _Given:
    def __init__(self, x: torch.Tensor) -> None:
        self.inputs = (x,)


def test_recall_that_is_frozen_on_the_right_key_is_not_spoiled() -> None:
    model = tasks.RecallModel(64, vocabulary=16)
    made = tasks.recall_batch(16, pairs=16, generator=torch.Generator().manual_seed(0))
    layer = model.attention
    with torch.no_grad():
        layer.w_q.weight.copy_(8.0 * torch.eye(64))
        layer.w_k.weight.copy_(8.0 * torch.eye(64))
        assert truth.frozen(model, made) == set()
        layer.w_k.weight.neg_()
        assert truth.frozen(model, made) == {(0, 0)}


def test_counts_add_up() -> None:
    one = table.Count(8, 4, 4, 3, 1, [2.0])
    both = one + table.Count(8, 0, 0, 0, 0, [3.0])
    assert (both.heads, both.missed, both.recall, both.precision) == (16, 1, "75%", "75%")
    assert (table.Count().recall, table.Count().precision) == ("–", "–")
    counts = {(way, loss): one for way in spoiled_models.WAYS for loss in (True, False)}
    for lang in LANGS:
        lines = table.table(counts, lang).splitlines()
        assert {line.count("|") for line in lines[:-2]} == {12}
        assert len(lines) == 2 + len(spoiled_models.WAYS) + 1 + 2


def test_the_page_says_the_same_in_both_languages() -> None:
    english, chinese = ((DOCS / f"telling-apart{end}.md").read_text("utf-8") for end in ("", ".zh-CN"))
    figures = [
        [re.findall(r"\d+(?:\.\d+)?", "|".join(line.split("|")[2:])) for line in page.splitlines() if line[:2] == "| "]
        for page in (english, chinese)
    ]
    assert len(figures[0]) == 2 + len(spoiled_models.WAYS)
    assert figures[0] == figures[1]
    for page, lang in ((english, "en"), (chinese, "zh")):
        assert "python -m softscope.doctor.evaluation" in page
        assert all(f"| {title.of(lang)} |" in page for title in spoiled_models.WAYS.values())
    heads, touched, spoiled = (int(x) for x in figures[0][-1][:3])
    assert heads >= 60
    assert touched >= heads / 2
    assert spoiled >= 30
