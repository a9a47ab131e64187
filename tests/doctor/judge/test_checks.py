"""For each check: histories where it fires, where it must not, where it does not apply, and where it is blind."""

import dataclasses
import math
import pathlib
import re

import numpy as np
import pytest

from doctor.judge.histories import IDLE, RESTING, RIGHT, STUCK, USEFUL, history, per_head, trial, tried, without
from softscope.doctor.judge import checks
from softscope.doctor.judge.checks import CHECKS
from softscope.doctor.judge.checks.cause import causes
from softscope.doctor.judge.history_view import Head, HistoryView
from softscope.doctor.listen.trained_codes import ALONE, NO_GRADIENT, NO_OPTIMIZER, WITH_ALL
from softscope.doctor.trial.intervention import FUSED

LONG = range(0, 1000, 100)  # ten readings
SICK = per_head(1, STUCK)
NOISY = np.random.default_rng(0).normal(0.0, 1.0, 10)
HALF = {"dtype": "float16"}
CAUSAL, ENCODER = {"expects": "causal"}, {"expects": "all"}

# code: the history that fires it, the kind of outcome, and the heads named; None instead of a head means the whole site
FIRES = {
    "SS001": (tried(history(**SICK), 1), "finding", [1]),
    "SS002": (history(**per_head(2, RESTING)), "informative", [2]),
    "SS003": (history(max_logit={3: 1001.0}), "finding", [3]),
    "SS004": (history(q_norm={2: 30 * 8.0}), "finding", [2]),
    "SS005": (tried(history(site={"scale": 1.0}, **SICK), 1), "finding", [None]),
    "SS006": (
        tried(history(**SICK | {"sharpness": {1: [0.1, 0.2, 0.97, 0.98, 0.98]}}), 1),
        "finding",
        [1],
    ),
    "SS007": (history(steps=LONG, sharpness={0: 0.001}), "tip", [0]),
    "SS008": (history(site=HALF, max_logit={1: 8192.0}), "finding", [1]),
    "SS009": (history(demand={1: 0.0}), "finding", [1]),
    "SS010": (history(site={"fused": False}), "tip", [None]),
    "SS011": (history(site={"scale": 1.0}, **SICK), "informative", [1]),
    "SS012": (history(sharpness=[0.3, 0.3, 0.3, np.nan, np.nan]), "finding", [None]),
    "SS013": (history(**SICK), "tip", [1]),
    "SS014": (history(site=CAUSAL, sees_ahead=1.0, ahead={2: 0.4}), "finding", [None]),
    "SS015": (history(padding={1: 0.1}), "finding", [None]),
    "SS016": (history(blind={0: 0.25}), "finding", [None]),
    "SS017": (history(cut=1.0), "finding", [None]),
    "SS018": (history(q_trains=ALONE), "finding", [None]),
    "SS019": (history(k_norm=8.0), "finding", [None]),
    "SS020": (history(twice=1.0), "finding", [None]),
    "SS021": (history(same_keys=1.0), "tip", [None]),
}
ALSO_FIRES = {
    "growing past 100": ("SS003", history(steps=LONG, max_logit={1: np.linspace(50, 120, 10)}), "finding"),
    "on its way to 100": ("SS003", history(steps=LONG, max_logit={1: np.linspace(10, 60, 10) + NOISY}), "finding"),
    "faster and faster": ("SS003", history(steps=LONG, max_logit={1: np.geomspace(2, 60, 10)}), "finding"),
    "high and resting there": ("SS003", history(max_logit={1: 150.0}), "tip"),
    "one jump, then a plateau": (
        "SS003",
        history(steps=LONG, max_logit={1: [46, 85, 93, 94, 95, 95, 154, 163, 163, 163]}),
        "tip",
    ),
    "high, read once": ("SS003", history(steps=[0], max_logit={1: 150.0}), "tip"),
    "k × 30": ("SS004", history(k_norm={1: 240.0}), "finding"),
    "q × 30 without a loss": ("SS004", history(loss=False, q_norm={1: 240.0}), "finding"),
    "frozen from no scale, no loss": ("SS005", history(loss=False, site={"scale": 1.0}, logit_spread=8.0), "tip"),
    "no scale, not tried": ("SS005", history(site={"scale": 1.0}, **SICK), "tip"),
    "a cliff, not tried": ("SS006", history(**SICK | {"sharpness": {1: [0.1, 0.2, 0.97, 0.98, 0.98]}}), "tip"),
    "an outlier that the model needs": ("SS004", tried(history(q_norm={1: 240.0}), 1, USEFUL), "informative"),
    "an outlier that does nothing": ("SS004", tried(history(q_norm={1: 240.0}), 1, IDLE), "finding"),
    "a trial that left it open": ("SS013", tried(history(**SICK), 1, trial(uniform=(0.1, 0.1))), "tip"),
    "a trial that was not possible": ("SS013", tried(history(**SICK), 1, FUSED), "tip"),
    "fresh at 0.013, then uniform": ("SS007", history(steps=LONG, sharpness={1: [0.013] + 9 * [0.002]}), "tip"),
    "a scale so small that nothing moves": (
        "SS005",
        history(steps=LONG, site={"scale": 1e-4}, sharpness=1e-5),
        "finding",
    ),
    "a cliff without a loss": ("SS006", history(loss=False, sharpness={1: [0.1, 0.1, 0.1, 0.95, 0.96]}), "tip"),
    "close to float16's end": ("SS008", history(site=HALF, max_logit={1: 4096.0}), "tip"),
    "a row below float32's reach": ("SS008", history(site={"dtype": "bfloat16"}, lse_min={1: -90.0}), "finding"),
    "a dtype as torch prints it": ("SS008", history(site={"dtype": "torch.bfloat16"}, lse_min={1: -90.0}), "finding"),
    "nothing passes the softmax": (
        "SS009",
        tried(history(**per_head(1, STUCK | {"transmission:median": 1e-9})), 1),
        "finding",
    ),
    "no scale, and useful": ("SS005", tried(history(site={"scale": 1.0}, **SICK), 1, USEFUL), "informative"),
    "no scale, nothing to see yet": ("SS005", history(site={"scale": 1.0}), "informative"),
    "no scale, sharp without a loss": (
        "SS005",
        history(loss=False, site={"scale": 1.0}, sharpness=0.97),
        "informative",
    ),
    "no scale, and right": ("SS005", history(site={"scale": 1.0}, **per_head(1, RIGHT)), "informative"),
    "a small scale, learning": ("SS005", history(steps=LONG, site={"scale": 1e-2}), "informative"),
    "an inverted mask": ("SS014", history(site=CAUSAL, sees_ahead=1.0, ahead=1.0), "finding"),
    "a prefix that sees itself": ("SS014", history(site=CAUSAL, sees_ahead=0.3, ahead=0.1), "informative"),
    "padding only": ("SS015", history(padding=1.0), "finding"),
    "off by one": ("SS016", history(site=CAUSAL, own=0.0), "finding"),
    "a triangle in an encoder": ("SS016", history(site=ENCODER), "finding"),
    "a classifier's token sees itself only": ("SS016", history(alone=1.0), "finding"),
    "detached": ("SS018", history(k_trains=NO_GRADIENT), "finding"),
    "forgotten": ("SS018", history(v_trains=NO_OPTIMIZER), "finding"),
    "frozen with its layer": ("SS018", history(q_trains=WITH_ALL, k_trains=WITH_ALL), "informative"),
    "no values": ("SS019", history(v_norm=0.0), "finding"),
    "keys on one line, as the inputs may": ("SS019", history(k_alike=0.999), "tip"),
    "q zero in a fresh model": ("SS019", history(loss=False, q_norm=0.0), "informative"),
    "dropout before the softmax": ("SS020", history(dropped=0.1), "finding"),
    "positions that end too early": ("SS021", history(same_keys=0.4), "tip"),
    "nothing passes, not tried": ("SS009", history(**per_head(1, STUCK | {"transmission:median": 1e-9})), "tip"),
}
SILENT = {
    "NaN once, not in the end": ("SS012", history(sharpness=[0.3, np.nan, 0.3, 0.3, 0.3])),
    "one head that is not read": ("SS012", history(sharpness={1: np.nan})),
    "a site that is not read in the end": (
        "SS012",
        history(sharpness=[0.3, 0.3, 0.3, 0.3, np.nan], count=[300, 300, 300, 300, np.nan]),
    ),
    "right": ("SS001", history(**per_head(1, RIGHT))),
    "resting": ("SS001", history(**per_head(1, RESTING))),
    "positional": ("SS001", history(**per_head(1, STUCK | {"blocked_offset_mass": 0.95}))),
    "positional, so nothing need pass": (
        "SS009",
        history(**per_head(1, STUCK | {"blocked_offset_mass": 0.95, "transmission:median": 0.0})),
    ),
    "starving is not resting": ("SS002", tried(history(**SICK), 1)),
    "useful": ("SS001", tried(history(**SICK), 1, USEFUL)),
    "idle": ("SS001", tried(history(**SICK), 1, IDLE)),
    "useful, not suspected": ("SS013", tried(history(**SICK), 1, USEFUL)),
    "a plateau": ("SS003", history(steps=LONG, max_logit={1: 60 * (1 - np.exp(-np.arange(10)))})),
    "slow growth": ("SS003", history(steps=LONG, max_logit={1: np.linspace(5, 15, 10)})),
    "up and down": ("SS003", history(steps=LONG, max_logit={1: 20 + 3 * NOISY})),
    "q × 30 and k / 30": ("SS004", history(q_norm={1: 240.0}, k_norm={1: 8 / 30})),
    "MiniLM's largest head": ("SS004", history(q_norm={1: 77.0}, k_norm={1: 8.0 * 34 / 77})),
    "large alike": ("SS004", history(q_norm=240.0)),
    "its own scale": ("SS005", history(**SICK)),
    "T5: no scale, healthy readings": ("SS005", history(site={"scale": 1.0}, q_norm=1.0)),
    "T5 without a loss": ("SS005", history(loss=False, site={"scale": 1.0}, q_norm=1.0, logit_spread={0: 8.0})),
    "Granite's own scale": (
        "SS005",
        dataclasses.replace(history(site={"scale": 1e-2}), facts={"scale_meant": 1e-2}),
    ),
    "causal as it should be": ("SS014", history(site=CAUSAL)),
    "an encoder": ("SS014", history(site=ENCODER, sees_ahead=1.0, ahead=0.5)),
    "all layers alike, nothing expected": ("SS014", history(sites=2, sees_ahead=1.0, ahead=0.5)),
    "padding hidden": ("SS015", history(padding=0.0)),
    "an encoder sees all": ("SS016", history(site=ENCODER, sees_ahead=1.0)),
    "a row of a causal model sees itself": ("SS016", history(site=CAUSAL, alone=0.03)),
    "a branch that is not always taken": ("SS017", history(cut=[1, 0, 1, 0, 1])),
    "the other optimizer's turn": ("SS018", history(q_trains=[NO_OPTIMIZER, NO_OPTIMIZER, 0, 0, 0])),
    "nothing passes, so nothing arrives": ("SS018", history(q_trains=NO_GRADIENT, supply=0.0)),
    "cut off as a whole": ("SS018", history(v_trains=NO_GRADIENT, cut=1.0)),
    "zero at the start": ("SS019", history(v_norm=[0, 0, 1, 1, 1])),
    "one head on a line": ("SS019", history(k_alike={1: 1.0})),
    "one softmax": ("SS020", history(twice=0.0, dropped=0.0)),
    "positions": ("SS021", history(same_keys=0.0)),
    "zero positions at the start": ("SS021", history(same_keys=[1, 1, 0, 0, 0])),
    "it learned at once": ("SS006", history(**per_head(1, RIGHT | {"sharpness": [0.1, 0.1, 0.9, 0.99, 0.99]}))),
    "it is just learning": (
        "SS006",
        history(**per_head(1, {"advantage": 2.0, "sharpness": [0.1, 0.1, 0.9, 0.99, 0.99]})),
    ),
    "a slow fall": ("SS006", history(steps=LONG, **SICK | {"sharpness": {1: np.linspace(0.05, 0.95, 10)}})),
    "low from the start": ("SS006", history(**SICK | {"sharpness": {1: 0.98}})),
    "uniform once, not later": ("SS007", history(steps=LONG, sharpness={0: np.linspace(0, 0.3, 10)})),
    "bfloat16 has range": ("SS008", history(site={"dtype": "bfloat16"}, max_logit={1: 1e5})),
    "float16, small": ("SS008", history(site=HALF)),
    "right, so nothing need pass": ("SS009", history(**per_head(1, RIGHT | {"transmission:median": 0.0}))),
    "no demand in the first readings": ("SS009", history(demand={1: [0, 0, 0, 1, 1]})),
    "fused": ("SS010", history()),
}
NOT_APPLICABLE = {
    "SS001": history(loss=False),
    "SS002": history(loss=False),
    "SS004": history(heads=3),
    "SS005": history(site={"head_size": 0, "kind": "softmax"}),
    "SS006": history(steps=[0, 1, 2]),
    "SS007": history(),
    "SS008": history(),
    "SS009": history(loss=False),
    "SS010": history(site={"fused": False}, count=100.0),
    "SS011": history(),
    "SS013": history(loss=False),
    "SS014": without(history(), "sees_ahead"),
    "SS015": history(),
    "SS017": history(loss=False),
    "SS018": history(loss=False),
    "SS019": without(history(), "q_norm"),
    "SS020": history(),
    "SS021": history(),
}
BLIND = {
    "SS003": without(history(), "max_logit"),
    "SS004": without(history(), "q_norm"),
    "SS005": without(history(loss=False, site={"scale": 1.0}), "logit_spread"),
    "SS007": without(history(steps=LONG), "sharpness"),
    "SS008": without(history(site=HALF), "max_logit", "lse_min"),
    "SS009": without(history(), "demand"),
    "SS011": without(history(**SICK), "cosine"),
    "SS012": history(steps=[]),
    "SS016": without(history(), "blind"),
}


def outcomes(code, found, *kinds):
    return [o for o in CHECKS[code].run(found) if o.kind in kinds]


def test_every_check_is_tried_in_every_way():
    assert set(FIRES) == set(CHECKS)
    # There is always a largest logit, and NaN is NaN; every row sees something or nothing.
    assert set(NOT_APPLICABLE) == set(CHECKS) - {"SS003", "SS012", "SS016"}
    # Without the reading, the others do not apply.
    assert set(BLIND) == {"SS003", "SS004", "SS005", "SS007", "SS008", "SS009", "SS011", "SS012", "SS016"}
    assert {code for code, _ in SILENT.values()} == set(CHECKS) - {"SS011"}  # a cause is sought only in sick heads


@pytest.mark.parametrize("code", FIRES)
def test_fires_for_exactly_these_heads(code):
    found, kind, heads = FIRES[code]
    fired = outcomes(code, found, *checks.SEVERITIES)
    assert [(o.kind, o.heads) for o in fired] == [(kind, (Head(0, head),)) for head in heads]
    for outcome in fired:
        assert re.search(r"[\u4e00-\u9fff]", outcome.says.zh)
        assert not re.search(r"[\u4e00-\u9fff]", outcome.says.en)
        assert outcome.values
        assert re.findall(r"\d+\.\d+", outcome.says.zh) == re.findall(r"\d+\.\d+", outcome.says.en)
    rest = [o for o in CHECKS[code].run(found) if o not in fired]
    whole = 1 if CHECKS[code].of_sites else 4
    assert sum(o.count for o in rest) == whole - len(heads)


@pytest.mark.parametrize("name", ALSO_FIRES)
def test_also_fires(name):
    code, found, kind = ALSO_FIRES[name]
    (fired,) = outcomes(code, found, *checks.SEVERITIES)
    assert fired.kind == kind
    assert fired.heads == (Head(0, None if CHECKS[code].of_sites else 1),)


@pytest.mark.parametrize("name", SILENT)
def test_must_not_fire(name):
    code, found = SILENT[name]
    assert not outcomes(code, found, *checks.SEVERITIES)
    assert outcomes(code, found, "passed")


@pytest.mark.parametrize("code", NOT_APPLICABLE)
def test_not_applicable_is_not_passed(code):
    found = CHECKS[code].run(NOT_APPLICABLE[code])
    assert {o.kind for o in found} == {"not-applicable"}
    assert len({o.says for o in found}) == len(found)


@pytest.mark.parametrize("code", BLIND)
def test_a_missing_reading_is_unseen(code):
    assert "unseen" in {o.kind for o in CHECKS[code].run(BLIND[code])}
    assert not outcomes(code, BLIND[code], "finding", "tip", "informative")


def test_a_healthy_history_has_no_finding():
    counted = checks.counts(checks.run(history(sites=3, heads=8)))
    assert (counted["finding"], counted["tip"], counted["informative"]) == (0, 0, 0)
    assert counted["passed"] > 0


def test_a_fresh_uniform_model_has_no_finding():
    found = history(steps=[0, 1, 2, 3], sharpness=1e-4, peak=0.01, max_logit=0.1, transmission=1.0)
    counted = checks.counts(checks.run(found))
    assert counted["finding"] == counted["tip"] == 0


def test_all_is_counted_once():
    found = history(sites=2, heads=5, unseen=[("encoder.custom", "a kernel of its own")], **SICK)
    counted = checks.counts(checks.run(found))
    of_sites = sum(check.of_sites for check in CHECKS.values())
    assert sum(counted.values()) == 10 * (len(CHECKS) - of_sites) + 2 * of_sites + 1
    assert counted["unseen"] == 1


def test_muting():
    found = tried(history(sites=2, **per_head((0, 1), STUCK) | {"demand": {(1, 2): 0.0}}), 1)
    loud = checks.counts(checks.run(found))
    assert loud["finding"] == 2
    for rules, muted in (
        (["SS001"], 1),
        (["SS001:layers.0.*"], 1),
        (["SS001:layers.1.*"], 0),
        (["SS001", "SS009:layers.1.attention"], 2),
        (["SS002"], 0),
    ):
        quiet = checks.counts(checks.run(found, mute=rules))
        assert (quiet["finding"], quiet["muted"]) == (2 - muted, muted), rules


def test_causes():
    d, root = 64, 8.0
    ordinary = 1 / root, d, root, root, 0.1, 64
    assert causes(*ordinary) == []
    assert causes(1.0, d, root, root, 0.1, 64) == ["scale"]
    assert causes(1 / root, d, 30 * root, root, 0.1, 64) == ["norms"]
    assert causes(1 / root, d, root, root, 0.9, 64) == ["alignment"]
    assert causes(1.0, d, 30 * root, root, 0.9, 64) == ["scale", "norms", "alignment"]


def test_nothing_at_all():
    empty = history(sites=0, heads=0, steps=[])
    assert checks.run(empty) == []
    assert {o.kind for o in checks.run(history(steps=[]))} <= {"not-applicable", "unseen", "passed"}


def test_readings_of_heads_that_are_not_there_are_passed_over():
    found = history(sites=2, heads=4)
    small = type(found)(
        (found.sites[0], type(found.sites[1])(**{**vars(found.sites[1]), "heads": 2, "kv_heads": 2})),
        found.snapshots,
    )
    assert len(HistoryView(small).heads) == 6
    checks.run(small)


def test_infinite_and_nan_readings_break_nothing():
    for value in (math.nan, math.inf, -math.inf, 0.0, -1e38):
        wild = {name.replace(":", "__"): value for name in history().snapshots[0].readings}
        for loss in (True, False):
            checks.run(history(steps=LONG, loss=loss, **wild if loss else {"max_logit": value, "q_norm": value}))


# The registry.

ROOM = pathlib.Path(checks.__file__).parent
DOCS = pathlib.Path(__file__).parents[3] / "docs" / "checks"


def test_every_file_is_registered():
    files = {path.stem for path in ROOM.glob("*.py")} - {"__init__", "base"}
    assert len(files) >= 11
    assert files == {module.__name__.rpartition(".")[2] for module in checks._MODULES}
    assert len(CHECKS) == len(checks._MODULES), "two checks share a code"


@pytest.mark.parametrize("code", CHECKS)
def test_each_says_what_it_must(code):
    check = CHECKS[code]
    assert re.fullmatch(r"SS\d{3}", code)
    assert check.severity in checks.SEVERITIES
    assert check.thresholds
    for text in (check.title, check.asks, check.remedy, *(x.reason for x in check.thresholds)):
        assert re.search(r"[\u4e00-\u9fff]", text.zh)
        assert not re.search(r"[\u4e00-\u9fff]", text.en)
    assert all(x.source for x in check.thresholds)


@pytest.mark.parametrize("code", CHECKS)
def test_each_has_its_page_in_both_languages(code):
    check = CHECKS[code]
    page = (DOCS / f"{code}.md").read_text("utf-8")
    chinese, _, english = page.partition("\n## English")
    assert chinese.startswith(f"# {code}")
    assert check.title.zh in chinese
    assert check.title.en in page.splitlines()[0]
    assert "## 中文" in chinese
    for heading in ("### 是什么", "### 阈值和理由", "### 健康的模型", "### 怎么办"):
        assert heading in chinese
    for heading in ("### What it means", "### Threshold and why", "### On healthy models", "### What to do"):
        assert heading in english
    for threshold in check.thresholds:
        for part, reason in ((chinese, threshold.reason.zh), (english, threshold.reason.en)):
            assert f"| {threshold.value:g} | {reason} | {threshold.source} |" in part


def test_no_page_is_left_over():
    assert {path.stem for path in DOCS.glob("SS*.md")} == set(CHECKS)
