"""Copies readings from the model's device into the arrays of a snapshot, in one transfer."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from torch import Tensor

from softscope.doctor.read.head_readings import of_heads
from softscope.doctor.read.snapshot import Array, Site, Snapshot
from softscope.doctor.read.tiles import RowReadings


def snapshot_of(
    step: int,
    seconds: float,
    loss: float | None,
    found: dict[str, list[RowReadings]],
    sites: tuple[Site, ...],
    strongest: dict[str, Tensor],
    of_sites: dict[str, dict[str, float]],
) -> Snapshot:
    """All readings of one step as (sites, heads) arrays; updates `strongest`, the largest demand per site.

    `of_sites` are readings of whole sites, by site and name: every head of a site gets its number.
    """
    places = {site.name: index for index, site in enumerate(sites)}
    told = {name: of_heads(parts, strongest.get(name)) for name, parts in found.items() if name in places}
    for name, readings in told.items():
        if "demand" in readings:
            before = strongest.get(name)
            strongest[name] = readings["demand"] if before is None else torch.fmax(before, readings["demand"])
    order = [(name, reading) for name, readings in told.items() for reading in readings]
    device = next(iter(told.values()))["count"].device  # layers may be on several devices
    flat = torch.cat([told[name][reading].to(device, torch.float32) for name, reading in order]).cpu().numpy()
    heads = max(site.heads for site in sites)
    arrays: dict[str, Array] = {}
    at = 0
    for name, reading in order:
        many = told[name][reading].shape[0]
        array = arrays.setdefault(reading, np.full((len(sites), heads), np.nan, np.float32))
        array[places[name], :many] = flat[at : at + many]
        at += many
    for name, numbers in of_sites.items():
        for reading, value in numbers.items() if name in told else ():
            array = arrays.setdefault(reading, np.full((len(sites), heads), np.nan, np.float32))
            array[places[name], : sites[places[name]].heads] = value
    return Snapshot(step, seconds, loss, arrays)


def widened(snapshot: Snapshot, sites: tuple[Site, ...]) -> Snapshot:
    """Widen a snapshot to hold sites that were found after it."""
    shape = (len(sites), max((site.heads for site in sites), default=0))

    def widen(array: Array) -> Array:
        if array.shape == shape:
            return array
        wide = np.full(shape, np.nan, np.float32)
        wide[: array.shape[0], : array.shape[1]] = array
        return wide

    return dataclasses.replace(snapshot, readings={name: widen(a) for name, a in snapshot.readings.items()})
