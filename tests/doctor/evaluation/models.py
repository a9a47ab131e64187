"""Small models trained on the spot, whose heads are in a known state, and the doctor's diagnosis of them."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from softscope import tasks
from softscope.doctor.diagnosis import Diagnosis, diagnose
from softscope.doctor.evaluation.corpus import VOCABULARY, TextBatch, text_batch

LENGTH = 96


def letters(generator: torch.Generator) -> TextBatch:
    return text_batch(4, length=LENGTH, generator=generator)


def watched(
    model: nn.Module, batches: Any, *, steps: int, rate: float = 1e-3, every: int = 10, tried_on: Tensor | None = None
) -> Diagnosis:
    """The diagnosis of a model that was watched while it trained, and tried in the end if there are texts for it."""
    torch.set_num_threads(1)
    with ss.probe(model, every=every, max_rows=None) as scope:
        tasks.train(model, batches, steps=steps, learning_rate=rate, on_step=lambda _, loss, __: scope.step(loss=loss))
        if tried_on is not None:
            scope.trial(tried_on, loss=next_letter)
    return judged(scope)


def next_letter(logits: Tensor, tokens: Tensor) -> Tensor:
    """The loss of texts, from the texts alone."""
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def judged(scope: Any) -> Diagnosis:
    history = scope.history()
    assert history.sites
    assert not history.unseen
    return diagnose(history)


def looked_at(model: nn.Module, *, loss: bool, readings: int = 3) -> Diagnosis:
    """The diagnosis of a model that is only read, not trained."""
    generator = torch.Generator().manual_seed(9)
    with ss.probe(model, every=1, max_rows=None) as scope:
        for _ in range(readings):
            batch = letters(generator)
            if loss:
                model.zero_grad()
                functional.cross_entropy(model(*batch.inputs).flatten(0, 1), batch.target.flatten()).backward()
            else:
                with torch.no_grad():
                    model(*batch.inputs)
            scope.step()
    return judged(scope)


def language_model(scale: Any = "sqrt", *, heads: int = 2, layers: int = 2, d: int = 128, gain: float = 1.0) -> Any:
    options = tasks.AttentionOptions(scale=scale, init_gain=gain)
    return tasks.SmallTransformer(VOCABULARY, length=LENGTH, d=d, heads=heads, layers=layers, options=options)


@functools.cache
def trained_language_model() -> tuple[Any, Diagnosis]:
    """A healthy language model of 2 × 4 heads and the diagnosis of its training; copy it before changing it."""
    model = language_model(heads=4, layers=2)
    return model, watched(model, letters, steps=150)


def states(diagnosis: Diagnosis) -> list[str]:
    return [found.state for found in diagnosis.view.states.values()]


def named(diagnosis: Diagnosis, *kinds: Any) -> set[tuple[int, int]]:
    """The heads named by findings, or by outcomes of the given kinds; a finding about a layer names all its heads."""
    kinds = kinds or ("finding",)
    found = set()
    for outcome in diagnosis.outcomes:
        for head in outcome.heads if outcome.kind in kinds else ():
            many = range(diagnosis.view.site(head).heads) if head.head is None else [head.head]
            found |= {(head.site, j) for j in many}
    return found


class Unscaled(nn.Module):
    """A causal layer in the style of T5: unscaled q·k, a smaller initial W_Q instead, and a bias per offset."""

    def __init__(self, d: int = 64, heads: int = 4, length: int = LENGTH, *, smaller: bool = True) -> None:
        super().__init__()
        size = d // heads
        self.heads = heads
        self.tokens, self.norm = nn.Embedding(VOCABULARY, d), nn.LayerNorm(d)
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.out = nn.Linear(d, VOCABULARY)
        self.offsets = nn.Parameter(torch.randn(heads, length) * d**-0.5)
        nn.init.normal_(self.q.weight, std=(d * size) ** -0.5 if smaller else d**-0.5)
        nn.init.normal_(self.k.weight, std=d**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.norm(self.tokens(tokens))
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        n = tokens.shape[-1]
        behind = torch.arange(n)[:, None] - torch.arange(n)
        bias = self.offsets[:, behind.clamp_min(0)].masked_fill(behind < 0, -torch.inf)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)
        return self.out(x + mixed.transpose(1, 2).flatten(-2))


class WithSink(nn.Module):
    """A causal model whose first head is parked on the first token, through its q bias and k weights."""

    def __init__(self, d: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(VOCABULARY, d), nn.LayerNorm(d)
        self.first = nn.Parameter(10.0 * torch.randn(d))  # marks the start of a sequence
        self.attention = nn.MultiheadAttention(d, heads, batch_first=True)
        self.out = nn.Linear(d, VOCABULARY)
        size = d // heads
        with torch.no_grad():
            start = functional.normalize(functional.layer_norm(self.first, (d,)), dim=0)
            self.attention.in_proj_weight[:size] = 0.0
            self.attention.in_proj_bias[:size] = 1.0
            self.attention.in_proj_weight[d : d + size] = start * 6.0 / size**0.5

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        x = self.norm(torch.cat([x[:, :1] + self.first, x[:, 1:]], dim=1))
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.out(x + self.attention(x, x, x, attn_mask=hidden, need_weights=False)[0])
