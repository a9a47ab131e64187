"""Connects sinks to a probe."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from softscope.doctor.events import Listener, Watch, trials_of
from softscope.doctor.ranks.read_ranks import FACT as RANKS
from softscope.doctor.ranks.read_ranks import ranks_of
from softscope.doctor.read.head_trial import as_facts
from softscope.doctor.sinks.kinds import Alerted, Stateful

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.doctor.events import Event
    from softscope.doctor.judge.checks import Severity
    from softscope.doctor.read.snapshot import Snapshot
    from softscope.doctor.sinks.kinds import Sink, SnapshotSource


def follow(
    scope: SnapshotSource,
    *sinks: Sink,
    first_step: int = 0,
    loss: Callable[[Snapshot], float | None] | None = None,
    on_event: Callable[[Event], Any] | None = None,
    severity: Severity = "finding",
) -> None:
    """Send every snapshot of a probe to the sinks, and tell what appears or ends.

    Open the record before the probe:
    `with Record("run.db") as record, softscope.probe(model) as scope: follow(scope, record, TensorBoard(writer))`.
    A probe may read its last step while it is being removed, and the record must still be open then.

    Heads are judged only for sinks that want states or alerts, and for `on_event`: up to 40 ms per reading for 144
    heads, and twice that with events, however long the run is. Without a trial, a head that looks stuck is suspected,
    which is a tip; see `scope.trial` and `scope.try_regularly`.

    Args:
        scope: the object returned by `softscope.probe`.
        sinks: records and loggers.
        first_step: added to the probe's steps, which start at 0; use it for a resumed run.
        loss: returns the loss of a snapshot, to replace the one the probe has.
        on_event: called with each `Event`: a finding that appeared, changed or ended. What it raises becomes a warning.
        severity: the lowest severity of an event, for `on_event` and for alerts: "finding", "tip" or "informative".

    Examples:
        >>> import torch, softscope
        >>> from softscope.doctor.sinks import Log
        >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> steps = []
        >>> with softscope.probe(model, every=1) as scope:
        ...     follow(scope, Log(lambda values, step: steps.append(step)), first_step=100)
        ...     _ = model(*3 * [torch.ones(1, 4, 8)])
        ...     scope.step()
        >>> steps
        [100]
    """
    count, noted = 0, dict[str, Any]()
    listener = None if on_event is None else Listener(on_event, "on_event")
    alerted = [Listener(sink.alert, "an alert") for sink in sinks if isinstance(sink, Alerted) and sink.wants_alerts]
    shown = any(isinstance(sink, Stateful) for sink in sinks)
    judged = Watch(severity) if listener or alerted else Watch(None) if shown else None

    def give(snapshot: Snapshot) -> None:
        nonlocal count, noted
        count += 1
        known = snapshot.loss if loss is None else loss(snapshot)
        moved = dataclasses.replace(snapshot, step=snapshot.step + first_step, loss=known)
        # Building a history takes longer as it grows, and these facts seldom change: do it at 1, 2, 4, 8, … snapshots
        # only.
        history = scope.history() if count & (count - 1) == 0 else None
        trials = trials_of(scope, first_step)
        changing: dict[str, Any] = {"trials": as_facts(trials)} if trials else {}
        ranks = ranks_of(scope, first_step)
        if ranks is not None:
            changing[RANKS] = ranks.as_facts()
        look = None if judged is None else judged.look(scope.sites, moved, trials)
        for sink in sinks:
            sink.sites(scope.sites)
            if look is not None and isinstance(sink, Stateful):
                sink.states({} if look.view is None else look.view.states)
            sink.add(moved)
            if history is not None:
                sink.unseen(history.unseen)
                sink.note({**history.facts, **changing})
            elif changing != noted:
                sink.note(changing)
        noted = changing
        if look is not None and look.events:
            for alert in alerted:
                alert(look.events)
            for event in look.events:
                if listener is not None:
                    listener(event)

    scope.on_snapshot(give)
