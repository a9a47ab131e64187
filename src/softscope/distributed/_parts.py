"""This rank's part of the rows of a call: checked, and with the sums that it sends."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._arguments.arrays import dtype_name, floating, tracing
from softscope._arguments.checks import number, short
from softscope._arguments.seen import wrapped
from softscope._backends.torch.engine_memory import flows
from softscope.distributed import _sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.distributed._exchange import Lengths


@dataclasses.dataclass(frozen=True)
class RowsPart:
    """The rows of x that this rank has a part of, (rows, n) and contiguous, and what all ranks must agree on."""

    x: Tensor
    lead: tuple[int, ...]
    temperature: float
    facts: dict[str, str]

    @property
    def length(self) -> int:
        """How many entries of each row this rank has."""
        return self.x.shape[-1]

    @functools.cached_property
    def sums(self) -> _sums.Sums:
        """The sums of this part."""
        return _sums.of_part(self.x.detach(), self.temperature)

    def numbers(self, lengths: Lengths) -> Sequence[Tensor]:  # noqa: ARG002
        """m and z − 1 of each row."""
        return _sums.to_send(self.sums, self.x)


def rows_part(x: Any, temperature: Any, function: str, name: str = "x", *, sends_gradients: bool = False) -> RowsPart:
    """Check x and the temperature, and lay the rows of x out.

    Where the backward pass sends something, all ranks must take part in it, so they agree on that beforehand.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a torch tensor with this rank's part of the rows, but got {short(x)}; call torch.as_tensor"
        )
    if not tracing() and wrapped(x):
        raise NotImplementedError(
            f"{name} must be a plain tensor, but got one under a transform of torch.func, which stops messages; "
            f"use autograd"
        )
    x = floating(x, name)
    if x.ndim == 0:
        raise ValueError(f"{name} must have an axis to share among the ranks, but got a single number; pass (…, n)")
    t = number(temperature, "temperature", "one number > 0")
    if t <= 0.0:
        raise ValueError(f"temperature must be > 0, but got {short(temperature)}; pass a positive number")
    lead = tuple(x.shape[:-1])
    facts = {
        "the function": function,
        f"the shape of {name} without its last axis": str(lead),
        f"{name}'s dtype": dtype_name(x),
        "temperature": repr(t),
    }
    if sends_gradients:
        facts[f"whether {name} requires a gradient"] = str(flows(x))
    return RowsPart(x.reshape((math.prod(lead), x.shape[-1])).contiguous(), lead, t, facts)


def applied(function: Any, *arguments: Any) -> Any:
    """Apply an autograd function, which PyTorch left without types."""
    return function.apply(*arguments)


def first_derivatives_only() -> None:
    """Refuse a backward pass that is itself recorded: the second derivative would need the other ranks' entries."""
    if torch.is_grad_enabled():
        raise NotImplementedError(
            "softscope.distributed gives first derivatives, but create_graph asks for second ones; gather the rows "
            "and use the functions of softscope"
        )
