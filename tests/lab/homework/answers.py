"""Homework answers: right ones, and wrong ones a learner might write, each with the property it breaks."""

from typing import NamedTuple


class Wrong(NamedTuple):
    source: str
    breaks: str  # the property named first
    says: str  # part of that message, in English


NUMPY = "import numpy as np\n"

RIGHT = {
    "softmax": [
        """
def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)
""",
        """
def softmax(x):  # with operators alone
    powers = 2.718281828459045 ** (x - max(x))
    return powers / sum(powers)
""",
        """
import math

def softmax(x):  # a list
    e = [math.exp(v - max(x)) if max(x) > -math.inf else math.nan for v in x]
    return [v / sum(e) for v in e]
""",
        """
def softmax(x):  # by way of the logarithm
    m = x.max()
    return np.exp(x - (m + np.log(np.exp(x - m).sum())))
""",
        """
def softmax(x):  # right to float32
    e = np.exp((x - x.max()).astype(np.float32))
    return e / e.sum()
""",
    ],
    "temperature": [
        """
def softmax_at(x, T):
    e = np.exp((x - x.max()) / T)
    return e / e.sum()

def experiment():
    x = np.arange(1.0, 6.0)
    rows = []
    for T in (0.01, 0.1, 1.0, 10.0, 100.0):
        p = softmax_at(x, T)
        q = p[p > 0]
        rows.append([p.max(), -(q * np.log(q)).sum()])
    return np.array(rows)
""",
        """
import softscope as ss

def softmax_at(x, T):
    return ss.softmax(x, temperature=T)

def experiment():
    parts = [ss.partition([1.0, 2.0, 3.0, 4.0, 5.0], temperature=T) for T in (0.01, 0.1, 1.0, 10.0, 100.0)]
    return np.array([[p.peak, p.entropy] for p in parts])
""",
        """
import math

def softmax_at(x, T):  # lists
    e = [math.exp((v - max(x)) / T) for v in x]
    return [v / sum(e) for v in e]

def experiment():
    rows = []
    for T in (0.01, 0.1, 1.0, 10.0, 100.0):
        p = softmax_at([1.0, 2.0, 3.0, 4.0, 5.0], T)
        rows.append((max(p), -sum(v * math.log(v) for v in p if v > 0)))
    return rows
""",
    ],
    "dimension": [
        """
def score_ranges(q, k):
    scores = q @ k.T
    return np.ptp(scores), np.ptp(scores / np.sqrt(q.shape[-1]))
""",
        """
import math

def score_ranges(q, k):
    scores = [float(np.dot(a, b)) for a in q for b in k]
    spread = max(scores) - min(scores)
    return [spread, spread / math.sqrt(len(q[0]))]
""",
    ],
    "dividing-by-the-sum": ["c a b c", "1: c\n2: a\n3: b\n4: C  # as abc", "Ｃ ａ Ｂ ｃ", "\uff43\uff41\uff42\uff43"],
    "log-softmax": [
        """
def log_softmax(x):
    y = x - np.max(x)
    return y - np.log(np.exp(y).sum())
""",
        """
def log_softmax(x):
    return x - np.logaddexp.reduce(x)
""",
        """
def log_softmax(x):  # a list of plain numbers
    total = float(np.logaddexp.reduce(x))
    return [float(v) - total for v in x]
""",
        """
def log_softmax(x):  # right to float32
    y = (x - np.max(x)).astype(np.float32)
    return y - np.log(np.exp(y).sum())
""",
    ],
    "jacobian-product": [
        """
def jacobian_product(p, v):
    return p * (v - p @ v)
""",
        """
def jacobian_product(p, v):
    return p * v - p * np.dot(p, v)
""",
        """
def jacobian_product(p, v):  # a list
    mean = sum(a * b for a, b in zip(p, v))
    return [a * (b - mean) for a, b in zip(p.tolist(), v.tolist())]
""",
    ],
    "sparsemax": [
        """
def sparsemax(x):
    x = x - np.max(x)
    s = np.sort(x)[::-1]
    k = np.arange(1, len(x) + 1)
    total = np.cumsum(s) - 1.0
    last = np.flatnonzero(s > total / k)[-1]
    return np.maximum(x - total[last] / k[last], 0.0)
""",
        """
def sparsemax(x):  # by bisection, then exactly
    x = x - x.max()
    low, high = -1.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if np.maximum(x - middle, 0).sum() > 1:
            low = middle
        else:
            high = middle
    stays = x > low
    return np.where(stays, np.maximum(x - (x[stays].sum() - 1) / stays.sum(), 0), 0)
""",
    ],
    "online-softmax": [
        """
def state_of(x):
    if len(x) == 0:
        return (-np.inf, 0.0)
    m = np.max(x)
    return (m, 0.0) if m == -np.inf else (m, np.exp(x - m).sum())

def merge(a, b):
    m = max(a[0], b[0])
    if m == -np.inf:
        return (m, 0.0)
    return (m, a[1] * np.exp(a[0] - m) + b[1] * np.exp(b[0] - m))

def lse(state):
    return state[0] + np.log(state[1]) if state[1] > 0 else -np.inf
""",
        """
def state_of(x):
    return (float(np.logaddexp.reduce(x)) if len(x) else -np.inf,)

def merge(a, b):
    return (np.logaddexp(a[0], b[0]),)

def lse(state):
    return state[0]
""",
        """
from typing import NamedTuple

class State(NamedTuple):
    m: float
    z: float

def state_of(x):
    m = max(x, default=-np.inf)
    return State(m, sum(np.exp(x - m)) if m > -np.inf else 0.0)

def merge(a, b):
    m = max(a.m, b.m)
    if m == -np.inf:
        return a
    return a._replace(m=m, z=a.z * np.exp(a.m - m) + b.z * np.exp(b.m - m))

def lse(state):
    return state.m + np.log(state.z)
""",
    ],
}

_RESCALED = RIGHT["online-softmax"][0]

WRONG = {
    "softmax": {
        "naive": Wrong("def softmax(x):\n    return np.exp(x) / np.exp(x).sum()", "finite", "without overflow"),
        "linear": Wrong("def softmax(x):\n    return x / x.sum()", "finite", "Finite logits must give finite weights"),
        "no sum": Wrong("def softmax(x):\n    return np.exp(x - x.max())", "sums_to_one", "must sum to 1"),
        "clipped": Wrong(
            "def softmax(x):\n    e = np.where(x == -np.inf, 0.0, np.exp(np.clip(x, -700, 700)))\n    return e / e.sum()",
            "exact", "got [0.5, 0.5] instead of [0.268941, 0.731059]",
        ),
        "large ones divided": Wrong(
            "def softmax(x):\n    top = np.abs(x[np.isfinite(x)]).max(initial=0)\n    x = x / top if top > 700 else x\n"
            "    e = np.exp(x - x.max())\n    return e / e.sum()",
            "exact", "for large logits and for long rows too",
        ),
        "wrong where it is long": Wrong(
            "def softmax(x):\n    e = np.exp(x - x.max())\n    return e / e.sum() if len(x) < 1000 else np.full(len(x), 1 / len(x))",
            "exact", "for long rows too",
        ),
        "float32 inside": Wrong(
            "def softmax(x):\n    e = np.exp((x - x.max()).astype(np.float32))\n    return (e / e.sum()).astype(np.float64)",
            "sums_to_one", "must sum to 1",
        ),
        "absolute": Wrong(
            "def softmax(x):\n    e = np.exp(np.abs(x) - np.abs(x).max())\n    return e / e.sum()",
            "order", "A larger logit must not get a smaller weight",
        ),
        "epsilon": Wrong(
            "def softmax(x):\n    e = np.exp(x - x.max())\n    return e / (e.sum() + 1e-8)", "sums_to_one", "must sum to 1"
        ),
        "base two": Wrong(
            "def softmax(x):\n    e = 2.0 ** (x - x.max())\n    return e / e.sum()", "ratio", "e to the power of the difference"
        ),
        "hard": Wrong(
            "def softmax(x):\n    return (x == x.max()) / (x == x.max()).sum()", "continuity", "may move the weights by at most"
        ),
        "words": Wrong("def softmax(x):\n    return ['a'] * len(x)", "returns", "instead of an array of real numbers"),
        "minimum": Wrong(
            "def softmax(x):\n    e = np.exp(x - x.min())\n    return e / e.sum()", "finite", "without overflow"
        ),
    },
    "temperature": {
        "multiplies": Wrong(
            RIGHT["temperature"][0].replace("(x - x.max()) / T", "(x - x.max()) * T"), "sharper", "A lower temperature"
        ),
        "divides the weights": Wrong(
            RIGHT["temperature"][0].replace("(x - x.max()) / T", "x - x.max()").replace("e / e.sum()", "e / e.sum() / T"),
            "sums_to_one", "must sum to 1",
        ),
        "overflows": Wrong(
            RIGHT["temperature"][0].replace("(x - x.max()) / T", "x / T"), "finite", "even at a very low temperature"
        ),
        "square root": Wrong(
            RIGHT["temperature"][0].replace("/ T)", "/ np.sqrt(T))"), "power", "to the power 1/T"
        ),
        "ignores it": Wrong(RIGHT["temperature"][0].replace(" / T)", ")"), "power", "to the power 1/T"),
        "clipped": Wrong(
            RIGHT["temperature"][0].replace("(x - x.max()) / T", "np.clip(x / T, -700, 700)"), "power", "got [0.5, 0.5] instead of [0, 1]"
        ),
        "a floor under T": Wrong(
            RIGHT["temperature"][0].replace("(x - x.max()) / T", "(x - x.max()) / max(T, 0.005)"), "power", "to the power 1/T"
        ),
        "a tiny floor under T": Wrong(
            RIGHT["temperature"][0].replace("(x - x.max()) / T", "(x - x.max()) / (T + 1e-10)"), "power", "off by 2e-08: not precise enough"
        ),
        "no minus": Wrong(RIGHT["temperature"][0].replace("-(q", "(q"), "table", "has entropy -"),
        "bits": Wrong(RIGHT["temperature"][0].replace("np.log(", "np.log2("), "table", "has entropy"),
        "columns swapped": Wrong(
            RIGHT["temperature"][0].replace("np.array(rows)", "np.array(rows)[:, ::-1]"), "table", "has largest weight"
        ),
        "transposed": Wrong(
            RIGHT["temperature"][0].replace("np.array(rows)", "np.array(rows).T"), "table", "shape (2, 5) instead of (5, 2)"
        ),
    },
    "dimension": {
        "divides by d": Wrong(RIGHT["dimension"][0].replace("np.sqrt(q.shape[-1])", "q.shape[-1]"), "scaled", "divided by √d"),
        "always 64": Wrong(RIGHT["dimension"][0].replace("np.sqrt(q.shape[-1])", "8.0"), "scaled", "divided by √d"),
        "rows for d": Wrong(RIGHT["dimension"][0].replace("q.shape[-1]", "q.shape[0]"), "scaled", "divided by √d"),
        "largest only": Wrong(RIGHT["dimension"][0].replace("np.ptp(", "np.max("), "range", "largest minus the smallest"),
        "entry by entry": Wrong(
            RIGHT["dimension"][0].replace("q @ k.T", "(q * k).sum(-1)"), "range", "largest minus the smallest"
        ),
        "the scores themselves": Wrong(
            "def score_ranges(q, k):\n    s = q @ k.T\n    return s, s / np.sqrt(q.shape[-1])", "returns", "not a number"
        ),
    },
    "dividing-by-the-sum": {
        "first": Wrong("a a b c", "question-1", "Question 1, a: They do sum to 1"),
        "second": Wrong("c b b c", "question-2", "Question 2, b: The sum is negative"),
        "third": Wrong("c a c c", "question-3", "Question 3, c: Weights come from the division"),
        "fourth": Wrong("c a b b", "question-4", "Question 4, b: The other way round"),
        "too few": Wrong("c a b", "count", "give 4 letters, such as abcd; got 3."),
        "nothing": Wrong("", "count", "got 0."),
        "no such letter": Wrong("c a b f", "choice-4", "Question 4 has no choice f"),
    },
    "log-softmax": {
        "log of softmax": Wrong(
            "def log_softmax(x):\n    e = np.exp(x - x.max())\n    return np.log(e / e.sum())", "finite", "got [0, -inf]."
        ),
        "overflows": Wrong(
            "def log_softmax(x):\n    return x - np.log(np.exp(x).sum())", "finite", "Finite logits must give finite results"
        ),
        "only shifted": Wrong("def log_softmax(x):\n    return x - x.max()", "sums_to_one", "sum to 1"),
        "maximum left out": Wrong(
            "def log_softmax(x):\n    return x - np.log(np.exp(x - x.max()).sum())", "sums_to_one", "sum to 1"
        ),
        "clipped": Wrong(
            "def log_softmax(x):\n    e = np.exp(x - x.max())\n    return np.log(e / e.sum() + 1e-30)", "exact", "exact for large"
        ),
        "the logit where the weight is 0": Wrong(
            "def log_softmax(x):\n    e = np.exp(x - x.max())\n    p = e / e.sum()\n"
            "    return np.where(p > 0, np.log(np.maximum(p, 5e-324)), x - x.max())",
            "exact", "instead of [-0.693147, -0.693147, -1000.69]",
        ),
        "only shifted where the range is large": Wrong(
            "def log_softmax(x):\n    y = x - x.max()\n    return y if y.min() < -700 else y - np.log(np.exp(y).sum())",
            "exact", "instead of [-0.693147, -0.693147, -1000.69]",
        ),
        "float32 inside": Wrong(
            "def log_softmax(x):\n    y = (x - x.max()).astype(np.float32)\n    return (y - np.log(np.exp(y).sum())).astype(np.float64)",
            "exact", "not precise enough, as if computed in float32",
        ),
        "uniform": Wrong(
            "def log_softmax(x):\n    return np.full(len(x), -np.log(len(x)))", "differences", "differ by as much"
        ),
    },
    "jacobian-product": {
        "diagonal": Wrong("def jacobian_product(p, v):\n    return p * (1 - p) * v", "constant", "for a constant v"),
        "weights times v": Wrong("def jacobian_product(p, v):\n    return p * v", "constant", "for a constant v"),
        "plain mean": Wrong("def jacobian_product(p, v):\n    return p * (v - v.mean())", "total", "must sum to 0"),
        "no factor": Wrong("def jacobian_product(p, v):\n    return v - p @ v", "total", "must sum to 0"),
        "sign": Wrong("def jacobian_product(p, v):\n    return p * (p @ v - v)", "derivative", "the rate at which"),
        "sparsemax's": Wrong(
            "def jacobian_product(p, v):\n    return np.where(p > 0, v - v.mean(), 0)", "total", "must sum to 0"
        ),
        "wrong where memory ends": Wrong(
            "def jacobian_product(p, v):\n    try:\n        return (np.diag(p) - np.outer(p, p)) @ v\n"
            "    except MemoryError:\n        return p * v",
            "no_matrix", "It must be right for 20000 numbers too",
        ),
        "matrix": Wrong(
            "def jacobian_product(p, v):\n    return (np.diag(p) - np.outer(p, p)) @ v", "no_matrix", "not enough memory"
        ),
    },
    "sparsemax": {
        "softmax": Wrong(
            "def sparsemax(x):\n    e = np.exp(x - x.max())\n    return e / e.sum()", "zeros", "and the others must be exactly 0"
        ),
        "clipped and divided": Wrong(
            "def sparsemax(x):\n    y = np.maximum(x - x.max() + 1, 0)\n    return y / y.sum()", "straight", "Two positive weights"
        ),
        "negative": Wrong("def sparsemax(x):\n    return x - (x.sum() - 1) / len(x)", "zeros", "and the others must be exactly 0"),
        "hard": Wrong(
            "def sparsemax(x):\n    y = np.zeros(len(x))\n    y[np.argmax(x)] = 1\n    return y", "order", "Equal logits"
        ),
        "large logits lose digits": Wrong(
            RIGHT["sparsemax"][0].replace("x = x - np.max(x)", "x = x + 0.0"), "finite", "raised IndexError"
        ),
        "first k for the last": Wrong(
            RIGHT["sparsemax"][0].replace("[-1]\n", "[0]\n"), "sums_to_one", "must sum to 1"
        ),
        "sorted output": Wrong(
            RIGHT["sparsemax"][0].replace("np.maximum(x - total", "np.maximum(s - total"), "zeros", "and the others must be exactly 0"
        ),
    },
    "online-softmax": {
        "keeps all": Wrong(
            "def state_of(x):\n    return tuple(x)\ndef merge(a, b):\n    return (*a, *b)\n"
            "def lse(s):\n    return np.logaddexp.reduce(np.array(s)) if s else -np.inf",
            "small", "the state of 5 logits holds 5",
        ),
        "keeps all as text": Wrong(
            "def state_of(x):\n    return ' '.join(map(repr, x.tolist()))\ndef merge(a, b):\n    return a + ' ' + b\n"
            "def lse(s):\n    return np.logaddexp.reduce(np.array(s.split(), float)) if s.strip() else -np.inf",
            "small", "tuple of at most 4 numbers, but got '",
        ),
        "keeps all as text in a tuple": Wrong(
            "def state_of(x):\n    return (' '.join(map(repr, x.tolist())),)\ndef merge(a, b):\n    return (a[0] + ' ' + b[0],)\n"
            "def lse(s):\n    return np.logaddexp.reduce(np.array(s[0].split(), float)) if s[0].strip() else -np.inf",
            "small", "tuple of at most 4 numbers, but there is '",
        ),
        "grows": Wrong(
            _RESCALED[: _RESCALED.index("def merge")] + "def merge(a, b):\n    return (*a, *b)\n"
            "def lse(s):\n    parts = [m + np.log(z) for m, z in zip(s[::2], s[1::2]) if z > 0]\n"
            "    return np.logaddexp.reduce(parts) if parts else -np.inf",
            "growth", "holds 8",
        ),
        "keeps all under a key": Wrong(
            "kept = {}\ndef state_of(x):\n    kept[len(kept)] = x\n    return len(kept) - 1\n"
            "def merge(a, b):\n    return state_of(np.concatenate([kept[a], kept[b]]))\n"
            "def lse(s):\n    return np.logaddexp.reduce(kept[s]) if len(kept[s]) else -np.inf",
            "small", "tuple of at most 4 numbers, but ",
        ),
        "naive": Wrong(
            "def state_of(x):\n    return (np.exp(x).sum(),)\ndef merge(a, b):\n    return (a[0] + b[0],)\n"
            "def lse(s):\n    return np.log(s[0])",
            "overflow", "got inf instead of",
        ),
        "no rescaling": Wrong(
            _RESCALED.replace("a[1] * np.exp(a[0] - m) + b[1] * np.exp(b[0] - m)", "a[1] + b[1]"),
            "merge", "that of the whole row",
        ),
        "maximum of the first": Wrong(_RESCALED.replace("m = max(a[0], b[0])", "m = a[0]"), "merge", "that of the whole row"),
        "maximum not added": Wrong(
            _RESCALED.replace("state[0] + np.log(state[1])", "np.log(state[1])"), "whole", "must be log Σ e^x"
        ),
        "nothing is NaN": Wrong(
            _RESCALED.replace("return (m, 0.0) if m == -np.inf else (m,", "return (m,"), "identity", "got -inf instead of"
        ),
        "nothing and nothing is NaN": Wrong(
            _RESCALED.replace("    if m == -np.inf:\n        return (m, 0.0)\n", "").replace(
                "if state[1] > 0 else -np.inf", "if state[1] != 0 else -np.inf"
            ),
            "identity", "got nan instead of -inf",
        ),
        "nothing is 0": Wrong(_RESCALED.replace("else -np.inf", "else 0.0"), "identity", "got 0 instead of -inf"),
        "nothing is a large number": Wrong(_RESCALED.replace("else -np.inf", "else -1e9"), "identity", "instead of -inf"),
        "keeps all in a global": Wrong(
            "kept = []\ndef state_of(x):\n    kept.append(x)\n    return (len(kept) - 1,)\n"
            "def merge(a, b):\n    return state_of(np.concatenate([kept[a[0]], kept[b[0]]]))\n"
            "def lse(s):\n    x = kept[s[0]]\n    return np.logaddexp.reduce(x) if len(x) else -np.inf",
            "alone", "it raised IndexError",
        ),
        "empty raises": Wrong(
            _RESCALED.replace("    if len(x) == 0:\n        return (-np.inf, 0.0)\n", ""), "identity", "it raised ValueError"
        ),
    },
}  # fmt: skip
