"""The worked examples, against decimal arithmetic, scipy, torch and plain Python."""

import math
from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
import torch

import softscope
from experiments.small import result
from softscope.experiments import attention, cliff, uses, weights
from softscope.experiments.ledger import paper


def exact(scores, d=None):
    """Exponentials, weights and slopes to 60 digits, of scores divided by √d."""
    with localcontext() as context:
        context.prec = 60
        x = [Decimal(score) / (Decimal(d).sqrt() if d else 1) for score in scores]
        e = [value.exp() for value in x]
        s = [value / sum(e) for value in e]
        slopes = [s[i] * sum(s[:i] + s[i + 1 :]) for i in range(len(s))]
        return [[float(value) for value in column] for column in (x, e, s, slopes)]


# lanes


@pytest.mark.parametrize(
    ("key", "scores", "d"), [("blow_up", [-30, 60, -10], 512), ("five", [-24, -10, 0, 10, 24], 64)]
)
def test_the_examples_step_by_step(key, scores, d):
    table = result("lanes")[key]
    assert table.column("score") == scores
    for prefix, divided in (("", None), ("scaled_", d)):
        x, e, s, slopes = exact(scores, divided)
        if divided:
            assert table.column("scaled") == pytest.approx(x, rel=1e-14, abs=1e-300)
        assert table.column(prefix + "exp") == pytest.approx(e, rel=1e-13)
        assert table.column(prefix + "weight") == pytest.approx(s, rel=1e-13)
        assert table.column(prefix + "slope") == pytest.approx(slopes, rel=1e-9)  # 1 − s of a float64 weight


def test_the_lanes_are_those_of_random_normal_scores():
    """Against other draws: at d = 64 a score is nearly normal, so its 0.135% quantiles lie near three deviations."""
    plain, scaled = result("lanes")["lanes"].records()
    assert plain["low"] == pytest.approx(8.0 * scaled["low"])
    assert plain["high"] == pytest.approx(8.0 * scaled["high"])
    for edge in (-scaled["low"], scaled["high"]):
        assert edge == pytest.approx(3.1, abs=0.2)  # the product of normals has heavier tails than a normal
    rng = np.random.default_rng(11)
    q, k = rng.standard_normal((2, 2000, 10, 64))
    for row, scale in ((plain, 1.0), (scaled, 0.125)):
        s = scipy.special.softmax(scale * np.einsum("nqd,nkd->nqk", q, k), axis=-1)
        trace = (s * (1.0 - s)).sum(axis=-1)
        assert row["peak"].value == pytest.approx(s.max(axis=-1).mean(), abs=5 * row["peak"].error)
        assert row["trace"] == pytest.approx(np.median(trace), rel=0.15)
        assert row["flat"].value == pytest.approx((trace < 0.01).mean(), abs=5 * row["flat"].error + 1e-9)


def test_the_range_of_the_scores():
    table = result("lanes")["range"]
    for n in (4, 64):
        plain, scaled = (table.row(scores=name, n=n) for name in ("Q·Kᵀ", "Q·Kᵀ/√64"))
        for end in ("lowest", "highest"):
            assert plain[end].value == pytest.approx(8.0 * scaled[end].value)
        assert plain["square"].value == pytest.approx(64.0, abs=5 * plain["square"].error)
        assert scaled["square"].value == pytest.approx(1.0, abs=5 * scaled["square"].error)
    # Entries that share a row or a column are dependent, yet their largest is near that of n² independent ones.
    few, many = (table.row(scores="Q·Kᵀ/√64", n=n)["highest"].value for n in (4, 64))
    independent = [np.random.default_rng(2).standard_normal((4000, n * n)).max(axis=1).mean() for n in (4, 64)]
    assert [few, many] == pytest.approx(independent, rel=0.12)


def test_what_is_quoted_is_the_papers_and_what_is_measured_agrees_with_its_footnote():
    table = result("lanes")["paper"]
    assert {r["d"]: (r["perplexity"], r["bleu"]) for r in table.records()} == paper.TABLE_3_ROWS_B
    for row in table.records():
        assert row["mean"].value == pytest.approx(0.0, abs=5 * row["mean"].error)
        assert row["variance"].value == pytest.approx(row["d"], abs=5 * row["variance"].error)


# saturation: the cliff


def test_the_wall_in_closed_form():
    for row in result("saturation")["cliff"].records():
        k = row["gain"]
        assert row["width"] == pytest.approx(2.0 * math.log(9.0) / k, rel=1e-5)
        assert row["steepest"] == pytest.approx(k / 4.0)
        assert row["roof"] == pytest.approx(k * math.exp(-k) / (1.0 + math.exp(-k)) ** 2, rel=1e-9)
        # k·s(1−s) = 0.01 has one solution on each side, if the ramp is that steep anywhere.
        edge = scipy.optimize.brentq(lambda x, k=k: k / (4.0 * math.cosh(k * x / 2.0) ** 2) - cliff.FLAT, 0.0, 20.0 / k)
        assert row["flat"] == pytest.approx(max(0.0, 1.0 - edge / cliff.EDGE), abs=1e-3)


def test_the_curve_rises_by_one_whatever_the_gain():
    curve = result("saturation")["cliff_curve"]
    for k in cliff.GAINS[1:]:
        rows = [r for r in curve.records() if r["gain"] == k]
        assert rows[-1]["weight"] - rows[0]["weight"] == pytest.approx(1.0, abs=1e-4)
        assert [r["weight"] for r in rows] == pytest.approx([scipy.special.expit(k * r["x"]) for r in rows], rel=1e-12)


# weights


def test_the_shares_are_logarithms_of_each_other():
    rows = result("weights")["shares"].records()
    assert [r["percent"] for r in rows] == ["10%", "70%", "20%", "0%"]
    assert [r["softmax"] for r in rows] == pytest.approx([0.1, 0.7, 0.2, 0.0], rel=1e-14)
    assert rows[3]["softmax"] == 0.0
    assert rows[3]["score"] == -math.inf
    for row in rows:
        assert row["drawn"].value == pytest.approx(row["weight"], abs=5 * row["drawn"].error)


def test_where_softmax_prints_and_becomes_zero():
    table = result("weights")["zero"]
    for places in (1, 2, 4):
        row = table.row(case=f"softmax, decimals printed: {places}")
        w = 0.5 * 10.0**-places
        # 0.7·e^−g/(1 + 0.7·e^−g) = w
        assert row["gap"] == pytest.approx(math.log(0.7 * (1.0 - w) / w), rel=1e-9)
        assert row["power"] == pytest.approx(math.log10(w), rel=1e-9)
    for dtype, smallest in (("float16", 2.0**-24), ("float32", 2.0**-126), ("float64", 2.0**-1022)):
        row = table.row(case=f"softmax, underflow in {dtype}")
        assert float(softscope.softmax(weights._row(row["gap"]).astype(dtype))[-1]) == 0.0
        assert float(softscope.softmax(weights._row(0.98 * row["gap"]).astype(dtype))[-1]) > 0.0
        assert row["power"] == pytest.approx(math.log10(smallest), abs=0.35)


def test_where_the_sparse_maps_become_zero():
    """sparsemax of (z₁, z₂, z₃, x) drops x at the threshold τ of the other three; entmax likewise with its own."""
    z = np.log([0.1, 0.7, 0.2])
    tau = scipy.optimize.brentq(lambda t: np.maximum(z - t, 0.0).sum() - 1.0, -5.0, 5.0)
    assert result("weights")["zero"].row(case="sparsemax, exactly")["gap"] == pytest.approx(z.max() - tau, rel=1e-9)
    half = scipy.optimize.brentq(lambda t: (np.maximum(z / 2.0 - t, 0.0) ** 2).sum() - 1.0, -5.0, 5.0)
    found = result("weights")["zero"].row(case="entmax 1.5, exactly")["gap"]
    assert found == pytest.approx(z.max() - 2.0 * half, abs=1e-6)


def test_a_negative_weight_leaves_the_hull():
    table = result("weights")["negative"]
    linear = table.row(map="x/Σx")
    assert [linear[f"alpha_{i}"] for i in (1, 2, 3)] == pytest.approx([0.8, -0.3, 0.5])
    assert (linear["x"], linear["y"]) == pytest.approx((0.8 + 0.5, -0.3 + 0.5))
    assert linear["size"] == pytest.approx(1.6)
    hull = scipy.spatial.Delaunay(weights.VALUES)
    for row in table.records():
        corner = hull.find_simplex([row["x"], row["y"]], tol=1e-9) >= 0
        assert row["inside"] == corner == (row["alpha_2"] >= 0.0)
    assert [r["inside"] for r in table.records()] == [False, True, True, True]


# attention


def test_every_step_against_torch():
    q, k, v = (torch.from_numpy(x) for x in np.random.default_rng(0).standard_normal((3, 3, 4)))
    dots = torch.einsum("id,jd->ij", q, k)
    wanted = [dots, dots / 2.0, torch.softmax(dots / 2.0, dim=-1)]
    found = [[r[f"key_{j}"] for j in (1, 2, 3)] for r in result("attention")["steps"].records()]
    np.testing.assert_allclose(found, torch.cat(wanted).numpy(), rtol=1e-12)
    output = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    parts = [[r[f"part_{j}"] for j in (1, 2, 3, 4)] for r in result("attention")["output"].records()]
    np.testing.assert_allclose(parts, output.numpy(), rtol=1e-12)
    assert max(result("attention")["output"].column("difference")) < 1e-14


def test_only_the_last_axis_with_keepdims_is_right():
    table = result("attention")["axis"]
    assert table.column("shape") == ["(3, 1)", "(3,)", "(1, 3)", "(1, 1)"]
    right, lost, down, flat = table.records()
    assert (right["rows"], down["columns"]) == ("1.000", "1.000")
    assert right["difference"] < 1e-15
    assert min(r["difference"] for r in (lost, down, flat)) > 0.05
    assert [r["wide"].en for r in table.records()] == ["right", "error", "wrong", "wrong"]


def test_the_step_by_hand_is_the_librarys_softmax():
    x = np.random.default_rng(4).standard_normal((2, 3, 5))
    np.testing.assert_allclose(attention.rows_to_weights(x), scipy.special.softmax(x, axis=-1), rtol=1e-13)
    np.testing.assert_allclose(attention.rows_to_weights(x, axis=0), scipy.special.softmax(x, axis=0), rtol=1e-13)


# temperature: the uses


def test_how_many_answers_differ():
    """For known weights, the expected number of different answers in ten draws is Σ 1 − (1 − p)¹⁰."""
    logits = np.tile(np.log([0.5, 0.3, 0.15, 0.05]), (3000, 1))
    table = uses.uses(logits, np.random.default_rng(1))
    for row in table.records():
        p = scipy.special.softmax(logits[0] / row["T"])
        assert row["different"].value == pytest.approx(np.sum(1.0 - (1.0 - p) ** 10), abs=5 * row["different"].error)
        assert row["top"].value == pytest.approx(p[0], abs=5 * row["top"].error)
        assert row["entropy"].value == pytest.approx(scipy.stats.entropy(p))


def test_the_uses_are_ordered_as_they_are_meant():
    table = result("temperature")["uses"]
    assert Counter(r["use"].en for r in table.records()) == {
        "code": 2,
        "translation, summaries": 1,
        "creative writing": 2,
        "distillation": 2,
    }
    different = [r["different"].value for r in table.records()]
    assert table.column("T") == sorted(table.column("T"))
    assert different == sorted(different)
    assert table.row(T=1.0)["promise"].en == "unchanged"
