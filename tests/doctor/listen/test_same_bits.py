"""A probed run matches the bare run bit for bit: outputs, gradients, random state."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import softscope as ss

from ..patients import KINDS, small_llama, stack, tokens


def trained(make: Callable[[], nn.Module], probed: bool, steps: int = 3) -> tuple[list[Tensor], Any]:
    """Outputs, gradients, parameters and random states of a short run."""
    torch.manual_seed(5)
    random.seed(5)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept: list[Tensor] = []
    scope: Any = ss.probe(model, max_rows=7) if probed else nullcontext()
    with scope:
        for _ in range(steps):
            output = model(tokens())
            loss = (output**2).mean()
            optimizer.zero_grad()
            loss.backward()
            kept += [output.detach().clone(), *(p.grad.clone() for p in model.parameters())]
            optimizer.step()
    kept += [p.detach().clone() for p in model.parameters()]
    kept += [torch.get_rng_state(), torch.tensor([random.random()])]
    return kept, scope


def same(bare: list[Tensor], probed: list[Tensor]) -> bool:
    return len(bare) == len(probed) and all(
        torch.equal(a, b) or bool((a.isnan() == b.isnan()).all() and torch.equal(a.nan_to_num(), b.nan_to_num()))
        for a, b in zip(bare, probed, strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_training(kind: str) -> None:
    bare, _ = trained(lambda: stack(kind), probed=False)
    probed, scope = trained(lambda: stack(kind), probed=True)
    assert same(bare, probed)
    history = scope.history()
    assert len(history.snapshots) == 3
    assert all(snapshot.has_loss for snapshot in history.snapshots)
    assert not history.unseen


@pytest.mark.parametrize("again", [False, True])
def test_checkpointing_is_read_once(again: bool) -> None:
    bare, _ = trained(lambda: stack("fused", again=again), probed=False)
    probed, scope = trained(lambda: stack("fused", again=again), probed=True)
    assert same(bare, probed)
    history = scope.history()
    assert [site.name for site in history.sites] == ["layers.0", "layers.1"]
    assert history.snapshots[0].has_loss


@pytest.mark.parametrize("kind", KINDS)
def test_inference(kind: str) -> None:
    model = stack(kind).eval()
    with torch.no_grad():
        torch.manual_seed(0)  # one kind applies dropout in eval mode, too
        bare = model(tokens())
        torch.manual_seed(0)
        with ss.probe(model) as scope:
            probed = model(tokens())
    assert torch.equal(bare, probed)
    history = scope.history()
    assert [site.name for site in history.sites] == [f"layers.{i}{KINDS[kind][2]}" for i in range(2)]
    assert not history.snapshots[0].has_loss
    assert "sharpness" in history.snapshots[0].readings


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_hugging_face(implementation: str, dtype: torch.dtype) -> None:
    ids = torch.randint(50, (2, 40), generator=torch.Generator().manual_seed(0))
    seen = torch.ones_like(ids)
    seen[1, 30:] = 0
    results = []
    for probed in (False, True):
        model = small_llama(implementation).to(dtype)
        scope: Any = ss.probe(model) if probed else nullcontext()
        with scope:
            output = model(ids, attention_mask=seen, labels=ids.masked_fill(seen == 0, -100))
            output.loss.backward()
        results.append([output.logits.detach(), *(p.grad for p in model.parameters())])
    assert same(*results)
    history = scope.history()
    assert [site.name for site in history.sites] == [f"model.layers.{i}.self_attn" for i in range(2)]
    assert {(site.kind, site.heads, site.kv_heads) for site in history.sites} == {("huggingface", 4, 2)}
    assert {(site.fused, site.causal) for site in history.sites} == {(implementation == "sdpa", True)}
    assert history.snapshots[0].loss == pytest.approx(output.loss.item(), rel=1e-2)
    assert history.snapshots[0].has_loss
    assert not history.unseen


def test_the_fast_path_is_still_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = torch._transformer_encoder_layer_fwd
    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", lambda *a: (calls.append(1), original(*a))[1])
    for model in (stack("encoder layer").eval(), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()):
        calls.clear()
        with torch.no_grad():
            bare = model(tokens())
            fast = len(calls)
            with ss.probe(model) as scope:
                assert torch.equal(model(tokens()), bare)
        assert len(calls) == 2 * fast > 0
        assert scope.history().sites[0].name.endswith("self_attn")


def test_autocast() -> None:
    model = stack("fused")
    outputs = []
    for probed in (False, True):
        model.zero_grad()
        torch.manual_seed(0)
        scope: Any = ss.probe(model) if probed else nullcontext()
        with scope, torch.autocast("cpu", torch.bfloat16):
            output = model(tokens())
            output.sum().backward()
        outputs.append([output.detach(), *(p.grad.clone() for p in model.parameters())])
    assert same(*outputs)
    assert scope.history().sites[0].dtype == "bfloat16"
    assert scope.history().snapshots[0].has_loss


def test_a_padded_batch_on_the_fast_path() -> None:
    """Nested tensors inside the model: the padding is still known."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True).eval()
    hidden = torch.arange(48) >= torch.tensor([48, 40, 20])[:, None]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that nested tensors are a prototype
        bare = model(tokens(), src_key_padding_mask=hidden)
        with ss.probe(model, max_rows=None) as scope:
            probed = model(tokens(), src_key_padding_mask=hidden)
    assert torch.equal(bare, probed)
    history = scope.history()
    assert [site.name for site in history.sites] == ["layers.0.self_attn", "layers.1.self_attn"]
    counts = history.snapshots[0].readings["count"]
    assert counts == pytest.approx((48 * 48 + 40 * 40 + 20 * 20) / (48 + 40 + 20), rel=1e-6)


def own_kernel(module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **named: Any) -> Any:
    """Attention that calls nothing the probe could hear, as flash kernels do."""
    del attention_mask
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    e = torch.exp(query @ key.mT * named["scaling"]).tril()
    assert module.is_causal
    return (e / e.sum(-1, keepdim=True) @ value).transpose(1, 2).contiguous(), None


def test_a_kernel_of_hugging_face_reads_as_sdpa_does() -> None:
    pytest.importorskip("transformers", reason="reads Hugging Face's registry: install transformers to lift this")
    from transformers.modeling_utils import AttentionInterface

    ids = torch.randint(50, (2, 40), generator=torch.Generator().manual_seed(0))
    AttentionInterface.register("own_kernel", own_kernel)
    try:
        read = []
        for implementation in ("sdpa", "own_kernel"):
            model = small_llama("sdpa")
            model.config._attn_implementation = implementation
            with ss.probe(model, max_rows=None) as scope:
                model(ids, labels=ids).loss.backward()
            history = scope.history()
            assert not history.unseen
            assert {(site.kind, site.kv_heads, site.causal) for site in history.sites} == {("huggingface", 2, True)}
            read.append(history.snapshots[0].readings)
    finally:
        del AttentionInterface._global_mapping["own_kernel"]
    for name in ("sharpness", "count", "max_logit", "transmission", "advantage", "demand"):
        torch.testing.assert_close(*(torch.tensor(found[name]) for found in read), rtol=1e-3, atol=1e-4)
