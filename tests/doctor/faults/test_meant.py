"""What looks like a fault and is meant: set-ups of healthy trainings that once raised an alarm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import softscope as ss
from softscope.doctor.diagnosis import diagnose

CODES = {f"SS0{number}" for number in range(14, 22)}
D, HEADS = 16, 2


class Attending(nn.Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(D, D) for _ in range(4))
        self.causal = causal

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (
            one(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)  # type: ignore[no-untyped-call]
            for one in (self.q_proj, self.k_proj, self.v_proj)
        )
        out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return x + self.o_proj(out.transpose(1, 2).flatten(2))


class Stack(nn.Module):
    def __init__(self, *, layers: int = 2, wrap: Callable[[nn.Module, Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attending() for _ in range(layers))
        self.wrap = wrap

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x) if self.wrap is None else self.wrap(layer, x)
        return x


class Recycling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Attending()

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(2):
                h = self.block(x + h)
        found: Tensor = self.block(x + h)
        return found


class TwoWays(nn.Module):
    """Space and time, one after the other, as video models have them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([Attending(), Attending(causal=True)]) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for space, time in self.layers:  # type: ignore[misc]
            x = time(space(x))
        return x


class Strict(dict):  # type: ignore[type-arg]
    """A configuration as many have it: a dictionary whose attributes raise KeyError."""

    __getattr__ = dict.__getitem__


def inputs(step: int) -> Tensor:
    return torch.randn(4, 12, D, generator=torch.Generator().manual_seed(step))


def alarms(
    model: nn.Module, *, steps: int = 5, loss: Callable[[nn.Module, int], Tensor] | None = None, optimizers: Any = None
) -> set[tuple[str, str]]:
    """What is said of SS014 to SS021, as a finding or a tip."""
    of_step = loss or (lambda model, step: model(inputs(step)).square().mean())
    trained = [p for p in model.parameters() if p.requires_grad]
    turns = optimizers or [torch.optim.AdamW(trained, 1e-3)]
    with ss.probe(model) as scope:
        for step in range(steps):
            optimizer = turns[step % len(turns)]
            optimizer.zero_grad()
            of_step(model, step).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    history = scope.history()
    assert history.sites
    return {(x.code, x.says.en) for x in diagnose(history).outcomes if x.kind in ("finding", "tip") and x.code in CODES}


def test_activation_checkpointing() -> None:
    for reentrant in (True, False):
        model = Stack(wrap=lambda layer, x, how=reentrant: checkpoint(layer, x, use_reentrant=how))  # type: ignore[misc]
        first = nn.Linear(D, D)
        assert alarms(nn.Sequential(first, model)) == set()


def test_a_module_that_is_called_without_gradients_first() -> None:
    assert alarms(Recycling()) == set()


def test_a_twin_that_is_not_trained_through() -> None:
    """SimSiam stops the gradient of one of two calls."""
    model = Stack(layers=1)
    assert alarms(model, loss=lambda m, step: (m(inputs(step)) * m(inputs(step + 1)).detach()).mean()) == set()


def test_parts_that_train_in_turns() -> None:
    """After the first steps only every tenth is read: always the same turn."""

    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Attending(), Attending()

        def forward(self, x: Tensor) -> list[Tensor]:
            return [self.a(x), self.b(x)]

    pair = Pair()
    each = [torch.optim.AdamW(one.parameters(), 1e-3) for one in (pair.a, pair.b)]
    assert alarms(pair, steps=31, loss=lambda m, step: m(inputs(step))[step % 2].mean(), optimizers=each) == set()


def test_what_trains_behind_the_softmax_only() -> None:
    model = Stack()
    for name, p in model.named_parameters():
        p.requires_grad_("o_proj" in name)
    assert alarms(model) == set()


def test_a_head_on_a_body_that_no_optimizer_has() -> None:
    model = nn.Sequential(Stack(), nn.Linear(D, 1))
    assert alarms(model, optimizers=[torch.optim.AdamW(model[1].parameters(), 1e-3)]) == set()


def test_neighbours_of_another_kind() -> None:
    assert alarms(TwoWays()) == set()


def test_of_three_layers_two_tell_that_the_third_is_wrong() -> None:
    model = Stack(layers=3)
    model.layers[0].causal = model.layers[1].causal = True  # type: ignore[assignment]
    for declared in model.layers:
        assert isinstance(declared, Attending)
    assert {code for code, _ in alarms(model)} == {"SS014"}


@pytest.mark.parametrize("meaning", ["1 is a token", "1 is padding"])
def test_whatever_a_mask_means_in_the_users_own_model(meaning: str) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Attending()

        def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
            shown = attention_mask == (1 if meaning == "1 is a token" else 0)
            found: Tensor = self.inner(x, shown[:, None, None, :])
            return found

    mask = (torch.arange(12) < torch.tensor([[12], [10], [8], [9]])).long()
    mask = mask if meaning == "1 is a token" else 1 - mask
    assert alarms(Own(), loss=lambda m, step: m(inputs(step), mask).square().mean()) == set()


def test_inputs_on_a_line() -> None:
    """Sets of numbers: their keys lie on a line, because they do."""
    model = nn.Sequential(nn.Linear(1, D), Attending())
    found = alarms(model, loss=lambda m, step: m(inputs(step)[..., :1]).square().mean())
    assert all(code == "SS019" for code, _ in found), "a tip at most"


def test_a_configuration_that_raises() -> None:
    pytest.importorskip("torch.nn.attention.flex_attention")  # then everything that a module holds is looked at
    model = Stack()
    model.config = Strict(d=8)  # type: ignore[assignment]
    assert alarms(model) == set()


def families() -> dict[str, Callable[[Any], tuple[nn.Module, dict[str, Tensor]]]]:
    ids = torch.randint(5, 20, (2, 16), generator=torch.Generator().manual_seed(0))
    small = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 16, "max_position_embeddings": 600, "pad_token_id": 0}  # fmt: skip
    padded = torch.zeros(2, 512, dtype=torch.long)
    padded[:, :16] = ids

    def embedding(t: Any) -> tuple[nn.Module, dict[str, Tensor]]:
        return t.LlamaModel(t.LlamaConfig(**small)), {"input_ids": ids, "attention_mask": torch.zeros(2, 1, 16, 16)}

    def roberta(t: Any) -> tuple[nn.Module, dict[str, Tensor]]:
        still = small | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        return t.RobertaModel(t.RobertaConfig(**still)), {"input_ids": padded, "attention_mask": (padded != 0).long()}

    def packed(t: Any) -> tuple[nn.Module, dict[str, Tensor]]:
        again = torch.cat([ids[:, :8], ids[:, :8]], dim=1)
        return t.LlamaModel(t.LlamaConfig(**small)), {"input_ids": again, "position_ids": torch.arange(16)[None] % 8}

    def answer(t: Any) -> tuple[nn.Module, dict[str, Tensor]]:
        config = t.T5Config(vocab_size=20, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
                            decoder_start_token_id=0)  # fmt: skip
        labels = torch.full((2, 8), -100)
        labels[:, 0] = 7
        return t.T5ForConditionalGeneration(config), {"input_ids": ids, "labels": labels}

    return {
        "a decoder that embeds": embedding,
        "mostly padding": roberta,
        "packed": packed,
        "one-token answers": answer,
    }


@pytest.mark.parametrize("name", families())
def test_models_of_transformers(name: str) -> None:
    torch.manual_seed(0)
    model, given = families()[name](pytest.importorskip("transformers"))

    def loss(m: nn.Module, _: int) -> Tensor:
        out = m(**given)
        found: Tensor = out.loss if "loss" in out else out.last_hidden_state.square().mean()
        return found

    assert alarms(model, loss=loss) == set()
