"""One small float64 model for each way to store the weights of q and k, with inputs to call it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import softscope.nn
from doctor.patients import SelfMultihead, pytest_transformers
from softscope import tasks


class Patient(NamedTuple):
    model: nn.Module
    inputs: tuple[Tensor, ...]
    site: str  # the first attention's
    heads: int
    group: int = 1  # query heads per key head


def _tokens(d: int) -> tuple[Tensor]:
    return (torch.randn(2, 6, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64),)


def multihead(make: Callable[..., nn.Module] = nn.MultiheadAttention, **options: Any) -> Patient:
    model = SelfMultihead(make(12, 3, batch_first=True, dtype=torch.float64, **options), need_weights=False)
    return Patient(model, _tokens(12), "attention", 3)


def apart() -> Patient:
    """W_Q, W_K and W_V stored separately, as keys of another width require."""

    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(12, 3, kdim=8, vdim=8, batch_first=True, dtype=torch.float64)

        def forward(self, x: Tensor) -> Tensor:
            return self.attention(x, x[..., :8], x[..., :8], need_weights=False)[0]

    return Patient(Cross(), _tokens(12), "attention", 3)


def small_transformer() -> Patient:
    model = tasks.SmallTransformer(vocabulary=9, length=8, d=12, heads=3, layers=2).double()
    return Patient(model, (_ids(9),), "blocks.0.attention", 3)


def _ids(vocabulary: int) -> Tensor:
    return torch.randint(3, vocabulary, (2, 7), generator=torch.Generator().manual_seed(1))


def _hugging_face(name: str, site: str, group: int = 1, **sizes: Any) -> Patient:
    transformers = pytest_transformers()
    config = getattr(transformers, name.partition("For")[0].removesuffix("Model") + "Config")
    model = getattr(transformers, name)(config(**sizes)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases start at 0, and weights so small that every head is uniform
            parameter.copy_(0.3 * torch.randn(parameter.shape, dtype=torch.float64))
    return Patient(model, (_ids(20),), site, 4, group)


def llama() -> Patient:
    return _hugging_face(
        "LlamaForCausalLM", "model.layers.0.self_attn", 2, vocab_size=20, hidden_size=32, intermediate_size=16,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
        attention_bias=True,
    )  # fmt: skip


def gpt2() -> Patient:
    return _hugging_face(
        "GPT2Model", "h.0.attn", vocab_size=20, n_embd=16, n_layer=2,
        n_head=4, n_positions=32,
    )  # fmt: skip


def bert() -> Patient:
    return _hugging_face(
        "BertModel", "encoder.layer.0.attention.self", vocab_size=20, hidden_size=16, intermediate_size=16,
        num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32,
    )  # fmt: skip


def distilbert() -> Patient:
    return _hugging_face(
        "DistilBertModel", "transformer.layer.0.attention", vocab_size=20, dim=16, hidden_dim=16, n_layers=2, n_heads=4,
        max_position_embeddings=32,
    )  # fmt: skip


HUGGING_FACE = {"llama": llama, "gpt2": gpt2, "bert": bert, "distilbert": distilbert}
OTHERS = {
    "multihead": multihead,
    "multihead without bias": lambda: multihead(bias=False),
    "multihead with a bias key": lambda: multihead(add_bias_kv=True),
    "multihead apart": apart,
    "our multihead": lambda: multihead(softscope.nn.MultiheadAttention, temperature=True, softcap=3.0),
    "small transformer": small_transformer,
}
ALL = OTHERS | HUGGING_FACE


def built(name: str) -> Patient:
    torch.manual_seed(0)
    return ALL[name]()


def output(patient: Patient) -> Tensor:
    found = patient.model(*patient.inputs)
    return found if isinstance(found, Tensor) else found[0]
