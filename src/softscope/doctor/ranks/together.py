"""The probe's side of a group: what this rank has read goes up the tree, and what all have read becomes a snapshot."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import queue
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed as dist
from torch import nn

from softscope.distributed._group import process_group
from softscope.doctor.ranks import fields, sketch
from softscope.doctor.ranks.message import Message, first_heads, united
from softscope.doctor.ranks.read_ranks import ReadRanks
from softscope.doctor.ranks.traffic import of_read_step
from softscope.doctor.ranks.tree import OPENING, Tree
from softscope.doctor.read.head_readings import readings_of
from softscope.doctor.read.head_rows import head_rows
from softscope.doctor.read.head_sums import sums_of
from softscope.doctor.read.snapshot import QUANTILES, Array, Site, Snapshot

if TYPE_CHECKING:
    from torch import Tensor

    from softscope.doctor.ranks.heads import Heads
    from softscope.doctor.read.head_sums import Sums
    from softscope.doctor.read.tiles import RowReadings


_STARTS = 1 << 40  # more than the steps of any run
_opened: dict[tuple[int, ...], int] = {}  # how many probes these ranks have opened together


class Together:
    """The readings of all ranks of a group. Snapshots come out on its first rank."""

    def __init__(self, group: Any, patience: float) -> None:
        sketch.available()
        self._given, self._patience = process_group(group), patience
        self.rank, self.ranks = dist.get_rank(self._given), dist.get_world_size(self._given)
        self.sites: tuple[Site, ...] = ()  # of all ranks, as far as messages have come
        self.last = np.full(self.ranks, -1)  # by rank, the last step that it took part in
        self.lost: list[str] = []  # what is no longer seen
        self._tree: Tree | None = None
        self._start = 0  # how often the run has started over

    def open(self, model: nn.Module, settings: tuple[Any, ...]) -> None:
        """Connect. Raises on every rank if the ranks do not fit together."""
        members = dist.get_process_group_ranks(self._given)
        number = _opened[tuple(members)] = _opened.get(tuple(members), 0) + 1
        # torchrun's store outlives the processes that it starts again, and with it the addresses of those before.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        name = f"softscope/{attempt}/{_mark(repr(members)):x}/{number}"
        try:
            tree = Tree(name, self.rank, self.ranks, self._patience, self._lose)
            other = tree.agree((_mark(_shape(model)), _mark(repr(settings))))
        except RuntimeError as error:
            raise RuntimeError(
                f"probe(group=…) must be entered on every rank of the group, but of {self.ranks} not all came within "
                f"{OPENING * self._patience:g} s; attach it on all of them ({str(error).splitlines()[0][-120:]})"
            ) from None
        for rank, what in zip(other, ("the same model", "the same every, max_rows and seed"), strict=True):
            if rank:
                raise ValueError(
                    f"group must have {what} on every rank, but rank {rank} differs from rank 0; "
                    "choose the group whose ranks hold copies or shards of one model"
                )
        self._tree = tree

    def submit(
        self,
        step: int,
        seconds: float,
        loss: float | None,
        found: dict[str, list[RowReadings]],
        sites: tuple[Site, ...],
        heads: dict[str, Heads],
        strongest: dict[str, Tensor],
        of_sites: dict[str, dict[str, float]],
    ) -> None:
        """Send what this rank has read of a step, which may be nothing."""
        assert self._tree is not None
        whole = tuple(
            dataclasses.replace(s, heads=s.heads * heads[s.name].ranks, kv_heads=s.kv_heads * heads[s.name].ranks)
            for s in sites
        )
        places = first_heads(whole)
        sums, given = fields.nothing(sum(site.heads for site in whole)), np.zeros(len(fields.NAMES), bool)
        for name, parts in found.items():
            if name not in places:
                continue
            rows = head_rows(parts, strongest.get(name))
            mine = _with_bins(sums_of(rows), rows.values.get(sketch.READING), rows.cares)
            if "demand:n" in mine:
                demand = mine["demand:sum"] / mine["demand:n"]
                before = strongest.get(name)
                strongest[name] = demand if before is None else torch.fmax(before, demand)
            codes = {code: torch.full_like(mine["ranks"], x) for code, x in of_sites.get(name, {}).items()}
            first = places[name] + heads[name].first
            write(mine | codes, sums[first:], given)
        seen = np.arange(self.ranks) == self.rank
        self._tree.submit(
            Message(self._start * _STARTS + step, whole, sums, given, seen, loss or 0.0, int(loss is not None), seconds)
        )

    def has(self, group: Any) -> bool:
        """Whether all ranks of another group are read."""
        members = dist.get_process_group_ranks(self._given)
        return set(dist.get_process_group_ranks(group)) <= set(members)

    def start_over(self) -> None:
        """Steps count from 0 again, and what was read before is dropped."""
        self._start += 1

    def _lose(self, what: str) -> None:
        if what not in self.lost:
            self.lost.append(what)

    def snapshots(self) -> list[Snapshot]:
        """What has arrived since the last time."""
        found = []
        with contextlib.suppress(queue.Empty):
            while self._tree is not None:
                message = self._tree.ready.get_nowait()
                start, message.step = divmod(message.step, _STARTS)
                if start != self._start:
                    continue
                # Sites stay where they are in the list, whatever order they come in, and whoever is missing now.
                self.sites = united(self.sites, message.sites)
                message = message.over(self.sites)
                self.last[message.seen] = message.step
                if message.given.any():
                    found.append(_snapshot(message))
        return found

    def read(self) -> ReadRanks:
        """Which ranks are read, as far as this one knows: only the group's first rank hears of others."""
        newest = self.last.max()
        behind = {rank: int(step) if step >= 0 else None for rank, step in enumerate(self.last) if step < newest}
        heads = sum(site.heads for site in self.sites)
        many = of_read_step(rank=1, ranks=self.ranks, heads=heads).bytes if self.sites else None
        return ReadRanks(self.ranks, behind, many)

    def close(self) -> None:
        """Wait for what is on its way, and disconnect."""
        if self._tree is not None:
            self._tree.close()

    @property
    def sent(self) -> dict[int, int]:
        """By step, the bytes that this rank has sent."""
        return {} if self._tree is None else {step % _STARTS: many for step, many in dict(self._tree.sent).items()}


def _with_bins(sums: Sums, values: Tensor | None, cares: Tensor) -> Sums:
    sums["ranks"] = torch.ones_like(sums["columns:total"])
    if values is not None:
        sums[sketch.FIELD] = sketch.counts(values, cares & ~values.isnan())
    return sums


def write(sums: Sums, into: Array, given: Array) -> None:
    """Put one site's sums into the first rows of a matrix, in one transfer from their device."""
    names = [name for name in fields.NAMES if name in sums]
    wide = [x if x.ndim == 2 else x[:, None] for x in (sums[name].to(torch.float32) for name in names)]
    flat = torch.cat([x.to(wide[0].device) for x in wide], dim=1).cpu().numpy()
    at = 0
    for name in names:
        many = fields.PLACES[name].stop - fields.PLACES[name].start
        into[: flat.shape[0], fields.PLACES[name]] = flat[:, at : at + many]
        given[fields.NAMES.index(name)] = True
        at += many


def _snapshot(message: Message) -> Snapshot:
    sums: Sums = {}
    for name, present in zip(fields.NAMES, message.given, strict=True):
        if present and name != sketch.FIELD:
            x = torch.from_numpy(message.sums[:, fields.PLACES[name]].astype(np.float64))
            sums[name] = x if name.endswith((":at", ":weight")) else x[:, 0]
    for name in ("demand", "supply"):
        if f"{name}:sum" in sums:  # the ranks' gradients are averaged, so each rank's own loss counts for less
            sums[f"{name}:sum"] /= sums["ranks"].clamp_min(1.0)
    found: dict[str, Array] = {name: x.numpy() for name, x in readings_of(sums).items()}
    found |= {name: sums[name].numpy() for name in fields.CODES if name in sums}
    if message.given[fields.NAMES.index(sketch.FIELD)]:
        bins = message.sums[:, fields.PLACES[sketch.FIELD]]
        found |= {f"{sketch.READING}:{name}": sketch.quantile(bins, level) for name, level in QUANTILES.items()}
    nobody = message.sums[:, fields.PLACES["ranks"]][:, 0] == 0
    readings = {name: _by_site(np.where(nobody, np.nan, x), message.sites) for name, x in found.items()}
    loss = message.loss / message.losses if message.losses else None
    return Snapshot(message.step, message.seconds, loss, readings)


def _by_site(values: Array, sites: tuple[Site, ...]) -> Array:
    found = np.full((len(sites), max(site.heads for site in sites)), np.nan, np.float32)
    at = 0
    for row, site in enumerate(sites):
        found[row, : site.heads] = values[at : at + site.heads]
        at += site.heads
    return found


def _shape(model: nn.Module) -> str:
    """The names of the model's parameters: shards of one model have them in common, and other models do not."""
    return " ".join([type(model).__name__, *(name for name, _ in model.named_parameters())])


def _mark(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
