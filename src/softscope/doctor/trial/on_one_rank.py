"""A trial runs the model on one rank alone: which models can."""

from __future__ import annotations

from typing import cast

from torch import nn

from softscope.doctor.listen.context_parallel import is_dtensor


def on_one_rank(model: nn.Module) -> nn.Module:
    """The model without a wrapper that waits for other ranks in a forward pass.

    Raises:
        RuntimeError: its parameters are shared out among ranks, so that no rank can run it alone.
    """
    inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
    if any(is_dtensor(parameter) for parameter in inner.parameters()):
        raise RuntimeError(
            "a trial runs the model on this rank alone, but its parameters are DTensors, shared out among ranks; "
            "gather them into a copy of the model, and probe and try that"
        )
    return cast(nn.Module, inner)
