"""Without 1/√d: what starves for good, what only slows, and where it flips. One setting or one seed cannot say."""

import functools
import pathlib
import re

import pytest
import torch

from experiments.small import result
from softscope import experiments
from softscope.experiments import by_keys, starving
from softscope.experiments.ledger.texts import recall_runs
from softscope.experiments.recall import LEARNED
from softscope.experiments.starving import Flip, Run, Setting
from softscope.tasks import recall_batch

STEPS = 160


@functools.cache
def runs(setting: Setting, seeds: int = 3) -> list[Run]:
    return [starving.run(setting, steps=STEPS, seed=seed) for seed in range(seeds)]


def accuracies(setting: Setting, seeds: int = 3) -> list[float]:
    return [run.accuracy() for run in runs(setting, seeds)]


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_that_training_gets_stuck_is_true_of_16_keys_and_false_of_64(optimizer):
    found = {keys: accuracies(Setting(keys=keys, optimizer=optimizer)) for keys in (16, 64)}
    assert starving.flip(found) == Flip(never=16, always=64), found


def test_one_seed_cannot_decide_near_the_flip():
    found = accuracies(Setting(keys=32), seeds=5)
    assert min(found) < LEARNED <= max(found), found


def test_in_fixed_company_64_keys_starve_as_well():
    drawn, fixed = (runs(Setting(keys=64, company=company)) for company in ("drawn", "fixed"))
    assert max(run.accuracy() for run in fixed) < 0.5 < LEARNED <= min(run.accuracy() for run in drawn)
    assert min(run.misled for run in fixed) > 0.4 > 0.05 > max(run.misled for run in drawn)


def test_a_lower_rate_leaves_the_rows_open():
    usual, slower = (runs(Setting(slower=slower)) for slower in (1.0, 10.0))
    assert max(run.misled for run in slower) < min(run.misled for run in usual)


def test_a_starved_model_recovers_once_its_wrong_keys_are_sometimes_absent():
    same, found = Setting(), {}
    for pairs in (16, 8):
        model = starving.model_of(same, 0)
        before = starving.run(same, steps=STEPS, seed=0, model=model).misled
        starving.run(same._replace(pairs=pairs), steps=STEPS, seed=1, model=model)
        found[pairs] = starving.misled(model, same, 0)  # all 16 keys shown
    assert found[8] < 0.3 < 0.6 < min(before, found[16]), (before, found)


def test_with_the_scale_the_same_16_keys_are_learned():
    assert min(accuracies(Setting(scaled=True))) >= LEARNED


def test_as_many_rows_are_open_but_always_the_same_keys_rows():
    closed, drawn, fixed = (
        [starving.openings(setting, seed) for seed in range(8)]
        for setting in (Setting(), Setting(keys=64), Setting(keys=64, company="fixed"))
    )

    def mean(found, part):
        return sum(getattr(x, part) for x in found) / len(found)

    assert mean(drawn, "rows") == pytest.approx(mean(closed, "rows"), abs=0.05)
    assert mean(drawn, "keys") > 2 * mean(closed, "keys")
    assert mean(fixed, "keys") == pytest.approx(mean(fixed, "rows"), abs=0.02)
    assert all(x.keys == x.rows for x in closed)


def test_a_group_is_always_shown_whole_and_asked_from():
    made = starving.batch_of(Setting(keys=64, company="fixed"), 300, torch.Generator().manual_seed(0))
    groups = made.keys // 16
    assert torch.equal(groups, groups[:, :1].expand_as(groups))
    assert set(groups.unique().tolist()) == {0, 1, 2, 3}
    assert torch.equal(made.keys.sort().values, 16 * groups[:, :1] + torch.arange(16))
    asked = made.keys[:, None, :] == made.query[:, :, None]
    assert torch.equal((asked * made.values[:, None, :]).sum(-1), made.target)
    assert made.values.max() > 48


def test_drawn_company_is_the_task_itself():
    ours, task = (
        make(torch.Generator().manual_seed(0))
        for make in (
            lambda g: starving.batch_of(Setting(keys=20), 4, g),
            lambda g: recall_batch(4, pairs=16, vocabulary=20, generator=g),
        )
    )
    assert all(torch.equal(a, b) for a, b in zip(ours.inputs, task.inputs, strict=True))


def test_the_share_of_sequences_without_a_key_is_counted():
    setting = Setting(keys=20)
    keys = starving.batch_of(setting, 4000, torch.Generator().manual_seed(0)).keys
    zero = (keys == 0).any(1)
    assert (~(keys[zero] == 1).any(1)).double().mean().item() == pytest.approx(setting.absent, abs=0.03)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({16: [0.1], 20: [0.95], 24: [0.5], 32: [1.0]}, Flip(16, 32)),  # a lucky 20 does not count
        ({16: [0.1], 20: [0.8]}, Flip(20, None)),
        ({16: [1.0], 20: [1.0]}, Flip(None, 16)),
        ({20: [1.0, 0.9], 16: [0.1, 0.95]}, Flip(None, 20)),
    ],
)
def test_where_a_sweep_flips(found, wanted):
    assert starving.flip(found) == wanted


def test_the_experiment_says_where_it_flips_and_what_starves():
    found = result("learning")
    table, notes = found["keys"], " ".join(note.en for note in found.notes)
    never, always = by_keys.flip_point(table)
    assert (never, always) in {(16, 64), (24, 64)}
    assert f"up to {never} keys in all, no seed learns; from {always} on, every seed does" in notes
    assert table.row(keys=by_keys.ALWAYS)["fate"] == by_keys.FATES["starves"]
    assert table.row(total=64)["fate"] == by_keys.FATES["learned"]
    assert "Starves for good (no seed learns, and the second half of the steps adds next to nothing): 16, a" in notes
    row = table.row(total=64)
    assert row["lowest"] <= row["accuracy"].value <= row["highest"]


def test_one_seed_is_refused():
    with pytest.raises(ValueError, match=r"seeds must be at least 2, but got 1"):
        experiments.run("learning", seeds=1)


def test_only_the_same_keys_are_no_sweep():
    with pytest.raises(ValueError, match=r"keys must hold a number above 16, but got \(16,\); pass \(16, 64\)"):
        by_keys.settings((16,))


def test_claims_get_a_sweep_by_seed_and_share_its_runs(monkeypatch):
    asked = []

    def run(setting, *, steps, seed):
        asked.append((setting, steps, seed))
        right = 0.1 if setting.keys == 16 else 1.0
        return Run([0.0] * (steps // 2) + [right] * (steps - steps // 2), 0.25)

    monkeypatch.setattr(recall_runs, "_run", functools.cache(recall_runs._run.__wrapped__))
    monkeypatch.setattr(starving, "run", run)
    found = recall_runs.sweep(d=8)
    assert list(found) == list(recall_runs.KEYS)
    assert {len(x) for x in found.values()} == {len(recall_runs.SEEDS)}
    assert len(recall_runs.SEEDS) >= 5
    assert recall_runs.flip_point(found) == Flip(16, 20)
    assert recall_runs.gained(d=8, keys=64) == [1.0] * 5
    assert recall_runs.misled(d=8, keys=64) == [0.25] * 5
    assert recall_runs.accuracies(8, False, "adam") == [0.0] * 5
    assert len(asked) == len(set(asked)) == 30
    assert {steps for _, steps, _ in asked} == {recall_runs.LONG}
    assert recall_runs.accuracies(8, True, "sgd", seeds=(0,), keys=64) == [1.0]
    assert asked[-1] == (Setting(d=8, keys=64, scaled=True, optimizer="sgd"), recall_runs.STEPS, 0)
    with pytest.raises(ValueError, match=r"after must be at most 300 steps, but got 600; pass recall_runs\.STEPS"):
        recall_runs.accuracy(8, True, "sgd", 0, keys=64, after=600)


CELL = re.compile(r"(\d\.\d\d) \((\d\.\d\d)–(\d\.\d\d)\)")


def published() -> dict[tuple[int, int, int], list[tuple[float, ...]]]:
    """The table in docs/doctor.md of drawn keys: (mean, lowest, highest) by d, keys shown and keys in all."""
    page = (pathlib.Path(__file__).parents[2] / "docs/doctor.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (\d+) of (\d+) \| (.*) \|$", page, re.MULTILINE)
    return {
        (int(d), int(pairs), int(keys)): [tuple(map(float, found)) for found in CELL.findall(cells)]
        for d, pairs, keys, cells in rows
    }


def test_the_published_flip_points_follow_from_the_published_table():
    page = (pathlib.Path(__file__).parents[2] / "docs/doctor.md").read_text("utf-8")
    told = re.findall(r"^\| (\d+) \| (\d+) \| (Adam|SGD) \| (\d+|–) \| (\d+|–) \|$", page, re.MULTILINE)
    assert len(told) >= 6
    for d, pairs, optimizer, never, always in told:
        last = {"Adam": 1, "SGD": 3}[optimizer]  # half-way and at the end, for each optimizer
        found = {keys: row[last][1:] for (a, b, keys), row in published().items() if (a, b) == (int(d), int(pairs))}
        wanted = [None if x == "–" else int(x) for x in (never, always)]
        assert starving.flip(found) == Flip(*wanted), (d, pairs, optimizer, found)


def test_the_published_accuracies_are_what_short_runs_lead_to():
    for keys in (16, 64):
        found = accuracies(Setting(keys=keys))
        assert published()[64, 16, keys][0][0] == pytest.approx(sum(found) / len(found), abs=0.15)
