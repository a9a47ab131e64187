"""The doctor in a training loop of your own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from softscope.doctor.callbacks.attached import Attached

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from softscope.doctor.record.write import Record


@contextlib.contextmanager
def watch_training(
    model: Any, record: str | os.PathLike[str] | Record | None = None, *, first_step: int = 0, **options: Any
) -> Iterator[Attached]:
    """Attach the probe to a model for the time of a training loop, and record what it reads.

    The loop may be distributed: call it on every rank, with the model as it is, inside `DistributedDataParallel` or
    prepared by Accelerate. With accumulated gradients, mark a step where the optimizer steps: with Accelerate,
    `if accelerator.sync_gradients:`. `scope` is what `softscope.probe` returned.

    Args:
        model: the `torch.nn.Module` that is trained.
        record: where to record: a path, or a `Record`, which stays open; None to record nothing.
        first_step: the number of the first step; use it for a resumed run.
        options: `every`, `max_rows`, `sinks`, `on_event`, `severity`, `group`, `probe`: as for `HuggingFaceCallback`.

    Examples:
        >>> import torch
        >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> with watch_training(model, every=1, first_step=100) as watched:    # or: watch_training(model, "run.db")
        ...     for _ in range(2):
        ...         loss = model(*3 * [torch.ones(1, 4, 8)])[0].square().mean()
        ...         loss.backward()
        ...         optimizer.step()
        ...         watched.step(loss=loss)
        ...     len(watched.scope.history().snapshots)
        2
    """
    with Attached(record, **options) as watched:
        watched.attach(model, first_step=first_step)
        yield watched
