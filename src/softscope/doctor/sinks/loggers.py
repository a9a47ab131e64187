"""Loggers for dashboards: any `log(dict, step)`, and TensorBoard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope.doctor.alerts import alerts
from softscope.doctor.events import Listener
from softscope.doctor.record.problems import warn
from softscope.doctor.sinks.numbers import scalars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from softscope._text import Lang
    from softscope.doctor.events import Event
    from softscope.doctor.judge.history_view import Head
    from softscope.doctor.judge.states import HeadState
    from softscope.doctor.listen.reasons import Reason
    from softscope.doctor.read.snapshot import Site, Snapshot


class Log:
    """Calls `log(dict, step)` with the numbers of `scalars`; the other loggers are built on it.

    A state that occurred at a site once is logged from then on, as 0 if no head is in it. If the logger fails, it warns
    once and stops logging; the training goes on.

    Args:
        log: called with the numbers of each snapshot and its step.
        alert: called as `alert(title=…, text=…, level=…)` when a finding appears, changes or ends: once for each check,
            however many heads it is about. The level is "WARN" or "INFO". If it fails, one warning says so.
        lang: the language of alerts, "en" or "zh".

    Examples:
        >>> import numpy as np
        >>> from softscope.doctor import Site, Snapshot
        >>> log = Log(lambda values, step: print(step, values))
        >>> log.sites([Site("encoder.0", "sdpa", heads=1, kv_heads=1, scale=0.125, head_size=64)])
        >>> log.add(Snapshot(20, 0.1, None, {"blocked": np.array([[0.5]])}))
        20 {'softscope/encoder.0/blocked': 0.5, 'softscope/encoder.0/blocked_worst': 0.5}
    """

    def __init__(
        self,
        log: Callable[[dict[str, float], int], Any],
        alert: Callable[..., Any] | None = None,
        *,
        lang: Lang = "en",
    ) -> None:
        self._log: Callable[[dict[str, float], int], Any] | None = log
        self._alert = None if alert is None else Listener(alert, "the alert")
        self._lang = lang
        self._sites: tuple[Site, ...] = ()
        self._states: Mapping[Head, HeadState] = {}
        self._occurred: dict[str, float] = {}  # the names of states that were logged, each 0

    @property
    def wants_alerts(self) -> bool:
        """Whether it was given an `alert`."""
        return self._alert is not None

    def sites(self, sites: Iterable[Site]) -> None:
        """Set the sites that the next snapshots refer to."""
        self._sites = tuple(sites)

    def states(self, states: Mapping[Head, HeadState]) -> None:
        """Set the states for the next snapshot; empty if they are unknown."""
        self._states = states

    def add(self, snapshot: Snapshot) -> None:
        """Log the scalars of one snapshot."""
        if self._log is None:
            return
        found = scalars(self._sites, snapshot, self._states)
        if self._states:
            self._occurred |= {name: 0.0 for name in found if "/state/" in name}
            found = self._occurred | found
        try:
            self._log(found, snapshot.step)
        except Exception as error:  # third-party code: it may raise anything
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._log = None
        warn(f"the logger failed ({str(error) or type(error).__name__}): training goes on without it")

    def alert(self, events: Sequence[Event]) -> None:
        """Send the events of one reading as alerts."""
        if self._alert is not None:
            for title, text, level in alerts(events, self._lang):
                self._alert(title=title, text=text, level=level)

    def unseen(self, modules: Iterable[tuple[str, Reason]]) -> None:
        """Ignored: only numbers are logged."""

    def note(self, facts: Mapping[str, Any]) -> None:
        """Ignored: only numbers are logged."""


class TensorBoard(Log):
    """Writes the same scalars to a `SummaryWriter`, or to any object with `add_scalar(name, value, step)`.

    If the writer has `add_text(name, text, step)`, events are written to it under `softscope/events`.

    Args:
        writer: where to write.
        lang: the language of events, "en" or "zh".

    Examples:
        >>> import types, numpy as np
        >>> from softscope.doctor import Site, Snapshot
        >>> board = TensorBoard(types.SimpleNamespace(add_scalar=lambda *written: print(*written)))
        >>> board.sites([Site("encoder.0", "sdpa", heads=1, kv_heads=1, scale=0.125, head_size=64)])
        >>> board.add(Snapshot(20, 0.1, None, {"max_logit": np.array([[4.5]])}))
        softscope/encoder.0/max_logit 4.5 20
        softscope/encoder.0/max_logit_worst 4.5 20
    """

    def __init__(self, writer: Any, *, lang: Lang = "en") -> None:
        super().__init__(self._write, lang=lang)
        self._writer = writer
        self._text = Listener(writer.add_text, "the writer's add_text") if hasattr(writer, "add_text") else None

    @property
    def wants_alerts(self) -> bool:
        """Whether the writer takes text."""
        return self._text is not None

    def alert(self, events: Sequence[Event]) -> None:
        """Write the events of one reading as one text; TensorBoard shows it as Markdown."""
        if self._text and events:
            told = [f"**{title}**\n\n{text}" for title, text, _ in alerts(events, self._lang)]
            self._text("softscope/events", "\n\n".join(told).replace("\n", "  \n"), events[0].step)

    def _write(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
