"""The small models that faults are injected into: causal, encoder, and encoder with decoder, all from transformers."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

LENGTH, MIDDLE, LETTERS = 24, 10, 24  # tokens of a sequence at most, where an encoder's second part begins, letters
MASK, PAD, SIZE = LETTERS, LETTERS + 1, LETTERS + 2
IGNORED, ASKED = -100, 0.3
HEADS, LAYERS, BATCH = 4, 2, 16
INITIAL = 0.1  # at transformers' own 0.02, heads of so small models are nearly uniform

Batch = dict[str, Tensor]
Family = Literal["causal", "encoder", "both"]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes:
        name: For the table.
        family: Which mask it has.
        classes: Names of its class and of that of its configuration.
        sizes: Its sizes at a given width.
        ways: How attention may be computed: "sdpa" or "eager".
        has: What else is special.
    """

    name: str
    family: Family
    classes: tuple[str, str]
    sizes: Callable[[int], dict[str, Any]]
    ways: tuple[str, ...] = ("sdpa", "eager")
    has: str = ""

    def model(self, seed: int, *, width: int = 64, way: str | None = None) -> nn.Module:
        """A fresh model; the seed also chooses how attention is computed, unless that is given."""
        transformers = importlib.import_module("transformers")
        torch.manual_seed(seed)
        config = getattr(transformers, self.classes[1])(
            vocab_size=SIZE, bos_token_id=None, eos_token_id=None, pad_token_id=PAD, use_cache=False,
            attn_implementation=way or self.ways[seed % len(self.ways)],
            **({} if self.family == "both" else {"initializer_range": INITIAL}), **self.sizes(width),
        )  # fmt: skip
        made: nn.Module = getattr(transformers, self.classes[0])(config)
        return made.train()

    def batch(self, many: int, generator: torch.Generator) -> Batch:
        """Random letters and the same again, of different lengths, padded: only attention can tell what is asked.

        A causal model continues the second time. An encoder fills in letters of the first. A decoder repeats the first.
        """
        at = torch.arange(LENGTH)
        shortest = LENGTH // 3
        first = torch.full((many, 1), MIDDLE)
        if self.family == "causal":
            first = torch.randint(shortest, LENGTH // 2 + 1, (many, 1), generator=generator)
        second = first if self.family == "causal" else torch.randint(4, MIDDLE + 1, (many, 1), generator=generator)
        once = torch.randint(LETTERS, (many, LENGTH), generator=generator)
        shown = at < first + second
        tokens = once.gather(1, at % first).masked_fill(~shown, PAD)
        given = {"input_ids": tokens, "attention_mask": shown.long()}
        if self.family == "causal":
            return given | {"labels": tokens.masked_fill(~shown | (at < first), IGNORED)}
        if self.family == "both":
            return given | {"labels": once[:, :MIDDLE].clone()}
        asked = (at < second) & (at < first) & (torch.rand(tokens.shape, generator=generator) < ASKED)
        asked[:, 0] = True
        return given | {"input_ids": tokens.masked_fill(asked, MASK), "labels": tokens.masked_fill(~asked, IGNORED)}


def _gpt2(width: int) -> dict[str, Any]:
    return {"n_embd": width, "n_layer": LAYERS, "n_head": HEADS, "n_positions": LENGTH, "resid_pdrop": 0.0,
            "embd_pdrop": 0.0, "attn_pdrop": 0.0}  # fmt: skip


def _llama(width: int) -> dict[str, Any]:
    return {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "num_key_value_heads": 2, "max_position_embeddings": LENGTH}  # fmt: skip


def _with_head_dim(width: int) -> dict[str, Any]:
    return _llama(width) | {"head_dim": width // HEADS}


def _gemma(width: int) -> dict[str, Any]:
    return _with_head_dim(width) | {"query_pre_attn_scalar": width // HEADS}


def _bert(width: int) -> dict[str, Any]:
    return {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "max_position_embeddings": LENGTH, "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0}  # fmt: skip


def _t5(width: int) -> dict[str, Any]:
    return {"d_model": width, "d_kv": width // HEADS, "d_ff": 2 * width, "num_layers": LAYERS, "num_heads": HEADS,
            "dropout_rate": 0.0, "decoder_start_token_id": PAD}  # fmt: skip


GPT2 = Kind("GPT-2", "causal", ("GPT2LMHeadModel", "GPT2Config"), _gpt2)
LLAMA = Kind("Llama", "causal", ("LlamaForCausalLM", "LlamaConfig"), _llama, has="RoPE, grouped queries")
GEMMA2 = Kind("Gemma 2", "causal", ("Gemma2ForCausalLM", "Gemma2Config"), _gemma, ("eager",), "soft cap, window")
QWEN3 = Kind("Qwen3", "causal", ("Qwen3ForCausalLM", "Qwen3Config"), _with_head_dim, has="QK-norm")
BERT = Kind("BERT", "encoder", ("BertForMaskedLM", "BertConfig"), _bert)
T5 = Kind("T5", "both", ("T5ForConditionalGeneration", "T5Config"), _t5, has="relative bias, cross-attention")
KINDS = (GPT2, LLAMA, GEMMA2, QWEN3, BERT, T5)
