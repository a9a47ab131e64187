"""What is in the file: five small tables, and each reading of a step as one blob.

    sessions   one for each time that a run opened the file: versions, model, seed; how it ended, NULL while it runs
    parts      one for each model that was recorded: its sites
    unseen     of a part: modules that could not be read, and why: a code and its values, or a sentence
    steps      one for each snapshot
    readings   (step, name) → (sites, heads) as little-endian float32, row by row

A blob for each reading, because a row for each head is six times slower to write and to read.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from softscope.doctor.read.snapshot import Array, Site

if TYPE_CHECKING:
    from collections.abc import Iterable

APPLICATION: Final = 0x736F6674  # "soft", in the place that SQLite's header has for it
VERSION: Final = 1

# `loss` has no type: SQLite makes NULL of NaN, and a loss that became NaN is not a missing one, so it goes as text.
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

# What makes a site another one. The rest (kind, dtype, dropout, …) is how it was run, and may change.
_IDENTITY = ("name", "heads", "kv_heads", "head_size", "scale")


def sites_as_text(sites: Iterable[Site]) -> str:
    """JSON without NaN, which is not JSON: an unknown scale is null."""
    rows = [dataclasses.asdict(site) for site in sites]
    return json.dumps([row | {"scale": None if math.isnan(row["scale"]) else row["scale"]} for row in rows])


def sites_of_text(text: str) -> tuple[Site, ...]:
    """The sites; fields that a later softscope added are passed over.

    >>> site = Site("encoder.0", "sdpa", heads=4, kv_heads=2, scale=0.125, head_size=64)
    >>> sites_of_text(sites_as_text([site])) == (site,)
    True
    """
    known = {field.name for field in dataclasses.fields(Site)}
    rows = [{name: value for name, value in row.items() if name in known} for row in json.loads(text)]
    return tuple(Site(**row | {"scale": math.nan if row["scale"] is None else row["scale"]}) for row in rows)


def difference(old: tuple[Site, ...], new: tuple[Site, ...]) -> str:
    """What tells one model from another in words; '' where `new` is `old`, or `old` and more sites after it."""
    for before, now in zip(old, new, strict=False):
        if before.name != now.name:
            return f"{now.name} in the place of {before.name}"
        for name in _IDENTITY:
            was, is_ = getattr(before, name), getattr(now, name)
            if was != is_ and not (was != was and is_ != is_):  # NaN is NaN here
                return f"{now.name} has {name} = {is_:g} instead of {was:g}"
    return f"{len(new)} sites instead of {len(old)}" if len(new) < len(old) else ""


def blob(reading: Array) -> bytes:
    """An array (sites, heads) as it is in the file."""
    return np.ascontiguousarray(reading, "<f4").tobytes()


def array(data: bytes, written: tuple[int, int], wanted: tuple[int, int]) -> Array:
    """The array (sites, heads) of a blob, with NaN for sites and heads that were not known when it was written."""
    found = np.frombuffer(data, "<f4").reshape(written).astype(np.float32)
    if written == wanted:
        return found
    whole = np.full(wanted, np.nan, np.float32)
    whole[: written[0], : written[1]] = found
    return whole


def loss_as_cell(loss: Any) -> float | str | None:
    """A loss as SQLite can keep it."""
    if loss is None:
        return None
    number = float(loss)
    return "nan" if math.isnan(number) else number
