"""The oracles against values known by hand and against each other, so a wrong oracle shows up."""

import ast
import math
from pathlib import Path

import pytest
from mpmath import mp, mpf

from oracle import attention, derivatives, gradients, losses, readings, rows, sparse, temperatures
from oracle.attention import Options

ROW = [2.0, 0.5, -1.25, 1.75, -3.0]
NEAR = mpf(10) ** -33


def near(got: object, want: object, tolerance: mpf = NEAR) -> None:
    assert abs(mpf(got) - mpf(want)) <= tolerance * max(1, abs(mpf(want))), f"got {got}, wanted {want}"


def all_near(got: list, want: list, tolerance: mpf = NEAR) -> None:
    for g, w in zip(got, want, strict=True):
        near(g, w, tolerance)


def test_the_oracles_import_nothing_from_the_package() -> None:
    files = sorted(Path(__file__).parent.glob("*.py"))
    assert len(files) >= 8, f"found only {files}"
    for file in files:
        nodes = list(ast.walk(ast.parse(file.read_text())))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert not [name for name in names if name.split(".")[0] == "softscope"], file
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        assert not {f.id for f in called if isinstance(f, ast.Name)} & {"__import__", "exec", "eval"}, file


def test_softmax_known_by_hand() -> None:
    with mp.workdps(50):
        logs = [float(math.log(k)) for k in (1, 2, 5)]
        all_near(rows.weights(logs), [0.125, 0.25, 0.625], mpf(2) ** -51)
        all_near(rows.weights([0, 0, 0, 0]), [0.25] * 4)
        all_near(rows.weights([0, 1]), [1 / (1 + mp.e), mp.e / (1 + mp.e)])
        all_near(rows.weights([0, 2], temperature=2), [1 / (1 + mp.e), mp.e / (1 + mp.e)])
        all_near(rows.weights([7, 1, -math.inf], visible=[False, True, True]), [0, 1, 0])
        assert rows.weights([1, 2], visible=[False, False]) == [0, 0]
        near(rows.logsumexp([1e30, 1e30]), mpf(1e30) + mp.log(2), mpf(10) ** -48)
        near(rows.logsumexp([3.0] * 7, temperature=0.5), 6 + mp.log(7))
        assert rows.logsumexp([-math.inf]) == -mp.inf
        near(rows.log_weights([0, -1000])[0], 0)
        near(rows.log_weights([0, -1000])[1], -1000)
        all_near([mp.exp(v) for v in rows.log_weights(ROW, 0.5)], rows.weights(ROW, 0.5))


def test_readings_known_by_hand() -> None:
    flat = readings.partition([5.0] * 8, temperature=3)
    with mp.workdps(50):
        wanted = (8, 5, mpf(5) / 3 + mp.log(8), mp.log(8), 1 / mpf(8), 1 / mpf(8), 0, 0, 7 / mpf(8), 8, 0)
        all_near(list(flat), list(wanted))
        two = readings.partition([0.0, 1.0])
        p = 1 / (1 + mp.e)
        near(two.variance, p * (1 - p))
        near(two.jacobian_trace, 2 * p * (1 - p))
        near(two.collision, p**2 + (1 - p) ** 2)
    assert readings.partition([4.0]).sharpness == 0
    nothing = readings.partition([1.0, 2.0], visible=[False, False])
    assert (nothing.count, nothing.lse, nothing.max_logit) == (0, -mp.inf, -mp.inf)
    assert mp.isnan(nothing.entropy)


@pytest.mark.parametrize("gap", [1, 18.420680743952367, 40, 300, 700])
def test_readings_keep_their_digits_near_one_hot(gap: float) -> None:
    """With two entries the small weight is 1/(1 + e^gap), and no closed form cancels."""
    got = readings.partition([0.0, -gap])
    with mp.workdps(400):
        e = 1 / (1 + mp.exp(mpf(gap)))
        for reading, want in [
            (got.entropy, mp.log1p(mp.exp(-mpf(gap))) + gap * e),
            (got.jacobian_trace, 2 * e * (1 - e)),
            (got.variance, mpf(gap) ** 2 * e * (1 - e)),
        ]:
            assert abs(reading / want - 1) < mpf(10) ** -40


def test_readings_are_those_of_the_partition_function() -> None:
    """Mean and variance of x are the first two derivatives of A(beta); entropy is A minus beta times A'."""
    with mp.workdps(120):

        def a(beta: mpf) -> mpf:
            return rows.logsumexp(ROW, 1 / beta)

        got = readings.partition(ROW)
        near(got.mean + got.max_logit, derivatives.derivative(a, 1))
        slope = derivatives.gradient(lambda x: rows.logsumexp(x), ROW)
        all_near(slope, rows.weights(ROW))
        second = derivatives.derivative(lambda b: derivatives.derivative(a, b, 200), 1, 200)
        near(got.variance, second)
        near(got.entropy, a(mpf(1)) - derivatives.derivative(a, 1))
        near(got.collision, mp.exp(rows.logsumexp(ROW, mpf(1) / 2) - 2 * rows.logsumexp(ROW)))


def test_sparsemax_and_entmax_known_by_hand() -> None:
    assert sparse.sparsemax([1.0, 0.5, -4.0]) == [0.75, 0.25, 0]
    assert sparse.sparsemax([3.0, 1.0], temperature=4) == [0.75, 0.25]
    assert sparse.sparsemax([0.0, 0.0, 9.0], visible=[True, True, False]) == [0.5, 0.5, 0]
    assert sparse.sparsemax([1e308, -1e308]) == [1, 0]
    with mp.workdps(50):
        # alpha = 1.5: ((x/2 - tau)_+)^2; for (0, 1) the roots a - b = 1/2, a^2 + b^2 = 1.
        b = (-1 + mp.sqrt(7)) / 4
        all_near(sparse.entmax([0.0, 1.0], 1.5), [b**2, (b + 0.5) ** 2])
        near(sparse.tau([0.0, 1.0], 1.5), -b)
        all_near(sparse.entmax([4.0] * 5, 1.25), [0.2] * 5, mpf(10) ** -16)


@pytest.mark.parametrize("alpha", [1 + 1e-12, 1.01, 1.3, 1.5, 1.9, 2 - 1e-9, 2.0, 2 + 1e-9, 3.0, 10.0, 1e4])
def test_entmax_is_the_maximiser_it_is_defined_as(alpha: float) -> None:
    """x - p^(alpha-1)/(alpha-1) is constant on the support, and x does not exceed that constant elsewhere."""
    # Beyond alpha 2 only what lies closer and closer to the maximum has weight.
    close = [2.0 + (x - 2.0) / 8 / max(alpha - 1, 1) ** 2 for x in ROW]
    for row in (ROW, close, [2.0, 2.0, 1.0, 1.75]):
        p = sparse.entmax(row, alpha)
        with mp.workdps(60):
            near(mp.fsum(p), 1, mpf(10) ** -40)
            a = mpf(alpha) - 1
            level = [mpf(x) - w**a / a for x, w in zip(row, p, strict=True) if w > 0]
            assert max(level) - min(level) < mpf(10) ** -40 / a
            assert all(x <= max(level) + mpf(10) ** -40 / a for x, w in zip(row, p, strict=True) if w == 0)
            near(sparse.tau(row, alpha), a * level[0], mpf(10) ** -33)
        if alpha == 2:
            all_near(p, [mpf(w.numerator) / w.denominator for w in sparse.sparsemax(row)])


def test_entmax_meets_softmax_and_sparsemax() -> None:
    soft = rows.weights(ROW)
    for eps in (1e-6, 1e-12):
        all_near(sparse.entmax(ROW, 1 + eps), soft, mpf(10 * eps))
        all_near(sparse.entmax(ROW, 2 - eps), sparse.entmax(ROW, 2), mpf(10 * eps))
        all_near(sparse.entmax(ROW, 2 + eps), sparse.entmax(ROW, 2), mpf(10 * eps))


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 2.0, 2.5])
def test_jacobian_by_differences_has_its_known_shape(alpha: float) -> None:
    got = derivatives.jacobian(lambda x: sparse.entmax(x, alpha), ROW)
    with mp.workdps(50):
        s = [w ** (2 - mpf(alpha)) if w > 0 else mpf(0) for w in sparse.entmax(ROW, alpha)]
        for i, row in enumerate(got):
            all_near(row, [(i == j) * s[i] - s[i] * s[j] / mp.fsum(s) for j in range(len(ROW))])
        trace = sparse.jacobian_trace(sparse.entmax(ROW, alpha), alpha)
        near(mp.fsum(got[i][i] for i in range(len(ROW))), trace)


def test_derivative_in_alpha_sums_to_nothing_and_is_smooth_at_1() -> None:
    slopes = [
        [derivatives.derivative(lambda a, i=i: sparse.entmax(ROW, a)[i], alpha) for i in range(len(ROW))]
        for alpha in (1.0, 1 + 1e-9)
    ]
    near(mp.fsum(slopes[0]), 0)
    all_near(slopes[0], slopes[1], mpf("1e-7"))
    assert max(abs(v) for v in slopes[0]) > 0.01


def test_losses_known_by_hand() -> None:
    logits = [[0.0, 1.0], [2.0, 2.0], [5.0, 1.0]]
    with mp.workdps(50):
        got = losses.cross_entropy(logits, [1, 0, -100])
        near(got[0], mp.log1p(mp.exp(-1)))
        near(got[1], mp.log(2))
        assert got[2] is None
        near(losses.mean_kept(got), (mp.log1p(mp.exp(-1)) + mp.log(2)) / 2)
        smooth = losses.cross_entropy([[0.0, 1.0]], [1], label_smoothing=0.5)[0]
        near(smooth, mp.log1p(mp.exp(-1)) + mpf(1) / 4)
        assert losses.mean_kept([None, None]) == 0
        near(losses.distillation_loss(logits, logits, 3), 0)
        two = losses.distillation_loss([[0.0, 0.0]], [[0.0, 1.0]], 2)
        h = readings.partition([0.0, 1.0], 2).entropy
        near(two, 4 * (mp.log(2) - h))


def test_temperatures_known_by_hand() -> None:
    with mp.workdps(50):
        near(temperatures.temperature_for([0.0, 6.0], peak=0.75), 6 / mp.log(3))
        for t in (0.25, 1.0, 40.0):
            near(temperatures.temperature_for(ROW, entropy=readings.partition(ROW, t).entropy), t, mpf("1e-30"))
    assert mp.isnan(temperatures.temperature_for([0.0, 0.0, -1.0], peak=0.6))
    assert mp.isnan(temperatures.temperature_for(ROW, entropy=2.0))
    # Three of four are right, all with the same gap: the best confidence is 3/4, with no calibration error left.
    fit = temperatures.fit_temperature([[0.0, 5.0]] * 4, [1, 1, 1, 0])
    with mp.workdps(50):
        near(fit.temperature, 5 / mp.log(3))
        near(fit.ece_before, 1 / (1 + mp.exp(-5)) - mpf(3) / 4)
        near(fit.ece_after, 0)
        near(fit.nll_after, readings.entropy([mpf(1) / 4, mpf(3) / 4]))


def test_attention_known_by_hand() -> None:
    q, k, v = [[1.0], [2.0]], [[0.0], [1.0], [3.0]], [[1.0, 0.0], [0.0, 1.0], [4.0, 4.0]]
    raw = attention.products(q, k, 0.5)
    assert raw == [[0, 0.5, 1.5], [0, 1, 3]]
    causal = Options(causal=True)
    assert attention.outputs(raw, v, causal)[0] == [1, 0]
    with mp.workdps(50):
        all_near(attention.outputs(raw, v, causal)[1], rows.weights([0, 1]))
        assert [attention.visible(i, 3, Options(window=(1, 0), query_start=1)) for i in range(2)] == [
            [True, True, False],
            [False, True, True],
        ]
        off_by_one = attention.outputs([[mpf(0)]], [[1.0]], Options(sink=0.0))
        near(off_by_one[0][0], 0.5)
        capped = attention.logits(0, raw[0], Options(softcap=1.0, mask=[[0.0, -2.0, -1e30]], hidden_at=-1e29))
        all_near(capped[:2], [0, mp.tanh(mpf(1) / 2) - 2])
        assert capped[2] == -mp.inf
        got = attention.partition(1, raw[1], Options(softcap=2.0, mask=[[True] * 3, [True, True, False]]))
        assert (got.count, got.max_logit) == (2, 1)
        near(got.lse, rows.logsumexp([0, 2 * mp.tanh(mpf(1) / 2)]))
        added = attention.additive_products([[1.0]], [[2.0]], [[0.5, 0.0]], [[1.0, -1.0]], [3.0, 5.0])
        near(added[0][0], 3 * mp.tanh(mpf(5) / 2) + 5 * mp.tanh(-2))


@pytest.mark.parametrize("options", [Options(), Options(sink=0.0), Options(alpha=1.5), Options(alpha=2.0)])
def test_a_uniform_row_transmits_all(options: Options) -> None:
    got = gradients.gradient_readings(0, [0.0] * 3, [[1.0], [2.0], [-4.0]], [1.0], options)
    n = 3 + (options.sink is not None)
    with mp.workdps(50):
        # s = p^(2 - alpha) on the support: the entmax of a uniform row transmits n^(alpha - 1) times as much.
        near(got.transmission, mpf(n) ** (mpf(options.alpha) - 1))
        near(got.advantage, 0)
        near(got.regret_ratio, 1)
        assert not got.blocked


def test_gradient_readings_are_those_of_the_closed_form() -> None:
    raw, v, g = [0.5, -1.0, 2.0, 0.25], [[1.0, 2.0], [0.0, -1.0], [3.0, 1.0], [-2.0, 0.5]], [0.75, -1.5]
    cap = 1.5
    got = gradients.gradient_readings(0, raw, v, g, Options(softcap=cap))
    with mp.workdps(50):
        p = attention.key_weights(0, raw, Options(softcap=cap))
        d_p = [mp.fsum(a * b for a, b in zip(vj, map(mpf, g), strict=True)) for vj in v]
        pull = mp.fsum(w * d for w, d in zip(p, d_p, strict=True))
        slope = [1 - mp.tanh(mpf(s) / cap) ** 2 for s in raw]
        d_s = [c * w * (d - pull) for c, w, d in zip(slope, p, d_p, strict=True)]
        near(got.supply, mp.sqrt(mp.fsum(d**2 for d in d_s)))
        near(got.demand, mp.sqrt(mp.fsum((d - mp.fsum(d_p) / 4) ** 2 for d in d_p)))
    sharp = gradients.gradient_readings(0, [0.0, 20.0], [[1.0], [0.0]], [1.0], Options())
    assert sharp.blocked
    near(sharp.advantage, 1, mpf("1e-8"))
    near(sharp.regret_ratio, 0, mpf("1e-8"))
