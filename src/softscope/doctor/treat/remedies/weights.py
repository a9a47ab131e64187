"""Finds the weights that produce q and k, head by head: in known modules by name, in others from a layout.

Everything between these weights and the logits must be linear in them (rotary positions are). Only then does a factor
on a head's weights divide its logits exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from softscope.doctor.listen.projections import NAMES
from softscope.doctor.treat.remedies.applied import NotSupportedError, Place, unsupported
from softscope.doctor.treat.remedies.linear_maps import HeadRows, LinearMap, cut, linear_map, looks_linear, why_not

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope.doctor.treat.remedies.layout import Layout

PAIRS = tuple(names[:2] for names in NAMES)
# Attributes that hold the number of components per head, or the number of heads.
SIZES = ("head_dim", "attention_head_size", "key_value_proj_dim")
COUNTS = ("num_heads", "num_attention_heads", "n_heads", "heads")
INSTEAD = (
    "let it be found on a batch, `with remedies.layouts(model) as layout: model(batch)`, and pass layout=layout; or "
    "treat the logits with remedies.temperature"
)


class Projections(NamedTuple):
    """The rows that produce q and k, by head."""

    q: tuple[HeadRows, ...]
    k: tuple[HeadRows, ...]

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return len(self.q)

    @property
    def group(self) -> int:
        """Number of query heads per key head."""
        return self.heads // len(self.k)

    @property
    def place(self) -> Place:
        """Where a change to them is kept."""
        return "adapter" if self.q[0].wrapped or self.k[0].wrapped else "weights"


def known(module: nn.Module) -> bool:
    """Whether this is an attention module whose q and k weights we can find."""
    return isinstance(module, nn.MultiheadAttention) or _pair(module) is not None or _conv1d(module) is not None


def projections(
    model: nn.Module, module: nn.Module, site: str, layout: Mapping[str, Layout] | None = None
) -> Projections:
    """The rows; raises with the reason if there are none."""
    if layout is not None and site in layout:
        return _laid_out(model, site, layout[site])
    norm = _normalised(module)
    if norm:
        raise unsupported(
            site, f"q and k are normalised after their weights ({norm})", "raise the temperature in its options"
        )
    if hasattr(module, "parametrizations"):
        raise unsupported(site, "its weights are computed from other parameters", "change those")
    if isinstance(module, nn.MultiheadAttention):
        return _multihead(module)
    packed = _conv1d(module)
    if packed is not None:
        width = packed.weight.shape[0] // 3
        heads = _heads(module, width, site)
        size = width // heads
        starts = [[part * width + head * size for head in range(heads)] for part in (0, 1)]
        return Projections(*(tuple(cut(packed, start, size) for start in part) for part in starts))
    pair = _pair(module)
    if pair is None:
        raise _unknown(module, site)
    maps = [_map(linear, site) for linear in pair]
    heads = _heads(module, maps[0].weight.shape[0], site)
    size = maps[0].weight.shape[0] // heads
    return Projections(*(tuple(cut(m, h * size, size) for h in range(m.weight.shape[0] // size)) for m in maps))


def sizes(module: nn.Module, site: str) -> tuple[int, int]:
    """Number of query heads, and components per head."""
    if isinstance(module, nn.MultiheadAttention):
        return module.num_heads, module.head_dim
    pair, packed = _pair(module), _conv1d(module)
    if packed is None and pair is None:
        raise _unknown(module, site)
    width = packed.weight.shape[0] // 3 if packed is not None else _width(pair[0] if pair else None)
    heads = _heads(module, width, site)
    return heads, width // heads


def scale(rows: HeadRows, factor: float) -> tuple[tuple[Tensor, Tensor], ...]:
    """Multiply one head's rows in place; return the views with their earlier values."""
    held = []
    with torch.no_grad():
        for part in rows.tensors:
            view = part.detach()
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
    packed, size = module.in_proj_weight, module.head_dim
    weights = (module.q_proj_weight, module.k_proj_weight) if packed is None else packed.chunk(3)[:2]
    biases = (None, None) if module.in_proj_bias is None else module.in_proj_bias.chunk(3)[:2]
    q, k = (LinearMap(w, b) for w, b in zip(weights, biases, strict=True))
    extra = None if module.bias_k is None else module.bias_k.view(module.num_heads, -1)
    return Projections(
        tuple(cut(q, h * size, size) for h in range(module.num_heads)),
        tuple(
            cut(k, h * size, size)._replace(extra=None if extra is None else extra[h]) for h in range(module.num_heads)
        ),
    )


def _laid_out(model: nn.Module, site: str, found: Layout) -> Projections:
    maps = []
    for path in (found.q, found.k):
        try:
            maps.append(_map(model.get_submodule(path), site))
        except AttributeError:
            raise ValueError(
                f"layout must name modules of this model, but {site} has {path!r}; find it again with remedies.layouts"
            ) from None
    return Projections(
        tuple(cut(maps[0], start, found.size, found.step) for start in found.q_rows),
        tuple(cut(maps[1], start, found.size, found.step) for start in found.k_rows),
    )


def _map(linear: Any, site: str) -> LinearMap:
    found = linear_map(linear)
    if found is None:
        raise unsupported(site, why_not(linear), "treat the logits with remedies.temperature")
    return found


def _pair(module: nn.Module) -> tuple[Any, Any] | None:
    for names in PAIRS:
        q, k = (getattr(module, name, None) for name in names)
        if looks_linear(q) and looks_linear(k):
            return q, k
    return None


def _width(linear: Any) -> int:
    """Number of outputs; quantised weights have other shapes."""
    found = getattr(linear, "out_features", None)
    return found if isinstance(found, int) else int(linear.weight.shape[0])


def _conv1d(module: nn.Module) -> LinearMap | None:
    """GPT-2's c_attn: q, k and v side by side, weight transposed. Elsewhere the name stands for other layouts."""
    if type(module).__name__ != "GPT2Attention":
        return None
    found = linear_map(getattr(module, "c_attn", None))
    return found if found is not None and found.weight.shape[0] == 3 * found.weight.shape[1] else None


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
