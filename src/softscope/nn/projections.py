"""From tokens to heads and back: the linear maps around attention, with the parameters PyTorch's module keeps."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def project(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | Sequence[Tensor], bias: Tensor | None
) -> Sequence[Tensor]:
    """q, k and v: each input times its weight, in as few products as there are different inputs.

    Args:
        weight: (3·embed_dim, embed_dim), those of q, k and v below each other, or the three of them.
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
    """(batch, n, embed_dim), (n, batch, embed_dim) if `length_first`, or (n, embed_dim) as (…, heads, n, d)."""
    x = x.view(*x.shape[:-1], heads, x.shape[-1] // heads)
    return x.permute(1, 2, 0, 3) if length_first else x.transpose(-3, -2)


def join(x: Tensor, *, length_first: bool) -> Tensor:
    """The way back from `split`, in memory in the order of its axes."""
    return (x.permute(2, 0, 1, 3) if length_first else x.transpose(-3, -2)).flatten(-2)


def with_row(x: Tensor, row: Tensor | None) -> Tensor:
    """One more key, or value, behind those of x (…, heads, m, d): `row`, (1, 1, embed_dim), or zeros."""
    last = x.new_zeros(()) if row is None else row.view(x.shape[-3], 1, x.shape[-1]).to(x.dtype)
    return torch.cat([x, last.expand(*x.shape[:-2], 1, x.shape[-1])], dim=-2)
