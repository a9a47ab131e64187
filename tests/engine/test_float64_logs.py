"""float64 logarithms within 2 ulp, on rows built to break them. Each test says which lines of the engine it guards.

Extended precision finds the worst of many rows, and the oracle judges it. test_isa.py runs this with every table.
"""

import numpy as np
import pytest

import softscope as ss
from exactness.compare import Comparison
from oracle import rows as oracle
from softscope import _engine, bounds

WIDE = np.longdouble
BIG, TINY = float(np.finfo(np.float64).max), 5e-324
LENGTHS = (2, 3, 8, 24, 25, 31, 100, 300, 5000)  # side by side up to 24; in stretches past 4096
TEMPERATURES = (0.05, 0.7, 1.0, 3.0, 40.0)

every_temperature = pytest.mark.parametrize("temperature", TEMPERATURES)
every_length = pytest.mark.parametrize("n", LENGTHS)
wide_enough = pytest.mark.skipif(
    np.finfo(WIDE).eps > 2e-19, reason="long double is no wider here: run on x86-64 to lift this"
)


def run(name, x, temperature=1.0, threads=1):
    out = np.full(x.shape[:-1] if name == "logsumexp" else x.shape, 7.0)  # so unwritten entries fail
    getattr(_engine, name)(x, out, float(temperature), False, threads)
    return out


def wide_sums(x, temperature):
    """(x − m)/T, log z and m/T in extended precision, with the entries at the maximum counted separately."""
    wide = x.astype(WIDE)
    m = wide.max(axis=-1, keepdims=True)
    d = (wide - m) / WIDE(temperature)
    c = (d == 0).sum(axis=-1, keepdims=True).astype(WIDE)
    r = np.where(d == 0, 0, np.exp(d)).sum(axis=-1, keepdims=True)
    return d, np.log(c) + np.log1p(r / c), m / WIDE(temperature)


def ulps(error, *sizes):
    """The error in ulps of the larger of these sizes."""
    larger = np.maximum(*(np.abs(size).astype(np.float64) for size in sizes))
    return np.abs(error) / np.spacing(larger)


def judge(x, temperature, what):
    """Compare the worst entry of log_softmax, logsumexp and the partition's lse with the oracle."""
    d, log_z, top = wide_sums(x, temperature)
    logs, lse = run("log_softmax", x, temperature), run("logsumexp", x, temperature)
    read = np.asarray(ss.partition(x, temperature=float(temperature)).lse)
    with Comparison() as compare:
        i, j = np.unravel_index(np.argmax(ulps(logs - (d - log_z), d - log_z, top)), x.shape)
        want = oracle.log_weights(x[i].tolist(), temperature)[j]
        tolerance = bounds.logsumexp(float(want), float(top[i, 0]), "float64")
        compare.check(f"{what}, T {temperature}: log weight {j}", x[i], logs[i, j], want, tolerance)
        for name, got in (("logsumexp", lse), ("partition.lse", read)):
            i = int(np.argmax(ulps(got - (top + log_z)[:, 0], (top + log_z)[:, 0], top[:, 0])))
            want = oracle.logsumexp(x[i].tolist(), temperature)
            tolerance = bounds.logsumexp(float(want), float(top[i, 0]), "float64")
            compare.check(f"{what}, T {temperature}: {name}", x[i], got[i], want, tolerance)


def random_rows(n, seed):
    rng = np.random.default_rng(seed)
    return rng, (max(3, min(2000, 40_000 // n)), n)


@wide_enough
@every_temperature
@every_length
@pytest.mark.parametrize("share", [1.0, 0.75])
def test_the_maximum_cancels_log_z(n, temperature, share):
    """Guards d.low and the pairs of CarefulSums.add, the last sum of exact_lses, and the wider float of Partition.lse.

    With a share of 0.75 the result is far smaller than log z, and the ulp that counts is a quarter of log z's.
    """
    rng, shape = random_rows(n, 31)
    for scale in (0.5, 1.0, 3.0, 8.0) if n < 5000 else (3.0,):
        x = scale * temperature * rng.normal(size=shape)
        _, log_z, top = wide_sums(x, temperature)
        x = (x - (top + share * log_z) * WIDE(temperature)).astype(np.float64)
        judge(x, temperature, f"spread {scale}, {share} of log z cancelled")


@wide_enough
@every_temperature
@every_length
def test_near_one_hot(n, temperature):
    """Guards could_miss, and the pairs of CarefulSums.add.

    The maximum is 0, so the result is just the sum of the other terms, however small.
    """
    rng, shape = random_rows(n, 32)
    for gap in (1.0, 10.0, 35.0) if n < 5000 else (10.0,):
        x = -temperature * (gap + rng.exponential(20.0, size=shape))
        x[np.arange(shape[0]), rng.integers(0, n, size=shape[0])] = 0.0
        judge(x, temperature, f"a gap of {gap}")


@wide_enough
@every_temperature
@pytest.mark.parametrize("n", [300, 5000])
def test_a_maximum_of_the_size_of_the_others(n, temperature):
    """Guards `chain` in could_miss: next to a term of 1, all the others end up in `lost`, which is a plain sum.

    They are equal, so they round the same way every time.
    """
    rng, (count, _) = random_rows(n, 39)
    x = np.repeat(-temperature * rng.uniform(40.0, 41.0, size=(count, 1)), n, axis=1)
    others = np.exp(x / temperature).sum(axis=-1)
    x[:, 0] = temperature * others * rng.uniform(1.1, 3.0, size=count)
    judge(x, temperature, "a maximum of the size of the others")


@wide_enough
@every_temperature
@every_length
def test_many_equal_entries_far_away(n, temperature):
    """Guards d.low of CarefulSums.add, and the order in plain_segment: k·ln 2 is subtracted before the maximum.

    Equal entries make equal errors, which do not cancel in the sum: x − m alone would lose 2^-53·|x − m| of it.
    """
    rng, shape = random_rows(n, 33)
    far = rng.uniform(1.0, 8.0, size=(shape[0], 1)) * rng.choice([1.0, 5.0], size=(shape[0], 1))
    x = np.broadcast_to(-far * temperature, shape).copy()
    x[:, n // 2] = temperature * rng.uniform(-0.3, 0.3, size=shape[0])
    judge(x, temperature, "one above many equal")


@wide_enough
@every_temperature
@every_length
def test_ties_and_near_ties(n, temperature):
    """Guards the count of entries at the maximum (tops), and (c − 1) + r in exact_logs."""
    rng, shape = random_rows(n, 34)
    base = rng.normal(size=(shape[0], 1)) * temperature
    steps = rng.choice([0.0, 0.0, 1.0, 2.0, 2.0**40, 2.0**52], size=shape)
    judge(base - steps * np.spacing(np.abs(base)), temperature, "ties")


@wide_enough
@pytest.mark.parametrize("temperature", [0.7, 3.0])
@pytest.mark.parametrize("shift", [0.0, -1.0, 2.0])
def test_one_rounding_at_the_end(temperature, shift):
    """Guards the low parts in log_sum, exact_lses and LogWeights.of, which the bound alone is too loose to catch.

    In short rows nothing else rounds by more than a fraction of an ulp, so the results stay within 1 ulp.
    """
    x = np.random.default_rng(40).normal(size=(20_000, 8)) * 2.0 + shift
    d, log_z, top = wide_sums(x, temperature)
    assert ulps(run("log_softmax", x, temperature) - (d - log_z), d - log_z, top).max() <= 1
    assert ulps(run("logsumexp", x, temperature) - (top + log_z)[:, 0], (top + log_z)[:, 0], top[:, 0]).max() <= 1


def apart(x, kind):
    """The same numbers in a different memory layout."""
    if kind == "across":
        return np.ascontiguousarray(x.T).T
    return np.repeat(x, 3, axis=-1)[:, ::3] if kind == "every third" else x[:, ::-1].copy()[:, ::-1]


@wide_enough
@pytest.mark.parametrize("kind", ["across", "every third", "backwards"])
@pytest.mark.parametrize("n", [3, 24, 25, 300])
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_every_layout(n, kind, temperature):
    """Guards exact_columns for rows along another axis, and the copies in exact_reduce."""
    rng, shape = random_rows(n, 35)
    x = 2.0 * temperature * rng.normal(size=shape)
    _, log_z, top = wide_sums(x, temperature)
    x = apart((x - (top + 0.75 * log_z) * WIDE(temperature)).astype(np.float64), kind)
    judge(x, temperature, kind)


LONG = {
    "rising": lambda rng, n: np.sort(rng.normal(size=n)) * 0.2 - 12.0,
    "slowly rising": lambda _, n: np.linspace(-1.3, 0.1, n),
    "falling": lambda rng, n: -np.sort(rng.exponential(size=n)),
    "cancelled": lambda rng, n: rng.normal(size=n) - np.log(n) - 0.5,
    "one above": lambda rng, n: np.where(np.arange(n) == n // 3, -1e-9, rng.normal(size=n) - 34.0),
}


@wide_enough
@pytest.mark.parametrize("n", [70_000, 300_000])
@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize("kind", LONG)
def test_rows_that_are_moved_many_times(kind, temperature, n):
    """Guards exp_exactly in moved_exactly: a rising row's sum is moved to a new maximum at each stretch.

    Also guards run_long, which redoes parts the careful way. Extended precision is a good enough oracle here.
    """
    x = (LONG[kind](np.random.default_rng(36), n) * temperature)[None]
    d, log_z, top = wide_sums(x, temperature)
    assert ulps(run("log_softmax", x, temperature) - (d - log_z), d - log_z, top).max() <= 2
    for got in (run("logsumexp", x, temperature), ss.partition(x, temperature=temperature).lse):
        assert ulps(got - (top + log_z)[:, 0], (top + log_z)[:, 0], top[:, 0]).max() <= 2


@pytest.mark.parametrize("shape", [(1, 700_001), (3, 270_000), (2000, 8), (700, 130), (9, 20_000)])
@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("name", ["log_softmax", "logsumexp"])
def test_threads_change_no_bit(name, kind, shape):
    """Guards run_long: parts are merged in order, whichever thread computed them."""
    x = LONG[kind](np.random.default_rng(37), shape[0] * shape[1]).reshape(shape)
    one = run(name, x, 0.7)
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(run(name, x, 0.7, threads), one)


@every_length
def test_a_row_does_not_see_its_neighbours(n):
    """Guards exact_lses and LogSoftmax::columns, which take the logarithms of several rows at a time."""
    rng, _ = random_rows(n, 38)
    scales = np.array([1.0, 0.01, 40.0, 1e-300, 1e300, 1.0, 5.0])
    x = np.repeat(rng.normal(size=(1, n)), 7, axis=0) * scales[:, None]
    for temperature in (0.7, 1.0):
        for name in ("log_softmax", "logsumexp"):
            alone = np.concatenate([run(name, row[None], temperature) for row in x])
            np.testing.assert_array_equal(run(name, x, temperature), alone)


FAR_OUT = {
    "only just above 0": [0.0, -720.0],  # kLift: exp(−720) is denormal
    "the last that is not 0": [0.0, -744.0, -744.0, -746.0],
    "denormals": [TINY, 3 * TINY, 0.0, -2 * TINY],
    "denormal and ordinary": [TINY, -1.0, 1.0],
    "huge of both signs": [BIG, -BIG, 0.0],  # x − m overflows
    "huge and tied": [BIG, BIG, BIG / 2],
    "huge and negative": [-BIG, -BIG / 2, -BIG],
    "the lowest and nothing": [-BIG, -np.inf, -np.inf],
    "hidden ones": [-np.inf, 0.25, -np.inf, -0.5],  # d.low is NaN there
    "so large that steps are huge": [1e30, 1e30 * (1 - 2.0**-52), 1e29],
    "past the plain range": [2.0**41, 2.0**41 - 1.0, 2.0**41 - 3.5],
}


@pytest.mark.parametrize("hidden", [0, 30])  # short rows side by side, longer ones one by one
@pytest.mark.parametrize("temperature", [1e-290, 1e-3, 0.7, 1.0, 1e3, 1e290])
@pytest.mark.parametrize("kind", FAR_OUT)
def test_far_out(kind, temperature, hidden):
    """Guards the clamps and kLift of CarefulSums.add, kPlainRange, kHuge, and of_huge where x − m overflows."""
    if max(map(abs, FAR_OUT[kind])) == BIG and temperature == 1e-290:
        temperature = 1e-100  # otherwise the oracle needs a minute for exp(-1e600)
    row = FAR_OUT[kind] + [-np.inf] * hidden
    x = np.array([row, row[::-1]])
    logs, lse = run("log_softmax", x, temperature), run("logsumexp", x, temperature)
    want = oracle.log_weights(row, temperature)
    sums = oracle.logsumexp(row, temperature)
    top = max(-BIG, min(BIG, float(oracle.exact(max(row)) / oracle.exact(temperature))))
    with Comparison() as compare:
        for i, got in ((0, logs[0]), (1, logs[1, ::-1])):
            for j, w in enumerate(want):
                allowed = bounds.logsumexp(max(-BIG, min(BIG, float(w))), top, "float64")
                compare.check(f"{kind}, T {temperature}: log weight {j}", row, got[j], w, allowed, largest=BIG)
            allowed = bounds.logsumexp(max(-BIG, min(BIG, float(sums))), top, "float64")
            compare.check(f"{kind}, T {temperature}: logsumexp", row, lse[i], sums, allowed, largest=BIG)
