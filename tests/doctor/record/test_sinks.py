"""What scalar loggers get: few numbers, stable names, and nothing that ever stops the training."""

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest

from doctor.record.runs import SITES, UNSEEN, one_warning, same, snapshot
from doctor.record.scopes import FakeScope
from softscope.doctor.ranks.read_ranks import ReadRanks, of_facts
from softscope.doctor.read.snapshot import FORWARD
from softscope.doctor.record import Record, read_record
from softscope.doctor.sinks import Log, TensorBoard, follow, scalars


class Writer:
    def __init__(self):
        self.got = []

    def add_scalar(self, name, value, step):
        self.got.append((name, value, step))


def test_mean_and_worst_head_of_each_site():
    found = scalars(SITES, snapshot(0))
    readings = snapshot(0).readings
    for row, site in enumerate(SITES):
        worsts = {"blocked": max, "transmission": min, "advantage": min, "sharpness": max, "max_logit": max}
        for name, worst in worsts.items():
            heads = readings[name][row, : site.heads]
            assert found.pop(f"softscope/{site.name}/{name}") == pytest.approx(heads.mean())
            assert found.pop(f"softscope/{site.name}/{name}_worst") == worst(heads)
    assert found == {}


@pytest.mark.parametrize("heads", [1, 144])
@pytest.mark.parametrize(("names", "each"), [(None, 10), (FORWARD, 4)])
def test_as_few_as_documented(heads, names, each):
    sites = [dataclasses.replace(SITES[0], name=f"layer.{i}", heads=heads) for i in range(12)]
    made = snapshot(0, sites=sites) if names is None else snapshot(0, sites=sites, names=names)
    assert len(scalars(sites, made)) == each * 12
    documented = re.search(r"(\w+) for each site with a loss, (\w+) without.*: (\d+) for", scalars.__doc__)
    assert documented.groups() == ("Ten", "four", "120")


def test_nan_is_left_out_and_never_warned_of():
    made = snapshot(0)
    made.readings["blocked"][1] = np.nan
    made.readings["max_logit"][0, 0] = -np.inf
    found = scalars(SITES, made)
    assert "softscope/blocks.1.attention/blocked" not in found
    assert "softscope/blocks.0.attention/max_logit" not in found
    assert "softscope/blocks.0.attention/max_logit_worst" in found
    assert scalars((), made) == {}


def test_tensorboard_and_log_get_the_same():
    writer, logged = Writer(), []
    scope = FakeScope(None)
    with scope:
        follow(scope, TensorBoard(writer), Log(lambda values, step: logged.append((values, step))), first_step=100)
        scope.step(loss=1.0)
        scope.step(loss=0.5)
    assert [step for _, step in logged] == [100, 101]
    assert scalars(SITES, snapshot(0)).items() <= logged[0][0].items()
    assert logged[0][0].keys() <= logged[1][0].keys()
    assert writer.got == [(name, value, step) for values, step in logged for name, value in values.items()]


def test_a_logger_that_fails_is_one_warning():
    calls = []

    def failing(_, step):
        calls.append(step)
        raise ConnectionError("no route to host")

    sink = Log(failing)
    sink.sites(SITES)
    with one_warning(r"the logger failed \(no route to host\): training goes on"):
        for step in range(3):
            sink.add(snapshot(step))
    assert calls == [0]


def test_a_record_follows_like_any_sink(tmp_path):
    with FakeScope(None) as scope, Record(tmp_path / "run.db") as record:
        follow(scope, record)
        scope.step(loss=1.0)
        scope.step()
    found = read_record(tmp_path / "run.db")
    assert found.unseen == UNSEEN
    assert same(found.snapshots[0], snapshot(0, loss=1.0))
    assert found.snapshots[1].loss is None


def test_the_real_summary_writer(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="needs tensorboard: pip install tensorboard")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        sink = TensorBoard(writer)
        sink.sites(SITES)
        sink.add(snapshot(0))
    assert list(tmp_path.iterdir())


class Noted:
    """Passes everything on, and keeps what was said of ranks."""

    def __init__(self, record, notes):
        self._record, self._notes = record, notes

    def note(self, facts):
        self._notes.append(facts["ranks"]["behind"])
        self._record.note(facts)

    def __getattr__(self, name):
        return getattr(self._record, name)


def test_ranks_are_noted_whenever_one_falls_behind_or_comes_back(tmp_path):
    seen = [{}, {}, {1: 1}, {1: 1}, {1: 1}, {}, {2: None}]
    notes = []
    with FakeScope(None) as scope, Record(tmp_path / "run.db") as record:
        scope.ranks = SimpleNamespace(read=lambda: ReadRanks(4, seen[scope.steps - 1], 1000))
        follow(scope, Noted(record, notes), first_step=100)
        for _ in seen:
            scope.step(loss=1.0)
    # At 1, 2 and 4 snapshots all facts are noted, and otherwise only what has changed.
    assert notes == [{}, {}, {"1": 101}, {"1": 101}, {}, {"2": None}]
    assert read_record(tmp_path / "run.db").facts["ranks"] == {"size": 4, "behind": {"2": None}, "bytes": 1000}


@pytest.mark.parametrize(
    "strange",
    [
        None, [], 4, {}, {"size": 0, "behind": {}}, {"size": 4}, {"size": 4, "behind": []},
        {"size": 4, "behind": {"4": 1}}, {"size": 4, "behind": {"x": 1}}, {"size": 4, "behind": {"1": 10**30}},
        {"size": 4, "behind": {"1": "x"}},
        {"size": 4, "behind": {"²": 1}}, {"size": 10**30, "behind": {}}, {"size": 4, "behind": {}, "bytes": "x"},
    ],
)  # fmt: skip
def test_what_a_record_says_of_ranks_is_not_trusted(strange):
    assert of_facts(strange) is None
    assert of_facts(ReadRanks(4, {3: 7, 1: None}, 5).as_facts()) == ReadRanks(4, {3: 7, 1: None}, 5)
