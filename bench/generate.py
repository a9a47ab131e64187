"""Does generating token by token get slower if our attention takes the place of PyTorch's?

    .venv/bin/python bench/generate.py [--quick]

A small Llama of transformers, built from a configuration with random weights, continues a cache of 128 to 4,096 tokens
one token at a time, with PyTorch's `scaled_dot_product_attention` and with ours in its place. Unit: the ratio of the
times for a token; "torch 1.05" means that PyTorch takes 1.05 times as long as we do. Both take turns in one run, each
step from the same cache, and the logits are compared first.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from harness import Ratios, arguments, best, finish
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.cache_utils import DynamicCache

import softscope.nn

TORCHS = functional.scaled_dot_product_attention


def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=2, max_position_embeddings=8192, attn_implementation="sdpa",
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def step(llama: LlamaForCausalLM, token: torch.Tensor, cache: DynamicCache, attention: Any) -> torch.Tensor:
    """The logits of the next token; the cache is cut back, so that every step starts from the same one."""
    torch.nn.functional.scaled_dot_product_attention = attention
    try:
        logits = llama(token, past_key_values=cache, use_cache=True).logits
    finally:
        torch.nn.functional.scaled_dot_product_attention = TORCHS
    cache.crop(-1)
    return logits


@torch.no_grad()
def main() -> None:
    options = arguments(__doc__)
    llama = model()
    ratios = Ratios("Llama, token by token")
    for length in (128, 1024) if options.quick else (128, 512, 1024, 2048, 4096):
        tokens = torch.randint(0, 1000, (1, length))
        cache = llama(tokens, use_cache=True).past_key_values
        caches = {"ours": cache, "torch": copy.deepcopy(cache)}
        token = tokens[:, -1:]
        ours = step(llama, token, caches["ours"], softscope.nn.scaled_dot_product_attention)
        torch.testing.assert_close(ours, step(llama, token, caches["torch"], TORCHS), rtol=1e-3, atol=1e-4)
        who = {
            "ours": lambda c=caches["ours"], token=token: step(
                llama, token, c, softscope.nn.scaled_dot_product_attention
            ),
            "torch": lambda c=caches["torch"], token=token: step(llama, token, c, TORCHS),
        }
        times = best(who, 30 if options.quick else 150, calls=2)
        ratios.add("one more token", str(length), times)
    finish(ratios, options.chart)


if __name__ == "__main__":
    main()
