"""What judging needs of a run so far, in memory that does not grow: the last readings, and a digest of earlier ones.

Judging takes time in proportion to the readings, so judging everything at every step would slow a long run down more
and more. A window of the last readings alone would be wrong: it forgets how large the demand once was, and a head that
has learned everything would seem to starve.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softscope.doctor.read.snapshot import History, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from softscope.doctor.read.snapshot import Array, Site

LAST = 64  # readings kept as they are: a state looks at 12 of them at most, growth needs 8
EARLIER = 64  # groups of earlier readings; where there would be more, neighbours are merged
# A group has the step of its first reading and the values of its last, except where checks ask for an extreme.
_EXTREMES: dict[str, Callable[[Any, Any], Array]] = {
    "demand": np.fmax,
    "sharpness": np.fmax,
    "max_logit": np.fmax,
    "lse_min": np.fmin,
    "blocked": np.fmax,  # so that a head never seems stuck since a later step than it is: a trial would seem outdated
}


class _Kept(NamedTuple):
    number: int  # of the reading, counted from the start of the run; of a group, its last
    until: int  # its last step
    snapshot: Snapshot


class Recent:
    """The digest of a run: at most `LAST + EARLIER` snapshots, and all of them as they were as long as that suffices.

    >>> from softscope.doctor import Site
    >>> recent = Recent()
    >>> for step in range(1000):
    ...     recent.add([Site("a", "sdpa", 1, 1, 0.125, 64)], Snapshot(step, 0.1, None, {"peak": np.ones((1, 1))}))
    >>> len(recent.history().snapshots) <= LAST + EARLIER, recent.history().snapshots[-1].step
    (True, 999)
    """

    def __init__(self) -> None:
        self._sites: tuple[Site, ...] = ()
        self._last: list[_Kept] = []
        self._earlier: list[_Kept] = []
        self._every = 1  # readings per group
        self._count = 0

    def add(self, sites: Iterable[Site], snapshot: Snapshot) -> None:
        """Add the snapshot of one step. A resumed run repeats steps: those replace what was read before."""
        self._set_sites(tuple(sites))
        for kept in (self._last, self._earlier):
            while kept and kept[-1].until >= snapshot.step:
                kept.pop()
        self._last.append(_Kept(self._count, snapshot.step, self._fitted(snapshot)))
        self._count += 1
        if len(self._last) > LAST:
            self._earlier = _merged([*self._earlier, self._last.pop(0)], self._every)
            if len(self._earlier) > EARLIER:
                self._every *= 2
                self._earlier = _merged(self._earlier, self._every)

    def history(self) -> History:
        """The digest as a history to judge."""
        if self._every == 1:
            return History(self._sites, tuple(kept.snapshot for kept in (*self._earlier, *self._last)))
        return History(self._sites, (*self._falling(), *self._thinned()))

    def _falling(self) -> Iterable[Snapshot]:
        """Earlier groups, each with the largest sharpness from there to the last of them, which can only fall.

        Three readings in a row are judged for a sudden rise of sharpness. Three groups may be thousands of steps apart,
        and a rise between them says nothing. The largest value since any group is what it was.
        """
        most: Any = None
        found: list[Snapshot] = []
        for _, _, snapshot in reversed(self._earlier):
            if "sharpness" in snapshot.readings:
                here = snapshot.readings["sharpness"]
                most = here if most is None else np.fmax(most, here)
                snapshot = _with(snapshot, {"sharpness": most})
            found.append(snapshot)
        return reversed(found)

    def _thinned(self) -> Iterable[Snapshot]:
        """The last readings, with the largest logit only once per group.

        The growth of the logits is fitted to the first and the second half of the readings. They must be as dense in
        the one as in the other.
        """
        groups: dict[int, Any] = {}
        for number, _, snapshot in self._last:
            if "max_logit" in snapshot.readings:
                group, value = number // self._every, snapshot.readings["max_logit"]
                groups[group] = np.fmax(groups[group], value) if group in groups else value
        for number, _, snapshot in self._last[:-1]:
            if "max_logit" in snapshot.readings:
                most = groups.pop(number // self._every, None)  # at the group's first reading, as in earlier groups
                nothing = np.full_like(snapshot.readings["max_logit"], np.nan)
                yield _with(snapshot, {"max_logit": nothing if most is None else most})
            else:
                yield snapshot
        yield self._last[-1].snapshot  # its own value is the one that is told

    def _set_sites(self, sites: tuple[Site, ...]) -> None:
        if sites == self._sites:
            return
        before = [(site.name, site.heads) for site in self._sites]
        if before != [(site.name, site.heads) for site in sites[: len(before)]]:  # another model: another run
            self._last, self._earlier, self._every, self._count = [], [], 1, 0
        self._sites = sites
        self._last, self._earlier = (
            [kept._replace(snapshot=self._fitted(kept.snapshot)) for kept in part]
            for part in (self._last, self._earlier)
        )

    def _fitted(self, snapshot: Snapshot) -> Snapshot:
        """Widen a snapshot to hold sites that were found after it."""
        shape = (len(self._sites), max((site.heads for site in self._sites), default=0))
        narrow = {name: array for name, array in snapshot.readings.items() if array.shape != shape}
        return _with(snapshot, {name: _padded(array, shape) for name, array in narrow.items()})


def _padded(array: Array, shape: tuple[int, int]) -> Array:
    missing = [(0, wanted - have) for wanted, have in zip(shape, array.shape, strict=True)]
    return np.pad(array, missing, constant_values=np.nan)


def _with(snapshot: Snapshot, readings: dict[str, Array]) -> Snapshot:
    return dataclasses.replace(snapshot, readings=snapshot.readings | readings) if readings else snapshot


def _merged(kept: Sequence[_Kept], every: int) -> list[_Kept]:
    """Merge neighbours that belong to the same group of `every` readings."""
    groups: list[_Kept] = []
    for one in kept:
        if groups and groups[-1].number // every == one.number // every:
            groups[-1] = one._replace(snapshot=_joined(groups[-1].snapshot, one.snapshot))
        else:
            groups.append(one)
    return groups


def _joined(before: Snapshot, after: Snapshot) -> Snapshot:
    both = {name: _EXTREMES[name] for name in before.readings if name in _EXTREMES and name in after.readings}
    extremes = {name: extreme(before.readings[name], after.readings[name]) for name, extreme in both.items()}
    # A reading that only the earlier one has, such as those that need a loss, is kept; so is a value that only it has.
    rest = {
        name: np.where(np.isnan(after.readings[name]), value, after.readings[name]) if name in after.readings else value
        for name, value in before.readings.items()
        if name not in both
    }
    return dataclasses.replace(after, step=before.step, readings=after.readings | rest | extremes)
