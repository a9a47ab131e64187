"""Key numbers of the experiments, against closed forms, scipy, mpmath and torch's derivatives."""

import math

import ml_dtypes
import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from mpmath import mp

from experiments.small import result
from softscope._text import Text, same
from softscope.experiments import derivation, gradients, scores, variance
from softscope.experiments.table import bracketed


def exact_softmax(row, temperature=1.0):
    with mp.workdps(50):
        e = [mp.exp(mp.mpf(x) / mp.mpf(temperature)) for x in row]
        return [float(x / mp.fsum(e)) for x in e]


# overflow


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_naive_softmax_breaks_at_the_logarithm_of_the_largest_number(dtype):
    row = result("overflow")["limits"].row(dtype=dtype)
    info = np.finfo(dtype)
    # exp in half precision rounds: allow one step of the logit's own spacing to each side.
    step = {"float16": 0.01, "float32": 1e-5, "float64": 1e-10}[dtype]
    assert row["naive_up"] == pytest.approx(math.log(float(info.max)), abs=step)
    # Before that, every exponential is still finite but their sum is not: zeros.
    silent = math.log(float(info.max)) - math.log(1.0 + math.exp(-1.0) + math.exp(-2.0))
    assert row["sum_up"] == pytest.approx(silent, abs=step)
    lowest = math.log(float(info.smallest_subnormal)) - math.log(2)  # half of it still rounds up to it
    assert row["naive_down"] == pytest.approx(lowest, abs=20 * step)
    assert row["shifted"].en == "finite"


@pytest.mark.parametrize(
    ("dtype", "largest"), [("float16", 11.0859375), ("bfloat16", 88.5), ("float32", None), ("float64", None)]
)
def test_the_largest_logit_is_a_number_of_its_dtype_and_the_next_one_overflows(dtype, largest):
    row = result("overflow")["limits"].row(dtype=dtype)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    bits = np.dtype(f"u{kind.itemsize}")
    for key in ("largest", "sum_up", "naive_up", "naive_down"):
        assert float(np.array(row[key]).astype(kind)) == row[key], f"{row[key]} is not a {dtype}"
    x = np.array(row["largest"]).astype(kind)
    after = (x.view(bits) + bits.type(1)).view(kind)
    with np.errstate(over="ignore"):
        assert np.isfinite(np.exp(x))
        assert np.isinf(np.exp(after))
    assert row["naive_up"] == float(after)
    assert largest in (None, row["largest"])


def test_with_the_shift_nothing_is_lost_and_without_it_nan_comes():
    errors = result("overflow")["errors"]
    assert max(errors.column("shift_error")) < 1e-15
    assert errors.row(c=1000)["naive_error"] is None
    assert errors.row(c=-1000)["naive_error"] is None
    assert errors.row(c=0)["naive_error"] < 1e-15
    assert 1e-6 < errors.row(c=-740)["naive_error"] < 1e-2  # subnormal exponentials: wrong before they break
    stable = result("overflow")["cases"].column("shifted")
    assert stable == ["[0.0900, 0.2447, 0.6652]"] * 3


# extremes


@pytest.mark.parametrize(
    ("case", "row"),
    [("slight", [1, 2, 3]), ("moderate", [1, 5, 10]), ("huge", [1, 50, 100]), ("extreme", [1, 500, 1000])],
)
def test_the_five_cases(case, row):
    found = result("extremes")["cases"].row(case=case)
    wanted = exact_softmax(row)
    assert float(found["peak"]) == pytest.approx(max(wanted), rel=1e-14)
    assert found["rest"] == pytest.approx(wanted[0] + wanted[1], rel=1e-12)
    assert found["entropy"] == pytest.approx(scipy.stats.entropy(wanted), rel=1e-9)
    assert found["rest"] <= found["bound"]


def test_the_ratio_is_a_to_the_power_k():
    for row in result("extremes")["law"].records():
        assert row["measured"] == pytest.approx(row["a"] ** row["k"], rel=1e-14)
        assert row["peak"] == pytest.approx(max(row["a"] ** row["k"], 1) / (1 + row["a"] ** row["k"]), rel=1e-14)


def test_fixed_logits_sharpen_with_small_d_and_random_ones_do_not():
    dimension = result("extremes")["dimension"]
    fixed, random = ([cell.value for cell in dimension.column(key)] for key in ("fixed", "random"))
    assert fixed == sorted(fixed, reverse=True)
    assert fixed[0] > 4 * fixed[-1]
    assert max(random[2:]) - min(random[2:]) < 0.03


# temperature


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("n", [3, 5])
def test_the_sweep(temperature, n):
    logits = list(range(1, n + 1))
    row = result("temperature")["sweep"].row(row=str(logits), T=temperature)
    wanted = exact_softmax(logits, temperature)
    assert row["entropy"] == pytest.approx(scipy.stats.entropy(wanted), rel=1e-12)
    assert row["weights"] == bracketed(wanted)
    printed = [float(w) for w in row["weights"].strip("[]").split(", ")]
    assert printed == pytest.approx(wanted, abs=5e-5)
    assert all(0.0 < w < 1.0 for w in printed), "a weight reads as 0 or 1 and is neither"
    assert row["support"] == pytest.approx(math.exp(scipy.stats.entropy(wanted)), rel=1e-12)


def test_a_calibrated_sampler_likes_it_cold_for_one_attempt_and_not_for_fifty():
    table = result("temperature")["sampler"]
    one, fifty = ([cell.value for cell in table.column(key)] for key in ("pass_1", "pass_50"))
    temperatures = table.column("T")
    assert temperatures[int(np.argmax(one))] <= 0.2
    assert temperatures[int(np.argmax(fifty))] > 1.0
    assert all(a < b for a, b in zip(one, fifty, strict=True))


def test_without_the_square_the_gradient_of_a_soft_target_falls_like_one_over_its_square():
    table = result("temperature")["soft_targets"]
    bare = {row["T"]: row["bare"] for row in table.records()}
    assert bare[8.0] / bare[16.0] == pytest.approx(4.0, rel=0.02)
    for row in table.records():
        assert row["scaled"] == pytest.approx(row["bare"] * row["T"] ** 2)
    entropies = [cell.value for cell in table.column("entropy")]
    assert entropies == sorted(entropies)


def test_soft_targets_teach_more_than_labels():
    students = result("temperature")["students"]
    hard = students.row(target="labels")["kl"]
    soft = students.row(T=4.0)["kl"]
    assert soft.value + 4 * soft.error < hard.value - 4 * hard.error


# saturation


def test_the_norm_of_the_jacobian_in_closed_form():
    for row in result("saturation")["norms"].records():
        with mp.workdps(60):
            g = mp.exp(mp.mpf(row["gap"]))
            s = [g / (g + 3)] + [1 / (g + 3)] * 3
            square = mp.fsum((s[i] * ((i == j) - s[j])) ** 2 for i in range(4) for j in range(4))
            wanted, trace = float(mp.sqrt(square)), float(1 - mp.fsum(x**2 for x in s))
        assert row["norm"] == pytest.approx(wanted, rel=1e-12)
        assert row["trace"] == pytest.approx(trace, rel=1e-12)


def test_the_heat_map_is_the_jacobian_that_autograd_finds():
    for gain in (0.25, 1.0, 4.0):
        z = gain * torch.arange(4.0, dtype=torch.float64)
        wanted = torch.autograd.functional.jacobian(lambda z: torch.softmax(z, -1), z)
        for row in result("saturation")["jacobian"].records():
            if row["gain"] == gain:
                assert row["value"] == pytest.approx(float(wanted[row["i"] - 1, row["j"] - 1]), abs=1e-15)


def test_gradients_of_the_losses_against_autograd():
    for row in result("saturation")["loss"].records():
        z = torch.tensor([row["margin"], 0.0], dtype=torch.float64, requires_grad=True)
        (cross,) = torch.autograd.grad(torch.nn.functional.cross_entropy(z[None], torch.tensor([0])), z)
        p = torch.softmax(z, -1)
        (squared,) = torch.autograd.grad(((p - torch.tensor([1.0, 0.0])) ** 2).sum(), z)
        assert row["cross_entropy"] == pytest.approx(float(cross.norm()), rel=1e-6, abs=1e-15)
        assert row["squared"] == pytest.approx(float(squared.norm()), rel=1e-6, abs=1e-15)
    wrong_and_confident = result("saturation")["loss"].records()[0]
    assert wrong_and_confident["cross_entropy"] == max(result("saturation")["loss"].column("cross_entropy"))


def test_the_derivation_holds_step_by_step():
    proof = result("saturation")["derivation"]
    assert len(proof.rows) == 7
    assert all(proof.column("holds"))


def test_a_wrong_derivation_is_found(monkeypatch):
    import sympy

    x = sympy.Symbol("x")
    wrong = [
        (
            Text(en="wrong", zh="错"),
            same("x = 2x"),
            [sympy.cancel(x - 2 * x), sympy.Integer(0)],
        )
    ]
    monkeypatch.setattr(derivation, "_steps", lambda: iter(wrong))
    assert derivation.derived().column("holds") == [False]


# variance


def test_the_intervals_hold_d_as_often_as_they_say():
    law = result("variance")["law"]
    assert sum(law.column("holds")) >= len(law.rows) - 2
    for row in law.records():
        assert row["variance"] == pytest.approx(row["d"], rel=0.12)
        assert row["low"] < row["variance"] < row["high"]


def test_an_interval_is_as_wide_as_theory_says():
    x = np.random.default_rng(0).standard_normal(40_000)
    found, low, high = variance.interval(x)
    assert found == pytest.approx(x.var(ddof=1))
    assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(2 / 40_000), rel=0.05)  # Var of s² of a normal: 2σ⁴/N


def test_broken_assumptions_give_what_theory_says_instead():
    for row in result("variance")["breaks"].records():
        assert row["variance"] == pytest.approx(row["expected"], rel=0.15), row["case"]
        assert row["mean"] == pytest.approx(row["mean_expected"], abs=4 * math.sqrt(row["variance"] / row["samples"]))


def test_the_distance_from_the_normal_is_scipys():
    x = np.random.default_rng(3).standard_normal(500) * 1.3 + 0.1
    assert variance._distance(x) == pytest.approx(scipy.stats.kstest(x, "norm").statistic, abs=1e-12)
    assert variance._kurtosis(x) == pytest.approx(scipy.stats.kurtosis(x))
    shape = result("variance")["shape"]
    assert shape.row(components="normal", d=1)["distance"] > 5 * shape.row(components="normal", d=64)["distance"]


# entropy


@pytest.mark.parametrize(("d", "wanted"), [(16, 0.75), (64, 0.35), (256, 0.17)])
def test_entropy_of_ten_keys(d, wanted):
    from softscope.experiments.entropy import SCALES

    table = result("entropy")["sharpness"]
    unscaled = table.row(scale=SCALES["unscaled"], keys=10, d=d)["entropy"]
    scaled = table.row(scale=SCALES["scaled"], keys=10, d=d)["entropy"]
    assert unscaled.value == pytest.approx(wanted, abs=0.005 + 4 * unscaled.error)
    assert scaled.value == pytest.approx(1.93, abs=0.005 + 4 * scaled.error)


def test_entropy_of_normal_logits():
    """Independent of attention: the mean entropy of the softmax of 10 standard normal numbers."""
    x = np.random.default_rng(5).standard_normal((20_000, 10))
    wanted = scipy.stats.entropy(scipy.special.softmax(x, axis=1), axis=1).mean()
    from softscope.experiments.entropy import SCALES

    found = result("entropy")["sharpness"].row(scale=SCALES["scaled"], keys=10, d=256)["entropy"]
    assert found.value == pytest.approx(wanted, abs=4 * found.error + 0.01)


# gradients


def test_the_chain_rule_is_autograds():
    rng = np.random.default_rng(0)
    q, k, v, g = (torch.from_numpy(x).requires_grad_() for x in rng.standard_normal((4, 2, 1, 10, 16)))
    logits = 0.3 * (q @ k.transpose(-1, -2))
    logits.retain_grad()
    (torch.softmax(logits, -1) @ v).backward(g)
    found = gradients.backward(*(x.detach().numpy() for x in (q, k, v, g)), scale=0.3)
    for place, wanted in (("logits", logits.grad), ("Q", q.grad), ("K", k.grad), ("V", v.grad)):
        np.testing.assert_allclose(found[place], wanted.norm(dim=-1).numpy(), rtol=1e-10)


def test_the_mean_grows_while_most_rows_starve_and_v_does_not():
    from softscope.experiments.gradients import SCALES

    norms, blocked = result("gradients")["norms"], result("gradients")["blocked"]
    plain = {d: norms.row(place="Q", scale=SCALES["unscaled"], d=d) for d in (16, 256)}
    assert plain[256]["mean"].value > 3 * plain[16]["mean"].value
    assert plain[256]["median"] < plain[16]["median"]
    assert norms.row(place="V", scale=SCALES["unscaled"], d=256)["median"] > 5
    assert blocked.row(scale=SCALES["unscaled"], d=256)["blocked"].value == pytest.approx(0.51, abs=0.08)
    assert blocked.row(scale=SCALES["scaled"], d=256)["blocked"].value == 0


# normalisers


def test_softmax_and_entmax_meet_all_five_requirements():
    table = result("normalisers")["properties"]
    held = {c.key: sum(table.column(c.key)) for c in table.columns[1:]}
    assert held["softmax"] == held["entmax"] == len(table.rows)
    assert held["sparsemax"] == len(table.rows) - 1
    assert not table.row(property="sums to 1")["sigmoid"]
    assert not table.row(property="never negative")["linear"]
    assert not table.row(property="no jumps")["hardmax"]
    kept = {row["map"].en: row["kept"] for row in result("normalisers")["trained"].records()}
    assert kept["softmax"] == kept["entmax 1.5"] == 5
    assert max(value for name, value in kept.items() if name not in ("softmax", "entmax 1.5")) < 5


def test_what_the_maps_make_of_two_rows():
    rows = {row["map"].en: row for row in result("normalisers")["example"].records()}
    assert rows["x/Σx"]["close"] == "[0.317, 0.333, 0.349]"
    assert rows["x/Σx"]["signs"] == "[-2.000, 1, 2.000]"
    softmax = scipy.special.softmax([2.0, 2.1, 2.2])
    assert rows["softmax"]["close"] == "[" + ", ".join(f"{w:.3f}" for w in softmax) + "]"
    biased = scipy.special.expit(np.array([2.0, 2.1, 2.2]) - math.log(3))
    assert rows["sigmoid(x − ln n)"]["close"] == "[" + ", ".join(f"{w:.3f}" for w in biased) + "]"


# scores, initialisation


def test_spread_of_the_scores():
    from softscope.experiments.scores import KINDS

    table = result("scores")["spread"]
    for d in (16, 64):
        dot, scaled = (table.row(score=KINDS[kind], d=d)["spread"] for kind in ("dot", "scaled"))
        assert dot.value == pytest.approx(math.sqrt(d) * scaled.value)
        assert scaled.value == pytest.approx(1.0, abs=4 * scaled.error)
    unit, small = (table.row(score=KINDS[kind], d=64)["spread"].value for kind in ("additive_unit", "additive"))
    assert unit == pytest.approx(8 * small)


def test_few_keys_do_not_bias_the_spread():
    """With q and k of unit variance, the variance of q·k/√d over the keys is 1: its root must not depend on KEYS."""
    rows = {row[0]: row for row in scores.readings(16, 2000, np.random.default_rng(2))}
    spread = rows[scores.KINDS["scaled"]][2]
    assert spread.error < 0.004  # a mean of the rows' own standard deviations is 0.92, or 0.97 with n − 1
    assert spread.value == pytest.approx(1.0, abs=4 * spread.error)


def test_additive_scores_cost_more():
    cost = result("scores")["cost"]
    assert min(cost.column("ratio")) > 3
    assert cost.row(d=64)["additive_memory"] == 64 * cost.row(d=64)["dot_memory"]


def test_spread_follows_the_variance_of_the_weights():
    for row in result("initialisation")["spread"].records():
        ratio = row["spread"].value / row["predicted"]
        assert ratio == pytest.approx(1.0, abs=4 * row["spread"].error / row["predicted"]), row
    batch = result("initialisation")["batch"]
    assert batch.row(components="variance 9")["standard"].value == pytest.approx(1.0)
    assert batch.row(components="variance 9")["root"].value == pytest.approx(9, rel=0.1)
