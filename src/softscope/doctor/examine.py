"""Examine a model on a batch without a training run: a few forward passes, plus backward passes if there is a loss."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from softscope._probe import probe
from softscope._users_code import Raised, whatever_it_raises
from softscope.doctor.judge.thresholds import IN_A_ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softscope.doctor.read.snapshot import History

READINGS = int(IN_A_ROW.value)  # no state needs more readings than this


class ModelFailedError(Exception):
    """The model, its loss or its optimizer raised an exception; the message says which, in one line."""


class BrokenLossError(Exception):
    """The loss is not a finite number."""


class WrongLossError(Exception):
    """A backward pass cannot start from this loss; the message says what came instead."""


@dataclasses.dataclass(frozen=True)
class Given:
    """The inputs of an examination.

    Attributes:
        model: any module.
        batches: one per pass. A mapping becomes keyword arguments, a tuple positional ones, anything else the one
            argument.
        loss: computes the loss from output and batch. If None, the output's own `loss` is used, if it has one.
        optimizer: steps after each pass. If None, no weight changes.
    """

    model: nn.Module
    batches: Sequence[Any]
    loss: Callable[[Any, Any], Tensor] | None = None
    optimizer: Any = None


def examine(given: Given, progress: Callable[[float], None] = lambda _: None) -> History:
    """Read the model's attention, one pass per batch.

    >>> import torch
    >>> model = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    >>> examine(Given(model, passes(torch.randn(6, 5, 8)), lambda output, _: output.mean())).sites[0].name
    'self_attn'
    """
    with probe(given.model, every=1) as scope:
        for i, batch in enumerate(given.batches):
            try:
                with whatever_it_raises():
                    loss = training_pass(given, batch)
            except Raised as raised:
                if isinstance(raised.error, BrokenLossError | WrongLossError):
                    raise raised.error from None
                raise ModelFailedError(str(raised)) from raised.error
            scope.step(loss=loss)
            progress((i + 1) / len(given.batches))
        history = scope.history()
    if given.optimizer is None:
        given.model.zero_grad(set_to_none=True)
    return history


def tensor_loss(given: Given, batch: Any) -> Tensor:
    """The loss of one batch, without a backward pass."""
    loss = _loss(given, batch)
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        raise WrongLossError(_what(loss))
    return loss


def forward_loss(given: Given, batch: Any) -> float:
    """The same as a number."""
    return float(tensor_loss(given, batch))


def _loss(given: Given, batch: Any) -> Any:
    output = _call(given.model, batch)
    return getattr(output, "loss", None) if given.loss is None else given.loss(output, batch)


def training_pass(given: Given, batch: Any) -> float | None:
    """Run one forward and backward pass, and one step if there is an optimizer; None if there is no loss."""
    loss = _loss(given, batch)
    if loss is None and given.loss is None:
        return None
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        raise WrongLossError(_what(loss))
    if not math.isfinite(loss.item()):
        raise BrokenLossError(loss.item())
    given.model.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    if given.optimizer is not None:
        given.optimizer.step()
    return float(loss.item())


def _what(loss: Any) -> str:
    if not isinstance(loss, Tensor):
        return type(loss).__name__
    return "Tensor(requires_grad=False)" if loss.numel() == 1 else f"Tensor{tuple(loss.shape)}"


def _call(model: nn.Module, batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple) else model(batch)


def passes(batch: Any, many: int = READINGS) -> list[Any]:
    """Split one batch into `many`: along its first axis if that is long enough, otherwise repeat the whole batch.

    >>> import torch
    >>> [part.shape[0] for part in passes(torch.ones(7, 2))], len(passes(torch.ones(2, 2)))
    ([3, 2, 2], 3)
    """
    tensors = _tensors(batch)
    sizes = {x.shape[0] if x.ndim else 0 for x in tensors}
    if len(sizes) != 1 or min(sizes) < many:
        return [batch] * many
    return [_cut(batch, i, many) for i in range(many)]


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else ()
    return [x for part in parts for x in _tensors(part)]


def _cut(value: Any, part: int, many: int) -> Any:
    if isinstance(value, Tensor):
        return value.tensor_split(many)[part]
    if isinstance(value, Mapping):
        return {name: _cut(x, part, many) for name, x in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_cut(x, part, many) for x in value)
    return value
