"""Multiply one head's q weights by 30 in a trained model: the doctor names exactly that head."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from .models import looked_at, named, trained_language_model

HEADS = 4


def trained() -> Any:
    model, found = trained_language_model()
    assert named(found, "finding") == set()
    return model


@pytest.mark.parametrize("loss", [True, False])
@pytest.mark.parametrize(("layer", "head"), [(0, 0), (0, 3), (1, 1), (1, 2)])
def test_exactly_that_head_is_named(layer: int, head: int, loss: bool) -> None:
    model = copy.deepcopy(trained())
    size = model.blocks[layer].attention.w_q.out_features // HEADS
    with torch.no_grad():
        model.blocks[layer].attention.w_q.weight[head * size : (head + 1) * size] *= 30.0
    assert named(looked_at(model, loss=loss)) == {(layer, head)}


@pytest.mark.parametrize("loss", [True, False])
def test_before_that_none_is(loss: bool) -> None:
    assert named(looked_at(trained(), loss=loss), "finding", "tip") == set()
