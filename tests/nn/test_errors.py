"""What is refused, word for word: the argument, the rule, what was given, what to do."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import softscope.nn
from nn.same import BATCH, HEADS, SIZE, M, N

CALLS = {
    "query has four axes": (
        {"query": (1, N, BATCH, SIZE)},
        "query must be (n, batch, size), or (n, size) like the others, but has shape (1, 4, 3, 6) beside a query of "
        "(1, 4, 3, 6); reshape it",
    ),
    "key without a batch": (
        {"key": (M, SIZE)},
        "key must be (n, batch, size), or (n, size) like the others, but has shape (5, 6) beside a query of "
        "(4, 3, 6); reshape it",
    ),
    "value of another size": (
        {"value": (M, BATCH, 7)},
        "value must have vdim = 6 components, but has shape (5, 3, 7); build the layer for its size, or project it",
    ),
    "value of another length": (
        {"value": (M + 1, BATCH, SIZE)},
        "key and value must have the same length and batch, but got (5, 3, 6) and (6, 3, 6); cut or pad one of them",
    ),
    "another batch": (
        {"key": (M, 2, SIZE), "value": (M, 2, SIZE)},
        "query and key must have the same batch, but got (4, 3, 6) and (5, 2, 6) as (n, batch, size); match them, or "
        "set batch_first=True",
    ),
    "attn_mask of another shape": (
        {"attn_mask": torch.zeros(M, N)},
        "attn_mask must be (n, m) or (batch·heads, n, m) = (4, 5) or (6, 4, 5), but has shape (5, 4); "
        "reshape or cut it",
    ),
    "attn_mask of integers": (
        {"attn_mask": torch.zeros(N, M, dtype=torch.int64)},
        "attn_mask must be boolean (True = hidden) or additive floats, but its dtype is torch.int64; convert it",
    ),
    "key_padding_mask the wrong way round": (
        {"key_padding_mask": torch.zeros(M, BATCH)},
        "key_padding_mask must be (batch, m) = (3, 5), but has shape (5, 3); reshape or cut it",
    ),
    "return_partition not a truth value": (
        {"return_partition": "yes", "need_weights": False},
        "return_partition must be True or False, but got 'yes'; pass one of these",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_refused(name: str) -> None:
    changed, sentence = CALLS[name]
    shapes = {"query": (N, BATCH, SIZE), "key": (M, BATCH, SIZE), "value": (M, BATCH, SIZE)}
    shapes |= {key: value for key, value in changed.items() if isinstance(value, tuple)}
    rest = {key: value for key, value in changed.items() if not isinstance(value, tuple)}
    with pytest.raises((TypeError, ValueError)) as caught:
        softscope.nn.MultiheadAttention(SIZE, HEADS)(**{k: torch.zeros(s) for k, s in shapes.items()}, **rest)
    assert str(caught.value) == sentence


OPTIONS = {
    "qk_norm": ({"qk_norm": "layer"}, "qk_norm must be None, \"rms\" or \"unit\", but got 'layer'; \"rms\" gives q "
                "and k mean square 1, \"unit\" norm 1"),
    "softcap": ({"softcap": 0.0}, "softcap must be a positive number, but got 0.0; use None for no cap"),
    "scale": ({"scale": -1}, "scale must be a positive number, but got -1; None is 1/√d of a head, 1.0 the plain dot "
              "product"),
    "temperature": ({"temperature": 2.0}, "temperature must be True or False, but got 2.0; pass one of these"),
    "sink": ({"sink": 0.0}, "sink must be True or False, but got 0.0; pass one of these"),
    "alpha": ({"alpha": 0.5}, "alpha must be a finite number >= 1, but got 0.5; 1 is softmax, 1.5 entmax, 2 sparsemax"),
    "scalable": ({"scalable": 1}, "scalable must be above 1, but got 1; pass how many keys a row sees in training "
                 "(log n is divided by its logarithm), or None to turn it off"),
    "sink, alpha": ({"sink": True, "alpha": 1.5}, "sink needs alpha = 1, but got sink=True and alpha=1.5; leave one "
                    "of them out"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_refused(name: str) -> None:
    options, sentence = OPTIONS[name]
    for build in (
        lambda: softscope.nn.MultiheadAttention(SIZE, HEADS, **options),
        lambda: softscope.nn.MultiheadAttention.from_torch(nn.MultiheadAttention(SIZE, HEADS), **options),
        lambda: softscope.nn.replace(nn.Linear(2, 2), **options),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            build()
        assert str(caught.value) == sentence


@pytest.mark.parametrize(("sizes", "sentence"), [
    ((6, 4), "num_heads must divide embed_dim, but got num_heads=4 and embed_dim=6; the nearest larger embed_dim that "
     "fits is 8"),
    ((6, 0), "num_heads must be at least 1, but got 0; pass a larger one"),
    ((6.0, 2), "embed_dim must be an integer, but got 6.0; pass an int"),
])  # fmt: skip
def test_sizes_are_refused(sizes: tuple, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        softscope.nn.MultiheadAttention(*sizes)
    assert str(caught.value) == sentence


def test_an_array_is_refused() -> None:
    x = torch.zeros(N, BATCH, SIZE)
    with pytest.raises(TypeError, match=r"^key must be a tensor, but got ndarray; convert it$"):
        softscope.nn.MultiheadAttention(SIZE, HEADS)(x, x.numpy(), x)


def test_from_torch_refuses_what_it_would_not_copy() -> None:
    with pytest.raises(TypeError) as caught:
        softscope.nn.MultiheadAttention.from_torch(nn.Linear(2, 2))
    assert str(caught.value) == (
        "module must be a torch.nn.MultiheadAttention, but got Linear; a subclass's changes would be lost"
    )


def test_without_torch_the_room_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import softscope.nn"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    wanted = "ImportError: softscope.nn needs PyTorch: pip install 'softscope[torch]'"
    assert result.stderr.strip().splitlines()[-1] == wanted
