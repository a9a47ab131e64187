"""The changes a remedy made to a model, and how to undo them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.nn import Parameter


class NotSupportedError(ValueError):
    """The remedy cannot be applied here; the message says why and what to do instead.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> remedies.head_count(torch.nn.Sequential(torch.nn.Linear(8, 8)), "0")
    Traceback (most recent call last):
    ...
    softscope.doctor.treat.remedies.applied.NotSupportedError: not supported at 0: ...
    """


def unsupported(site: str, why: str, instead: str) -> NotSupportedError:
    """Build the error, with a one-sentence message."""
    return NotSupportedError(f"not supported at {site}: {why}; instead {instead}")


@dataclasses.dataclass(frozen=True)
class Change:
    """A change at one site, to these heads (to all heads if empty).

    >>> Change("encoder.0", heads=(3,), what="temperature 4").heads
    (3,)
    """

    site: str
    heads: tuple[int, ...]
    what: str


@dataclasses.dataclass
class Applied:
    """The changes of a remedy, in order; empty if it did nothing.

    `parameters` holds the new trainable parameters: an optimizer created earlier does not know them.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> done = remedies.sink(torch.nn.MultiheadAttention(8, 2))
    >>> done.remedy, len(done.changes), len(done.parameters)
    ('sink', 1, 1)
    >>> done.undo()
    >>> bool(done)
    False
    """

    remedy: str
    changes: list[Change] = dataclasses.field(default_factory=list)
    parameters: list[Parameter] = dataclasses.field(default_factory=list)
    _back: list[Callable[[], None]] = dataclasses.field(default_factory=list, repr=False)

    def undo(self) -> None:
        """Restore the earlier state; weights return to their old values, whatever training did to them since."""
        while self._back:
            self._back.pop()()
        self.changes.clear()

    def absorb(self, other: Applied) -> None:
        """Merge another remedy's changes into this one."""
        self.changes += other.changes
        self.parameters += other.parameters
        self._back.append(other.undo)

    def on_undo(self, back: Callable[[], None]) -> None:
        """Register a callback for `undo`; the last one registered runs first."""
        self._back.append(back)

    def __bool__(self) -> bool:
        return bool(self.changes)
