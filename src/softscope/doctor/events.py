"""Findings that appear or end while a model trains, as events for callbacks, alerts and `softscope watch`.

>>> import torch, softscope
>>> from softscope.doctor import events
>>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
>>> with softscope.probe(model) as scope:
...     events.watch(scope, print)
...     _ = model(*3 * [torch.full((1, 4, 8), torch.nan)])
...     scope.step(loss=float("nan"))
Event(step=0, kind='appeared', code='SS012', site='MultiheadAttention', head=None, ...)
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from softscope._text import Text
from softscope._users_code import told
from softscope.doctor.judge import checks
from softscope.doctor.judge.checks import SEVERITIES, Severity
from softscope.doctor.judge.history_view import HistoryView
from softscope.doctor.judge.thresholds import IN_A_ROW
from softscope.doctor.recent import Recent
from softscope.doctor.record.problems import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from softscope.doctor.judge.checks import CheckResult
    from softscope.doctor.read.head_trial import HeadTrial
    from softscope.doctor.read.snapshot import Site, Snapshot
    from softscope.doctor.sinks import SnapshotSource

    Tried = Mapping[tuple[str, int], HeadTrial | Text]

__all__ = ["Event", "Tracker", "watch"]

EventKind = Literal["appeared", "changed", "ended"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
KIND_NAMES: dict[EventKind, Text] = {
    "appeared": Text(zh="出现", en="appeared"),
    "changed": Text(zh="变化", en="changed"),
    "ended": Text(zh="结束", en="ended"),
}
_GONE = Text(
    zh=f"连续 {IN_A_ROW.value} 次读数没有再出现",
    en=f"it was absent from {IN_A_ROW.value} readings in a row",
)


@dataclasses.dataclass(frozen=True)
class Event:
    """A check's result that appeared, changed its severity, or ended.

    >>> event = Event(120, "ended", "SS002", "encoder.0", 3, Text(zh="没有再出现", en="it is gone"), "informative")
    >>> event.title.en, event.place.en, event.place.zh
    ('Head resting on a sink', 'encoder.0 head 3', 'encoder.0 头 3')
    """

    step: int
    kind: EventKind
    code: str
    site: str
    head: int | None  # None if it is about the whole site
    says: Text
    severity: Severity  # of the result; of one that ended, its last

    @property
    def title(self) -> Text:
        """The title of its check."""
        return checks.CHECKS[self.code].title

    @property
    def place(self) -> Text:
        """The head's name for people."""
        head = "" if self.head is None else self.head
        return Text(
            zh=f"{self.site} 头 {head}".removesuffix(" 头 "), en=f"{self.site} head {head}".removesuffix(" head ")
        )


def at_least(severity: Severity) -> tuple[Severity, ...]:
    """This severity and the higher ones.

    >>> at_least("tip")
    ('finding', 'tip')
    """
    if severity not in SEVERITIES:
        raise ValueError(f"severity must be one of {', '.join(SEVERITIES)}, but got {severity!r}; choose one of them")
    return SEVERITIES[: SEVERITIES.index(severity) + 1]


class _Place(NamedTuple):
    code: str
    site: str
    head: int | None


class Tracker:
    """Compares each judgement with those before it.

    A result counts with its highest severity in the last three judgements. So it appears at once and ends only after
    it was absent three times in a row; one that comes and goes at every reading is a single event. Once a site reads
    NaN, nothing else there can be judged, and nothing ends.

    Args:
        severity: the lowest severity that counts.
        mute: checks to ignore, such as "SS010" or "SS004:encoder.*".

    Examples:
        >>> from softscope.doctor import History, Site, Snapshot
        >>> import numpy as np
        >>> site = Site("encoder.0", "sdpa", heads=1, kv_heads=1, scale=0.125, head_size=64)
        >>> lost = Snapshot(20, 0.1, float("nan"), {"sharpness": np.array([[np.nan]], np.float32)})
        >>> tracker = Tracker()
        >>> [(event.kind, event.code) for event in tracker.compare(HistoryView(History((site,), (lost,))))]
        [('appeared', 'SS012')]
        >>> tracker.compare(HistoryView(History((site,), (lost,))))
        []
    """

    def __init__(self, severity: Severity = "finding", mute: Iterable[str] = ()) -> None:
        self._severities, self._mute = at_least(severity), tuple(mute)
        self._seen: dict[_Place, collections.deque[Severity | None]] = {}

    def compare(self, view: HistoryView) -> list[Event]:
        """What is new in this judgement, in the order of the checks."""
        step = view.history.snapshots[-1].step
        found = dict(self._results(view))
        broken = {site.name for i, site in enumerate(view.history.sites) if view.broken(i) is not None}
        events = []
        for place in [*found, *(place for place in self._seen if place not in found)]:
            result = found.get(place)
            if result is None and place.site in broken:
                continue
            seen = self._seen.setdefault(place, collections.deque(maxlen=int(IN_A_ROW.value)))
            before = _worst(seen)
            seen.append(None if result is None else self._severity(result))
            now = _worst(seen)
            if now is None:
                del self._seen[place]
            if now != before:
                kind: EventKind = "appeared" if before is None else "ended" if now is None else "changed"
                severity = now or before
                assert severity is not None
                events.append(Event(step, kind, *place, result.says if result else _GONE, severity))
        return events

    def standing(self, severity: Severity) -> bool:
        """Whether any result of this severity or a higher one has appeared and not ended."""
        return any(_worst(seen) in at_least(severity) for seen in self._seen.values())

    def _results(self, view: HistoryView) -> Iterable[tuple[_Place, CheckResult]]:
        for result in checks.run(view, mute=self._mute):
            if self._severity(result) is not None:
                for head in result.heads:
                    yield _Place(result.code, view.site(head).name, head.head), result

    def _severity(self, result: CheckResult) -> Severity | None:
        return next((severity for severity in self._severities if severity == result.kind), None)


def _worst(seen: Iterable[Severity | None]) -> Severity | None:
    known = [severity for severity in seen if severity is not None]
    return min(known, key=SEVERITIES.index) if known else None


class Look(NamedTuple):
    """What one reading shows: the states so far, and what is new."""

    view: HistoryView | None  # None if judging failed
    events: list[Event]


class Watch:
    """Judges a run reading by reading, at a cost that does not grow with its length; see `softscope.doctor.recent`.

    Args:
        severity: the lowest severity of an event; None: only states, which is cheaper.
        mute: checks to ignore.
    """

    def __init__(self, severity: Severity | None = "finding", mute: Iterable[str] = ()) -> None:
        self.tracker = None if severity is None else Tracker(severity, mute)
        self._recent, self._warned = Recent(), False
        # Trials of heads that have recovered since: the readings that show it will be forgotten.
        self._outdated: set[tuple[str, int | None, int]] = set()

    def add(self, sites: Iterable[Site], snapshot: Snapshot) -> None:
        """Add a reading without judging it."""
        self._recent.add(sites, snapshot)

    def look(self, sites: Iterable[Site], snapshot: Snapshot, trials: Tried) -> Look:
        """Add a reading and judge; if that fails, warn once."""
        try:
            self.add(sites, snapshot)
            return self.judge(trials)
        except Exception as error:  # a mistake of ours must not end a training
            if not self._warned:
                self._warned = True
                warn(f"judging the run failed ({told(error)}): training goes on, without states or events")
            return Look(None, [])

    def judge(self, trials: Tried) -> Look:
        """Judge the readings so far, with what trials have shown."""
        view = HistoryView(
            self._recent.history(), {p: t for p, t in trials.items() if (*p, _step(t)) not in self._outdated}
        )
        if not view.history.snapshots:
            return Look(view, [])
        for head, found in view.states.items() if trials else ():
            place = view.site(head).name, head.head
            step = _step(view.trials.get(place))
            if found.since is not None and step is not None and step < found.since:
                self._outdated.add((*place, step))
        return Look(view, [] if self.tracker is None else self.tracker.compare(view))


def _step(trial: HeadTrial | Text | None) -> int | None:
    return None if trial is None or isinstance(trial, Text) else trial.step


def trials_of(scope: Any, first_step: int = 0) -> dict[tuple[str, int], HeadTrial | Text]:
    """What a probe's trials have shown so far, with steps that count from `first_step`."""
    found: dict[tuple[str, int], HeadTrial | Text] = dict(getattr(scope, "trials", {}))
    for place, trial in found.items():
        if not isinstance(trial, Text) and trial.step is not None:
            found[place] = dataclasses.replace(trial, step=trial.step + first_step)
    return found


class Listener:
    """Calls a function of the user's; if it fails, warns once, and the training goes on.

    >>> Listener(print, "the callback")("hello")
    hello
    """

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self._call, self._name, self._warned = call, name, False

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Call it."""
        try:
            self._call(*arguments, **named)
        except Exception as error:  # third-party code: it may raise anything
            if not self._warned:
                self._warned = True
                warn(f"{self._name} failed ({told(error)}): training goes on")


def watch(
    scope: SnapshotSource,
    callback: Callable[[Event], Any],
    *,
    severity: Severity = "finding",
    mute: Iterable[str] = (),
) -> None:
    """Call `callback` with every event of a run from now on.

    Without a trial, a head that looks stuck is suspected, which is a tip; see `scope.trial` and `scope.try_regularly`.
    Whatever the callback raises becomes a warning: to stop a training, let it set a flag that your loop reads.

    Args:
        scope: the object returned by `softscope.probe`.
        callback: gets one `Event`; a reading may bring several.
        severity: the lowest severity of an event: "finding", "tip" or "informative".
        mute: checks to ignore, such as "SS010" or "SS004:encoder.*".

    Examples:
        >>> import torch, softscope
        >>> model, seen = torch.nn.MultiheadAttention(8, 2, batch_first=True), []
        >>> with softscope.probe(model) as scope:
        ...     watch(scope, seen.append, severity="tip", mute=["SS010"])
        ...     _ = model(*3 * [torch.ones(1, 4, 8)])
        >>> seen                                                               # nothing to report
        []
    """
    judged, listener = Watch(severity, mute), Listener(callback, "the callback for events")

    def give(snapshot: Snapshot) -> None:
        for event in judged.look(scope.sites, snapshot, trials_of(scope)).events:
            listener(event)

    scope.on_snapshot(give)
