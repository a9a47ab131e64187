"""Sums over rows merge: two parts of a step add up to the whole, whatever they hold."""

from __future__ import annotations

import math
from queue import Empty
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from softscope.doctor.ranks import fields, sketch
from softscope.doctor.ranks.message import Message, read_bytes
from softscope.doctor.ranks.together import write
from softscope.doctor.read.head_readings import of_heads, readings_of
from softscope.doctor.read.head_rows import head_rows
from softscope.doctor.read.head_sums import OF_ROWS, OF_SEQUENCES, sums_of
from softscope.doctor.read.one_token import ByToken
from softscope.doctor.read.snapshot import Array, Site
from softscope.doctor.read.tiles import RowReadings

HEADS, ROWS, KEYS = 3, 11, 5


def part(seed: int, sequences: int, *, blocked: float = 0.4, sink: int = 0) -> RowReadings:
    """The readings of one pass, made up."""
    rng = torch.Generator().manual_seed(seed)

    def some(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=rng)

    shape = sequences, HEADS, ROWS
    values = {name: 1.0 + some(*shape) for name in (*OF_ROWS, "max_logit", "lse_min")}
    values["sees_ahead"][some(*shape) < 0.3] = math.nan
    values["advantage"] = 4.0 + some(*shape)
    stuck = (some(*shape) < blocked).float()
    values["blocked"] = stuck
    columns = some(sequences, HEADS, KEYS + sink) ** 6
    stuck_columns = columns * some(sequences, HEADS, KEYS + sink)
    offsets = some(HEADS, 2 * KEYS - 1) ** 6
    offsets *= (stuck_columns.sum(dim=(0, 2)) / offsets.sum(dim=1))[:, None]  # the same weight, by offset
    tokens = ByToken(torch.tensor([3, 8, 11]), some(HEADS, 3), 2.0 + some(HEADS))
    return RowReadings(
        values, some(*shape) < 0.9, some(*shape) < 0.8, columns, KEYS, some(sequences, HEADS),
        v_norm=some(sequences, HEADS), reached=some(sequences, HEADS),
        of_sequences={name: some(sequences, HEADS) for name in OF_SEQUENCES[3:]},
        blocked_columns=stuck_columns, blocked_rows=stuck.sum(dim=-1), blocked_offsets=offsets,
        blocked_tokens=tokens,
    )  # fmt: skip


def packed(parts: list[RowReadings]) -> Array:
    """The sums of these passes, as a message has them."""
    rows = head_rows(parts, None)
    into, given = fields.nothing(HEADS), np.zeros(len(fields.NAMES), bool)
    write(sums_of(rows) | {"ranks": torch.ones(HEADS)}, into, given)
    return into


def unpacked(sums: Array) -> dict[str, torch.Tensor]:
    """The readings that follow."""
    wide = (":at", ":weight", ":bins")
    found = {name: torch.from_numpy(sums[:, at].astype(np.float64)) for name, at in fields.PLACES.items()}
    return readings_of({name: x if name.endswith(wide) else x[:, 0] for name, x in found.items()})


@pytest.mark.parametrize("sequences", [(1, 1), (1, 4), (3, 2), (1, 1, 1), (5, 1, 2)])
@pytest.mark.parametrize("blocked", [0.0, 0.02, 0.4])
@pytest.mark.parametrize("sink", [0, 1])
def test_parts_add_up_to_the_whole(sequences: tuple[int, ...], blocked: float, sink: int) -> None:
    parts = [part(seed, many, blocked=blocked, sink=sink) for seed, many in enumerate(sequences)]
    wanted = of_heads(parts)
    total = fields.nothing(HEADS)
    for one in parts:
        total = fields.merged(total, packed([one]))
    got = unpacked(total)
    lists = ("sink_mass", "sink_column", "blocked_mass", "blocked_offset_mass", "blocked_token_mass")
    for name, value in wanted.items():
        if ":" not in name and name not in lists:
            torch.testing.assert_close(got[name], value.double(), rtol=2e-5, atol=1e-6, equal_nan=True, msg=name)
    for name in lists:  # each part names four of five columns, or three of three tokens
        if name not in ("sink_column", "blocked_token_mass"):
            assert bool(((wanted[name] - got[name] < 0.2) | wanted[name].isnan()).all()), name


def test_the_order_of_merging_does_not_matter() -> None:
    a, b, c = (packed([part(seed, 2 + seed)]) for seed in range(3))
    one, other = fields.merged(fields.merged(a, b), c), fields.merged(a, fields.merged(c, b))
    lists = [fields.PLACES[f"{name}:{what}"] for name in fields.LISTS for what in ("at", "weight")]
    keep = np.ones(fields.NUMBERS, bool)
    for place in lists:
        keep[place] = False
    np.testing.assert_allclose(one[:, keep], other[:, keep], rtol=2e-5, atol=1e-5)


def test_nothing_changes_nothing() -> None:
    a = packed([part(0, 2)])
    np.testing.assert_array_equal(fields.merged(a, fields.nothing(HEADS)), a)
    np.testing.assert_array_equal(fields.merged(fields.nothing(HEADS), a), a)


def test_a_logit_that_is_nan_stays() -> None:
    broken = part(0, 2)
    broken.values["max_logit"][0, 1, 3] = math.nan
    broken.valid[:] = True
    found = unpacked(fields.merged(packed([part(1, 2)]), packed([broken])))
    assert found["max_logit"].isnan().tolist() == [False, True, False]


def test_a_message_comes_back_from_its_bytes() -> None:
    sites = (Site("a", "sdpa", 2, 2, 0.125, 64), Site("b", "sdpa", 1, 1, math.nan, 0))
    given, seen = np.zeros(len(fields.NAMES), bool), np.array([True, False, True])
    given[[0, 7]] = True
    message = Message(7, sites, packed([part(0, 2)]), given, seen, 2.5, 2, 0.25)
    back = read_bytes(message.to_bytes(), 7, sites, 3)
    np.testing.assert_array_equal(back.sums, message.sums)
    assert (back.given == given).all()
    assert (back.seen == seen).all()
    assert (back.loss, back.losses, back.seconds) == (2.5, 2, 0.25)
    with pytest.raises(ValueError, match="must have"):
        read_bytes(message.to_bytes()[:-1], 7, sites, 3)


def test_sites_found_in_another_order() -> None:
    a, b, c = (Site(name, "sdpa", 3, 3, 0.125, 64) for name in "abc")
    sums = [packed([part(seed, 2)]) for seed in range(4)]

    def message(sites: tuple[Site, ...], sums: list[Array]) -> Message:
        return Message(0, sites, np.concatenate(sums), np.ones(1, bool), np.ones(1, bool))

    found = message((a, b), sums[:2]).merged(message((b, c), sums[2:]))
    assert found.sites == (a, b, c)
    wanted = [sums[0], fields.merged(sums[1], sums[2]), sums[3]]
    np.testing.assert_array_equal(found.sums, np.concatenate(wanted))
    other = Site("b", "sdpa", 6, 3, 0.125, 64)
    with pytest.raises(ValueError, match="b has 3 heads on one rank and 6 on another"):
        message((a, b), sums[:2]).merged(message((other,), [*sums[:2]]))


def test_sites_keep_their_places() -> None:
    from softscope.doctor.ranks.together import Together

    together = Together.__new__(Together)
    together.sites, together._start, together.last = (), 0, np.full(1, -1)
    a, b, c = (Site(name, "sdpa", 3, 3, 0.125, 64) for name in "abc")
    queue = [(a, b, c), (a, c, b), (a, c)]
    given = np.zeros(len(fields.NAMES), bool)
    given[[fields.NAMES.index(name) for name in ("columns:total", "columns:at", "columns:weight", "ranks")]] = True

    class Ready:
        def get_nowait(self) -> Message:
            if not queue:
                raise Empty
            sites = queue.pop(0)
            return Message(0, sites, np.concatenate([packed([part(0, 2)]) for _ in sites]), given, np.ones(1, bool))

    together._tree = SimpleNamespace(ready=Ready())  # type: ignore[assignment]
    found = together.snapshots()
    assert together.sites == (a, b, c)
    assert [snapshot.readings["sink_mass"].shape for snapshot in found] == [(3, 3)] * 3
    assert np.isnan(found[-1].readings["sink_mass"][1]).all()


def test_quantiles_are_those_of_the_library() -> None:
    from ddsketch.ddsketch import BaseDDSketch
    from ddsketch.mapping import LogarithmicMapping
    from ddsketch.store import DenseStore

    rng = np.random.default_rng(0)
    values = 10.0 ** rng.uniform(-6.5, 0.2, (4, 101)).astype(np.float32)
    of = rng.random(values.shape) < [[1.0], [0.5], [0.02], [0.0]]
    of[0, -1] = False  # 100 rows: the 5th percentile falls between two
    bins = sum(
        sketch.counts(torch.from_numpy(values[:, half]), torch.from_numpy(of[:, half])).numpy()
        for half in (slice(0, 60), slice(60, None))
    )
    for level in (0.0, 0.25, 0.5, 0.95, 1.0):
        got = sketch.quantile(bins, level)
        for row in range(4):
            seen = values[row][of[row]]
            if not len(seen):
                assert np.isnan(got[row])
                continue
            exact = np.quantile(seen, level, method="linear")
            low, high = (np.quantile(seen, level, method=way) for way in ("lower", "higher"))
            assert 0.9 * low - 1e-9 <= got[row] <= 1.1 * high + 1e-9
            assert got[row] == pytest.approx(exact, rel=0.1001)
            if low == high:  # there the library does not interpolate either
                theirs = BaseDDSketch(LogarithmicMapping(sketch.ACCURACY), DenseStore(), DenseStore(), 0.0)
                for value in seen:
                    theirs.add(float(value))
                assert got[row] == pytest.approx(theirs.get_quantile_value(level), rel=1e-6)
