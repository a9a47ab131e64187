"""The doctor inside trainers that own the loop: Hugging Face's.

In a loop of your own nothing is needed but `softscope.probe` and `softscope.doctor.sinks.follow`; both ways are in
docs/examples.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import TYPE_CHECKING, Any, Self

from softscope.doctor.record.write import Record
from softscope.doctor.sinks import follow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softscope.doctor.read.snapshot import Snapshot
    from softscope.doctor.sinks import Sink


class HuggingFaceCallback:
    """A callback for `transformers.Trainer`: attaches the probe when training begins, removes it when it ends.

        Trainer(model, arguments, train_dataset=…, callbacks=[HuggingFaceCallback("run.db")])

    The loss beside a step is the model's own. Where it gives none (a loss function of yours), or gradients are
    accumulated (its losses are then parts, and only the trainer knows of what), it is the last one that the trainer
    logged, an average over `logging_steps`. Steps are the trainer's, also after `resume_from_checkpoint`. Of
    several ranks the first one is read. A training that ends with an exception does not tell its callbacks: use it as a
    context manager, or call `close`, to be sure that the probe is removed.

    Args:
        record: where to record: a path, or a `Record`, which stays open; None for nowhere.
        every: how often the probe reads; the probe's own schedule if not given.
        rows: how many query rows it reads; the probe's own choice if not given.
        sinks: where the snapshots go besides; see `softscope.doctor.sinks`.
        probe: what attaches; `softscope.probe` if not given.

    Examples:
        >>> import torch, types
        >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> state = types.SimpleNamespace(global_step=0)
        >>> with HuggingFaceCallback(every=1) as callback:                     # a Trainer makes these calls
        ...     callback.on_train_begin(None, state, None, model=model)
        ...     _ = model(*3 * [torch.ones(1, 4, 8)])
        ...     callback.on_step_end()
        ...     len(callback.scope.history().snapshots)
        1
    """

    def __init__(
        self,
        record: str | os.PathLike[str] | Record | None = None,
        *,
        every: Any = None,
        rows: Any = None,
        sinks: Sequence[Sink] = (),
        probe: Callable[..., Any] | None = None,
    ) -> None:
        self.record, self.sinks = record, tuple(sinks)
        self.scope: Any = None
        self._options = {name: value for name, value in (("every", every), ("rows", rows)) if value is not None}
        self._probe = probe
        self._open = contextlib.ExitStack()
        self._loss: float | None = None  # the last that was logged
        self._parts = 1  # forward passes in a step

    def on_train_begin(self, args: Any, state: Any, _: Any, model: Any = None, **__: Any) -> None:
        """Attach."""
        self.close()
        if not getattr(state, "is_world_process_zero", True):
            return
        probe = self._probe or importlib.import_module("softscope").probe
        self._loss, self._parts = None, getattr(args, "gradient_accumulation_steps", 1)
        sinks = list(self.sinks)
        with contextlib.ExitStack() as opened:
            if isinstance(self.record, Record):
                sinks.append(self.record)
            elif self.record is not None:
                sinks.append(opened.enter_context(Record(self.record)))
            self.scope = opened.enter_context(probe(model, **self._options))
            follow(self.scope, *sinks, first_step=state.global_step, loss=self._loss_of)
            self._open = opened.pop_all()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """One step is done."""
        if self.scope is not None:
            self.scope.step()

    def on_log(self, *_: Any, logs: dict[str, Any] | None = None, **__: Any) -> None:
        """Take the loss from what is logged."""
        if logs and "loss" in logs:
            self._loss = float(logs["loss"])

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Remove."""
        self.close()

    def _loss_of(self, snapshot: Snapshot) -> float | None:
        return self._loss if snapshot.loss is None or self._parts > 1 else snapshot.loss

    def close(self) -> None:
        """Remove the probe and close the record, if training left them open."""
        self.scope = None
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.scope = None
        self._open.__exit__(*error)

    def __getattr__(self, name: str) -> Callable[..., None]:
        # A subclass of TrainerCallback would inherit the other events, and need transformers to be defined at all.
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
