"""Writers of one record, step by step in any order: whatever a writer was told is recorded can be read, as its own."""

import contextlib
import dataclasses
import sqlite3
import warnings

from doctor.record.runs import SITES, snapshot
from hostile.budget import attempts
from softscope.doctor.record import Record, file, news, read_record

MODELS = (SITES, SITES[:1], (dataclasses.replace(SITES[0], heads=2), SITES[1]))


class Writer:
    """A record, what it was given, and what it must have said by now."""

    def __init__(self, path, tag):
        self.tag, self.waiting, self.said, self.model, self.closed = tag, [], [], None, False
        self.record = self.call(lambda: Record(path))
        self.call(lambda: self.record.note({"writer": tag}))

    def call(self, what):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = what()
        self.said += [str(one.message) for one in caught if "cannot be written" in str(one.message)]
        return got

    def sites(self, model):
        if model is not self.model:  # the same sites again are no change
            self.waiting.append((Told.sites, model))
        self.model = model
        self.call(lambda: self.record.sites(model))

    @property
    def lost(self):
        return any("without a record" in one for one in self.said)


class Told:
    """The oracle: parts of (step, loss, writer), made from what the writers were told, in that order."""

    def __init__(self):
        self.parts, self.every = [], []

    def sites(self, model):
        if not self.parts or not _extends(self.parts[-1]["model"], model):
            self.parts.append({"first": None, "steps": []})
        self.parts[-1]["model"] = model

    def add(self, step, loss, tag):
        self.every.append((step, loss, tag))
        here = self.parts[-1]
        if here["first"] is not None and step <= here["first"]:  # it starts over
            here = {"model": here["model"], "first": None, "steps": []}
            self.parts.append(here)
        here["first"] = step if here["first"] is None else here["first"]
        here["steps"] = [one for one in here["steps"] if one[0] < step] + [(step, loss, tag)]


def _extends(old, new):
    return len(new) >= len(old) and all((a.name, a.heads) == (b.name, b.heads) for a, b in zip(old, new, strict=False))


def test_nothing_that_was_told_is_hidden(tmp_path, monkeypatch):
    monkeypatch.setattr(file, "_WRITER_WAITS", 0.0)
    for seed, rng in attempts(20):
        try:
            _one(tmp_path / f"{seed}.db", rng, count=int(rng.integers(2, 4)))
        except Exception as error:
            raise AssertionError(f"SOFTSCOPE_ATTACK_SEED={seed}: {error}") from error


def _one(path, rng, count):
    told, loss, lock = Told(), 0, None
    writers = [Writer(path, 0)]
    for now in range(1, 40):
        kind = rng.choice(["open", "close", "sites", "add", "unseen", "note", "read", "lock"],
                          p=[.05, .03, .15, .5, .05, .05, .12, .05])  # fmt: skip
        writer = writers[rng.integers(len(writers))]
        if kind == "lock" and lock is None:
            lock = sqlite3.connect(path, isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
        elif kind == "lock":
            lock.close()
            lock = None
        elif kind == "open" and len(writers) < count:
            writers.append(Writer(path, len(writers)))
        elif kind == "close" and lock is None:
            writer.call(writer.record.close)
            writer.closed = True
        elif writer.closed:
            continue
        elif kind == "sites":
            model = MODELS[rng.integers(len(MODELS))]
            writer.sites(model)
        elif kind == "add":
            if writer.model is None:
                writer.sites(SITES)
            loss += 1
            step = int(rng.integers(0, 60)) if rng.random() < 0.2 else now
            one = snapshot(step, sites=writer.model, loss=float(loss), names=("peak", "blocked"))
            writer.waiting.append((Told.add, step, float(loss), writer.tag))
            writer.call(lambda w=writer, s=one: w.record.add(s))
        elif kind == "unseen":
            writer.call(lambda w=writer: w.record.unseen([("module", f"by {w.tag}")]))
        elif kind == "note":
            writer.call(lambda w=writer, n=now: w.record.note({"now": n}))
        _settle(writer, told)
        if kind == "read":
            _readable(path, told)
    if lock is not None:
        lock.close()
    for writer in writers:
        writer.call(writer.record.close)
        _settle(writer, told)
        adds = [one for one in writer.waiting if one[0] is Told.add]
        assert writer.lost or not adds, f"writer {writer.tag} lost {adds} without a word"
        assert len(writer.said) == len(set(writer.said)) <= 2
    _readable(path, told)


def _settle(writer, told):
    """What the writer holds back no longer, and did not say it lost, counts as told."""
    if not writer.record._queue and not writer.lost:
        for change, *arguments in writer.waiting:
            change(told, *arguments)
        writer.waiting.clear()


def _readable(path, told):
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute(
            "SELECT step, loss, json_extract(facts, '$.writer') FROM steps JOIN sessions ON session = sessions.id "
            "ORDER BY steps.id"
        )
        assert list(rows) == told.every
    history = read_record(path)
    parts = [read_record(path, part=i) for i in range(history.facts["parts"])]
    found = [part for part in parts if part.snapshots]
    filled = [part for part in told.parts if part["steps"]]
    assert [[(s.step, s.loss) for s in part.snapshots] for part in found] == [
        [(step, loss) for step, loss, _ in part["steps"]] for part in filled
    ]
    for part, wanted in zip(found, filled, strict=True):
        assert part.facts["writer"] == wanted["steps"][-1][2]
        for one in part.snapshots:
            assert set(one.readings) == {"peak", "blocked"}
    assert [s.loss for s in history.snapshots] == ([s.loss for s in found[-1].snapshots] if found else [])
    news(path)
