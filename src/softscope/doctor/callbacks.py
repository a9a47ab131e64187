"""The doctor inside trainers that own the training loop: Hugging Face's.

Your own loop needs only `softscope.probe` and `softscope.doctor.sinks.follow`. docs/examples shows both ways.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import TYPE_CHECKING, Any, Self

from softscope.doctor.events import at_least
from softscope.doctor.record.write import Record
from softscope.doctor.sinks import follow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softscope.doctor.events import Event
    from softscope.doctor.judge.checks import Severity
    from softscope.doctor.read.snapshot import Snapshot
    from softscope.doctor.sinks import Sink


class HuggingFaceCallback:
    """A callback for `transformers.Trainer`: attaches the probe when training begins and removes it when training ends.

        Trainer(model, arguments, train_dataset=…, callbacks=[HuggingFaceCallback("run.db")])

    Each step is recorded with the model's own loss. There are two exceptions: the model returns no loss (you use your
    own loss function), or gradients are accumulated (the model's losses are then parts, and only the trainer knows of
    what). In both cases the callback uses the last loss the trainer logged, an average over `logging_steps`. Step
    numbers are the trainer's, also after `resume_from_checkpoint`. With several ranks, only the first is read. A
    trainer that stops with an exception does not notify its callbacks: to be sure that the probe is removed, use the
    callback as a context manager or call `close`.

    Args:
        record: where to record: a path, or a `Record`, which stays open; None to record nothing.
        every: how often the probe reads; by default the probe's own schedule.
        max_rows: how many query rows it reads per call; by default the probe's own choice.
        sinks: further places to send snapshots to; see `softscope.doctor.sinks`. Those with an `alert` get events.
        on_event: called with each `Event`, a finding that appeared, changed or ended; what it raises becomes a warning.
        severity: the lowest severity of an event: "finding", "tip" or "informative".
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

    def __init__(
        self,
        record: str | os.PathLike[str] | Record | None = None,
        *,
        every: Any = None,
        max_rows: Any = None,
        sinks: Sequence[Sink] = (),
        on_event: Callable[[Event], Any] | None = None,
        severity: Severity = "finding",
        probe: Callable[..., Any] | None = None,
    ) -> None:
        self.record, self.sinks = record, tuple(sinks)
        self.scope: Any = None
        self._options = {name: value for name, value in (("every", every), ("max_rows", max_rows)) if value is not None}
        self._probe = probe
        at_least(severity)  # refuses an unknown one here and not when training begins
        self._events: dict[str, Any] = {"on_event": on_event, "severity": severity}
        self._open = contextlib.ExitStack()
        self._loss: float | None = None  # the last one logged
        self._parts = 1  # forward passes per step

    def on_train_begin(self, args: Any, state: Any, _: Any, model: Any = None, **__: Any) -> None:
        """Attach the probe."""
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
            follow(self.scope, *sinks, first_step=state.global_step, loss=self._loss_of, **self._events)
            self._open = opened.pop_all()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Mark the end of a step."""
        if self.scope is not None:
            self.scope.step()

    def on_log(self, *_: Any, logs: dict[str, Any] | None = None, **__: Any) -> None:
        """Remember the logged loss."""
        if logs and "loss" in logs:
            self._loss = float(logs["loss"])

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Remove the probe."""
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
        # Subclassing TrainerCallback would provide the other events, but then this class could not exist without
        # transformers.
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
