"""Public names and signatures, word for word, because others build on them; each is documented with an example."""

import dataclasses
import inspect

import pytest

import softscope as ss

SHARED = "scale=None, causal=False, query_start=0, window=None, mask=None, softcap=None, sink=None, alpha=1.0"
SIGNATURES = {
    "softmax": "(x, /, *, axis=-1, temperature=1.0, where=None, out=None)",
    "log_softmax": "(x, /, *, axis=-1, temperature=1.0, where=None, out=None)",
    "logsumexp": "(x, /, *, axis=-1, temperature=1.0, where=None, keepdims=False)",
    "sparsemax": "(x, /, *, axis=-1, temperature=1.0, where=None, out=None)",
    "entmax": "(x, /, alpha=1.5, *, axis=-1, temperature=1.0, where=None, out=None)",
    "jacobian": "(weights, *, alpha=1.0, axis=-1, temperature=1.0)",
    "jacobian_product": "(weights, v, *, alpha=1.0, axis=-1, temperature=1.0)",
    "cross_entropy": (
        "(logits, targets, *, axis=-1, temperature=1.0, label_smoothing=0.0, ignore_index=-100, reduction='mean')"
    ),
    "partition": "(x, /, *, axis=-1, temperature=1.0, where=None)",
    "temperature_for": "(x, /, *, entropy=None, peak=None, axis=-1, where=None)",
    "fit_temperature": "(logits, targets)",
    "distillation_loss": "(student, teacher, *, temperature)",
    "sample": "(logits, *, temperature=1.0, top_k=None, top_p=None, min_p=None, rng)",
    "attention": f"(q, k, v, *, {SHARED}, return_partition=False)",
    "attention_partition": f"(q, k, *, {SHARED}, rows=None)",
    "gradient_readings": f"(q, k, v, grad_output, *, {SHARED}, rows=None)",
}
BESIDES = {"get_num_threads": "()", "set_num_threads": "(n)"}  # for threads
# The entry to the doctor.
BESIDES["probe"] = "(model, *, every=None, max_rows=32, seed=0, heads=None, group=None, patience=10.0)"
SIGNATURES |= BESIDES
OPEN = {"additive_attention"}  # "causal=False, mask=None, …"
TYPES = {"Partition", "Support", "Calibration", "GradientReadings"}


def bare(function: object) -> str:
    """The signature without annotations."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def test_the_names_are_all_there_and_no_others() -> None:
    assert set(ss.__all__) == SIGNATURES.keys() | OPEN | TYPES


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_signature(name: str) -> None:
    assert bare(getattr(ss, name)) == SIGNATURES[name]


def test_the_signature_of_additive_attention() -> None:
    text = bare(ss.additive_attention)
    assert text.startswith("(q, k, v, w_q, w_k, v_a, *, causal=False, ")
    assert "mask=None" in text
    options = inspect.signature(ss.attention).parameters
    for name, parameter in inspect.signature(ss.additive_attention).parameters.items():
        assert name in {"q", "k", "v", "w_q", "w_k", "v_a"} or parameter.default == options[name].default


def test_the_fields_of_what_comes_back() -> None:
    readings = {"lse", "entropy", "collision", "peak", "max_logit", "variance", "count", "jacobian_trace"}
    readings |= {"effective_support", "sharpness", "temperature", "merge"}
    p = ss.partition([1.0, 2.0])
    assert all(hasattr(p, name) for name in readings)
    assert callable(ss.Partition.empty)
    names = [field.name for field in dataclasses.fields(ss.Support)]
    assert names == ["tau", "size", "entropy", "collision", "peak", "jacobian_trace"]
    assert ss.Calibration._fields == ("temperature", "nll_before", "nll_after", "ece_before", "ece_after")
    gradients = ("demand", "supply", "transmission", "advantage", "regret_ratio", "blocked")
    assert ss.GradientReadings._fields == gradients


@pytest.mark.parametrize("name", ss.__all__)
def test_it_is_documented_with_an_example(name: str) -> None:
    thing = getattr(ss, name)
    assert thing.__doc__, name
    texts = [inspect.getdoc(thing) or ""]
    if isinstance(thing, type):
        own = [value for attribute, value in vars(thing).items() if not attribute.startswith("_")]
        texts += [inspect.getdoc(value) or "" for value in own]
    assert len(texts[0].splitlines()[0].split()) >= 4, "its first line says what it is"
    assert any(">>>" in text for text in texts), f"{name} shows no example"


@pytest.mark.parametrize("name", [*SIGNATURES, *OPEN])
def test_every_argument_is_spoken_of(name: str) -> None:
    text = inspect.getdoc(getattr(ss, name)) or ""
    shared = "as for `" in text  # "Arguments as for `softmax`"
    missing = [p for p in inspect.signature(getattr(ss, name)).parameters if p not in text]
    assert shared or not missing, f"{name} does not speak of {missing}"
