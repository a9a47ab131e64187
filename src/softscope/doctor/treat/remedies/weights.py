"""Finds the weights that produce q and k, head by head, in known modules.

Everything between these weights and the logits must be linear in them (rotary positions are). Only then does a factor
on a head's weights divide its logits exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from softscope.doctor.treat.remedies.applied import NotSupportedError, unsupported

# Attribute names of the two linear maps: Llama and most others, BERT, DistilBERT, T5, softscope.tasks, diffusers.
PAIRS = (("q_proj", "k_proj"), ("query", "key"), ("q_lin", "k_lin"), ("q", "k"), ("w_q", "w_k"), ("to_q", "to_k"))
# Attributes that hold the number of components per head, or the number of heads.
SIZES = ("head_dim", "attention_head_size", "key_value_proj_dim")
COUNTS = ("num_heads", "num_attention_heads", "n_heads", "heads")
INSTEAD = "divide the rows of W_Q and of its bias that belong to this head by the temperature in your own code"


class Projections(NamedTuple):
    """Views into the parameters that produce q and k; the first axis is the head."""

    q: tuple[Tensor, ...]
    k: tuple[Tensor, ...]

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return self.q[0].shape[0]

    @property
    def group(self) -> int:
        """Number of query heads per key head."""
        return self.heads // self.k[0].shape[0]


def known(module: nn.Module) -> bool:
    """Whether this is an attention module whose q and k weights we can find."""
    return isinstance(module, nn.MultiheadAttention) or _pair(module) is not None or _conv1d(module) is not None


def projections(module: nn.Module, site: str) -> Projections:
    """The views; raises with the reason if there are none."""
    norm = _normalised(module)
    if norm:
        raise unsupported(
            site, f"q and k are normalised after their weights ({norm})", "raise the temperature in its options"
        )
    if hasattr(module, "parametrizations"):
        raise unsupported(site, "its weights are computed from other parameters", "change those")
    if isinstance(module, nn.MultiheadAttention):
        return _multihead(module)
    pair, packed = _pair(module), _conv1d(module)
    if pair is None and packed is None:
        raise _unknown(module, site)
    if packed is not None:
        heads = _heads(module, packed.weight.shape[1] // 3, site)
        parts = [p.chunk(3, dim=-1) for p in (packed.weight, packed.bias)]
        q, k = (tuple(_last_by_head(part[i], heads) for part in parts) for i in (0, 1))
        return Projections(q, k)
    assert pair is not None
    for linear in pair:
        if hasattr(linear, "parametrizations"):
            raise unsupported(site, "its weights are computed from other parameters", "change those")
        if not linear.weight.is_floating_point():
            raise unsupported(
                site, f"its weights are {linear.weight.dtype}, which cannot be scaled", "treat the model before"
            )
    heads = _heads(module, pair[0].out_features, site)
    size = pair[0].out_features // heads
    return Projections(*(_by_head(linear, linear.out_features // size) for linear in pair))


def sizes(module: nn.Module, site: str) -> tuple[int, int]:
    """Number of query heads, and components per head."""
    if isinstance(module, nn.MultiheadAttention):
        return module.num_heads, module.head_dim
    pair, packed = _pair(module), _conv1d(module)
    if pair is None and packed is None:
        raise _unknown(module, site)
    width = pair[0].out_features if pair is not None else packed.weight.shape[0]
    heads = _heads(module, width, site)
    return heads, width // heads


def scale(weights: tuple[Tensor, ...], head: int, factor: float) -> tuple[tuple[Tensor, Tensor], ...]:
    """Multiply one head's part in place; return the views with their earlier values."""
    held = []
    with torch.no_grad():
        for part in weights:
            view = part[head].detach()
            held.append((view, view.clone()))
            view.mul_(factor)
    return tuple(held)


def put_back(held: tuple[tuple[Tensor, Tensor], ...]) -> None:
    """Revert `scale`."""
    with torch.no_grad():
        for view, before in held:
            view.copy_(before)


def _multihead(module: nn.MultiheadAttention) -> Projections:
    """PyTorch's module and ours; the key added by `add_bias_kv` is treated as any other key."""

    def cut(x: Tensor) -> Tensor:
        return x.view(module.num_heads, -1, *x.shape[1:])

    packed = module.in_proj_weight
    weights = (module.q_proj_weight, module.k_proj_weight) if packed is None else packed.chunk(3)[:2]
    biases = () if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    q, k = ((cut(weights[i]), *(cut(b) for b in biases[i : i + 1])) for i in (0, 1))
    extra = () if module.bias_k is None else (cut(module.bias_k.view(-1)),)
    return Projections(q, (*k, *extra))


def _last_by_head(x: Tensor, heads: int) -> Tensor:
    return x.view(*x.shape[:-1], heads, -1).movedim(-2, 0)


def _by_head(linear: nn.Linear, heads: int) -> tuple[Tensor, ...]:
    parts = [linear.weight] if linear.bias is None else [linear.weight, linear.bias]
    return tuple(part.view(heads, -1, *part.shape[1:]) for part in parts)


def _pair(module: nn.Module) -> tuple[nn.Linear, nn.Linear] | None:
    for names in PAIRS:
        q, k = (getattr(module, name, None) for name in names)
        # A subclass (quantised, with adapters) may compute something else from the weight it exposes.
        if type(q) is nn.Linear and type(k) is nn.Linear:
            return q, k
    return None


def _conv1d(module: nn.Module) -> Any:
    """GPT-2's c_attn: q, k and v side by side, weight transposed. Elsewhere the name stands for other layouts."""
    found = getattr(module, "c_attn", None)
    fits = type(module).__name__ == "GPT2Attention" and type(found).__name__ == "Conv1D"
    return found if fits and found is not None and found.weight.shape[1] == 3 * found.weight.shape[0] else None


def _heads(module: nn.Module, width: int, site: str) -> int:
    for name in SIZES:
        size = getattr(module, name, None)
        if isinstance(size, int) and size > 0 and width % size == 0:
            return width // size
    for owner in (module, getattr(module, "config", None)):
        for name in COUNTS:
            heads = getattr(owner, name, None)
            if isinstance(heads, int) and heads > 0 and width % heads == 0:
                return heads
    raise unsupported(site, f"how many heads {type(module).__name__} has is not known here", INSTEAD)


def _unknown(module: nn.Module, site: str) -> NotSupportedError:
    return unsupported(site, f"where {type(module).__name__} keeps the weights of q and k is not known here", INSTEAD)


def _normalised(module: nn.Module) -> str:
    """Name of whatever normalises q and k after their projections, or ''."""
    options = getattr(module, "options", None) or getattr(module, "softscope_remedy", None)
    if getattr(options, "qk_norm", None):
        return "qk_norm"
    return next((name for name, _ in module.named_children() if "norm" in name.lower()), "")
