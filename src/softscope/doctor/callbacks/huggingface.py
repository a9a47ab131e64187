"""The doctor in Hugging Face's Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope.doctor.callbacks.attached import Callback

if TYPE_CHECKING:
    from softscope.doctor.read.snapshot import Snapshot


class HuggingFaceCallback(Callback):
    """A callback for `transformers.Trainer`: attaches the probe when training begins and removes it when training ends.

        Trainer(model, arguments, train_dataset=…, callbacks=[HuggingFaceCallback("run.db")])

    Each step is recorded with the model's own loss. There are two exceptions: the model returns no loss (you use your
    own loss function), or gradients are accumulated or averaged over the tokens of several ranks (the model's losses
    are then parts, and only the trainer knows of what). In both cases the callback uses the last loss the trainer
    logged, an average over `logging_steps`. Step numbers are the trainer's, also after `resume_from_checkpoint`. A
    trainer that stops with an exception does not notify its callbacks: to be sure that the probe is removed, use the
    callback as a context manager or call `close`.

    Every rank of a distributed training attaches; record and sinks get the snapshots on the first rank alone, so give
    a path and not a `Record` there.

    Args:
        record: where to record: a path, or a `Record`, which stays open; None to record nothing.
        every: how often the probe reads; by default the probe's own schedule.
        max_rows: how many query rows it reads per call; by default the probe's own choice.
        sinks: further places to send snapshots to; see `softscope.doctor.sinks`. Those with an `alert` get events.
        on_event: called with each `Event`, a finding that appeared, changed or ended; what it raises becomes a warning.
        severity: the lowest severity of an event: "finding", "tip" or "informative".
        group: whose heads are read: "all" ranks; those of a ProcessGroup or a DeviceMesh (of several such groups, the
            one with rank 0); None: the first rank's alone.
        probe: the function that attaches the probe; by default `softscope.probe`.

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

    _loss: float | None = None  # the last one logged
    _parts = 1  # forward passes, here and on other ranks, that the step's loss is divided by

    def on_train_begin(self, args: Any, state: Any, _: Any, model: Any = None, **__: Any) -> None:
        """Attach the probe."""
        self._loss, self._parts = None, getattr(args, "gradient_accumulation_steps", 1)
        if getattr(args, "average_tokens_across_devices", False):
            self._parts *= getattr(args, "world_size", 1)
        first = getattr(state, "is_world_process_zero", True)
        self.attach(model, first_step=state.global_step, first_rank=first, loss=self._loss_of)

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Mark the end of a step."""
        self.step()

    def on_log(self, *_: Any, logs: dict[str, Any] | None = None, **__: Any) -> None:
        """Remember the logged loss."""
        if logs and "loss" in logs:
            self._loss = float(logs["loss"])

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Remove the probe."""
        self.close()

    def _loss_of(self, snapshot: Snapshot) -> float | None:
        return self._loss if snapshot.loss is None or self._parts > 1 else snapshot.loss
