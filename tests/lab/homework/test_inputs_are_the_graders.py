"""An answer gets copies: whatever it does to its inputs or its earlier results, the grader's own numbers judge it."""

import itertools

import numpy as np
import pytest

from lab.homework.answers import NUMPY
from softscope.lab import homework
from softscope.lab.homework import EXERCISES, Exercise
from softscope.lab.homework.answer_process import Answer
from softscope.lab.homework.grader import checked

PROGRAMS = {exercise.id: exercise for exercise in EXERCISES if isinstance(exercise, Exercise)}

# Wrong answers that were right if their inputs, as they leave them, were the question.
DESTROY = {
    "softmax": [
        "def softmax(x):\n    x[:] = 0\n    x[0] = 1\n    return x",
        "def softmax(x):\n    x[:] = 1 / len(x)\n    return x",
    ],
    "temperature": [
        "def softmax_at(x, T):\n    x[:] = 0\n    return x + 1 / len(x)\n"
        "def experiment():\n    import softscope as ss\n"
        "    parts = [ss.partition([1.0, 2.0, 3.0, 4.0, 5.0], temperature=T) for T in (0.01, 0.1, 1.0, 10.0, 100.0)]\n"
        "    return np.array([[p.peak, p.entropy] for p in parts])",
    ],
    "dimension": [
        "def score_ranges(q, k):\n    q[:] = 0\n    return 0.0, 0.0",
        "def score_ranges(q, k):\n    q *= 0\n    k *= 0\n    return q[0, :1] @ k[0, :1], 0",
    ],
    "log-softmax": [
        "def log_softmax(x):\n    x[:] = 0\n    return x - np.log(len(x))",
        "def log_softmax(x):\n    x[:] = -np.log(len(x))\n    return x",
    ],
    "jacobian-product": [
        "def jacobian_product(p, v):\n    v[:] = 0\n    return v",
        "def jacobian_product(p, v):\n    p[:] = 0\n    return p",
    ],
    "sparsemax": [
        "def sparsemax(x):\n    x[:] = 1 / len(x)\n    return x",
        "def sparsemax(x):\n    i = np.argmax(x)\n    x[:] = 0\n    x[i] = 1\n    return x",
    ],
    "online-softmax": [
        "def state_of(x):\n    x[:] = 0\n    return (float(len(x)),)\ndef merge(a, b):\n    return (a[0] + b[0],)\n"
        "def lse(s):\n    return np.log(s[0]) if s[0] else -np.inf",
    ],
}  # fmt: skip

# Right answers that work in the memory they are given.
IN_PLACE = {
    "softmax": "def softmax(x):\n    x -= x.max()\n    np.exp(x, out=x)\n    x /= x.sum()\n    return x",
    "temperature": "def softmax_at(x, T):\n    x -= x.max()\n    x /= T\n    np.exp(x, out=x)\n"
    "    x /= x.sum()\n    return x\n"
    "def experiment():\n    rows = []\n    for T in (0.01, 0.1, 1.0, 10.0, 100.0):\n"
    "        p = softmax_at(np.arange(1.0, 6.0), T)\n        q = p[p > 0]\n"
    "        rows.append([p.max(), -(q * np.log(q)).sum()])\n    return np.array(rows)",
    "dimension": "def score_ranges(q, k):\n    plain = np.ptp(q @ k.T)\n    q /= np.sqrt(q.shape[-1])\n"
    "    return plain, np.ptp(q @ k.T)",
    "log-softmax": "def log_softmax(x):\n    x -= x.max()\n    x -= np.log(np.exp(x).sum())\n    return x",
    "jacobian-product": "def jacobian_product(p, v):\n    v -= p @ v\n    v *= p\n    return v",
    "sparsemax": "def sparsemax(x):\n    x -= x.max()\n    s = np.sort(x)[::-1]\n    k = np.arange(1, len(x) + 1)\n"
    "    total = np.cumsum(s) - 1.0\n    last = np.flatnonzero(s > total / k)[-1]\n    x -= total[last] / k[last]\n"
    "    np.maximum(x, 0.0, out=x)\n    return x",
    "online-softmax": "def state_of(x):\n    m = x.max(initial=-np.inf)\n    x -= m if m > -np.inf else 0\n"
    "    np.exp(x, out=x)\n"
    "    return np.array([m, x.sum()])\n"
    "def merge(a, b):\n    m = max(a[0], b[0])\n    if m > -np.inf:\n        a[1] *= np.exp(a[0] - m)\n"
    "        b[1] *= np.exp(b[0] - m)\n    a[0] = m\n    a[1] += b[1]\n    return a\n"
    "def lse(state):\n    state[1] = np.log(state[1])\n    state[0] += state[1]\n"
    "    return state[0] if state[0] == state[0] else -np.inf",
}  # fmt: skip


def test_no_exercise_is_left_out():
    assert set(DESTROY) == set(IN_PLACE) == set(PROGRAMS)


@pytest.mark.parametrize(("name", "source"), [(name, source) for name in DESTROY for source in DESTROY[name]])
def test_an_answer_that_destroys_its_inputs_does_not_pass(name, source):
    grade = homework.grade(name, NUMPY + source, seed=3)
    assert not grade.passed
    assert not {"raised", "missing", "syntax"} & set(grade.broken), grade


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_right_answer_may_work_in_place(name):
    grade = homework.grade(name, NUMPY + IN_PLACE[name], seed=3)
    assert grade.messages == ()
    assert grade.passed


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_a_call_does_to_its_arguments_stays_there(name):
    """The grader's arrays keep their bytes, and share none of them with a result."""
    arguments = {
        "temperature": (np.arange(3.0), 0.5), "dimension": (np.ones((2, 4)), np.ones((3, 4))),
        "jacobian-product": (np.full(4, 0.25), np.arange(4.0)),
    }.get(name, (np.arange(3.0),))  # fmt: skip
    before = [np.copy(part) for part in arguments]
    with Answer(NUMPY + IN_PLACE[name], may_import=PROGRAMS[name].may_import) as answer:
        value = answer.call(PROGRAMS[name].names[0], *arguments)
    assert all(np.array_equal(was, now) for was, now in zip(before, arguments, strict=True))
    if isinstance(value, np.ndarray):
        assert not any(np.shares_memory(value, part) for part in arguments if isinstance(part, np.ndarray))


BUFFER = NUMPY + "kept = np.zeros(4096)\ndef log_softmax(x):\n    kept[: len(x)] = {right}\n    return kept[: len(x)]"
RIGHT = "x - np.logaddexp.reduce(x)"


def test_one_buffer_for_all_results_is_fine():
    assert homework.grade("log-softmax", BUFFER.format(right=RIGHT), seed=0).passed
    assert not homework.grade("log-softmax", BUFFER.format(right="x"), seed=0).passed


@pytest.mark.parametrize("how", ["x", "x[::-1][::-1]", "x.view()", "x[:]", "np.asarray(x)"])
def test_a_view_of_the_input_is_only_its_numbers(how):
    grade = homework.grade("log-softmax", f"{NUMPY}def log_softmax(x):\n    return {how}", seed=0)
    assert grade.broken[0] == "sums_to_one"


LYING = """
class Liar:
    def __init__(self, x=None): self.x = x
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __bool__(self): return True
    def __abs__(self): return self
    def __sub__(self, other): return self
    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __sub__
    def __float__(self): return 0.0
    __hash__ = None
class Lazy(Liar):
    def __array__(self, dtype=None, copy=None): return np.zeros(len(self.x))
    def __len__(self): return len(self.x)
class Array(np.ndarray):
    def __eq__(self, other): return np.True_
    def __array_ufunc__(self, *a, **k): return np.True_
    def __array_finalize__(self, other): pass
    shape = property(lambda self: (10**9,))
class Float(float):
    def __eq__(self, other): return True
    def __le__(self, other): return True
    __ge__ = __lt__ = __gt__ = __le__
    def __sub__(self, other): return self
    __hash__ = float.__hash__
"""
STRANGE = {
    "lying object": "Liar()",
    "lazy": "Lazy(x)",
    "subclass that lies": "x.view(Array)",
    "object array": "x.astype(object)",
    "array of liars": "np.array([Liar()] * len(x))",
    "nan": "x * np.nan",
    "inf": "x + np.inf",
    "-inf": "x - np.inf",
    "huge numbers": "np.full(len(x), 1.7e308)",
    "no numbers": "np.zeros(0)",
    "strings": "np.array(['0'] * len(x))",
    "complex": "x * 1j",
    "dates": "np.zeros(len(x), 'M8[s]')",
    "records": "np.zeros(len(x), [('a', float)])",
    "bool": "x > 0",
    "int8": "np.zeros(len(x), np.int8)",
    "uint64": "np.full(len(x), 2**64 - 1, np.uint64)",
    "matrix": "np.asmatrix(x)",
    "column": "x[:, None]",
    "0-d": "np.array(0.0)",
    "masked": "np.ma.array(x, mask=True)",
    "deep": "np.zeros((1,) * 30)",
    "generator": "(v for v in x)",
    "set": "{1, 2}",
    "liar floats": "[Float(0.0)] * len(x)",
    "a liar float": "Float(0.0)",
    "huge int": "10**400",
    "bytes": "b'0' * 100",
    "class": "Liar",
    "None": "None",
    "not implemented": "NotImplemented",
}


def _strange(exercise):
    """All of the exercise's functions; each returns the chosen strange thing, made of the first array or of [1, 2]."""
    chosen = "".join(f"    {what!r}: lambda x: {expression},\n" for what, expression in STRANGE.items())
    functions = "".join(f"def {name}(*given):\n    return result(*given)\n" for name in exercise.names)
    return (
        f"{NUMPY}{LYING}STRANGE = {{\n{chosen}}}\ndef choose(what, form):\n    global result\n"
        "    def result(*given):\n"
        "        arrays = [part for part in given if isinstance(part, np.ndarray) and part.ndim]\n"
        "        one = STRANGE[what](arrays[0] if arrays else np.array([1.0, 2.0]))\n"
        "        return {'whole': one, 'pair': (one, one), 'state': (one, 0.0)}[form]\n"
        f"{functions}"
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_strange_results_are_refused_in_a_sentence(name):
    """Each as the whole result, and where an exercise returns two numbers or a state, as a part of these."""
    exercise = PROGRAMS[name]
    forms = ("whole", *{"dimension": ["pair"], "online-softmax": ["state"]}.get(name, []))
    with Answer(_strange(exercise), may_import=exercise.may_import) as answer, np.errstate(all="ignore"):
        for what in STRANGE:
            for form in forms:
                answer.call("choose", what, form)
                problems = list(itertools.islice(checked(exercise, answer, 0, "en"), 3))
                assert problems, (what, form)
                for _, sentence in problems:
                    assert sentence.isprintable(), (what, form, sentence)
                    assert len(sentence) < 800


@pytest.mark.parametrize(
    "infinite", ["np.inf, 0.0", "np.inf, np.inf", "-np.inf, 1.0", "np.nan, np.nan", "1e308, 1e308"]
)
def test_no_tolerance_grows_with_the_answer(infinite):
    grade = homework.grade("dimension", f"{NUMPY}def score_ranges(q, k):\n    return {infinite}", seed=0)
    assert grade.broken[0] == "range", "inf − x ≤ 1e-9 · inf is true"


@pytest.mark.parametrize("name", ["log-softmax", "softmax"])
def test_a_large_array_is_not_called_something_else(name):
    source = f"{NUMPY}def {PROGRAMS[name].names[0]}(x):\n    return np.zeros(10**6)"
    grade = homework.grade(name, source, seed=0)
    assert grade.messages == ("The result is too large, so it was stopped: check its shape.",)
