"""Saved and loaded, copied and pickled, converted from PyTorch's module."""

import copy
import io
import pickle

import pytest
import torch
from torch import Tensor, nn

import softscope.nn
from nn.same import BATCH, HEADS, SIZE, N, generator

EVERYTHING = {"qk_norm": "rms", "temperature": True, "sink": True}
LEARNED = ["q_gain", "k_gain", "log_temperature", "sink"]
LAYERS = [{}, {"bias": False}, {"kdim": 3, "vdim": 4}, {"add_bias_kv": True, "add_zero_attn": True}]


def same(a: nn.Module, b: nn.Module) -> bool:
    left, right = a.state_dict(), b.state_dict()
    return list(left) == list(right) and all(torch.equal(left[name], right[name]) for name in left)


def moved(layer: nn.Module) -> nn.Module:
    """Every parameter moved away from its initial value."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator(5)))
    return layer


def tokens() -> Tensor:
    return torch.randn(N, BATCH, SIZE, generator=generator(6))


@pytest.mark.parametrize("arguments", LAYERS)
def test_state_dicts_load_both_ways(arguments: dict) -> None:
    theirs = moved(nn.MultiheadAttention(SIZE, HEADS, **arguments))
    ours = softscope.nn.MultiheadAttention(SIZE, HEADS, **arguments)
    assert ours.load_state_dict(theirs.state_dict(), strict=True) == ([], [])
    assert same(ours, theirs)
    back = nn.MultiheadAttention(SIZE, HEADS, **arguments)
    assert back.load_state_dict(moved(ours).state_dict(), strict=True) == ([], [])
    assert same(back, ours)


@pytest.mark.parametrize(("assign", "device"), [(False, "cpu"), (True, "cpu"), (True, "meta")])
def test_what_pytorch_did_not_save_starts_anew(assign: bool, device: str) -> None:
    theirs = moved(nn.Sequential(nn.MultiheadAttention(SIZE, HEADS)))
    ours = moved(nn.Sequential(softscope.nn.MultiheadAttention(SIZE, HEADS, device=device, **EVERYTHING)))
    saved = theirs.state_dict()
    assert ours.load_state_dict(saved, strict=True, assign=assign) == ([], [])
    assert not any(name.endswith("sink") for name in saved)  # the caller's state dict is unchanged
    fresh = softscope.nn.MultiheadAttention(SIZE, HEADS, **EVERYTHING)
    for name in LEARNED:
        assert torch.equal(ours[0].get_parameter(name), fresh.get_parameter(name)), name
        assert ours[0].get_parameter(name).requires_grad
    assert torch.equal(ours[0].in_proj_weight, theirs[0].in_proj_weight)


def test_our_own_state_keeps_what_was_learned() -> None:
    first = moved(softscope.nn.MultiheadAttention(SIZE, HEADS, **EVERYTHING))
    second = softscope.nn.MultiheadAttention(SIZE, HEADS, **EVERYTHING)
    second.load_state_dict(first.state_dict())
    assert same(first, second)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\) in state_dict: .*\"sink\""):
        softscope.nn.MultiheadAttention(SIZE, HEADS).load_state_dict(first.state_dict())


def test_a_state_dict_of_other_layers_changes_nothing_here() -> None:
    ours = moved(softscope.nn.MultiheadAttention(SIZE, HEADS, **EVERYTHING))
    before = copy.deepcopy(ours.state_dict())
    found = ours.load_state_dict({}, strict=False)
    assert set(found.missing_keys) == set(before)
    assert all(torch.equal(before[name], value) for name, value in ours.state_dict().items())
    with pytest.raises(RuntimeError, match=r"Missing key\(s\)"):
        ours.load_state_dict({})


def copies(layer: nn.Module):
    yield copy.deepcopy(layer)
    yield pickle.loads(pickle.dumps(layer))
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    yield torch.load(file, weights_only=False)


@pytest.mark.parametrize("options", [{}, EVERYTHING, {"alpha": 1.5, "softcap": 2.0}])
def test_copies_and_pickles_compute_the_same(options: dict) -> None:
    layer, x = moved(softscope.nn.MultiheadAttention(SIZE, HEADS, **options)), tokens()
    for other in copies(layer):
        assert type(other) is type(layer)
        assert same(other, layer)
        assert other.options == layer.options
        assert torch.equal(other(x, x, x)[0], layer(x, x, x)[0])
        assert not other._qkv_same_embed_dim


@pytest.mark.parametrize("arguments", LAYERS)
def test_from_torch_copies(arguments: dict) -> None:
    theirs = moved(nn.MultiheadAttention(SIZE, HEADS, dropout=0.3, batch_first=True, **arguments)).eval()
    theirs.in_proj_bias = None if theirs.in_proj_bias is None else theirs.in_proj_bias.requires_grad_(False)
    before = torch.get_rng_state()
    ours = softscope.nn.MultiheadAttention.from_torch(theirs)
    assert torch.equal(torch.get_rng_state(), before)
    assert same(ours, theirs)
    assert type(theirs) is nn.MultiheadAttention
    assert (ours.dropout, ours.batch_first, ours.training) == (0.3, True, False)
    assert [p.requires_grad for p in ours.parameters()] == [p.requires_grad for p in theirs.parameters()]
    shared = {p.data_ptr() for p in ours.parameters()} & {p.data_ptr() for p in theirs.parameters()}
    assert not shared


def test_from_torch_takes_options() -> None:
    theirs = nn.MultiheadAttention(SIZE, HEADS, dtype=torch.float64)
    ours = softscope.nn.MultiheadAttention.from_torch(theirs, **EVERYTHING)
    assert ours.options == softscope.nn.MultiheadAttention(SIZE, HEADS, **EVERYTHING).options
    assert {ours.get_parameter(name).dtype for name in LEARNED} == {torch.float64}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.MultiheadAttention(SIZE, HEADS)
        self.again = self.first  # shared
        self.inner = nn.ModuleList([nn.TransformerDecoderLayer(SIZE, HEADS, 8), nn.Linear(3, 3)])


class Subclass(nn.MultiheadAttention):
    pass


def test_replace_counts_keeps_the_objects_and_their_hooks() -> None:
    model = Model()
    parameters, called = list(model.parameters()), []
    model.first.register_forward_hook(lambda *_: called.append(True))
    assert softscope.nn.replace(model) == 3
    assert model.again is model.first
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert {type(m) for m in (model.first, model.inner[0].self_attn, model.inner[0].multihead_attn)} == {
        softscope.nn.MultiheadAttention
    }
    x = tokens()
    model.first(x, x, x)
    assert called == [True]
    assert softscope.nn.replace(model, sink=True) == 0  # they are already ours
    assert model.first.sink is None


def test_replace_adds_what_options_learn() -> None:
    model = Model()
    before = len(list(model.parameters()))
    assert softscope.nn.replace(model, **EVERYTHING) == 3
    assert len(list(model.parameters())) == before + 3 * len(LEARNED)


def test_replace_takes_a_bare_layer_and_leaves_subclasses() -> None:
    layer = nn.MultiheadAttention(SIZE, HEADS)
    assert softscope.nn.replace(layer) == 1
    assert isinstance(layer, softscope.nn.MultiheadAttention)
    other = Subclass(SIZE, HEADS)
    assert softscope.nn.replace(other) == 0
    assert type(other) is Subclass


def test_replace_refuses_options_before_it_changes_anything() -> None:
    model = Model()
    with pytest.raises(ValueError, match="softcap"):
        softscope.nn.replace(model, softcap=-1.0)
    assert type(model.first) is nn.MultiheadAttention
