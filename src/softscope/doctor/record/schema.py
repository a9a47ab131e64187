"""The file format: five small tables, with each reading of a step stored as one blob.

    sessions   one row each time a run opened the file: versions, model, seed; how it ended, NULL while it runs
    parts      one row per recorded model: its sites
    unseen     modules of a part that could not be read, and why: a code and its values, or a sentence
    steps      one row per snapshot
    readings   (step, name) → (sites, heads) as little-endian float32, row by row

Each reading is one blob because a row per head is six times slower to write and to read.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from softscope.doctor.read.snapshot import Array, Site
from softscope.doctor.record import values

if TYPE_CHECKING:
    from collections.abc import Iterable

APPLICATION: Final = 0x736F6674  # "soft", in the application-id field of SQLite's header
VERSION: Final = 1

# `loss` has no type: SQLite turns NaN into NULL, but a NaN loss is not a missing loss, so NaN is stored as text.
TABLES: Final = f"""
CREATE TABLE sessions (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, ended TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, sites TEXT NOT NULL);
CREATE TABLE unseen (part INTEGER NOT NULL, module TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (part, module));
CREATE TABLE steps (id INTEGER PRIMARY KEY, part INTEGER NOT NULL, session INTEGER NOT NULL, step INTEGER NOT NULL,
    seconds REAL NOT NULL, loss, sites INTEGER NOT NULL, heads INTEGER NOT NULL);
CREATE TABLE readings (snapshot INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (snapshot, name)) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""

# The fields that identify a site. The others (kind, dtype, dropout, …) describe how it was run, and may change.
_IDENTITY = ("name", "heads", "kv_heads", "head_size", "scale")


def sites_as_text(sites: Iterable[Site]) -> str:
    """Sites as JSON; since JSON has no NaN, an unknown scale is null."""
    rows = [dataclasses.asdict(site) for site in sites]
    return json.dumps([row | {"scale": None if math.isnan(row["scale"]) else row["scale"]} for row in rows])


def sites_of_text(text: Any) -> tuple[Site, ...]:
    """Parse the sites; fields added by a later softscope are ignored.

    >>> site = Site("encoder.0", "sdpa", heads=4, kv_heads=2, scale=0.125, head_size=64)
    >>> sites_of_text(sites_as_text([site])) == (site,)
    True
    """
    return values.sites(values.parsed("sites", text))


def difference(old: tuple[Site, ...], new: tuple[Site, ...]) -> str:
    """How the two models differ, in words; '' if `new` equals `old`, or extends it by more sites."""
    for before, now in zip(old, new, strict=False):
        if before.name != now.name:
            return f"{now.name} in the place of {before.name}"
        for name in _IDENTITY:
            was, is_ = getattr(before, name), getattr(now, name)
            if was != is_ and not (was != was and is_ != is_):  # here NaN equals NaN
                return f"{now.name} has {name} = {is_:g} instead of {was:g}"
    return f"{len(new)} sites instead of {len(old)}" if len(new) < len(old) else ""


def blob(reading: Array) -> bytes:
    """Encode a (sites, heads) array for the file."""
    return np.ascontiguousarray(reading, "<f4").tobytes()


def loss_as_cell(loss: Any) -> float | str | None:
    """Convert a loss to a value that SQLite can store."""
    if loss is None:
        return None
    number = float(loss)
    return "nan" if math.isnan(number) else number
