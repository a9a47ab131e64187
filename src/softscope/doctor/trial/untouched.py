"""Forward passes that leave no trace: neither in the model, nor in random states, nor in what others observe."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn


@contextlib.contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Run the model in eval mode and without gradients; afterwards everything is as it was, bit for bit.

    That covers training flags, buffers, gradients, and the random states of torch, NumPy and Python. PyTorch's fused
    eval-mode layers and compiled code are left out meanwhile: inside them, no head can be changed.
    """
    modes = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    states = random.getstate(), np.random.get_state()  # noqa: NPY002  (the global generator is what users may use)
    fast = torch.backends.mha.get_fastpath_enabled()
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    try:
        with (
            torch.random.fork_rng(devices=devices),
            torch.no_grad(),
            torch.compiler.set_stance("force_eager"),
        ):
            torch.backends.mha.set_fastpath_enabled(False)
            for module, _ in modes:
                module.training = False
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for module, training in modes:
            module.training = training
        with torch.no_grad():
            for buffer, before in buffers:
                if not torch.equal(buffer, before):
                    buffer.copy_(before)
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
