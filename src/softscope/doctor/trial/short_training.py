"""Trains a model in place for a few steps and puts every bit back: parameters, buffers, gradients and random states."""

from __future__ import annotations

import contextlib
import copy
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

RATE = 3e-4  # of AdamW, where no optimizer is given


def why_not(model: nn.Module) -> str:
    """Why a model cannot be trained here; '' if it can."""
    if any(hasattr(p, "_local_tensor") or "Fully" in type(m).__name__ for m in model.modules() for p in (m, *_own(m))):
        return "its parameters are spread over several processes"
    if not any(p.requires_grad for p in model.parameters()):
        return "none of its parameters is trained"
    return "it is in inference mode" if any(p.is_inference() for p in model.parameters()) else ""


def _own(module: nn.Module) -> Iterable[nn.Parameter]:
    return (p for p in module._parameters.values() if p is not None)


class Borrowed:
    """The model's parameters and buffers on borrowed memory: `reset()` starts over, leaving gives the originals back.

    The originals are never written, so a graph of the user's that still needs them stays valid.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._parameters = [(p, p.data, p.grad, p.requires_grad) for p in model.parameters()]
        self._buffers = [
            (m, name, b, b.data) for m in model.modules() for name, b in m._buffers.items() if b is not None
        ]
        self._modes = [(module, module.training) for module in model.modules()]
        self._random = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Borrowed:
        kept = [p for p, *_ in self._parameters] + [b for *_, b, _ in self._buffers]
        tensors = tuple(x for x in kept if isinstance(x, Tensor) and not x.is_inference())
        if tensors:
            self._stack.enter_context(torch.autograd._unsafe_preserve_version_counter(tensors))  # type: ignore[attr-defined]
        devices = sorted({p.device.index or 0 for p, *_ in self._parameters if p.device.type == "cuda"})
        self._stack.enter_context(torch.random.fork_rng(devices=devices))
        self._stack.enter_context(torch.enable_grad())
        self._stack.enter_context(torch.compiler.set_stance("force_eager"))
        for p, data, *_ in self._parameters:
            p.data, p.grad = data.clone(), None
        for *_, buffer, data in self._buffers:
            buffer.data = data.clone()
        return self

    def reset(self) -> None:
        """Back to where it was when it was borrowed."""
        with torch.no_grad():
            for p, data, _, needed in self._parameters:
                p.data.copy_(data)
                p.grad = None
                p.requires_grad_(needed)
            for module, name, buffer, data in self._buffers:
                module._buffers[name] = buffer
                buffer.data.copy_(data)
        for module, training in self._modes:
            module.training = training
        random.setstate(self._random[0])
        np.random.set_state(self._random[1])  # noqa: NPY002
        torch.set_rng_state(self._random[2])

    def __exit__(self, *_: object) -> None:
        for p, data, grad, needed in self._parameters:
            p.data = data
            p.requires_grad_(needed)
            p.grad = grad
        for module, name, buffer, data in self._buffers:
            module._buffers[name], buffer.data = buffer, data
        for module, training in self._modes:
            module.training = training
        self._stack.close()
        random.setstate(self._random[0])
        np.random.set_state(self._random[1])  # noqa: NPY002


def resumed(optimizer: Any, model: nn.Module) -> torch.optim.Optimizer:
    """An optimizer that goes on where the given one is, with copies of its moments; AdamW if there is none.

    One without memory would not do: the first steps of a new Adam move every weight by the whole rate, which at 10⁻²
    changes a trained model more than the remedy does.

    Args:
        optimizer: an optimizer, which is left alone; a function from parameters to one; or None.
        model: what is trained.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    if optimizer is None:
        return torch.optim.AdamW(trained, lr=RATE)
    if not isinstance(optimizer, torch.optim.Optimizer):
        made: torch.optim.Optimizer = optimizer(trained)
        return made
    new = copy.copy(optimizer)
    new.state = defaultdict(dict, {p: copy.deepcopy(kept) for p, kept in optimizer.state.items()})
    new.param_groups = [
        {**group, "params": [p for p in group["params"] if p.requires_grad]} for group in optimizer.param_groups
    ]
    return new


def steps(optimizer: torch.optim.Optimizer, losses: Iterator[Callable[[], Tensor]], count: int) -> bool:
    """Take `count` steps, each down the next loss; False if a loss was not finite.

    Gradients come from `torch.autograd.grad`, and the optimizer's step is called without its hooks: neither the user's
    hooks on gradients nor the probe may take these for steps of the run.
    """
    bare = type(optimizer).step
    bare = getattr(bare, "__wrapped__", bare) if getattr(bare, "hooked", False) else bare
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    for _ in range(count):
        value = next(losses)()
        if not bool(torch.isfinite(value.detach())):
            return False
        for p, grad in zip(trained, torch.autograd.grad(value, trained, allow_unused=True), strict=True):
            p.grad = grad
        bare(optimizer)
    for p in trained:
        p.grad = None
    return True
