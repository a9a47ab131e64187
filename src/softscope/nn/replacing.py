"""Replace PyTorch's attention in an existing model with softscope's."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from softscope.nn.multihead import MultiheadAttention, adopt
from softscope.nn.options import Options


def replace(model: nn.Module, **options: Any) -> int:
    """Turn every `torch.nn.MultiheadAttention` in the model into a `MultiheadAttention` with these options.

    Each module stays the same object with the same parameters and hooks, so an existing optimizer keeps training
    them. The optimizer does not know the parameters that options add (`sink`, `log_temperature`, `q_gain`, `k_gain`,
    `length_gain`), so add those to it. Subclasses of PyTorch's module and layers that are already softscope's stay
    unchanged. Every `nn.TransformerEncoder` around a replaced layer stops passing nested tensors. Padded positions of
    its output, which used to be zeros in eval mode, then hold numbers, as they always do in training.

    Args:
        model: The model, changed in place.
        options: qk_norm, softcap, temperature, sink, alpha, scale, scalable, as for `MultiheadAttention`.

    Returns:
        The number of modules replaced.

    >>> import torch, softscope.nn
    >>> model = torch.nn.TransformerDecoderLayer(8, 2)
    >>> softscope.nn.replace(model, softcap=30.0)
    2
    >>> model.self_attn
    MultiheadAttention(
      8, 2, softcap=30.0
      (out_proj): NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)
    )
    """
    chosen = Options(**options)  # raises before anything is changed
    found = [module for module in model.modules() if type(module) is nn.MultiheadAttention]
    for attention in found:
        adopt(attention, chosen, MultiheadAttention)
    for encoder in encoders_around(model, found):
        encoder.use_nested_tensor = False
    return len(found)


def encoders_around(model: nn.Module, layers: Sequence[nn.Module]) -> list[nn.TransformerEncoder]:
    """Return the encoders that contain one of these layers; they must not pass nested tensors to it."""
    encoders = [part for part in model.modules() if isinstance(part, nn.TransformerEncoder)]
    return [encoder for encoder in encoders if any(module in layers for module in encoder.modules())]
