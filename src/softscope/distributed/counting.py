"""Count the messages and bytes that a rank sends through `torch.distributed`, whoever sends them.

>>> from torch import distributed as dist
>>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
>>> with counted() as sent:
...     dist.all_reduce(torch.ones(3))
>>> sent  # one rank has nobody to send bytes to
Counted(messages=1, bytes=0)
>>> dist.destroy_process_group()
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed import distributed_c10d as c10d
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Counted", "counted"]

_NAMESPACES = ("c10d", "_c10d_functional")
_OPERATIONS = ("sum", "avg", "product", "min", "max")  # strings among the arguments that name no group


@dataclasses.dataclass
class Counted:
    """What this rank has sent: messages, and bytes as a ring of ranks sends them.

    >>> Counted()
    Counted(messages=0, bytes=0)
    """

    messages: int = 0
    bytes: int = 0


@contextlib.contextmanager
def counted() -> Iterator[Counted]:
    """Count what this rank sends: gathers and reductions of tensors.

    With W ranks, gathering a tensor of B bytes from each sends (W − 1)·B, reducing one of B bytes 2·(W − 1)/W·B. Our
    functions do not use the engine meanwhile, because a counter sees all tensor operations.

    >>> with counted() as sent:
    ...     pass
    >>> sent
    Counted(messages=0, bytes=0)
    """
    sent = Counted()
    with _Counter(sent):
        yield sent


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, sent: Counted) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sent = sent

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if DTensor in types:
            return NotImplemented  # it comes again, as operations on parts and what they send
        namespace, _, name = func.name().partition("::")
        ranks = _ranks(args) if namespace in _NAMESPACES else None
        if ranks is not None:
            self.sent.messages += 1
            self.sent.bytes += _bytes(name, args, ranks)
        return func(*args, **(kwargs or {}))


def _ranks(arguments: tuple[Any, ...]) -> int | None:
    """Return the size of the group among the arguments; None if the operation waits for a message, or wraps one."""
    resolve: Any = c10d._resolve_process_group  # type: ignore[attr-defined]
    for value in arguments:
        if isinstance(value, str) and value not in _OPERATIONS:
            return int(resolve(value).size())
        if isinstance(value, torch.ScriptObject):
            return int(c10d.ProcessGroup.unbox(value).size())
    return None


def _bytes(name: str, arguments: tuple[Any, ...], ranks: int) -> int:
    tensor = arguments[1] if "_allgather_base" in name else arguments[0]
    while isinstance(tensor, list):
        tensor = tensor[0]
    size = int(tensor.numel() * tensor.itemsize)
    if "gather" in name:
        return (ranks - 1) * size
    if "reduce" in name and "scatter" not in name:
        return 2 * (ranks - 1) * size // ranks
    raise NotImplementedError(f"counted knows gathers and reductions, but got {name}; add its formula to {__name__}")
