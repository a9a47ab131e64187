"""Behaviours that the texts describe, each looked for in the tables and charts of the experiment that shows it."""

import json
import math

import numpy as np
import pytest

from experiments.small import result
from softscope.experiments import LANGS, lane_diagram

pytestmark = pytest.mark.xdist_group("experiments")  # a single worker runs each of them once


def drawn(name, lang="en"):
    """What a chart consists of, as JSON text."""
    return json.dumps(result(name).chart(lang).to_dict(), ensure_ascii=False)


def slope_becomes_cliff():
    rows = result("saturation")["cliff"].records()
    assert len(rows) >= 3
    widths, steepest, flat = ([row[key] for row in rows] for key in ("width", "steepest", "flat"))
    assert widths == sorted(widths, reverse=True)
    assert steepest == sorted(steepest)
    assert flat == sorted(flat)
    assert flat[0] < 0.1
    assert flat[-1] > 0.9
    # The picture: at the largest gain all but a sliver lies on the floor or on the roof, at the smallest nothing does.
    curve = result("saturation")["cliff_curve"].records()
    for gain, most, least in ((rows[0]["gain"], 0.1, 0.0), (rows[-1]["gain"], 1.0, 0.9)):
        weights = np.array([row["weight"] for row in curve if row["gain"] == gain])
        assert least <= np.mean((weights < 0.01) | (weights > 0.99)) <= most
        assert f'"k = {gain:g}"' in drawn("saturation")


def scores_blow_up():
    table = result("lanes")["blow_up"]
    assert table.column("score") == [-30.0, 60.0, -10.0]
    assert table.row(score=60.0)["exp"] == pytest.approx(1.142e26, rel=1e-3)
    assert table.row(score=-30.0)["exp"] == pytest.approx(9.36e-14, rel=1e-3)
    assert [round(w, 9) for w in table.column("weight")] == [0.0, 1.0, 0.0]
    assert max(table.column("slope")) < 1e-30


def root_d_mends_it():
    table = result("lanes")["blow_up"]
    assert "√512 = 22.63" in table.title.en
    assert table.column("scaled") == pytest.approx([-1.326, 2.652, -0.442], abs=5e-4)
    assert table.column("scaled_weight") == pytest.approx([0.0176, 0.9398, 0.0426], abs=5e-5)
    assert table.column("scaled_slope") == pytest.approx([0.0173, 0.0566, 0.0408], abs=5e-5)


def negative_weight_subtracts():
    row = result("weights")["negative"].row(map="x/Σx")
    assert row["alpha_2"] == pytest.approx(-0.3)
    assert row["alpha_1"] + row["alpha_2"] + row["alpha_3"] == pytest.approx(1.0)
    assert not row["inside"]
    assert "O = α₁v₁ + α₂v₂ + α₃v₃" in result("weights")["negative"].title.en
    assert all(r["alpha_2"] >= 0.0 and r["inside"] for r in result("weights")["negative"].records()[1:])


def weights_read_as_percentages():
    table = result("weights")["shares"]
    assert [(r["token"], r["weight"], r["percent"]) for r in table.records()] == [
        (1, 0.1, "10%"),
        (2, 0.7, "70%"),
        (3, 0.2, "20%"),
        (4, 0.0, "0%"),
    ]
    assert table.row(token=4)["score"] == -math.inf  # no finite score gives exactly 0
    finite = result("weights")["fade"].records()
    assert all(r["weight"] > 0.0 for r in finite if r["map"].en == "softmax")
    assert any(r["weight"] == 0.0 for r in finite if r["map"].en == "sparsemax")


def five_scores_unscaled():
    table = result("lanes")["five"]
    assert table.column("score") == [-24.0, -10.0, 0.0, 10.0, 24.0]
    assert table.row(score=24.0)["exp"] == pytest.approx(2.65e10, rel=1e-3)
    assert table.row(score=-24.0)["exp"] == pytest.approx(3.78e-11, rel=2e-3)
    assert [round(w, 4) for w in table.column("weight")] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert max(table.column("slope")) < 1e-6


def five_scores_scaled():
    table = result("lanes")["five"]
    assert table.column("scaled") == [-3.0, -1.25, 0.0, 1.25, 3.0]
    assert table.row(score=24.0)["scaled_exp"] == pytest.approx(20.09, abs=5e-3)
    assert table.row(score=-24.0)["scaled_exp"] == pytest.approx(0.0498, abs=5e-5)
    assert table.column("scaled_weight") == pytest.approx([0.0020, 0.0115, 0.0401, 0.1401, 0.8063], abs=5e-5)
    assert sum(table.column("scaled_weight")) == pytest.approx(1.0)
    assert min(table.column("scaled_slope")) > 1e-3


def two_lanes_are_drawn():
    unscaled, scaled = result("lanes")["lanes"].records()
    for lang in LANGS:
        picture = drawn("lanes", lang)
        for lane, (fill, line) in zip((unscaled, scaled), (lane_diagram.RED, lane_diagram.GREEN), strict=True):
            assert f'"fill": "{fill}"' in picture
            assert f'"stroke": "{line}"' in picture
            assert lane["lane"].of(lang) in picture
            assert f"[{lane['low']:.2f}, {lane['high']:.2f}]" in picture
            assert f"{lane['peak'].value:.2f}" in picture
            assert f"{lane['trace']:.3f}" in picture
    assert unscaled["high"] > 20.0 > 4.0 > scaled["high"]
    assert unscaled["peak"].value > 0.8 > 0.4 > scaled["peak"].value
    assert scaled["trace"] > 5.0 * unscaled["trace"]


def paper_is_quoted():
    table = result("lanes")["paper"]
    assert "Quoted, not measured" in table.title.en
    assert [(r["d"], r["perplexity"], r["bleu"]) for r in table.records()] == [
        (64, 4.92, 25.8),
        (32, 5.01, 25.4),
        (16, 5.16, 25.1),
    ]
    assert all("quoted" in c.title.en for c in table.columns if c.key in ("perplexity", "bleu"))
    (footnote,) = [note for note in result("lanes").notes if "footnote 4" in note.en]
    for text in (footnote.en, footnote.zh):
        assert "To illustrate why the dot products get large" in text
        assert "has mean 0 and variance d_k." in text


def temperatures_in_use():
    table = result("temperature")["uses"]
    found = {}
    for row in table.records():
        found.setdefault(row["use"].en, []).append(row["T"])
        assert row["use"].zh != row["use"].en
        assert row["promise"].zh != row["promise"].en
        assert row["entropy"].value > 0.0
        assert 1.0 <= row["different"].value <= 10.0
    assert found["translation, summaries"] == [1.0]
    assert found["creative writing"] == [1.2, 1.5]
    assert found["code"] == [0.2, 0.5]
    assert min(found["distillation"]) > 1.0
    assert len(found) == 4


def softmax_along_the_last_axis():
    right = result("attention")["axis"].row(written="axis=-1, keepdims=True")
    assert right["shape"] == "(3, 1)"
    assert right["rows"] == "1.000"
    assert right["wide"].en == "right"
    assert result("attention")["axis"].row(written="axis=-1, keepdims=False")["rows"] != "1.000"


def attention_step_by_step():
    rows = result("attention")["steps"].records()
    assert [r["query"] for r in rows] == 3 * [1, 2, 3]
    raw, scaled, weights = (
        np.array([[r[f"key_{j}"] for j in (1, 2, 3)] for r in rows[start : start + 3]]) for start in (0, 3, 6)
    )
    np.testing.assert_allclose(scaled, raw / 2.0)
    np.testing.assert_allclose(np.log(weights) - scaled, (np.log(weights) - scaled)[:, :1].repeat(3, axis=1))
    assert [r["sum"] for r in rows[6:]] == pytest.approx(3 * [1.0])
    assert result("attention")["output"].title.en.endswith("of shape (3, 4)")


def range_at_64():
    table = result("lanes")["range"]
    for n in dict.fromkeys(table.column("n")):
        plain, scaled = (table.row(scores=name, n=n) for name in ("Q·Kᵀ", "Q·Kᵀ/√64"))
        assert plain["lowest"].value < scaled["lowest"].value < 0.0 < scaled["highest"].value < plain["highest"].value
        assert plain["highest"].value / scaled["highest"].value == pytest.approx(8.0)


BEHAVIOURS = {
    "F0-2": slope_becomes_cliff,
    "F0-8": scores_blow_up,
    "F0-9": root_d_mends_it,
    "F1-3": negative_weight_subtracts,
    "F1-6": weights_read_as_percentages,
    "F2-3": five_scores_unscaled,
    "F2-5": five_scores_scaled,
    "F2-6": two_lanes_are_drawn,
    "F2-7": paper_is_quoted,
    "F3-9": temperatures_in_use,
    "F3-10": softmax_along_the_last_axis,
    "F3-11": attention_step_by_step,
    "F3-16": range_at_64,
}


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_the_behaviour_is_shown(behaviour):
    BEHAVIOURS[behaviour]()


@pytest.mark.parametrize("name", ["lanes", "weights", "attention"])
def test_tables_are_short_enough_to_read(name):
    assert max(len(table.rows) for table in result(name).readable) <= 12
