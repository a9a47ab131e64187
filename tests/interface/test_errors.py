"""Bad input: which argument, the rule, what was given and what to do, for everything except attention."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import LABELS, OTHER, TARGETS, WEIGHTS, X
from interface.kinds import OnlyDLPack, tensor
from interface.refused import refused

RNG = np.random.default_rng(0)
Q, K, V, GRAD = np.ones((1, 2, 3)), np.ones((1, 4, 3)), np.ones((1, 4, 5)), np.ones((1, 2, 5))
W = np.ones((3, 2))

# Every argument that takes floating-point numbers: its name, and a call with a value in its place.
ARGUMENTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "softmax": ("x", ss.softmax),
    "log_softmax": ("x", ss.log_softmax),
    "logsumexp": ("x", ss.logsumexp),
    "sparsemax": ("x", ss.sparsemax),
    "entmax": ("x", ss.entmax),
    "entmax, alpha": ("alpha", lambda a: ss.entmax(X, a)),
    "softmax, temperature": ("temperature", lambda a: ss.softmax(X, temperature=a)),
    "jacobian": ("weights", ss.jacobian),
    "jacobian_product": ("weights", lambda a: ss.jacobian_product(a, OTHER)),
    "jacobian_product, v": ("v", lambda a: ss.jacobian_product(WEIGHTS, a)),
    "cross_entropy": ("logits", lambda a: ss.cross_entropy(a, TARGETS)),
    "distillation_loss": ("student", lambda a: ss.distillation_loss(a, OTHER, temperature=2.0)),
    "distillation_loss, teacher": ("teacher", lambda a: ss.distillation_loss(X, a, temperature=2.0)),
    "partition": ("x", ss.partition),
    "temperature_for": ("x", lambda a: ss.temperature_for(a, peak=0.5)),
    "temperature_for, entropy": ("entropy", lambda a: ss.temperature_for(X, entropy=a)),
    "temperature_for, peak": ("peak", lambda a: ss.temperature_for(X, peak=a)),
    "fit_temperature": ("logits", lambda a: ss.fit_temperature(a, LABELS)),
    "sample": ("logits", lambda a: ss.sample(a, rng=RNG)),
    "sample, temperature": ("temperature", lambda a: ss.sample(X, temperature=a, rng=RNG)),
    "attention, q": ("q", lambda a: ss.attention(a, K, V)),
    "attention, k": ("k", lambda a: ss.attention(Q, a, V)),
    "attention, v": ("v", lambda a: ss.attention(Q, K, a)),
    "attention, scale": ("scale", lambda a: ss.attention(Q, K, V, scale=a)),
    "attention, sink": ("sink", lambda a: ss.attention(Q, K, V, sink=a)),
    "attention, mask": ("mask", lambda a: ss.attention(Q, K, V, mask=a)),
    "attention_partition, q": ("q", lambda a: ss.attention_partition(a, K)),
    "additive_attention, w_q": ("w_q", lambda a: ss.additive_attention(Q, K, V, a, W, W[0])),
    "additive_attention, w_k": ("w_k", lambda a: ss.additive_attention(Q, K, V, W, a, W[0])),
    "additive_attention, v_a": ("v_a", lambda a: ss.additive_attention(Q, K, V, W, W, a)),
    "gradient_readings": ("grad_output", lambda a: ss.gradient_readings(Q, K, V, a)),
}
INDICES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "cross_entropy, targets": ("targets", lambda a: ss.cross_entropy(X, a)),
    "fit_temperature, targets": ("targets", lambda a: ss.fit_temperature(X, a)),
    "attention_partition, rows": ("rows", lambda a: ss.attention_partition(Q, K, rows=a)),
}

DTYPES = [
    X.astype(np.complex64),
    X.astype(np.longdouble),
    X.astype(object),
    X.astype(str),
    X.astype("datetime64[s]"),
    X.astype(ml_dtypes.float8_e4m3fn),
]
NOT_ARRAYS = [{"a": 1.0}, "abc", b"abc", {1.0}, len]


@pytest.mark.parametrize("where", [*ARGUMENTS, *INDICES])
def test_an_unknown_dtype(where: str) -> None:
    name, call = (ARGUMENTS | INDICES)[where]
    for array in DTYPES:
        wrong = array[..., 0] if where in INDICES else array
        refused(lambda w=wrong: call(w), name, str(wrong.dtype))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e4m3fn])
def test_an_unknown_dtype_of_a_tensor(dtype: torch.dtype) -> None:
    wrong, came = torch.ones(1, 2, 2).to(dtype), str(dtype).rpartition(".")[2]
    right = torch.ones(1, 2, 2)
    for name, call in (
        ("x", lambda: ss.softmax(wrong)),
        ("x", lambda: ss.partition(wrong)),
        ("temperature", lambda: ss.softmax(right, temperature=wrong)),
        ("alpha", lambda: ss.entmax(right, wrong)),
        ("weights", lambda: ss.jacobian(wrong)),
        ("v", lambda: ss.jacobian_product(right, wrong)),
        ("logits", lambda: ss.cross_entropy(wrong, torch.ones(1, 2, dtype=torch.int64))),
        ("targets", lambda: ss.cross_entropy(right, wrong[..., 0])),
        ("teacher", lambda: ss.distillation_loss(right, wrong, temperature=1.0)),
        ("q", lambda: ss.attention(wrong, right, right)),
        ("mask", lambda: ss.attention(right, right, right, mask=wrong)),
        ("sink", lambda: ss.attention(right, right, right, sink=wrong[0, 0])),
    ):
        refused(call, name, came)


def test_a_sparse_tensor() -> None:
    sparse = torch.eye(3).to_sparse()
    refused(lambda: ss.softmax(sparse), "x", "sparse")
    refused(lambda: ss.partition(sparse), "x", "sparse")
    refused(lambda: ss.attention(sparse, sparse, sparse), "q", "sparse")


@pytest.mark.parametrize("where", [*ARGUMENTS, *INDICES])
def test_rows_of_different_lengths(where: str) -> None:
    name, call = (ARGUMENTS | INDICES)[where]
    refused(lambda: call([[1.0, 2.0], [3.0]]), name)


@pytest.mark.parametrize("where", [*ARGUMENTS, *INDICES])
def test_a_masked_array_is_refused_because_its_mask_would_be_lost(where: str) -> None:
    name, call = (ARGUMENTS | INDICES)[where]
    data = np.zeros((2, 3), dtype=np.int64) if where in INDICES else X
    refused(lambda: call(np.ma.masked_array(data, data > 0)), name, "masked")


@pytest.mark.parametrize("where", [*ARGUMENTS, *INDICES])
def test_what_is_no_array_at_all(where: str) -> None:
    name, call = (ARGUMENTS | INDICES)[where]
    for wrong in NOT_ARRAYS:
        refused(lambda w=wrong: call(w), name)


@pytest.mark.parametrize("where", [*ARGUMENTS, *INDICES])
def test_what_dlpack_cannot_bring(where: str) -> None:
    class Elsewhere(OnlyDLPack):
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("this lives on another device")

    name, call = (ARGUMENTS | INDICES)[where]
    refused(lambda: call(Elsewhere(X)), name, "another device")


ALPHAS = [
    (0.99, "0.99"),
    (-2.01, "-2.01"),
    (np.nan, "nan"),
    (np.inf, "inf"),
    (-1, "-1"),
    (None, ""),
    ("1.5", ""),
    (True, ""),
]
WITH_ALPHA: dict[str, Callable[..., Any]] = {
    "entmax": lambda a, m=np.array: ss.entmax(m(X), a),
    "jacobian": lambda a, m=np.array: ss.jacobian(m(WEIGHTS), alpha=a),
    "jacobian_product": lambda a, m=np.array: ss.jacobian_product(m(WEIGHTS), m(OTHER), alpha=a),
}


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", WITH_ALPHA)
@pytest.mark.parametrize(("alpha", "came"), ALPHAS)
def test_alpha(name: str, alpha: Any, came: str, make: Callable[[Any], Any]) -> None:
    refused(lambda: WITH_ALPHA[name](alpha, make), "alpha", came)


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", WITH_ALPHA)
def test_alpha_in_an_array(name: str, make: Callable[[Any], Any]) -> None:
    for wrong in (0.5, -2.25, np.inf, np.nan):
        alpha = np.full((2, 3, 1), 1.5)
        alpha[1, 1] = wrong
        refused(lambda a=alpha: WITH_ALPHA[name](make(a), make), "alpha", str(wrong))
    for shape in ((2, 3), (3,), (2, 3, 4)):
        refused(lambda s=shape: WITH_ALPHA[name](make(np.full(s, 1.5)), make), "alpha", str(shape), "(2, 3, 1)")


@pytest.mark.usefixtures("every_warning")
@pytest.mark.parametrize("name", WITH_ALPHA)
def test_a_learned_alpha_that_went_wrong(name: str) -> None:
    learned = torch.nn.Parameter(torch.tensor(0.75))
    refused(lambda: WITH_ALPHA[name](learned, tensor), "alpha", "0.75")


@pytest.mark.parametrize("make", [np.array, tensor])
def test_targets(make: Callable[[Any], Any]) -> None:
    x, good = make(X), np.zeros((2, 3), dtype=np.int64)
    for wrong in (4, -1, -101, 2**40):
        bad = good.copy()
        bad[1, 0] = wrong
        refused(lambda b=bad: ss.cross_entropy(x, make(b)), "targets", str(wrong), "[0, 4)")
        refused(lambda b=bad: ss.fit_temperature(x, make(b)), "targets", str(wrong), "[0, 4)")
    for wrong in (good.astype(np.float64), good.astype(bool)):
        kind = str(make(wrong).dtype).rpartition(".")[2]
        refused(lambda w=wrong: ss.cross_entropy(x, make(w)), "targets", kind)
        refused(lambda w=wrong: ss.fit_temperature(x, make(w)), "targets", kind)
    for shape in ((2, 4), (3,), (2, 3, 1), ()):
        wrong = make(np.zeros(shape, dtype=np.int64))
        refused(lambda w=wrong: ss.cross_entropy(x, w), "targets", str(shape), "(2, 3)")
        refused(lambda w=wrong: ss.fit_temperature(x, w), "targets", str(shape), "(2, 3)")
    refused(lambda: ss.cross_entropy(x, make(np.full((2, 3), 100)), ignore_index=0), "targets", "100")


@pytest.mark.parametrize(
    ("options", "name", "came"),
    [
        ({"label_smoothing": -0.1}, "label_smoothing", "-0.1"),
        ({"label_smoothing": 1.5}, "label_smoothing", "1.5"),
        ({"label_smoothing": np.nan}, "label_smoothing", "nan"),
        ({"label_smoothing": "a"}, "label_smoothing", "'a'"),
        ({"reduction": "avg"}, "reduction", "'avg'"),
        ({"reduction": None}, "reduction", "None"),
        ({"reduction": ["mean"]}, "reduction", "mean"),
        ({"ignore_index": 1.5}, "ignore_index", "1.5"),
        ({"ignore_index": None}, "ignore_index", "None"),
    ],
)
def test_options_of_cross_entropy(options: dict[str, Any], name: str, came: str) -> None:
    refused(lambda: ss.cross_entropy(X, TARGETS, **options), name, came)


@pytest.mark.parametrize("make", [np.array, tensor])
def test_second_arrays_that_do_not_fit(make: Callable[[Any], Any]) -> None:
    x, short = make(X), make(X[:, :2])
    refused(lambda: ss.jacobian_product(x, short), "v", "(2, 3, 4)", "(2, 2, 4)")
    refused(lambda: ss.distillation_loss(x, short, temperature=1.0), "teacher", "(2, 3, 4)", "(2, 2, 4)")
    refused(lambda: ss.jacobian_product(x, make(X.astype(np.float32))), "v", "float64", "float32")


def test_two_devices() -> None:
    x, far = torch.ones(2, 3), torch.ones(2, 3, device="meta")
    for name, call in (
        ("temperature", lambda: ss.softmax(x, temperature=far[:, :1])),
        ("where", lambda: ss.softmax(x, where=far > 0)),
        ("alpha", lambda: ss.entmax(x, far[:, :1])),
        ("v", lambda: ss.jacobian_product(x, far)),
        ("targets", lambda: ss.cross_entropy(x, far[:, 0].long())),
        ("teacher", lambda: ss.distillation_loss(x, far, temperature=1.0)),
    ):
        refused(call, name, "meta", "cpu")


@pytest.mark.parametrize(
    ("call", "name", "came"),
    [
        (lambda: ss.temperature_for(X), "temperature_for", "entropy"),
        (lambda: ss.temperature_for(X, entropy=0.5, peak=0.5), "temperature_for", "peak"),
        (lambda: ss.temperature_for(X, entropy=np.nan), "entropy", "nan"),
        (lambda: ss.temperature_for(X, peak=np.nan), "peak", "nan"),
        (lambda: ss.temperature_for(X, entropy="a lot"), "entropy", ""),
        (lambda: ss.temperature_for(X, entropy=np.ones((2, 3))), "entropy", "(2, 3, 1)"),
        (lambda: ss.logsumexp(X, keepdims="no"), "keepdims", "no"),
        (lambda: ss.fit_temperature(np.zeros((0, 3)), np.zeros(0, dtype=int)), "logits", "(0, 3)"),
        (lambda: ss.fit_temperature(np.array([[np.nan, 1.0]]), [0]), "logits", ""),
        (lambda: ss.partition(X).merge(3.0), "merge", "float"),
        (lambda: ss.partition(X).merge(ss.partition(X, temperature=2.0)), "merge", "2.0"),
        (lambda: ss.partition(X).merge(ss.partition(X[:, :2])), "merge", "(2, 2)"),
        (lambda: ss.partition(X).merge(ss.partition(tensor(X))), "merge", "tensors"),
    ],
)
def test_the_rest(call: Callable[[], Any], name: str, came: str) -> None:
    refused(call, name, came)


SAMPLING = [("top_k", v) for v in (0, -1, 1.5, True, "3")] + [("top_p", v) for v in (0.0, -0.1, 1.1, np.nan, "a", True)]
SAMPLING += [("min_p", v) for v in (-0.1, 1.1, np.nan, "a")] + [("temperature", v) for v in (-1.0, np.nan, -np.inf)]


@pytest.mark.parametrize(("name", "value"), SAMPLING)
def test_options_of_sample(name: str, value: Any) -> None:
    rng = np.random.default_rng(0)
    refused(lambda: ss.sample(X, rng=rng, **{name: value}), name, str(value))


@pytest.mark.parametrize("rng", [None, 0, "seed", np.random.RandomState(0), np.random])
def test_the_generator_of_sample(rng: Any) -> None:
    refused(lambda: ss.sample(X, rng=rng), "rng", type(rng).__name__)
    with pytest.raises(TypeError, match="rng"):
        ss.sample(X)


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("row", [[np.nan, 1.0], [np.inf, 1.0], [-np.inf, -np.inf], []])
def test_a_row_that_cannot_be_drawn_from(row: list[float], make: Callable[[Any], Any]) -> None:
    x = make(np.array([[0.0, 1.0], row])) if row else make(np.zeros((2, 0)))
    for temperature in (1.0, 0.0):
        refused(lambda t=temperature: ss.sample(x, temperature=t, rng=np.random.default_rng(0)), "logits")
