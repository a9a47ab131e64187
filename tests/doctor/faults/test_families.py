"""Healthy models of many families raise no alarm: fresh, with padding on either side, by sdpa and step by step."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import softscope as ss
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.faults.runs import quiet

BASE = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 70, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
GROUPED = BASE | {"num_key_value_heads": 2}
SIZED = GROUPED | {"head_dim": 8}
GPT = {"vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "pad_token_id": 0}
BOTH = {"vocab_size": 50, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
        "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 2, "forced_eos_token_id": 2}  # fmt: skip
CAUSAL = {
    "GPTNeoX": BASE, "Llama": GROUPED, "Mistral": GROUPED | {"sliding_window": 8}, "Qwen2": GROUPED, "Phi": GROUPED,
    "Mixtral": GROUPED | {"num_local_experts": 2}, "Gemma": SIZED, "Gemma2": SIZED, "Qwen3": SIZED, "Phi3": GROUPED,
    "StableLm": GROUPED, "Cohere": GROUPED, "Cohere2": SIZED, "Olmo": GROUPED, "Olmo2": GROUPED, "Starcoder2": GROUPED,
    "Granite": GROUPED | {"attention_multiplier": 0.02}, "SmolLM3": GROUPED, "Persimmon": BASE, "Nemotron": GROUPED,
    "Glm": SIZED, "Glm4": SIZED, "GptOss": SIZED | {"num_local_experts": 2, "num_experts_per_tok": 1}, "Helium": SIZED,
    "Arcee": GROUPED, "Ernie4_5": SIZED,
    "GPTJ": GPT | {"rotary_dim": 4}, "Bloom": {"vocab_size": 50, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "GPTNeo": {"vocab_size": 50, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 8,
               "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64},
    "OPT": BASE | {"ffn_dim": 64, "word_embed_proj_dim": 32}, "Falcon": BASE,
    "Mpt": {"vocab_size": 50, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
}  # fmt: skip
MASKED = {
    "Bert": BASE, "Roberta": BASE, "Electra": BASE | {"embedding_size": 32}, "MPNet": BASE, "XLMRoberta": BASE,
    "DebertaV2": BASE | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "Ernie": BASE,
    "ModernBert": BASE | {"local_attention": 8}, "Albert": BASE | {"embedding_size": 16},
    "RoFormer": BASE | {"embedding_size": 32}, "Esm": BASE | {"position_embedding_type": "rotary", "mask_token_id": 3},
    "BigBird": BASE | {"attention_type": "original_full"},
    "DistilBert": {"vocab_size": 50, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
}  # fmt: skip
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{name}ForCausalLM": (f"{name}Config", sizes) for name, sizes in CAUSAL.items()},
    **{f"{name}ForMaskedLM": (f"{name}Config", sizes) for name, sizes in MASKED.items()},
    "GPT2LMHeadModel": ("GPT2Config", GPT),
    "GPT2ForSequenceClassification": ("GPT2Config", GPT),
    "BertForSequenceClassification": ("BertConfig", BASE),
    "BartForConditionalGeneration": ("BartConfig", BOTH),
    "PegasusForConditionalGeneration": ("PegasusConfig", BOTH),
    "MarianMTModel": ("MarianConfig", BOTH),
    "T5ForConditionalGeneration": (
        "T5Config",
        {"vocab_size": 50, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
         "decoder_start_token_id": 0},
    ),
    "XLNetLMHeadModel": ("XLNetConfig", {"vocab_size": 50, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
}  # fmt: skip
# Those that once raised one, and those whose masks or biases are out of the ordinary.
ODD = ("GptOssForCausalLM", "XLNetLMHeadModel", "DebertaV2ForMaskedLM", "BloomForCausalLM", "MistralForCausalLM",
       "T5ForConditionalGeneration", "BartForConditionalGeneration", "GPT2ForSequenceClassification")  # fmt: skip


def alarms(name: str, way: str, side: str) -> set[tuple[str, str]]:
    transformers = pytest.importorskip("transformers")
    quiet()
    torch.manual_seed(0)
    config, sizes = FAMILIES[name]
    way = "eager" if not getattr(transformers, name)._supports_sdpa else way
    model = getattr(transformers, name)(getattr(transformers, config)(attn_implementation=way, **sizes)).train()
    shown = torch.ones(4, 40, dtype=torch.long)
    if side != "none":
        shown[1:, 30:] = 0
    shown = shown.flip(1) if side == "left" else shown
    tokens = torch.randint(5, 50, (4, 40)) * shown
    labels = torch.tensor([0, 1, 0, 1]) if "Classification" in name else tokens.masked_fill(shown == 0, -100)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with ss.probe(model) as scope, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            optimizer.zero_grad()
            model(input_ids=tokens, attention_mask=shown, labels=labels).loss.backward()
            optimizer.step()
    found = diagnose(scope.history())
    assert found.view.history.sites
    return {(one.code, one.says.en) for one in found.outcomes if one.kind in ("finding", "tip") and one.code != "SS010"}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(("way", "side"), [("sdpa", "left"), ("eager", "right")])
def test_no_alarm(name: str, way: str, side: str) -> None:
    assert alarms(name, way, side) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("way", ["sdpa", "eager"])
@pytest.mark.parametrize("side", ["right", "left", "none"])
def test_no_alarm_in_any_family(name: str, way: str, side: str) -> None:
    assert alarms(name, way, side) == set()
