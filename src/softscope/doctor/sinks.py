"""Where snapshots go during training: a record, TensorBoard, any `log(dict, step)`, or several of these.

A sink has four methods, the same as `Record`: `sites`, `add`, `unseen`, `note`. `follow` connects sinks to a probe.

>>> import numpy as np
>>> from softscope.doctor import Site, Snapshot, sinks
>>> log = sinks.Log(lambda values, step: print(step, values))
>>> log.sites([Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)])
>>> log.add(Snapshot(20, 0.1, None, {"sharpness": np.array([[0.25, 0.75]])}))
20 {'softscope/encoder.0/sharpness': 0.5, 'softscope/encoder.0/sharpness_worst': 0.75}
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from softscope.doctor.record.problems import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from softscope.doctor.listen.reasons import Reason
    from softscope.doctor.read.snapshot import History, Site, Snapshot

# The readings sent to a scalar logger, each with the function that picks its worst head (largest or smallest value).
WORST = {"blocked": np.nanmax, "transmission": np.nanmin, "sharpness": np.nanmax, "max_logit": np.nanmax}


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


def follow(
    scope: SnapshotSource, *sinks: Sink, first_step: int = 0, loss: Callable[[Snapshot], float | None] | None = None
) -> None:
    """Send every snapshot of a probe to the sinks.

    Open the record before the probe:
    `with Record("run.db") as record, softscope.probe(model) as scope: follow(scope, record, TensorBoard(writer))`.
    A probe may read its last step while it is being removed, and the record must still be open then.

    Args:
        scope: the object returned by `softscope.probe`.
        sinks: records and loggers.
        first_step: added to the probe's steps, which start at 0; use it for a resumed run.
        loss: returns the loss of a snapshot, to replace the one the probe has.

    Examples:
        >>> import torch, softscope
        >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> steps = []
        >>> with softscope.probe(model, every=1) as scope:
        ...     follow(scope, Log(lambda values, step: steps.append(step)), first_step=100)
        ...     _ = model(*3 * [torch.ones(1, 4, 8)])
        ...     scope.step()
        >>> steps
        [100]
    """
    count = 0

    def give(snapshot: Snapshot) -> None:
        nonlocal count
        count += 1
        known = snapshot.loss if loss is None else loss(snapshot)
        moved = dataclasses.replace(snapshot, step=snapshot.step + first_step, loss=known)
        # Building a history takes longer as it grows, and these facts seldom change: do it at 1, 2, 4, 8, … snapshots
        # only.
        history = scope.history() if count & (count - 1) == 0 else None
        for sink in sinks:
            sink.sites(scope.sites)
            sink.add(moved)
            if history is not None:
                sink.unseen(history.unseen)
                sink.note(history.facts)

    scope.on_snapshot(give)


def scalars(sites: Iterable[Site], snapshot: Snapshot) -> dict[str, float]:
    """A few numbers per site: for each reading in `WORST`, the mean over heads and the value of the worst head.

    Eight for each site with a loss, four without, however many heads there are: 96 for a model of 12 layers.
    NaN and infinite values are left out. Names are stable: `softscope/SITE/READING` and `softscope/SITE/READING_worst`.

    >>> from softscope.doctor.read.snapshot import Site, Snapshot
    >>> site = Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)
    >>> scalars([site], Snapshot(0, 0.1, None, {"sharpness": np.array([[0.25, 0.75]])}))
    {'softscope/encoder.0/sharpness': 0.5, 'softscope/encoder.0/sharpness_worst': 0.75}
    """
    found = {}
    for row, site in enumerate(sites):
        for name, worst in WORST.items():
            heads = snapshot.readings[name][row : row + 1] if name in snapshot.readings else np.empty((0, 0))
            known = heads[~np.isnan(heads)]
            if known.size:
                found[f"softscope/{site.name}/{name}"] = float(known.mean())
                found[f"softscope/{site.name}/{name}_worst"] = float(worst(known))
    return {name: value for name, value in found.items() if math.isfinite(value)}


class Log:
    """Calls `log(dict, step)`, the signature of Weights & Biases (`run.log`) and MLflow (`log_metrics`); see `scalars`.

    If the logger fails, it warns once and stops logging; the training goes on.

    >>> from softscope.doctor import Site, Snapshot
    >>> log = Log(lambda values, step: print(step, values))
    >>> log.sites([Site("encoder.0", "sdpa", heads=1, kv_heads=1, scale=0.125, head_size=64)])
    >>> log.add(Snapshot(20, 0.1, None, {"blocked": np.array([[0.5]])}))
    20 {'softscope/encoder.0/blocked': 0.5, 'softscope/encoder.0/blocked_worst': 0.5}
    """

    def __init__(self, log: Callable[[dict[str, float], int], Any]) -> None:
        self._log: Callable[[dict[str, float], int], Any] | None = log
        self._sites: tuple[Site, ...] = ()

    def sites(self, sites: Iterable[Site]) -> None:
        """Set the sites that the next snapshots refer to."""
        self._sites = tuple(sites)

    def add(self, snapshot: Snapshot) -> None:
        """Log the scalars of one snapshot."""
        if self._log is None:
            return
        try:
            self._log(scalars(self._sites, snapshot), snapshot.step)
        except Exception as error:  # third-party code: it may raise anything
            self._log = None
            warn(f"the logger failed ({str(error) or type(error).__name__}): training goes on without it")

    def unseen(self, modules: Iterable[tuple[str, Reason]]) -> None:
        """Ignored: only numbers are logged."""

    def note(self, facts: Mapping[str, Any]) -> None:
        """Ignored: only numbers are logged."""


class TensorBoard(Log):
    """Writes the same scalars to a `SummaryWriter`, or to any object with `add_scalar(name, value, step)`.

    >>> import types
    >>> from softscope.doctor import Site, Snapshot
    >>> board = TensorBoard(types.SimpleNamespace(add_scalar=lambda *written: print(*written)))
    >>> board.sites([Site("encoder.0", "sdpa", heads=1, kv_heads=1, scale=0.125, head_size=64)])
    >>> board.add(Snapshot(20, 0.1, None, {"max_logit": np.array([[4.5]])}))
    softscope/encoder.0/max_logit 4.5 20
    softscope/encoder.0/max_logit_worst 4.5 20
    """

    def __init__(self, writer: Any) -> None:
        super().__init__(self._write)
        self._writer = writer

    def _write(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
