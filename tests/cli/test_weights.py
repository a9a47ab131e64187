"""The numbers of `explain`, against formulas written out here."""

import math

import pytest

from cli.commands import MAPS, RIVALS, softmax


def column(document, name):
    return [entry[name] for entry in document["entries"]]


def test_softmax_of_1_2_3(run):
    document = run.json("explain", 1, 2, 3)
    assert column(document, "weight") == pytest.approx([0.0900306, 0.2447285, 0.6652410], abs=5e-8)
    assert column(document, "logit") == [1.0, 2.0, 3.0]
    assert column(document, "index") == [0, 1, 2]
    s = [0.0900306, 0.2447285, 0.6652410]
    assert column(document, "s_one_minus_s") == pytest.approx([p * (1 - p) for p in s], abs=1e-7)
    readings = document["readings"]
    assert readings["entropy"] == pytest.approx(0.8323956, abs=1e-7)
    assert readings["effective_support"] == pytest.approx(2.2988193, abs=1e-6)
    assert readings["jacobian_trace"] == pytest.approx(1 - sum(p * p for p in s), abs=1e-6)
    assert readings["sharpness"] == pytest.approx(1 - 0.8323956 / math.log(3), abs=1e-6)
    assert readings["peak"] == pytest.approx(0.6652410, abs=1e-7)
    assert readings["weight_sum"] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("T", [0.1, 0.5, 1.0, 3.0, 100.0])
def test_temperature(run, T):
    x = [2.0, 2.1, 2.2, -1.0]
    document = run.json("explain", *x, "--temperature", T)
    wanted, plain = softmax(x, T), softmax(x)
    assert document["temperature"] == T
    assert column(document, "weight") == pytest.approx(wanted, rel=1e-13)
    assert column(document, "weight_at_temperature_1") == pytest.approx(plain, rel=1e-13)
    assert column(document, "slope") == pytest.approx([p * (1 - p) / T for p in wanted], rel=1e-12)
    for name, s in (("readings", wanted), ("readings_at_temperature_1", plain)):
        assert document[name]["entropy"] == pytest.approx(-sum(p * math.log(p) for p in s), rel=1e-12)


def test_sparsemax(run):
    document = run.json("explain", 1, 2, 2.5, "--map", "sparsemax")
    assert column(document, "weight") == pytest.approx([0.0, 0.25, 0.75], abs=1e-15)
    assert column(document, "weight")[0] == 0.0
    assert column(document, "slope") == [0.0, 0.5, 0.5]  # 1 − 1/k on a support of size k
    assert document["findings"] == ["zero_weights"]
    assert document["map"] == {"name": "sparsemax", "alpha": 2.0, "in_library": True}


def test_entmax(run):
    # With 2 and 3 on the support: (1 − τ)² + (1.5 − τ)² = 1.
    tau = (2.5 - math.sqrt(2.5**2 - 2 * (1 + 2.25 - 1))) / 2
    document = run.json("explain", 1, 2, 3, "--map", "entmax:1.5")
    assert column(document, "weight") == pytest.approx([0.0, (1 - tau) ** 2, (1.5 - tau) ** 2], abs=1e-12)
    assert document["map"]["alpha"] == 1.5
    assert run.json("explain", 1, 2, 3, "--map", "entmax")["entries"] == document["entries"]
    ends = run.json("explain", 1, 2, 3, "--map", "entmax:1"), run.json("explain", 1, 2, 3)
    assert column(ends[0], "weight") == pytest.approx(column(ends[1], "weight"), rel=1e-14)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("linear", [-0.5, 0.5, 1.0]),
        ("relu", [0.0, 1 / 3, 2 / 3]),
        ("sigmoid", [1 / (1 + math.e), 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-2))]),
        ("hardmax", [0.0, 0.0, 1.0]),
    ],
)
def test_rivals(run, name, wanted):
    document = run.json("explain", -1, 1, 2, "--map", name)
    assert column(document, "weight") == pytest.approx(wanted, rel=1e-14)
    assert document["map"] == {"name": name, "alpha": None, "in_library": False}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("T", [1.0, 0.8])
def test_slope_is_what_a_small_step_shows(run, name, T):
    x, h = [0.3, 1.1, 0.9, 1.4], 1e-6
    slope = column(run.json("explain", *x, "--map", name, "-T", T), "slope")
    for i in range(len(x)):
        up, down = ([value + sign * h * (i == j) for j, value in enumerate(x)] for sign in (1, -1))
        weights = [column(run.json("explain", *map(repr, y), "--map", name, "-T", T), "weight")[i] for y in (up, down)]
        assert slope[i] == pytest.approx((weights[0] - weights[1]) / (2 * h), rel=1e-5, abs=1e-8), (i, name)


@pytest.mark.parametrize("name", MAPS)
def test_extremes_stay_json(run, name):
    for x in ([1e308, -1e308], [0.0, 1e-320], [-745.0, -800.0], [0, 0, 0], [5e-324], [-3, -2, -1], [1e300] * 30):
        for T in (1e-320, 1e-3, 1.0, 1e300):
            document = run.json("explain", *x, "--map", name, "--temperature", T)
            weights = column(document, "weight")
            assert all(w is None or math.isfinite(w) for w in weights)
            if name not in RIVALS:
                assert math.fsum(weights) == pytest.approx(1.0, abs=1e-12)
            run.text("explain", *x, "--map", name, "--temperature", T)


def test_near_one_hot_nothing_cancels(run):
    document = run.json("explain", 0, 50)
    assert column(document, "s_one_minus_s") == pytest.approx([math.exp(-50)] * 2, rel=1e-12, abs=0.0)
    assert document["readings"]["jacobian_trace"] == pytest.approx(2 * math.exp(-50), rel=1e-12, abs=0.0)
    assert document["findings"] == ["saturated"]


@pytest.mark.parametrize(
    ("words", "findings"),
    [
        (["1", "2", "3"], []),
        (["-1", "1", "--map", "linear"], ["undefined"]),
        (["-1", "-2", "--map", "relu"], ["undefined"]),
        (["0.1", "0.3", "-0.4", "--map", "linear"], ["undefined"]),  # −1e-16 in floats
        (["-1", "2", "--map", "linear"], ["negative_weights"]),
        (["1", "2", "--map", "sigmoid"], ["sum_not_one"]),
        (["1", "-0.9999999999", "--map", "linear"], ["negative_weights"]),  # huge weights, whose sum is rounded
        (["1", "2", "--map", "hardmax"], ["zero_weights", "no_slope"]),
        (["1", "9", "--map", "sparsemax"], ["zero_weights", "no_slope"]),
        (["0", "9"], ["saturated"]),
        (["0", "2"], []),
        (["7"], []),
    ],
)
def test_findings(run, words, findings):
    document = run.json("explain", *words)
    assert document["findings"] == findings
    if findings == ["undefined"]:
        assert all(entry["weight"] is None for entry in document["entries"])
        assert document["readings"]["entropy"] is None


def test_document_is_versioned_and_speaks_no_language(run):
    document = run.json("explain", 1, 2, 3)
    assert (document["schema"], document["schema_version"]) == ("softscope.explain", 1)
    assert run("explain", 1, 2, "--format", "json", "--lang", "zh") == run(
        "explain", 1, 2, "--format", "json", "--lang", "en"
    )
    assert list(document) == [
        "schema", "schema_version", "softscope_version", "map", "temperature", "source", "count", "entries",
        "readings", "readings_at_temperature_1", "findings", "rows",
    ]  # fmt: skip
    assert list(document["entries"][0]) == [
        "index", "logit", "weight", "s_one_minus_s", "slope", "weight_at_temperature_1",
    ]  # fmt: skip
