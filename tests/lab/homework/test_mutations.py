"""Right answers with one small mistake do not pass, wherever the mistake changes a value."""

import itertools
import random
import re

import mpmath
import numpy as np
import pytest

from lab.homework.answers import NUMPY, RIGHT
from lab.homework.mutations import mutants
from softscope.lab import homework
from softscope.lab.homework import EXERCISES, Exercise

PROGRAMS = [exercise.id for exercise in EXERCISES if isinstance(exercise, Exercise)]
WANTED = 30
RNG = np.random.default_rng(2024)  # not the graders' inputs
ROWS = [
    [0.0, 1.0], [3.0, 1.0, 2.0], [0.5, 0.5], [-4.0], [0.0, 0.0, -900.0], [1200.0, 1201.5, 1200.25], [-1100.0, -1100.0],
    [5.0, -np.inf, 4.0], [1.25, 1.5, 1.125, -3.0],
    *(RNG.normal(0.0, s, n).tolist() for s, n in ((1.0, 4), (3.0, 7), (400.0, 5))),
]  # fmt: skip
DIRECTIONS = [RNG.normal(1.0, 1.0, n) for n in (2, 3, 6)]
PARTS = [([1.0, 2.0], [0.5]), ([], [1.0]), ([2.0], []), ([], []), ([-np.inf], [-np.inf]), ([900.0], [901.0, 3.0]),
         ([0.1], [-np.inf]), ([-950.0], [-951.0])]  # fmt: skip


def weights(x):
    """Softmax in many digits, by its definition."""
    with mpmath.workdps(50):
        e = [mpmath.exp(mpmath.mpf(v)) if v > -np.inf else mpmath.mpf(0) for v in x]
        total = sum(e)
        return [v / total for v in e]


def scaled(x, T):
    with mpmath.workdps(50):
        return weights([mpmath.mpf(v) / mpmath.mpf(T) for v in x])


def lse(x):
    with mpmath.workdps(50):
        total = sum((mpmath.exp(mpmath.mpf(v)) for v in x if v > -np.inf), mpmath.mpf(0))
        return float(mpmath.log(total)) if total else -np.inf


def log_weights(x):
    with mpmath.workdps(50):
        return [float(mpmath.log(p)) if p else -np.inf for p in weights(x)]


def nearest(x):
    """Sparsemax by bisection for τ, in many digits."""
    with mpmath.workdps(50):
        top = max(x)
        low, high = mpmath.mpf(top) - 1, mpmath.mpf(top)
        for _ in range(150):
            middle = (low + high) / 2
            above = sum(max(mpmath.mpf(v) - middle, 0) for v in x if v > -np.inf)
            low, high = (middle, high) if above > 1 else (low, middle)
        return [float(max(mpmath.mpf(v) - low, 0)) if v > -np.inf else 0.0 for v in x]


def entropy(p):
    with mpmath.workdps(50):
        return float(-sum(v * mpmath.log(v) for v in p if v))


def floats(numbers):
    return np.array([float(v) for v in numbers])


def cases(name):
    """Calls of an answer, each with the right result, from definitions that share nothing with the graders'."""
    arrays = [np.array(row) for row in ROWS]
    finite = [x for x in arrays if np.isfinite(x).all()]
    if name == "softmax":
        return [(lambda m, x=x: m["softmax"](x.copy()), floats(weights(x))) for x in arrays]
    if name == "temperature":
        five = [1.0, 2.0, 3.0, 4.0, 5.0]
        table = [(max(p), entropy(p)) for p in (scaled(five, T) for T in ("0.01", "0.1", "1", "10", "100"))]
        calls = [(lambda m, x=x, T=T: m["softmax_at"](x.copy(), T), floats(scaled(x, T)))
                 for x in finite[:5] for T in (0.03, 1.0, 7.0)]  # fmt: skip
        return [*calls, (lambda m: m["experiment"](), np.array([[float(a), b] for a, b in table]))]
    if name == "dimension":
        pairs = [(RNG.normal(size=(n, d)), RNG.normal(size=(m, d))) for n, m, d in ((2, 3, 5), (4, 2, 64), (3, 3, 1))]
        return [(lambda m, q=q, k=k: m["score_ranges"](q.copy(), k.copy()), _ranges(q, k)) for q, k in pairs]
    if name == "log-softmax":
        return [(lambda m, x=x: m["log_softmax"](x.copy()), np.array(log_weights(x))) for x in finite]
    if name == "jacobian-product":
        return [(lambda m, p=p, v=v: m["jacobian_product"](p.copy(), v.copy()), _product(p, v))
                for v in DIRECTIONS for p in (floats(weights(v)), floats(weights(-2.0 * v)))]  # fmt: skip
    if name == "sparsemax":
        return [(lambda m, x=x: m["sparsemax"](x.copy()), np.array(nearest(x))) for x in arrays]
    merged = [(lambda m, a=a, b=b: m["lse"](m["merge"](m["state_of"](np.array(a)), m["state_of"](np.array(b)))),
               lse([*a, *b])) for a, b in PARTS]  # fmt: skip
    return merged + [(lambda m, x=x: m["lse"](m["state_of"](x.copy())), lse(x)) for x in arrays]


def _ranges(q, k):
    scores = [sum(mpmath.mpf(x) * mpmath.mpf(y) for x, y in zip(a, b, strict=True)) for a in q for b in k]
    spread = max(scores) - min(scores)
    return floats([spread, spread / mpmath.sqrt(len(q[0]))])


def _product(p, v):
    """(diag(p) − p pᵀ) v, entry by entry."""
    n, p, v = range(len(p)), list(map(mpmath.mpf, p)), list(map(mpmath.mpf, v))
    return floats(sum((p[i] * (i == j) - p[i] * p[j]) * v[j] for j in n) for i in n)


def wrong_somewhere(source, calls):
    """Whether a value is off by more than the graders allow."""
    module = {}
    with np.errstate(all="ignore"):
        try:
            exec(source, module)
            for call, want in calls:
                got = np.asarray(call(module), dtype=np.float64)
                # Twice the tolerance: what lies at its edge is nobody's mistake.
                off = np.abs(got - want) > 2e-9 * np.maximum(1.0, np.abs(want))
                if got.shape != np.shape(want) or (off | np.isnan(got))[~(got == want)].any():
                    return True
        except Exception:
            return True
    return False


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_small_mistake_that_changes_a_value_does_not_pass(name):
    calls = cases(name)
    exact = [source for source in RIGHT[name] if "float32" not in source]
    for source in exact:
        assert not wrong_somewhere(NUMPY + source, calls), "the test's own numbers are wrong"
    made = [m for source in exact for m in mutants(NUMPY + source) if not re.search(r"2e\+?1|range\(\d{3}", m)]
    wrong = [m for m in made if wrong_somewhere(m, calls)]
    assert len(wrong) >= WANTED, len(wrong)
    chosen = random.Random(name).sample(wrong, WANTED)
    passed = [m for m in chosen if homework.grade(name, m, seed=4).passed]
    assert passed == [], "\n\n".join(passed)


def test_every_wrong_choice_in_the_quiz_fails():
    right = homework.find("dividing-by-the-sum")
    letters = ["abc"[: len(question.choices)] for question in right.questions]
    given = map("".join, itertools.product(*letters))
    passed = [answer for answer in given if homework.grade(right.id, answer).passed]
    assert passed == ["".join(question.right for question in right.questions)]
