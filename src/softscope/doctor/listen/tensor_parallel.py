"""Which heads of a layer this process computes, if tensor parallelism shares them out among ranks."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from softscope.doctor.listen import config_of, reasons
from softscope.doctor.listen.heads import said_by
from softscope.doctor.listen.reasons import Reason


def elsewhere(module: nn.Module, heads: int) -> Reason | None:
    """What to say of heads that other ranks compute; None if this process computes all, as far as can be seen."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    shared = place(module)
    if shared is not None:
        rank, ranks = shared
        return Reason(reasons.RANK, (str(heads * ranks), f"{heads * rank}–{heads * (rank + 1) - 1}"))
    said = said_by(module) or config_of.setting(getattr(module, "config", None), "num_attention_heads")
    if torch.distributed.get_world_size() > 1 and isinstance(said, int) and said > heads and said % heads == 0:
        return Reason(reasons.SOME_RANK, (str(said), str(heads)))
    return None


def place(module: nn.Module) -> tuple[int, int] | None:
    """This rank's number among those that share out the module's heads, and how many they are; None if none do."""
    tensors = sys.modules.get("torch.distributed.tensor")
    if tensors is None:
        return None
    fully = _fully_sharded(module)
    for parameter in module.parameters():
        if isinstance(parameter, tensors.DTensor) and not (id(parameter) in fully and parameter.device_mesh.ndim == 1):
            # Of parameters that are both sharded by FSDP and shared out by heads, the last mesh axis is that of heads.
            found = _rank_of(parameter, last=id(parameter) in fully)
            if found[1] > 1:
                return found
    return None


def _fully_sharded(module: nn.Module) -> set[int]:
    """Parameters that FSDP2 has sharded, by id; in a forward pass, those that are at work are whole."""
    fsdp: Any = sys.modules.get("torch.distributed.fsdp")
    if fsdp is None or not hasattr(fsdp, "FSDPModule"):
        return set()
    return {id(p) for part in module.modules() if isinstance(part, fsdp.FSDPModule) for p in part.parameters()}


def _rank_of(parameter: Any, *, last: bool) -> tuple[int, int]:
    mesh = parameter.device_mesh
    rank, ranks = 0, 1
    for axis, (placement, at) in enumerate(zip(parameter.placements, mesh.get_coordinate(), strict=True)):
        if placement.is_shard(0) and (
            not last or axis == mesh.ndim - 1
        ):  # rows of a weight are output features, so heads
            rank, ranks = rank * mesh.size(axis) + at, ranks * mesh.size(axis)
    return rank, ranks
