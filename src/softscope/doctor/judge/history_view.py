"""A history prepared for judging: its heads, their readings over time, and the state of each head."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softscope._text import Text
from softscope.doctor.read.head_trial import of_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope.doctor.judge.states import HeadState
    from softscope.doctor.read.head_trial import HeadTrial
    from softscope.doctor.read.snapshot import Array, History, Site


class Head(NamedTuple):
    """One head of one site, by index; if `head` is None, the whole site."""

    site: int
    head: int | None


class HistoryView:
    """The queries that checks make on a history. NaN readings count as not taken."""

    def __init__(self, history: History, trials: Mapping[tuple[str, int], HeadTrial | Text] | None = None) -> None:
        self.history = history
        # By site and head: what a trial showed, or why it could not be tried.
        self.trials: dict[tuple[str, int | None], HeadTrial] = {}
        self.untried: dict[tuple[str, int | None], Text] = {}
        known = of_facts(history.facts.get("trials")) if trials is None else trials
        for place, trial in known.items():
            if isinstance(trial, Text):
                self.untried[place] = trial
            else:
                self.trials[place] = trial
        self.cost: Text | None = getattr(trials, "cost", None) if trials else None  # of the trials, in words
        self._series: dict[str, Array] = {}
        self._latest: dict[str, Array] = {}
        self.known: dict[tuple[str, int], Any] = {}  # what a check found about a whole site, to be found only once

    @functools.cached_property
    def heads(self) -> tuple[Head, ...]:
        """Every head of every site."""
        return tuple(Head(i, j) for i, site in enumerate(self.history.sites) for j in range(site.heads))

    @functools.cached_property
    def states(self) -> dict[Head, HeadState]:
        """The state of every head."""
        from softscope.doctor.judge.states import state

        return {head: state(self, head) for head in self.heads}

    @functools.cached_property
    def steps(self) -> Array:
        """The step of every snapshot."""
        return np.array([snapshot.step for snapshot in self.history.snapshots], np.int64)

    @functools.cached_property
    def has_loss(self) -> bool:
        """Whether any snapshot saw a backward pass."""
        return any(snapshot.has_loss for snapshot in self.history.snapshots)

    def broken(self, site: int) -> int | None:
        """The step since which the loss is not finite or this site reads NaN; None if the last reading was fine."""
        since = None
        for snapshot in reversed(self.history.snapshots):
            loss = snapshot.loss
            known, heads = snapshot.readings, slice(0, self.history.sites[site].heads)
            read = "sharpness" in known and "count" in known and bool((known["count"][site, heads] > 0).any())
            lost = read and bool(np.isnan(known["sharpness"][site, heads]).all())
            if (loss is None or math.isfinite(loss)) and not lost:
                break
            since = snapshot.step
        return since

    def site(self, head: Head) -> Site:
        """The site of a head."""
        return self.history.sites[head.site]

    def name(self, head: Head) -> Text:
        """The head's name for people."""
        site = self.site(head).name
        return (
            Text(zh=site, en=site)
            if head.head is None
            else Text(zh=f"{site} 头 {head.head}", en=f"{site} head {head.head}")
        )

    def series(self, name: str, head: Head) -> Array:
        """One reading at every snapshot; NaN where it was not taken."""
        found: Array = self._of(name)[:, head.site, head.head].astype(np.float64)
        return found

    def curve(self, name: str, head: Head) -> tuple[Array, Array]:
        """Steps and values of one reading, where it was taken."""
        values = self.series(name, head)
        taken = ~np.isnan(values)
        return self.steps[taken], values[taken]

    def last(self, name: str, head: Head, count: int) -> list[float]:
        """The last `count` values, or fewer if fewer were taken."""
        return [float(x) for x in self.curve(name, head)[1][-count:]]

    def of_site(self, name: str, site: int, count: int = 1) -> Array:
        """The last `count` values of all heads of a site, (readings, heads); fewer where fewer were taken."""
        heads = self.history.sites[site].heads
        values = self._of(name)[:, site, :heads]
        return values[~np.isnan(values).all(axis=1)][-count:].astype(np.float64)

    def value(self, name: str, head: Head) -> float | None:
        """The latest value; None if the reading was never taken."""
        found = float(self._last_taken(name)[head.site, head.head])
        return None if math.isnan(found) else found

    def _of(self, name: str) -> Array:
        if name not in self._series:
            self._series[name] = self.history.series(name)
        return self._series[name]

    def _last_taken(self, name: str) -> Array:
        """The latest value of every head at once, (sites, heads): the checks ask for it many times."""
        if name not in self._latest:
            series = self._of(name)
            latest = np.full(series.shape[1:], np.nan, series.dtype)
            for taken in series:
                np.copyto(latest, taken, where=~np.isnan(taken))
            self._latest[name] = latest
        return self._latest[name]
