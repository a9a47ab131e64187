"""Whatever the layout, the heads are the heads, and the readings those of the same attention in (B, heads, n, m)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from softscope.doctor.listen import patches, reasons
from softscope.doctor.trial.intervention import Intervention

from . import layouts
from .layouts import ALL, DH, EXPLICIT, H, layer, tokens


def read(mix: Any, causal: bool, by_hand: bool = False, **given: Any) -> Any:
    dtype, model = torch.float64, layer(mix, causal, by_hand).double()
    patches.lost.clear()
    with ss.probe(model, every=1, max_rows=None, **given) as scope:
        for _ in range(2):
            model(tokens().to(dtype)).square().mean().backward()
            scope.step()
    assert not patches.lost, list(patches.lost)
    return scope.history()


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_heads_and_readings(name: str, causal: bool, by_hand: bool) -> None:
    """By hand: the projections are products, too, and must not be taken for q·k."""
    mix, like = ALL[name]
    found, wanted = read(mix, causal, by_hand), read(like, causal, by_hand)
    assert not found.unseen
    (site,) = found.sites
    assert (site.name, site.heads, site.head_size) == ("Layer", H, DH)
    assert site.scale == pytest.approx(DH**-0.5)
    assert len(found.snapshots) == 2
    got, want = found.snapshots[0].readings, wanted.snapshots[0].readings
    assert got.keys() == want.keys()
    assert "transmission" in got
    for reading in want:
        np.testing.assert_allclose(got[reading], want[reading], rtol=1e-5, atol=1e-6, err_msg=reading)


@pytest.mark.parametrize("name", ["plain", *ALL])
def test_the_same_bits(name: str) -> None:
    mix = ALL[name][0] if name in ALL else layouts.plain
    results = []
    for probed in (False, True):
        model = layer(mix, causal=True)
        if probed:
            with ss.probe(model, max_rows=7):
                output = model(tokens())
                output.square().mean().backward()
        else:
            output = model(tokens())
            output.square().mean().backward()
        results.append([output.detach(), *(p.grad for p in model.parameters())])
    for bare, probed_one in zip(*results, strict=True):
        assert torch.equal(bare, probed_one)


@pytest.mark.parametrize("name", ["plain", *EXPLICIT])
def test_without_gradients(name: str) -> None:
    mix = ALL[name][0] if name in ALL else layouts.plain
    model = layer(mix, causal=True).eval()
    with torch.no_grad():
        bare = model(tokens())
        with ss.probe(model) as scope:
            assert torch.equal(model(tokens()), bare)
    (site,) = scope.history().sites
    assert (site.heads, site.head_size) == (H, DH)
    assert not scope.history().unseen


def through(x: Any) -> Any:
    """Something that changes nothing and is not followed."""
    return x.index_select(0, torch.arange(x.shape[0]))


def lost_heads(q: Any, k: Any, v: Any, hidden: Any) -> Any:
    b, n = q.shape[:2]
    q, k, v = (through(layouts.split(x).transpose(1, 2).reshape(b * H, n, DH)) for x in (q, k, v))
    w = torch.softmax(layouts.hide(q @ k.mT * layouts.SCALE, hidden), dim=-1)
    return (w @ v).view(b, H, n, DH).transpose(1, 2).flatten(2)


def lost_heads_fused(q: Any, k: Any, v: Any, hidden: Any) -> Any:
    b, n = q.shape[:2]
    q, k, v = (through(layouts.split(x).transpose(1, 2).reshape(b * H, n, DH)) for x in (q, k, v))
    mask = None if hidden is None else ~hidden
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return found.view(b, H, n, DH).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [H, {"Layer": H}, {"L*": H, "*": 2}])
@pytest.mark.parametrize(("mix", "like"), [(lost_heads, layouts.plain), (lost_heads_fused, layouts.fused)])
def test_a_hint_tells_the_heads(mix: Any, like: Any, heads: Any, causal: bool) -> None:
    found, wanted = read(mix, causal, heads=heads), read(like, causal)
    assert not found.unseen
    assert [site.heads for site in found.sites] == [H]
    for reading, want in wanted.snapshots[0].readings.items():
        np.testing.assert_allclose(found.snapshots[0].readings[reading], want, rtol=1e-5, atol=1e-6, err_msg=reading)


@pytest.mark.parametrize("mix", [lost_heads, lost_heads_fused])
def test_heads_that_cannot_be_told_are_said(mix: Any) -> None:
    model = layer(mix)
    model.num_heads = H  # the module has several heads, so its first axis is not only the batch
    with ss.probe(model) as scope:
        model(tokens()).mean().backward()
    ((name, why),) = scope.history().unseen
    assert (name, why.code, why.values) == ("Layer", reasons.FOLDED, (str(3 * H), str(H)))
    assert not scope.history().sites


@pytest.mark.parametrize("mix", [lost_heads, lost_heads_fused])
def test_a_hint_that_does_not_fit_is_said(mix: Any) -> None:
    model = layer(mix)
    with ss.probe(model, heads=7) as scope:
        model(tokens()).mean().backward()
    ((_, why),) = scope.history().unseen
    assert why.code == reasons.HINT


def test_the_number_that_a_module_gives_decides_between_axes() -> None:
    def mix(q: Any, k: Any, v: Any, _: Any) -> Any:
        q, k, v = (through(layouts.split(x).permute(2, 0, 1, 3)) for x in (q, k, v))  # (H, B, n, d)
        w = torch.softmax(q @ k.mT * layouts.SCALE, dim=-1)
        return (w @ v).permute(1, 2, 0, 3).flatten(2)

    model = layer(mix)
    model.num_heads = H
    with ss.probe(model) as scope:
        model(tokens()).mean().backward()
    assert [site.heads for site in scope.history().sites] == [H]


def test_wrong_hints() -> None:
    model = layer(layouts.plain)
    with pytest.raises(ValueError, match="heads must be at least 1"):
        ss.probe(model, heads=0)
    with pytest.raises(ValueError, match=r"heads\['q'\] must be at least 1"):
        ss.probe(model, heads={"q": 0})
    with pytest.raises(TypeError, match="heads must have module paths as keys"):
        ss.probe(model, heads={3: 1})
    with pytest.raises(ValueError, match="none is called 'attn'"):
        ss.probe(model, heads={"attn": 2})


@pytest.mark.parametrize("name", ["plain", *EXPLICIT, "fused_folded", "flash"])
def test_a_trial_reaches_the_head(name: str) -> None:
    """What an intervention writes reaches the model, in the layout that the model uses."""
    mix = ALL[name][0] if name in ALL else layouts.plain
    model, head = layer(mix, causal=True).double(), 1
    like = layer(ALL[name][1] if name in ALL else mix, causal=True).double()
    x = tokens().double()
    with torch.no_grad():
        with Intervention(model, "Layer", head, math.inf).on():
            found = model(x)
        with Intervention(like, "Layer", head, math.inf).on():
            wanted = like(x)
        assert (found - model(x)).abs().max() > 1e-6
    torch.testing.assert_close(found, wanted)
