"""What `follow` needs of a sink and of a probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from softscope.doctor.events import Event
    from softscope.doctor.judge.history_view import Head
    from softscope.doctor.judge.states import HeadState
    from softscope.doctor.listen.reasons import Reason
    from softscope.doctor.read.snapshot import History, Site, Snapshot


class Sink(Protocol):
    """Anything that accepts snapshots.

    >>> from softscope.doctor import sinks
    >>> to: sinks.Sink = sinks.Log(print)
    """

    def sites(self, sites: Iterable[Site]) -> None:
        """Set the sites that the next snapshots refer to."""

    def add(self, snapshot: Snapshot) -> None:
        """Add the snapshot of one step."""

    def unseen(self, modules: Iterable[tuple[str, Reason]]) -> None:
        """Add the modules that could not be read, with reasons."""

    def note(self, facts: Mapping[str, Any]) -> None:
        """Add other facts about the run."""


@runtime_checkable
class Stateful(Protocol):
    """A sink that wants to know the state of every head.

    >>> from softscope.doctor import sinks
    >>> isinstance(sinks.Log(print), sinks.Stateful)
    True
    """

    def states(self, states: Mapping[Head, HeadState]) -> None:
        """Set the states for the next snapshot; empty if they are unknown."""


@runtime_checkable
class Alerted(Protocol):
    """A sink that wants to know what appears and ends.

    >>> from softscope.doctor import sinks
    >>> sinks.Log(print).wants_alerts, sinks.Log(print, alert=print).wants_alerts
    (False, True)
    """

    @property
    def wants_alerts(self) -> bool:
        """Whether it needs them: looking for events costs time."""

    def alert(self, events: Sequence[Event]) -> None:
        """Tell the events of one reading."""


class SnapshotSource(Protocol):
    """The part of a probe that sinks use.

    >>> import torch, softscope
    >>> from softscope.doctor import sinks
    >>> with softscope.probe(torch.nn.MultiheadAttention(8, 2)) as scope:
    ...     source: sinks.SnapshotSource = scope
    """

    @property
    def sites(self) -> tuple[Site, ...]:
        """The sites seen so far, in the order of a snapshot's rows."""

    def on_snapshot(self, callback: Callable[[Snapshot], None]) -> Any:
        """Call `callback` with each snapshot."""

    def history(self) -> History:
        """Everything read so far."""
