"""alpha > 2, where weights leave 0 with infinite slope: clusters at the threshold, the limit, and gradients."""

import math

import numpy as np
import pytest
import torch
from mpmath import mp, mpf

import softscope as ss
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, array, floats
from oracle import derivatives, sparse
from softscope import bounds

LARGEST = 1.7976931348623157e308
ALPHAS = (2 + 2.0**-51, 2.25, 3.0, 10.0, 100.0, 1e4, 1e8, 1e300, LARGEST)
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def clusters(alpha: float, dtype: str, temperature: float) -> list[list[float]]:
    """Rows of which some entries lie close together at the threshold, where one lost bit of x − τ shows in p."""
    b = alpha - 1
    rng = np.random.default_rng(7)
    rows = []
    for share in (0.5, 0.9, 0.999):  # the largest weight, if the cluster has just none
        depth = share**b / b * temperature
        for width in (1e-6, 1e-12, 1e-30):
            rows.append(np.append(depth, width * depth * rng.random(4)))  # next to 0, where floats are densest
            rows.append(np.append(2.0, 2.0 - depth * (1 + width * rng.random(4))))
    rows.append(np.array([1.0, 1.0, 0.3]))
    kind = np.dtype(dtype)
    return [row.astype(kind).astype(float).tolist() for row in rows]


@every_backend
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_weights_at_the_threshold(backend: str, dtype: str, alpha: float) -> None:
    """As exact as any others: to a few roundings of 1, which bounds.support states."""
    with Comparison() as compare:
        for temperature in (1.0, 0.3):
            for row in clusters(alpha, dtype, temperature):
                want = sparse.entmax(row, alpha, temperature)
                got = floats(ss.entmax(array(row, dtype, backend), alpha, temperature=temperature))
                for x, g, w in zip(row, got, want, strict=True):
                    compare.check(
                        f"alpha {alpha!r}, T {temperature}: weight of {x!r}", row, g, w, bounds.support(dtype)
                    )


@every_backend
def test_the_limit_is_an_even_share_of_the_largest(backend: str) -> None:
    x = array([[0.5, 0.5, 0.25, 0.5 - 2.0**-20], [-3.0, 7.0, 7.0, 7.0], [1.0, 2.0, 3.0, -math.inf]], "float64", backend)
    for alpha in (1e16, 1e100, LARGEST):
        want = [[1 / 2, 1 / 2, 0, 0], [0, 1 / 3, 1 / 3, 1 / 3], [0, 0, 1, 0]]
        np.testing.assert_allclose(floats(ss.entmax(x, alpha)), want, rtol=0, atol=bounds.support("float64"))


@every_backend
@pytest.mark.parametrize("gap", [5e-324, 1e-300, 1e-20, 1e-5])
def test_the_way_to_the_limit(backend: str, gap: float) -> None:
    """Of two, the larger tends to ((alpha − 1)·gap)^(1/(alpha − 1)), down to the smallest gap a float can have."""
    for alpha in (2e3, 1e4, 9e4):
        with mp.workdps(40):
            b = mpf(alpha) - 1
            high = (b * mpf(gap)) ** (1 / b)
        got = floats(ss.entmax(array([0.0, -gap], "float64", backend), alpha))
        assert abs(got[0] - high) <= bounds.support("float64"), f"alpha {alpha}: got {got}, want {high}"
        assert abs(got[1] - (1 - high)) <= bounds.support("float64"), f"alpha {alpha}: got {got}, want {high}"


@every_backend
def test_long_rows(backend: str) -> None:
    """Rows that several threads share: even ones, and ramps through the threshold."""
    n = 300_000
    for alpha in (2.5, 20.0):
        for row in (np.zeros(n), -np.linspace(0, 1, n), -(np.linspace(0, 1, n) ** 8) / n):
            p = np.asarray(floats(ss.entmax(array(row, "float32", backend), alpha)))
            assert abs(math.fsum(p) - 1) <= bounds.sum_to_one(n, "float32")
            order = p[np.argsort(-row, kind="stable")]
            assert (np.diff(order) <= 0).all()


@every_backend
def test_one_alpha_for_each_row(backend: str) -> None:
    rng = np.random.default_rng(3)
    x = 0.1 * rng.normal(size=(6, 9))
    alpha = np.array([1.0, 1.5, 2.0, 2.5, 30.0, 1e300])[:, None]
    temperature = rng.random((6, 1)) + 0.5
    many = floats(ss.entmax(*(array(a, "float64", backend) for a in (x, alpha)), temperature=temperature))
    for i in range(6):
        alone = ss.entmax(array(x[i], "float64", backend), float(alpha[i, 0]), temperature=float(temperature[i, 0]))
        np.testing.assert_allclose(many[i], floats(alone), rtol=0, atol=bounds.support("float64"))


def exact_product(p: list[float], v: list[float], alpha: float) -> tuple[list[mpf], list[mpf]]:
    """J·v, and the size of what is added up for it:

    Σ_j s_i·s_j·(v_i − v_j)/Σs with s = p^(2−α): here nothing cancels, though one s may be 1e400 times another.
    """
    with mp.workdps(60):
        s = [mp.exp((2 - mpf(alpha)) * mp.log(mpf(w))) if w else mpf(0) for w in p]
        pairs = list(zip(s, map(mpf, v), strict=True))
        terms = [[a * b * (x - y) / mp.fsum(s) for b, y in pairs] for a, x in pairs]
        return [mp.fsum(t) for t in terms], [mp.fsum(map(abs, t)) for t in terms]


WEIGHTS = {
    "ordinary": [0.5, 0.25, 0.2, 0.05],
    "one small": [0.5, 0.49, 0.01, 0.0],
    "one tiny": [0.75, 0.25, 1e-300, 0.0],
    "one denormal": [0.75, 0.25, 5e-324, 0.0],
    "one-hot": [0.0, 1.0, 0.0, 0.0],
    "two tiny": [0.9, 0.1, 1e-20, 3e-20],
    "all tiny": [1e-30, 2e-30, 3e-30, 0.0],
}
V = [0.75, -1.5, 0.25, 2.0]


@every_backend
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("alpha", [2.0 + 1e-12, 2.5, 4.0, 40.0, 1000.0, LARGEST])
def test_products_where_the_sensitivities_leave_the_range(backend: str, name: str, alpha: float) -> None:
    """J·v is right where it is a number; where two s overflow, it is infinite with the right sign. Never NaN."""
    p = WEIGHTS[name]
    got = floats(ss.jacobian_product(array(p, "float64", backend), array(V, "float64", backend), alpha=alpha))
    dense = floats(ss.jacobian(array(p, "float64", backend), alpha=alpha))
    want, sizes = exact_product(p, V, alpha)
    columns = [exact_product(p, [float(i == j) for i in range(4)], alpha)[0] for j in range(4)]
    with Comparison() as compare:
        limits = {"floor": 2.3e-308, "largest": LARGEST}
        steep = 10 + (alpha - 2) * max(-math.log(w) for w in p if w)
        relative = min(steep * bounds.unit_roundoff("float64") * 4, 0.5)
        for i, (g, w, size) in enumerate(zip(got, want, sizes, strict=True)):
            compare.check(f"{name}: (J v)[{i}]", p, g, w, relative * size, **limits)
            for j in range(4):
                entry = columns[j][i]
                assert not math.isnan(dense[i][j]), f"{name}: J[{i}][{j}]"
                if relative == 0.5:  # at such an alpha, a rounding of p is worth more than s
                    continue
                compare.check(f"{name}: J[{i}][{j}]", p, dense[i][j], entry, relative * abs(entry), **limits)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [2.5, 4.0, 12.0, 300.0])
def test_gradients_of_tensors(dtype: str, alpha: float) -> None:
    """With respect to x and alpha: what bounds.sensitivity leaves of float64, also where x is float32."""
    rng = np.random.default_rng(5)
    with Comparison() as compare:
        for share in (0.5, 0.8):
            row = np.append(0.0, -(share ** (alpha - 1)) / (alpha - 1) * rng.random(3))
            x = torch.tensor(row, dtype=getattr(torch, dtype), requires_grad=True)
            row = x.tolist()
            ss.entmax(x, alpha).backward(torch.tensor(V, dtype=x.dtype))
            p = sparse.entmax(row, alpha)
            want, _ = exact_product(p, V, alpha)
            smallest = float(min(w for w in p if w > 0))
            relative = bounds.sensitivity(smallest, alpha, "float64") + bounds.unit_roundoff(dtype)
            scale = max(abs(w) for w in want)
            for i, w in enumerate(want):
                most = float(torch.finfo(x.dtype).max)
                compare.check(f"alpha {alpha}: d/dx[{i}]", row, x.grad[i].item(), w, 4 * relative * scale, largest=most)

            a = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
            ss.entmax(x.detach(), a).backward(torch.tensor(V, dtype=x.dtype))

            def loss(b: mpf, row: list[float] = row) -> mpf:
                return mp.fsum(w * mpf(v) for w, v in zip(sparse.entmax(row, b), V, strict=True))

            by_alpha = derivatives.derivative(loss, alpha, digits=200)
            compare.check(
                f"alpha {alpha}: d/dalpha", row, a.grad.item(), by_alpha, 8 * relative * abs(by_alpha) + 1e-15
            )


def test_the_gradient_is_zero_where_one_entry_has_all_the_weight() -> None:
    for alpha in (3.0, 1e4, LARGEST):
        x = torch.tensor([1.0, 0.0, -2.0], requires_grad=True)
        a = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
        for result in (ss.entmax(x, alpha), ss.entmax(x, a)):
            result[0].backward()
            assert x.grad.tolist() == [0.0, 0.0, 0.0]
        assert a.grad.item() == 0.0


@every_backend
@pytest.mark.parametrize("alpha", [1.25, 2.0, 2.5, 4.0, 11.0])
def test_a_step_moves_the_weights_as_far_as_stated(backend: str, alpha: float) -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(size=(400, 6)) / alpha
    x[::2, 1:4] = x[::2, :1] - 0.9 / (alpha - 1)  # many at the threshold
    for step in (1e-12, 1e-6, 1e-2):
        other = x + rng.choice([-step, 0.0, step], size=x.shape)
        a, b = (np.asarray(floats(ss.entmax(array(y, "float64", backend), alpha))) for y in (x, other))
        largest = np.abs(a - b).max()
        assert largest <= bounds.moved(step * (1 + 1e-3), alpha) + bounds.support("float64")
    # And it is no idle bound: three at the very threshold take all that a step gives them.
    if alpha > 2:
        b = alpha - 1
        row = np.append(1 / b, np.zeros(3))
        up = np.asarray(floats(ss.entmax(array(np.append(1 / b - 1e-6, np.zeros(3)), "float64", backend), alpha)))
        moved = np.abs(up - np.asarray(floats(ss.entmax(array(row, "float64", backend), alpha)))).max()
        assert moved >= 1e-6 * 0.3


@every_backend
def test_attention_and_its_support(backend: str) -> None:
    """Against the oracle's weights of the same logits; entries far below the threshold get exactly none."""
    rng = np.random.default_rng(2)
    q, k, v = (rng.normal(size=(1, 5, 4)) for _ in range(3))
    for alpha in (2.5, 8.0, 1e3):
        given = [array(a, "float64", backend) for a in (q, k, v)]
        out, support = ss.attention(*given, alpha=alpha, scale=1.0, return_partition=True)
        out, support = np.asarray(floats(out)), {name: floats(getattr(support, name)) for name in vars(support)}
        with Comparison() as compare:
            for i in range(5):
                logits = [float(mp.fdot(map(mpf, q[0, i]), map(mpf, key))) for key in k[0]]
                p = sparse.entmax(logits, alpha)
                slack = bounds.moved(1e-14, alpha)
                for c in range(4):
                    want = mp.fsum(w * mpf(x) for w, x in zip(p, v[0, :, c], strict=True))
                    compare.check(f"alpha {alpha}: output", logits, out[0, i, c], want, 10 * slack)
                assert support["size"][0][i] == sum(w > 0 for w in p)
                compare.check("tau", logits, support["tau"][0][i], sparse.tau(logits, alpha), 1e-12 * alpha)
                compare.check("peak", logits, support["peak"][0][i], max(p), slack)
                trace = sparse.jacobian_trace(p, alpha)
                compare.check("trace", logits, support["jacobian_trace"][0][i], trace, 1e-6 * trace)
