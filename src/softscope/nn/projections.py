"""Linear maps from tokens to heads and back, using the parameters that PyTorch's module holds."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def project(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | Sequence[Tensor], bias: Tensor | None
) -> Sequence[Tensor]:
    """Compute q, k and v, with one matrix product per distinct input.

    Args:
        weight: The weights of q, k and v stacked as (3·embed_dim, embed_dim), or the three weights separately.
        bias: (3·embed_dim,) or None.
    """
    if isinstance(weight, Tensor) and query is key and key is value:
        return functional.linear(query, weight, bias).chunk(3, dim=-1)
    biases: Sequence[Tensor | None] = (None, None, None) if bias is None else bias.chunk(3)
    weights = weight.chunk(3) if isinstance(weight, Tensor) else weight
    q = functional.linear(query, weights[0], biases[0])
    if isinstance(weight, Tensor) and key is value:
        size = weights[0].shape[0]
        both = functional.linear(key, weight[size:], None if bias is None else bias[size:])
        return (q, *both.chunk(2, dim=-1))
    return q, functional.linear(key, weights[1], biases[1]), functional.linear(value, weights[2], biases[2])


def split(x: Tensor, heads: int, *, length_first: bool) -> Tensor:
    """Split tokens into heads, (…, heads, n, d).

    Tokens are (batch, n, embed_dim), (n, batch, embed_dim) if `length_first`, or (n, embed_dim).
    """
    x = x.view(*x.shape[:-1], heads, x.shape[-1] // heads)
    return x.permute(1, 2, 0, 3) if length_first else x.transpose(-3, -2)


def join(x: Tensor, *, length_first: bool) -> Tensor:
    """Undo `split`; the result is contiguous."""
    return (x.permute(2, 0, 1, 3) if length_first else x.transpose(-3, -2)).flatten(-2)


def with_row(x: Tensor, row: Tensor | None) -> Tensor:
    """Append one key or value to x (…, heads, m, d): `row`, (1, 1, embed_dim), or zeros if it is None."""
    last = x.new_zeros(()) if row is None else row.view(x.shape[-3], 1, x.shape[-1]).to(x.dtype)
    return torch.cat([x, last.expand(*x.shape[:-2], 1, x.shape[-1])], dim=-2)
