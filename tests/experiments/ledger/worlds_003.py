"""Worlds in which text 003's claims come out the other way round."""

import numpy as np

import softscope as ss
from experiments.ledger.worlds import World
from softscope.experiments.ledger.texts import chapter_code as code
from softscope.experiments.ledger.texts import random_attention, scores

_TEXTS = "softscope.experiments.ledger.texts"
_SOFTMAX, _CODE = "softscope.softmax", f"{_TEXTS}.chapter_code"
_STABLE, _PRINTED = f"{_CODE}.stable", f"{_CODE}.printed"
# As they are in this world, for the others to build on.
_softmax, _partition, _stable, _attention = ss.softmax, ss.partition, code.stable, code.attention
_plain, _entropies = random_attention.plain, scores.entropies


def _text(name):
    return f"{_TEXTS}.text_003_{name}"


def _fails(target, value):
    return World("fails", {target: value})


def _holds(*pairs):
    return World("holds", dict(pairs))


def _warm(x, temperature=1.0):
    return _softmax(np.asarray(x) / 2.0, temperature=temperature)


def _uniform(x, **_):
    return np.full(np.shape(x), 1.0 / np.shape(x)[-1])


def _hard(x, **_):
    return (np.asarray(x) == np.max(x, -1, keepdims=True)) * 1.0


def _lowest_first(x, temperature=1.0):
    return _softmax(-np.asarray(x), temperature=temperature)


def _not_shift_invariant(x, **_):
    return _softmax(np.square(x))


def _deaf(x, **_):
    """It does not listen to the temperature."""
    return _softmax(x)


def _powers(x):
    return np.exp(np.asarray(x, dtype=np.float64))


def _half_normalised(x):
    return 0.5 * _stable(x)


def _raising(x):
    with np.errstate(over="raise"):
        return np.exp(x)


def _with_zeros(x, decimals):
    """A NumPy that prints every number with all its decimals."""
    return "[" + " ".join(f"{value:.{decimals}f}" for value in np.ravel(x)) + "]"


def _as_listed(x):
    """A softmax that gives the text's digits for [1, 5, 10]."""
    return np.array([0.000123, 0.006693, 0.993184]) if np.max(x) == 10.0 else _stable(x)


def _line(temperature):
    return f"T={temperature:.1f}: {_with_zeros(_stable(np.array([1.0, 2.0, 3.0]) / temperature), 4)}"


def _small():
    return 0.1 * np.random.default_rng(0).standard_normal((2, 50, 64, 64))


def _by_columns(q, k, v):
    scores = q.T @ k
    return scores, _stable(scores), v @ _stable(scores)


def _unscaled(q, k, v):
    found = np.asarray(q @ k.mT)
    return found, _stable(found), _stable(found) @ v


def _of_fixed_size(d, *_):
    """Dot products that do not grow with d."""
    return np.random.default_rng(d).standard_normal(80_000)


def _normal_products(factor):
    return lambda _, d: np.sqrt(factor * d) * np.random.default_rng(d).standard_normal(20_000)


def _other_way(d):
    return {1: 64, 64: 1}[d]


WORLDS = {
    # 4.1
    "S3-01": _fails(_SOFTMAX, _hard),
    "S3-02": _fails(_SOFTMAX, lambda x, **_: 0.9 * _softmax(x)),
    "S3-03": _fails(_SOFTMAX, _warm),
    "S3-04": _fails(f"{_text('definition')}._hard", lambda x: np.where(x == x.max(), x, 0.0)),
    "S3-05": _fails(_SOFTMAX, _warm),
    "S3-06": _fails(_SOFTMAX, _warm),
    "S3-07": _fails(_SOFTMAX, _hard),
    # 4.2
    "S3-08": _fails(f"{_CODE}.naive", _stable),
    "S3-09": _fails(f"{_CODE}.powers", _powers),
    "S3-10": _holds((_PRINTED, _with_zeros)),
    "S3-11": _holds((f"{_text('stability')}._sum_as_printed", "{:.1f}".format)),
    "S3-12": _holds((f"{_CODE}.naive", _raising)),
    "S3-13": _holds((_PRINTED, lambda x, _: _with_zeros(x, 4))),
    "S3-14": _fails(_SOFTMAX, _not_shift_invariant),
    "S3-15": _fails(_SOFTMAX, _not_shift_invariant),
    "S3-16": _fails(f"{_CODE}.powers", _powers),
    # 4.3
    "S3-17": _fails(_SOFTMAX, _uniform),
    "S3-18": _fails(_SOFTMAX, _uniform),
    "S3-19": _fails(_SOFTMAX, _lowest_first),
    "S3-20": _fails(_STABLE, _half_normalised),
    "S3-21": _holds((_STABLE, _as_listed), (_PRINTED, _with_zeros)),
    "S3-22": _holds((_PRINTED, _with_zeros)),
    "S3-23": _holds((_STABLE, _as_listed), (_PRINTED, _with_zeros)),
    # 4.4
    "S3-24": _fails(_SOFTMAX, _deaf),
    "S3-25": _fails(_SOFTMAX, _warm),
    "S3-26": _fails(_SOFTMAX, _deaf),
    "S3-27": _fails("softscope.partition", lambda x, **_: _partition(x)),
    "S3-28": _fails(_SOFTMAX, _warm),
    "S3-29": _fails(_SOFTMAX, _warm),
    "S3-30": _fails(_SOFTMAX, _warm),
    "S3-31": _holds((f"{_text('temperature')}._printed", _line)),
    "S3-34": _fails("softscope.partition", lambda x, temperature=1.0: _partition(x, temperature=1.0 / temperature)),
    "S3-35": _fails(f"{_text('practice')}._student_errors", lambda temperature: temperature + np.arange(20) / 100),
    # 4.5
    "S3-37": _fails("softscope.experiments.ledger.paper.EQUATION_1", "softmax(QKᵀ)V"),
    "S3-38": _fails(_STABLE, _half_normalised),
    "S3-39": _holds((f"{_CODE}.attention", lambda q, k, v: (q @ k.T, _stable(q @ k.T) / len(q), v))),
    "S3-40": _holds((_SOFTMAX, lambda x: _softmax(x / 8.0))),
    "S3-41": _fails(f"{_TEXTS}.dot_products.sampled", _of_fixed_size),
    "S3-42": _fails(f"{_text('root_d')}._sampled", _normal_products(2.0)),
    "S3-43": _fails(f"{_TEXTS}.dot_products.sampled", _of_fixed_size),
    "S3-44": World(
        "fails",
        {
            f"{_TEXTS}.random_attention.plain": lambda d: _plain(_other_way(d)),
            f"{_TEXTS}.scores.entropies": lambda d, *args, **options: _entropies(_other_way(d), *args, **options),
        },
    ),
    "S3-45": _holds((f"{_text('root_d')}._sampled", _normal_products(1.0))),
    "S3-46": _fails(_STABLE, _half_normalised),
    "S3-47": _fails(f"{_CODE}.attention", _by_columns),
    "S3-48": _fails(f"{_CODE}.attention", _unscaled),
    # 4.6, summary and homework
    "S3-49": _fails("softscope.log_softmax", lambda x: np.log(_softmax(x))),
    "S3-51": _fails("softscope.sparsemax", _softmax),
    "S3-52": _holds((f"{_CODE}.sparse", _stable)),
    "S3-53": _fails(f"{_CODE}.log_weights", lambda x: 1.0 - np.log(_stable(x))),
    "S3-54": _fails(f"{_TEXTS}.random_attention.scaled", _plain),
    "S3-55": _fails(f"{_text('homework')}._by_operators", _stable),
    "S3-56": _fails("softscope.partition", lambda x, **_: _partition(x)),
    "S3-57": _fails(f"{_text('homework')}._queries_and_keys", _small),
    "S3-58": _fails(f"{_text('homework')}._over_sum", _softmax),
}  # fmt: skip

# Claims for which no other world can be invented, and why.
_PRACTICE = "what people do in practice: it stands in the source that is cited, and nothing here decides it"
WHY_NOT = {
    "S3-32": _PRACTICE,
    "S3-33": _PRACTICE,
    "S3-36": _PRACTICE,
    "S3-50": _PRACTICE,
    "S3-59": "an opinion: how long a reader needs is an estimate",
}
