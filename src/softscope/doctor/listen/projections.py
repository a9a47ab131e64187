"""The parameters that make q, k and v in an attention module, found by the names that such modules use."""

from __future__ import annotations

import sys
from typing import Any, Literal, NamedTuple

from torch import Tensor, nn

# Attribute names of the three linear maps: Llama and most others, BERT, DistilBERT, T5, softscope.tasks, diffusers.
NAMES = (
    ("q_proj", "k_proj", "v_proj"), ("query", "key", "value"), ("q_lin", "k_lin", "v_lin"), ("q", "k", "v"),
    ("w_q", "w_k", "w_v"), ("to_q", "to_k", "to_v"),
)  # fmt: skip
Role = Literal["q", "k", "v"]
ROLES: tuple[Role, ...] = ("q", "k", "v")


class Part(NamedTuple):
    """A parameter, or a third of it along one axis."""

    parameter: Tensor
    third: int | None = None
    axis: int = 0

    def of(self, x: Tensor) -> Tensor:
        """The same part of a tensor shaped like the parameter, such as its gradient; of a DTensor, what is here."""
        tensors = sys.modules.get("torch.distributed.tensor")
        if tensors is not None and isinstance(x, tensors.DTensor):
            return self._here(x)
        return x if self.third is None else x.chunk(3, dim=self.axis)[self.third]

    def _here(self, x: Any) -> Tensor:
        """The rows that this rank holds: an operation on the DTensor itself would wait for the other ranks."""
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

        local: Tensor = x.to_local()
        if self.third is None:
            return local
        _, starts = compute_local_shape_and_global_offset(x.shape, x.device_mesh, x.placements)
        size, start = -(-x.shape[self.axis] // 3), starts[self.axis]
        first, last = (min(max(size * i - start, 0), local.shape[self.axis]) for i in (self.third, self.third + 1))
        return local.narrow(self.axis, first, last - first)


def projections(module: nn.Module) -> dict[Role, list[Part]]:
    """The weights that make q, k and v, adapters included; {} if the module's names tell nothing.

    >>> {role: [tuple(part.of(part.parameter).shape) for part in parts]
    ...  for role, parts in projections(nn.MultiheadAttention(8, 2)).items()}
    {'q': [(8, 8)], 'k': [(8, 8)], 'v': [(8, 8)]}
    """
    if isinstance(module, nn.MultiheadAttention):
        if module.in_proj_weight is not None:
            return {role: [Part(module.in_proj_weight, i)] for i, role in enumerate(ROLES)}
        return {role: [Part(getattr(module, f"{role}_proj_weight"))] for role in ROLES}
    packed = getattr(module, "c_attn", None)
    if packed is not None and type(module).__name__ == "GPT2Attention" and _is_map(packed):
        return {role: [Part(packed.weight, i, 1)] for i, role in enumerate(ROLES)}
    for names in NAMES:
        maps = [getattr(module, name, None) for name in names]
        if all(map(_is_map, maps)):
            return {role: [Part(p) for p in _matrices(one)] for role, one in zip(ROLES, maps, strict=True)}
    return {}


def adapted(module: nn.Module) -> bool:
    """Whether adapters such as LoRA's stand beside frozen weights."""
    return any("lora" in name.lower() or "adapter" in name.lower() for name, _ in module.named_parameters())


def _is_map(module: Any) -> bool:
    return isinstance(module, nn.Module) and any(True for _ in _matrices(module))


def _matrices(module: Any) -> list[Tensor]:
    return [p for p in module.parameters() if p.ndim == 2]
