"""Detects where one step ends and the next begins, from the behaviour of the model and its optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

_LOOKED_AT = 4  # parameters to compare by value


class Steps:
    """Counts the steps of a run and calls `finish(index, loss)` when each is over, `updated` for each optimizer's step.

    A step is over when an optimizer of the model has stepped, however many passes that took. Until an optimizer has
    ever stepped, a step is over when the next forward pass finds changed parameters, or when there was no backward pass
    in between (inference). Once the user marks steps, only marks count. Passes without gradients between training steps
    (validation) belong to no step, nor do passes before the first backward pass, once there is one: `forget` drops what
    was read of them. Passes that an optimizer makes itself (LBFGS) belong to its step.
    """

    def __init__(
        self,
        model: nn.Module,
        finish: Callable[[int, Any], None],
        updated: Callable[[torch.optim.Optimizer], None] = lambda _: None,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        self.index = 0
        self.passes = 0
        self.reading = False  # whether the current pass belongs to a step
        self._model, self._finish, self._updated, self._forget = model, finish, updated, forget
        self._open = self._closed = False  # a step has begun; its optimizer has stepped
        self._marked = self._optimized = self._trained = False  # at any time in the run
        self._backward = False  # in this step
        self._inside = False  # an optimizer is stepping; LBFGS makes passes of its own meanwhile
        self._versions = 0.0
        self._parameters: list[nn.Parameter] = []
        self._few: list[nn.Parameter] = []
        self._handles: list[Any] = []
        self._ours: set[int] = set()
        self._known: dict[int, bool] = {}  # optimizers by id, and whether they train this model

    @property
    def went_back(self) -> bool:
        """Whether a backward pass has come from the model's output in the open step."""
        return self._backward

    def attach(self) -> None:
        """Start observing all optimizers."""
        self._parameters = [p for p in self._model.parameters() if not p.is_inference()]
        self._ours, self._known = {id(p) for p in self._parameters}, {}
        plain = (p for p in self._parameters if type(p) is nn.Parameter and p.requires_grad and p.numel())
        self._few = sorted(plain, key=nn.Parameter.numel)[:_LOOKED_AT]
        self._handles = [
            register_optimizer_step_pre_hook(self._stepping), register_optimizer_step_post_hook(self._stepped)
        ]  # fmt: skip

    def detach(self) -> None:
        """Stop observing them."""
        for handle in self._handles:
            handle.remove()

    def begin_pass(self, part: bool = False) -> None:
        """Note that a forward pass begins, or with `part` that another part of the same pass does."""
        self.passes += 1
        self.reading = torch.is_grad_enabled() or not self._trained
        if not self.reading:
            return
        if self._open and (self._closed if part and not self._marked else self._is_over()):
            self.end()
        if not self._open:
            self._open, self._closed, self._backward = True, False, False
        if not (self._optimized or self._marked):
            self._versions = self._changes()

    def end_pass(self, output: Any) -> None:
        """Note that the pass has ended, and watch for a backward pass from its output."""
        for tensor in _tensors(output, 8):
            if tensor.requires_grad:
                tensor.register_hook(self._came_back)  # type: ignore[no-untyped-call]

    def mark(self, loss: Any) -> None:
        """End the step because the user says so."""
        self._marked = True
        if self._open:
            self.end(loss)

    def end(self, loss: Any = None) -> None:
        """Finish the open step, if there is one."""
        if self._open:
            self._open = False
            index, self.index = self.index, self.index + 1
            self._finish(index, loss)

    def _is_over(self) -> bool:
        if self._marked:
            return False
        if self._closed or not (self._inside or self._backward or self._model.training):
            return True
        if self._inside or self._optimized:
            return False
        return not self._backward or self._changes() != self._versions

    def _changes(self) -> float:
        """A number that changes when the parameters do.

        Tensor versions miss writes through `.data`, so it also includes the values of a few of the smallest parameters.
        """
        with torch.no_grad():
            return sum(p._version for p in self._parameters) + math.fsum(float(p.double().norm()) for p in self._few)

    def _came_back(self, grad: Tensor) -> None:
        del grad
        if not (self._trained or self._marked):
            self.index = 0  # passes before the first backward pass, such as a validation, were no steps of a training
            self._forget()
        self._backward = self._trained = True

    def _stepping(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._inside = self._is_ours(optimizer)

    def _stepped(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._inside = False
        if self._open and self._is_ours(optimizer):
            self._closed = self._optimized = True
            self._updated(optimizer)

    def _is_ours(self, optimizer: torch.optim.Optimizer) -> bool:
        if not self._known.get(id(optimizer)):  # one that does not may be given parameters later
            mine = (id(p) in self._ours for group in optimizer.param_groups for p in group["params"])
            self._known[id(optimizer)] = any(mine)
        return self._known[id(optimizer)]


def _tensors(output: Any, most: int) -> list[Tensor]:
    """The first tensors in a model's output: the output itself, or inside its tuples and dictionaries."""
    found: list[Tensor] = []

    def look(value: Any, depth: int) -> None:
        if len(found) >= most or depth > 3:
            return
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, dict):
            through(value.values(), depth)
        elif isinstance(value, list | tuple):
            through(value, depth)

    def through(values: Iterable[Any], depth: int) -> None:
        for value in values:
            look(value, depth + 1)

    look(output, 0)
    return found
