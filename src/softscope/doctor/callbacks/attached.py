"""What every callback shares: attach the probe, open the record, follow, mark steps, close."""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import TYPE_CHECKING, Any, Self

from softscope.doctor.callbacks.ranks import checked, role
from softscope.doctor.events import at_least
from softscope.doctor.record.write import Record
from softscope.doctor.sinks import follow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softscope.doctor.callbacks.ranks import Group
    from softscope.doctor.events import Event
    from softscope.doctor.judge.checks import Severity
    from softscope.doctor.read.snapshot import Snapshot
    from softscope.doctor.sinks import Sink


class Attached:
    """A probe that is attached for the time of a training, and what follows it.

    `HuggingFaceCallback` describes the arguments.
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
        group: Group = "all",
        probe: Callable[..., Any] | None = None,
    ) -> None:
        self.record, self.sinks = record, tuple(sinks)
        self.scope: Any = None  # what `softscope.probe` returned, while it is attached
        self._options = {name: value for name, value in (("every", every), ("max_rows", max_rows)) if value is not None}
        # What makes no sense is refused here and not when training begins.
        self._probe, self._group = probe, checked(group)
        at_least(severity)
        self._events: dict[str, Any] = {"on_event": on_event, "severity": severity}
        self._open = contextlib.ExitStack()

    def attach(
        self,
        model: Any,
        *,
        first_step: int = 0,
        first_rank: bool = True,
        loss: Callable[[Snapshot], float | None] | None = None,
    ) -> None:
        """Attach the probe, if this rank is one that is read; see `follow` for `first_step` and `loss`."""
        self.close()
        mine = role(self._group, first_rank)
        if not mine.attaches:
            return
        probe = self._probe or importlib.import_module("softscope").probe
        sinks = list(self.sinks)
        with contextlib.ExitStack() as opened:
            if isinstance(self.record, Record):
                sinks.append(self.record)
            elif self.record is not None and mine.records:
                sinks.append(opened.enter_context(Record(self.record)))
            self.scope = opened.enter_context(probe(_unwrapped(model), **self._options, **mine.options))
            if mine.records:
                follow(self.scope, *sinks, first_step=first_step, loss=loss, **self._events)
            self._open = opened.pop_all()

    def step(self, loss: Any = None) -> None:
        """Mark the end of a step, with its loss if you know it: a number, or a tensor holding one."""
        if self.scope is not None:
            self.scope.step(**({} if loss is None else {"loss": loss}))

    def close(self) -> None:
        """Remove the probe and close the record, if training left them open."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.scope = None
        self._open.__exit__(*error)


class Callback(Attached):
    """A callback for somebody's trainer.

    It is no subclass of theirs: that would provide the events that we ignore, but then it could not exist without them.
    """

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def _unwrapped(model: Any) -> Any:
    """The model inside `DistributedDataParallel`, so that its heads have the same names on any number of ranks."""
    from torch.nn.parallel import DistributedDataParallel

    return model.module if isinstance(model, DistributedDataParallel) else model
