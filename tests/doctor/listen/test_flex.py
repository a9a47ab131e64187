"""FlexAttention is read with its block mask and its score function, or the reason is said."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from softscope.doctor.listen import patches, reasons

from ..patients import small_llama

pytest.importorskip("torch.nn.attention.flex_attention")
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without")  # it is meant to be
N, DOCUMENTS = 40, torch.arange(40) // 15


def causal(_b: Any, _h: Any, i: Any, j: Any) -> Any:
    return i >= j


def by_document(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (DOCUMENTS[i] == DOCUMENTS[j]) & (b + h >= 0)


def alibi(score: Tensor, _b: Any, h: Any, i: Any, j: Any) -> Tensor:
    return score + (j - i) * torch.exp2(-(h + 1.0))


def cap(score: Tensor, _b: Any, _h: Any, _i: Any, _j: Any) -> Tensor:
    return 3.0 * torch.tanh(score / 3.0)


def hidden_by_score(score: Tensor, _b: Any, _h: Any, i: Any, j: Any) -> Tensor:
    return torch.where(i >= j, score, -math.inf)


class Flex(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        found = flex_attention(q, k, v, **self.options)
        return found[0] if isinstance(found, tuple) else found


class Same(nn.Module):
    """What the flexible one computes."""

    def __init__(self, added: Any = 0.0, softcap: float | None = None) -> None:
        super().__init__()
        self.added, self.softcap = torch.as_tensor(added), softcap

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ss.attention(q, k, v, mask=self.added.expand(1, 4, N, N).to(q.dtype), softcap=self.softcap)


def masked(shown: Tensor) -> Tensor:
    return torch.zeros(shown.shape).masked_fill(~shown, -math.inf)


AT, LOWER = torch.arange(N), torch.ones(N, N).tril().bool()
ALIBI = (AT - AT[:, None]) * torch.exp2(-(torch.arange(4) + 1.0))[:, None, None]
CASES: dict[str, tuple[dict[str, Any], Same]] = {
    "plain": ({}, Same()),
    "causal": ({"block_mask": (causal, None, None)}, Same(masked(LOWER))),
    "by document": ({"block_mask": (by_document, 2, 4)}, Same(masked(DOCUMENTS[:, None] == DOCUMENTS))),
    "alibi": ({"score_mod": alibi, "block_mask": (causal, None, None)}, Same(ALIBI + masked(LOWER))),
    "soft cap": ({"score_mod": cap}, Same(softcap=3.0)),
    "a mask among the scores": ({"score_mod": hidden_by_score}, Same(masked(LOWER))),
}


def block(given: dict[str, Any]) -> dict[str, Any]:
    mask = given.get("block_mask")
    if mask is None:
        return given
    return {**given, "block_mask": create_block_mask(*mask, N, N, device="cpu")}


def qkv() -> list[Tensor]:
    rng = torch.Generator().manual_seed(0)
    return [torch.randn(2, 4, N, 8, generator=rng) for _ in range(3)]


@pytest.mark.parametrize("name", CASES)
def test_flex_attention_reads_as_the_same_attention(name: str) -> None:
    given, like = CASES[name]
    model, (q, k, v) = Flex(**block(given)), qkv()
    bare = model(q, k, v)
    with ss.probe(model, max_rows=None) as scope:
        assert torch.equal(model(q, k, v), bare)
    with ss.probe(like, max_rows=None) as wanted:
        torch.testing.assert_close(like(q, k, v), bare, rtol=1e-4, atol=1e-5)
    assert not scope.history().unseen
    (site,) = scope.history().sites
    assert (site.kind, site.heads, site.head_size) == ("flex", 4, 8)
    found, want = (x.history().snapshots[0].readings for x in (scope, wanted))
    assert found.keys() == want.keys()
    for reading in want:
        np.testing.assert_allclose(found[reading], want[reading], rtol=1e-3, atol=1e-5, err_msg=reading)


def test_grouped_queries() -> None:
    q, k, v = qkv()
    model = Flex(enable_gqa=True)
    with ss.probe(model) as scope:
        model(q, k[:, :2], v[:, :2])
    assert [(site.heads, site.kv_heads) for site in scope.history().sites] == [(4, 2)]


def square(score: Tensor, _b: Any, _h: Any, _i: Any, _j: Any) -> Tensor:
    return score * score


def test_a_score_function_that_is_not_understood_is_said() -> None:
    model = Flex(score_mod=square)
    with ss.probe(model) as scope:
        model(*qkv())
    ((name, why),) = scope.history().unseen
    assert (name, why.code) == ("Flex", reasons.SCORE)


def test_compiled_flex_attention_stays_compiled() -> None:
    """Uncompiled it would write down every logit; and what it compiles must not see our wrappers."""
    torch._dynamo.reset()
    graphs = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append([node.target for node in graph.graph.nodes])
        return graph.forward

    class Compiled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flex = torch.compile(flex_attention, backend=backend, fullgraph=True)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return self.flex(q, k, v, score_mod=hidden_by_score)

    model, given = Compiled(), qkv()
    original = model.flex
    with ss.probe(model, every=2) as scope:
        for _ in range(4):
            model(*given)
    assert len(graphs) == 1
    assert model.flex is original
    history = scope.history()
    assert [site.heads for site in history.sites] == [4]
    assert len(history.snapshots) == 2
    assert not history.unseen
    torch._dynamo.reset()


def test_hugging_face_with_flex_attention() -> None:
    ids = torch.randint(50, (2, N), generator=torch.Generator().manual_seed(0))
    seen = torch.ones_like(ids)
    seen[1, 30:] = 0
    read = []
    for implementation in ("sdpa", "flex_attention"):
        model = small_llama(implementation).eval().requires_grad_(False)
        if implementation == "flex_attention":
            model.config._attn_implementation = implementation
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            bare = model(ids, attention_mask=seen).logits
            with ss.probe(model, max_rows=None) as scope:
                assert torch.equal(model(ids, attention_mask=seen).logits, bare)
        history = scope.history()
        assert not history.unseen
        assert {(site.kind, site.heads, site.kv_heads) for site in history.sites} == {("huggingface", 4, 2)}
        read.append(history.snapshots[0].readings)
    for name in ("sharpness", "count", "max_logit", "sink_mass", "logit_spread"):
        np.testing.assert_allclose(read[1][name], read[0][name], rtol=1e-3, atol=1e-4, err_msg=name)


def test_nothing_is_lost_on_the_way() -> None:
    patches.lost.clear()
    model = Flex()
    with ss.probe(model):
        model(*qkv())
    assert not patches.lost
    assert functional.softmax.__module__ == "torch.nn.functional"
