"""The readings match those of explicit float64 weights, at 320 tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from softscope import _engine, _partition, bounds
from softscope._backends.torch import engine_attention, maps, row_reading
from softscope.doctor import scope
from softscope.doctor.read import row_readings

from . import by_hand

BATCH, HEADS, N, D = 2, 4, 320, 16
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "grouped": {"causal": True, "kv_heads": 2},
    "padded": {"padded": True},
    "padded causal": {"padded": True, "masked": True, "kv_heads": 2},
    "biased": {"bias": True},
    "more keys than queries": {"keys": 400},
    "windowed": {"causal": True, "window": (40, 0)},
    "softcap": {"causal": True, "softcap": 3.0},
    "sink": {"causal": True, "sink": True},
    "blocked": {"causal": True, "scale": 30.0},
    "blocked, grouped": {"causal": True, "kv_heads": 2, "scale": 30.0},
    "blocked, padded": {"padded": True, "scale": 30.0},
    "blocked, padded, causal": {"padded": True, "masked": True, "kv_heads": 2, "scale": 30.0},
    "blocked, windowed": {"causal": True, "window": (40, 0), "scale": 30.0},
    "blocked, more keys than queries": {"keys": 400, "scale": 30.0},
    "blocked, previous token": {"causal": True, "kv_heads": 2, "scale": 6.0, "previous": True},
    "blocked, previous token, padded": {"padded": True, "scale": 6.0, "previous": True},
    "blocked, previous token, windowed": {"causal": True, "window": (40, 0), "scale": 6.0, "previous": True},
    "blocked, capped, with a sink": {"softcap": 200.0, "sink": True, "scale": 30.0},
}


class Mix(nn.Module):
    """Attention alone, as a module."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        if options.pop("explicit", False):
            logits = q @ k.repeat_interleave(HEADS // k.shape[1], 1).mT * options["scale"]
            return functional.softmax(logits + options["added"], -1) @ v.repeat_interleave(HEADS // v.shape[1], 1)
        options.pop("added", None)
        if {"window", "softcap", "sink"} & options.keys():
            return ss.attention(q, k, v, causal=options.pop("is_causal", False), **options)
        return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)


def case(name: str, dtype: torch.dtype) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, float]]]:
    """The tensors, the options of the call, and the expected readings per head."""
    says = CASES[name]
    rng = np.random.default_rng(0)
    m, kv = says.get("keys", N), says.get("kv_heads", HEADS)
    scale = says.get("scale", 0.4)
    shapes = {"q": (BATCH, HEADS, N, D), "k": (BATCH, kv, m, D), "v": (BATCH, kv, m, D), "g": (BATCH, HEADS, N, D)}
    # Round to the dtype first, so both sides read the same numbers.
    arrays = {x: torch.tensor(rng.normal(size=shape), dtype=dtype) for x, shape in shapes.items()}
    if says.get("previous"):
        arrays["q"][:, :, 1:] = arrays["k"].repeat_interleave(HEADS // kv, 1)[:, :, :-1]
    options: dict[str, Any] = {"scale": scale}
    shown, queries = np.ones((BATCH, N, m), bool), np.ones((BATCH, N), bool)
    bias: Any = 0.0
    offsets = np.arange(m) - np.arange(N)[:, None]
    if says.get("causal"):
        options["is_causal"] = True
        shown &= offsets <= 0
    if "window" in says:
        options["window"] = says["window"]
        shown &= offsets >= -says["window"][0]
    if says.get("padded"):
        lengths = np.array([N, 130])
        queries = np.arange(N) < lengths[:, None]
        shown &= queries[:, None, :]
        if says.get("masked"):
            shown &= offsets <= 0
            shown &= queries[:, :, None]  # padded queries see nothing
        options["attn_mask"] = torch.tensor(shown[:, None] if says.get("masked") else shown[:, None, :1])
    if says.get("bias"):
        added = torch.tensor(rng.normal(size=(N, m)), dtype=dtype)
        hidden = rng.random((N, m)) < 0.3
        bias = added.double().numpy()
        shown &= ~hidden
        options["attn_mask"] = added.masked_fill(torch.tensor(hidden), torch.finfo(dtype).min)
    if "softcap" in says:
        options["softcap"] = says["softcap"]
    sinks = np.linspace(-1.0, 6.0, HEADS) if says.get("sink") else [None] * HEADS
    if says.get("sink"):
        options["sink"] = torch.tensor(sinks)
    options["added"] = torch.where(torch.tensor(shown[:, None]), torch.as_tensor(bias), -torch.inf).to(dtype)
    double = {x: value.double().numpy() for x, value in arrays.items()}
    wanted = [
        by_hand.head(
            double["q"][:, h], double["k"][:, h * kv // HEADS], double["v"][:, h * kv // HEADS], double["g"][:, h],
            scale=scale, shown=shown, bias=bias, softcap=says.get("softcap"), sink=sinks[h], queries=queries,
            one_sequence=m == N,
        )
        for h in range(HEADS)
    ]  # fmt: skip
    return arrays, options, wanted


def read(arrays: dict[str, Any], options: dict[str, Any], rows: int | None = None) -> Any:
    torch.set_num_threads(1)
    model = Mix()
    q, k, v = (arrays[x].clone().requires_grad_() for x in "qkv")
    with ss.probe(model, max_rows=rows) as scope:
        output = model(q, k, v, **options)
        output.backward(arrays["g"])
    assert not scope.history().unseen
    return scope.history()


def compare(history: Any, wanted: list[dict[str, float]], rel: float, skip: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    (snapshot,) = history.snapshots
    names = wanted[0].keys() - skip
    assert len(names) >= 15
    for name in sorted(names):
        for h, head in enumerate(wanted):
            got = float(snapshot.readings[name][0, h])
            if name == "sink_column" and head[name] >= 320 and head[name] != got:
                assert got == -1
                continue
            assert got == pytest.approx(head[name], rel=rel, abs=rel), f"{name} of head {h}"


SINGLE = ("grouped", "padded causal", "blocked, capped, with a sink")  # also tested in float32


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, torch.float64) for name in CASES), *((name, torch.float32) for name in SINGLE)]
)
def test_every_row(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, by_engine = [], row_reading.by_engine
    monkeypatch.setattr(row_reading, "by_engine", lambda *a, **b: asked.append(a) or by_engine(*a, **b))
    arrays, options, wanted = case(name, dtype)
    history = read(arrays, options)
    assert asked, "who has read it?"
    compare(history, wanted, 1e-5 if dtype == torch.float64 else 2e-3)
    blocked = history.snapshots[0].readings["blocked"]
    assert (blocked > 0.1).all() if "blocked" in name else (blocked < 0.1).all()
    mass = history.snapshots[0].readings.get("blocked_offset_mass")
    assert (mass is None) == ("more keys" in name)
    if "blocked" in name and mass is not None:
        assert ((mass > 0.9) == ("previous" in name)).all()


EXPLICIT = ("plain", "causal", "grouped", "padded", "biased", "blocked", "blocked, windowed", "blocked, previous token")


@pytest.mark.parametrize("name", EXPLICIT)
def test_an_explicit_softmax(name: str) -> None:
    arrays, options, wanted = case(name, torch.float64)
    options = {"explicit": True, "scale": options["scale"], "added": options["added"]}
    unknown = {"max_logit", "q_norm", "cosine"}
    compare(read(arrays, options), wanted, 1e-5, unknown)


@pytest.mark.parametrize("value", [-1e4, -1e9, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("name", ["causal", "padded"])
def test_a_mask_of_any_large_number_hides(name: str, value: float) -> None:
    """BERT, GPT-2 and many tutorials add −10000."""
    arrays, options, wanted = case(name, torch.float32)
    added = options["added"].masked_fill(options["added"] == -torch.inf, value)
    compare(
        read(arrays, {"explicit": True, "scale": options["scale"], "added": added}), wanted, 2e-3,
        {"max_logit", "q_norm", "cosine"},
    )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_readings_need_no_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on another device: tensor operations only."""

    def off(*_: Any) -> None:
        raise AssertionError("the engine was asked")

    functions = [name for name in dir(_engine) if callable(getattr(_engine, name)) and not name.startswith("_")]
    assert len(functions) > 5
    for function in functions:
        monkeypatch.setattr(_engine, function, off)
    monkeypatch.setattr(row_reading, "offers", lambda _: False)
    monkeypatch.setattr(engine_attention, "offers", lambda *_: False)
    monkeypatch.setattr(maps, "offered", lambda *_: False)
    monkeypatch.setattr(_partition, "plain_reading", lambda *_: None)
    arrays, options, wanted = case(name, torch.float64)
    compare(read(arrays, options), wanted, 1e-5)


def test_passes_of_different_lengths_are_pooled_by_offset() -> None:
    """One step with two passes, of 320 and 200 tokens: the previous token has the same offset in both."""
    arrays, options, _ = case("blocked, previous token", torch.float64)
    model = Mix()
    with ss.probe(model, max_rows=None) as scope:
        for n in (N, 200):
            q, k, v = (arrays[x][:, :, :n].clone().requires_grad_() for x in "qkv")
            model(q, k, v, **options).backward(arrays["g"][:, :, :n])
        scope.step()
    (snapshot,) = scope.history().snapshots
    assert (snapshot.readings["blocked_offset_mass"] > 0.9).all()


def test_chosen_rows_are_at_their_true_positions() -> None:
    arrays, options, _ = case("causal", torch.float64)
    some, every = read(arrays, options, rows=24), read(arrays, options)
    for name in ("sharpness", "count", "transmission", "logit_spread"):
        got, whole = (float(h.snapshots[0].readings[name][0, 0]) for h in (some, every))
        assert got == pytest.approx(whole, rel=0.1), name
    # Rows that looked into the future would see all the keys.
    assert some.snapshots[0].readings["count"].max() < 0.75 * N


def test_offsets_of_chosen_rows() -> None:
    arrays, options, _ = case("blocked, previous token", torch.float64)
    some, every = (read(arrays, options, rows=rows).snapshots[0].readings for rows in (24, None))
    assert (some["blocked_offset_mass"] > 0.9).all()
    assert some["blocked_offset_mass"] == pytest.approx(every["blocked_offset_mass"], abs=0.1)


def test_half_precision_is_read_in_float32() -> None:
    arrays, options, wanted = case("grouped", torch.bfloat16)
    compare(read(arrays, options), wanted, 2e-3)


def test_a_single_sequence_has_an_error_too() -> None:
    arrays, options, _ = case("causal", torch.float32)
    arrays = {name: value[:1] for name, value in arrays.items()}
    options.pop("added")
    error = read(arrays, options).snapshots[0].readings["advantage_error"]
    assert np.isfinite(error).all()
    assert (error > 0).all()


def test_the_sink_of_a_model_that_writes_its_weights_down() -> None:
    """gpt-oss puts a learned logit after those of the keys in its softmax: a sink, not a key."""
    transformers = pytest.importorskip("transformers")
    config = transformers.GptOssConfig(
        num_hidden_layers=1, hidden_size=32, intermediate_size=32, num_attention_heads=4, num_key_value_heads=2,
        head_dim=8, vocab_size=64, num_local_experts=2, num_experts_per_tok=1, layer_types=["full_attention"],
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.GptOssForCausalLM._from_config(config, attn_implementation="eager")
    with torch.no_grad():
        model.model.layers[0].self_attn.sinks.copy_(torch.tensor([6.0, 6.0, 6.0, -20.0]))
    tokens = torch.randint(64, (2, 40))
    with ss.probe(model, every=1, max_rows=None) as scope:
        model(tokens, labels=tokens).loss.backward()
    readings = scope.history().snapshots[0].readings
    assert readings["sink_column"][0].tolist()[:3] == [-1.0, -1.0, -1.0]
    assert readings["sink_column"][0, 3] >= 0
    keys = np.arange(20, 41)  # rows that see at least half of the keys; the logits are close to 0
    assert readings["sink_mass"][0, 0] == pytest.approx(np.mean(np.exp(6) / (np.exp(6) + keys)), abs=2e-3)
    assert (readings["max_logit"] < 1.0).all()
    assert (readings["cosine"] < 0.5).all()


@pytest.mark.parametrize("one", ["k", "q"])
def test_a_batch_of_one_that_serves_all(one: str) -> None:
    """PyTorch's attention broadcasts; the engine must see only the memory that is there."""
    rng = torch.Generator().manual_seed(0)
    q, k = (torch.randn(3, HEADS, 40, D, generator=rng) for _ in "qk")
    g = torch.randn(3, HEADS, 40, D, generator=rng)
    q, k = (q[:1], k) if one == "q" else (q, k[:1])
    found = []
    for whole in (False, True):
        a, b = (x.expand(3, -1, -1, -1).contiguous() if whole else x for x in (q, k))
        found.append(read({"q": a, "k": b, "v": b, "g": g}, {"is_causal": True}).snapshots[0].readings)
    for name in found[1]:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("engine", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gap", [2.0, 20.0, 40.0])
def test_next_to_one_hot_trace_and_sharpness_hold_their_bounds(
    gap: float, dtype: torch.dtype, engine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float32, 1 − Σp² is 0 for gaps of 17 or more; the partition's form keeps its digits. Reference: float64."""
    if not engine:
        monkeypatch.setattr(row_reading, "offers", lambda _: False)
    keys = 8
    q, k = torch.zeros(1, 1, keys, 4, dtype=dtype), torch.zeros(1, 1, keys, 4, dtype=dtype)
    q[..., 0], k[:, :, 3, 0] = 1.0, gap  # every row reads key 3, `gap` above the other seven; the products are exact
    rows, reader = [], scope.read
    monkeypatch.setattr(scope, "read", lambda *given: rows.append(reader(*given)) or rows[-1])
    history = read({"q": q, "k": k, "v": torch.randn_like(k), "g": torch.randn_like(q)}, {"scale": 1.0})
    r = (keys - 1) * math.exp(-gap)
    trace = (2.0 * r + r * r - r * r / (keys - 1)) / (1.0 + r) ** 2
    entropy = math.log1p(r) + gap * r / (1.0 + r)
    (found,), bound = rows, bounds.readings(dtype)
    assert found.values["jacobian_trace"].flatten().tolist() == pytest.approx([trace] * keys, rel=bound)
    missing = (1.0 - found.values["sharpness"]) * math.log(keys)  # the entropy, minus what 1 − … rounded away
    assert missing.flatten().tolist() == pytest.approx([entropy] * keys, rel=bound, abs=1e-15)
    stored = history.snapshots[0].readings["jacobian_trace"]  # in float32
    assert stored[0, 0] == pytest.approx(trace, rel=bound + 2.0**-23)


@pytest.mark.parametrize("engine", [True, False])
@pytest.mark.parametrize("rows", [24, None])
def test_a_mask_of_every_row_follows_the_rows_that_are_read(
    rows: int | None, engine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sampled rows and small tiles use their own rows of the mask: a triangular mask reads the same as causal."""
    if not engine:
        monkeypatch.setattr(row_reading, "offers", lambda _: False)
    monkeypatch.setattr(row_readings, "TILE", 1)  # eight rows at a time
    arrays, options, _ = case("causal", torch.float64)
    masked = {"scale": options["scale"], "attn_mask": torch.ones(N, N).tril().bool()}
    found, wanted = (read(arrays, given, rows).snapshots[0].readings for given in (masked, options))
    names = ("sharpness", "transmission", "jacobian_trace", "max_logit", "sink_mass", "demand", "supply")
    if rows is None:
        for name in names:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, err_msg=name)
    # Rows with another row's keys would have other counts: the fullest row sees N keys, the mean row half of them.
    assert found["count"] == pytest.approx(wanted["count"], rel=0.15)


@pytest.mark.parametrize("engine", [True, False])
@pytest.mark.parametrize("padded", ["in every row", "in one row for all"])
@pytest.mark.parametrize("low", [-1e4, -1e6, -1e9, torch.finfo(torch.float32).min, -math.inf])
def test_whatever_number_hides_a_key_the_head_reads_the_same(
    low: float, padded: str, engine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An additive mask of −10000 hides a key as False does; counted as visible it made an even head look sharp."""
    if not engine:
        monkeypatch.setattr(row_reading, "offers", lambda _: False)
    arrays, options, _ = case("plain", torch.float32)
    shown = torch.arange(N) < 130
    shown = shown.expand(BATCH, 1, N, N) if padded == "in every row" else shown.expand(BATCH, 1, 1, N)
    added = torch.zeros(shown.shape).masked_fill(~shown, low)
    found, wanted = (read(arrays, {**options, "attn_mask": mask}).snapshots[0].readings for mask in (added, shown))
    assert wanted["count"].tolist() == [[130.0] * HEADS]
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6, err_msg=name)


class Explicit(nn.Module):
    """Attention with a softmax of its own, whose empty rows become zeros."""

    def forward(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
        logits = (q @ k.mT).masked_fill(~mask, -math.inf)
        return torch.softmax(logits, dim=-1).nan_to_num(0.0) @ v


@pytest.mark.parametrize("model", [Explicit(), Mix()], ids=["explicit", "sdpa"])
def test_a_row_that_is_left_out_does_not_spoil_the_head(model: nn.Module) -> None:
    """0·NaN is NaN: a single empty or NaN row made the place of all other rows' weight unknown."""
    q, k, v = (torch.ones(2, 1, 16, 4, dtype=torch.float64).requires_grad_() for _ in range(3))
    with torch.no_grad():
        k[:, :, 6, 0] += 60.0  # every row reads key 6
        v.copy_(torch.randn(v.shape, dtype=v.dtype))
        mask = torch.ones(2, 1, 16, 16, dtype=torch.bool)
        mask[0, :, 0] = False
        if isinstance(model, Mix):
            mask[0, :, 0], mask[0, :, :, 15] = True, False  # position 15 is padding, and its query is NaN
            q[0, :, 15] = math.nan
    with ss.probe(model, every=1, max_rows=None) as found:
        output = model(q, k, v, mask) if isinstance(model, Explicit) else model(q, k, v, attn_mask=mask, scale=1.0)
        output.nan_to_num(0.0).backward(torch.randn_like(output))
    readings = found.history().snapshots[0].readings
    assert readings["sink_mass"][0, 0] == pytest.approx(1.0)
    assert readings["sink_column"][0, 0] == 6
    assert readings["blocked_mass"][0, 0] == pytest.approx(1.0)


def test_the_norm_of_keys_leaves_out_padding_that_is_nan() -> None:
    arrays, options, _ = case("plain", torch.float64)
    shown = torch.ones(BATCH, 1, 1, N, dtype=torch.bool)
    shown[0, ..., -1] = False
    wanted = arrays["k"].norm(dim=-1).masked_fill(~shown[:, 0], 0.0).sum(-1) / shown.sum(-1)[:, 0]
    arrays["k"][0, :, -1] = math.nan
    found = read(arrays, {**options, "attn_mask": shown}).snapshots[0].readings["k_norm"]
    assert found[0] == pytest.approx(wanted.mean(dim=0).numpy(), rel=1e-6)


def test_a_learned_sink_is_one_column_whatever_the_lengths_of_the_passes() -> None:
    class Sink(nn.Module):
        def forward(self, q: Any) -> Any:
            return ss.attention(q, q, q, sink=3.0)

    model, lengths = Sink(), (10, 16)
    with ss.probe(model, every=1, max_rows=None) as found:
        for n in lengths:
            model(torch.zeros(1, 1, n, 4, requires_grad=True)).sum().backward()
        found.step()
    readings = found.history().snapshots[0].readings
    # Each pass puts e³/(n + e³) of its n rows on the sink.
    wanted = sum(n * math.exp(3.0) / (n + math.exp(3.0)) for n in lengths) / sum(lengths)
    assert readings["sink_column"][0, 0] == -1
    assert readings["sink_mass"][0, 0] == pytest.approx(wanted, rel=1e-6)


SHAPES = {
    "keys of one head": ((2, 4, 16, 8), (2, 1, 16, 8), (2, 4, 16, 8)),
    "values of one head": ((2, 4, 16, 8), (2, 4, 16, 8), (2, 1, 16, 8)),
    "queries without a batch": ((4, 16, 8), (4, 4, 16, 8), (4, 4, 16, 8)),
    "five axes": ((1, 3, 2, 16, 8), (3, 1, 2, 16, 8), (3, 1, 2, 16, 8)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_broadcast_are_read_as_what_they_broadcast_to(name: str) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape, dtype=torch.float64) for shape in SHAPES[name])
    lead = torch.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v)))
    whole = [x.expand(*lead, *x.shape[-2:]).reshape(-1, *lead[-1:], *x.shape[-2:]) for x in (q, k, v)]
    grad = torch.randn(*lead, 16, 8, dtype=torch.float64)
    found, wanted = (
        read(dict(zip("qkvg", (*given, of), strict=True)), {}).snapshots[0].readings
        for given, of in (((q, k, v), grad), (whole, grad.reshape(whole[0].shape)))
    )
    for reading in wanted:
        np.testing.assert_allclose(found[reading], wanted[reading], rtol=1e-5, err_msg=reading)


def test_a_layer_that_is_the_whole_model_is_one_site_with_one_name() -> None:
    """In eval mode PyTorch fuses the layer into one call, which belongs to its attention as the separate calls do."""
    model = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    with ss.probe(model, every=1) as found:
        model.eval()
        with torch.no_grad():
            model(torch.randn(2, 5, 8))
        found.step()
        model.train()
        model(torch.randn(2, 5, 8)).sum().backward()
        found.step()
    assert [site.name for site in found.history().sites] == ["self_attn"]
    assert not found.history().unseen
