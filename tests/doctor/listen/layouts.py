"""The same attention, written down in every layout that models use. Each takes (B, n, D) and gives (B, n, D)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

B, N, H, D = 3, 40, 4, 24
DH = D // H
SCALE = DH**-0.5


class Layer(nn.Module):
    """Projections of its own around a way to mix."""

    def __init__(self, mix: Callable[..., Tensor], causal: bool = False, by_hand: bool = False) -> None:
        super().__init__()
        self.mix, self.causal, self.by_hand = mix, causal, by_hand
        self.q, self.k, self.v, self.out = (nn.Linear(D, D, bias=not by_hand) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if self.causal else None
        if self.by_hand:
            return self.out(self.mix(*(x @ layer.weight.T for layer in (self.q, self.k, self.v)), hidden))
        return self.out(self.mix(self.q(x), self.k(x), self.v(x), hidden))


def split(x: Tensor) -> Tensor:
    return x.view(x.shape[0], x.shape[1], H, DH)


def hide(x: Tensor, hidden: Tensor | None) -> Tensor:
    return x if hidden is None else x.masked_fill(hidden, -math.inf)


def plain(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    w = torch.softmax(hide(q @ k.transpose(-2, -1) * SCALE, hidden), dim=-1)
    return (w @ v).transpose(1, 2).flatten(2)


def bqhk(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = split(q), split(k), split(v)
    x = torch.einsum("bqhd,bkhd->bqhk", q, k) * SCALE
    x = x if hidden is None else x.masked_fill(hidden[:, None, :], -math.inf)
    return torch.einsum("bqhk,bkhd->bqhd", torch.softmax(x, dim=-1), v).flatten(2)


def hbqk(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).permute(2, 0, 1, 3) for x in (q, k, v))
    w = torch.softmax(hide(q @ k.mT / math.sqrt(DH), hidden), dim=-1)
    return (w @ v).permute(1, 2, 0, 3).flatten(2)


def hbqk_of_bqhd(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    w = torch.softmax(hide(torch.einsum("b q h d, b k h d -> h b q k", split(q), split(k)) * SCALE, hidden), dim=-1)
    return torch.einsum("hbqk,bkhd->bqhd", w, split(v)).flatten(2)


def folded(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    b, n = q.shape[:2]
    q, k, v = (split(x).transpose(1, 2).reshape(b * H, n, DH) for x in (q, k, v))
    w = torch.softmax(hide(torch.bmm(q, k.transpose(1, 2)) * SCALE, hidden), dim=-1)
    return torch.bmm(w, v).view(b, H, n, DH).transpose(1, 2).reshape(b, n, D)


def folded_with_mask(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    """As BART did: unfolded for the mask only."""
    b, n = q.shape[:2]
    q, k, v = (split(x).transpose(1, 2).contiguous().view(b * H, n, DH) for x in (q * SCALE, k, v))
    x = torch.bmm(q, k.transpose(1, 2)).view(b, H, n, n)
    x = (x + torch.zeros(b, 1, n, n) if hidden is None else x + torch.zeros(n, n).masked_fill(hidden, -1e9)).view(
        b * H, n, n
    )
    return torch.bmm(functional.softmax(x, dim=-1), v).view(b, H, n, DH).transpose(1, 2).reshape(b, n, D)


def heads_before_batch(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    """As the first TensorFlow ports did: the heads end to end along the batch, outermost."""
    q, k, v = (torch.cat(x.split(DH, dim=-1), dim=0) for x in (q, k, v))
    w = torch.softmax(hide(torch.matmul(q, k.transpose(1, 2)) * SCALE, hidden), dim=-1)
    return torch.cat((w @ v).chunk(H, dim=0), dim=-1)


def stacked(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (torch.stack(x.chunk(H, dim=-1), dim=1) for x in (q, k, v))
    return torch.cat((torch.softmax(hide(q @ k.mT * SCALE, hidden), dim=-1) @ v).unbind(1), dim=-1)


def keys_first(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    """Softmax over another axis than the last."""
    x = torch.einsum("bkhd,bqhd->bkqh", split(k), split(q)) * SCALE
    x = x if hidden is None else x.masked_fill(hidden.T[:, :, None], -math.inf)
    return torch.einsum("bkqh,bkhd->bqhd", x.softmax(dim=1), split(v)).flatten(2)


def columns(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).permute(0, 2, 3, 1) for x in (q, k, v))  # (B, H, d, n)
    x = k.transpose(-2, -1) @ q * SCALE  # (B, H, m, n)
    w = torch.softmax(x if hidden is None else x.masked_fill(hidden.T, -math.inf), dim=-2)
    return (v @ w).permute(0, 3, 1, 2).flatten(2)


def log_softmax(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    w = functional.log_softmax(hide(q @ k.mT * SCALE, hidden), dim=-1).exp()
    return (w @ v).transpose(1, 2).flatten(2)


def exp_and_sum(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    x = hide(q @ k.mT * SCALE, hidden)
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return (e / e.sum(dim=-1, keepdim=True) @ v).transpose(1, 2).flatten(2)


def exp_masked_and_sum(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    e = (q @ k.mT * SCALE).exp()
    e = e if hidden is None else e * ~hidden
    return (e.div(e.sum(-1)[..., None]) @ v).transpose(1, 2).flatten(2)


def less_logsumexp(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    x = hide(q @ k.mT * SCALE, hidden)
    return (torch.exp(x - torch.logsumexp(x, -1, keepdim=True)) @ v).transpose(1, 2).flatten(2)


def one_normalised(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    e = torch.exp(hide(q @ k.mT * SCALE, hidden))
    return (functional.normalize(e, p=1.0, dim=-1) @ v).transpose(1, 2).flatten(2)


def in_place(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    x = q @ k.mT
    x *= SCALE
    if hidden is not None:
        x.masked_fill_(hidden, -math.inf)
    return (x.softmax(-1).type_as(v) @ v).transpose(1, 2).flatten(2)


def nested_views(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    """Packed, split, merged, split again, unsqueezed and squeezed."""
    b, n = q.shape[:2]
    packed = torch.stack([q, k, v], dim=2).view(b, n, 3, H, DH).permute(2, 0, 3, 1, 4)
    q, k, v = packed[0], packed[1], packed[2]
    q, k, v = (x.reshape(b * H, n, DH).unflatten(0, (b, H))[:, :, None].squeeze(2) for x in (q, k, v))
    x = (q[:, :, None] @ k[:, :, None].mT).squeeze(2).flatten(0, 1) * SCALE
    w = hide(x, hidden).unsqueeze(0).softmax(-1).squeeze(0).reshape(b, H, n, n)
    return (w @ v).transpose(1, 2).flatten(2)


def shared_keys(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    """One key head for all queries, without an axis of its own."""
    k, v = k[..., :DH], v[..., :DH]
    x = torch.einsum("bqhd,bkd->bhqk", split(q), k) * SCALE
    return torch.einsum("bhqk,bkd->bqhd", hide(x, hidden).softmax(-1), v).flatten(2)


def shared_keys_plain(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = split(q).transpose(1, 2), k[:, None, :, :DH], v[:, None, :, :DH]
    w = torch.softmax(hide(q @ k.mT * SCALE, hidden), dim=-1)
    return (w @ v).transpose(1, 2).flatten(2)


def grouped(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    """Two key heads, each for two query heads, on axes of their own."""
    b, n = q.shape[:2]
    q = q.view(b, n, 2, 2, DH).permute(0, 2, 3, 1, 4)
    k, v = (x[..., : 2 * DH].view(b, n, 2, 1, DH).permute(0, 2, 3, 1, 4) for x in (k, v))
    w = torch.softmax(hide(q @ k.mT * SCALE, hidden), dim=-1)
    return (w @ v).permute(0, 3, 1, 2, 4).flatten(2)


def grouped_plain(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    b, n = q.shape[:2]
    q = split(q).transpose(1, 2)
    k, v = (x[..., : 2 * DH].view(b, n, 2, DH).transpose(1, 2).repeat_interleave(2, dim=1) for x in (k, v))
    w = torch.softmax(hide(q @ k.mT * SCALE, hidden), dim=-1)
    return (w @ v).transpose(1, 2).flatten(2)


def fused(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    mask = None if hidden is None else ~hidden
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


def fused_folded(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    """Three axes, batch and heads in one."""
    b, n = q.shape[:2]
    q, k, v = (split(x).transpose(1, 2).flatten(0, 1) for x in (q, k, v))
    mask = None if hidden is None else ~hidden
    found = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return found.view(b, H, n, DH).transpose(1, 2).flatten(2)


def flash(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    """ATen's kernel, without the function around it."""
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    run: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return run(q, k, v, 0.0, hidden is not None)[0].transpose(1, 2).flatten(2)


def flash_overload(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    run: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    return run(q, k, v, is_causal=hidden is not None, scale=SCALE)[0].transpose(1, 2).flatten(2)


def math_kernel(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    q, k, v = (split(x).transpose(1, 2) for x in (q, k, v))
    run: Any = torch.ops.aten._scaled_dot_product_attention_math
    return run(q, k, v, None, 0.0, hidden is not None)[0].transpose(1, 2).flatten(2)


# Each with the layout to which its readings are compared.
EXPLICIT: dict[str, tuple[Any, Any]] = {
    x.__name__: (x, plain)
    for x in (
        bqhk, hbqk, hbqk_of_bqhd, folded, folded_with_mask, heads_before_batch, stacked, keys_first, columns,
        log_softmax, exp_and_sum, exp_masked_and_sum, less_logsumexp, one_normalised, in_place, nested_views,
    )
}  # fmt: skip
EXPLICIT |= {"shared_keys": (shared_keys, shared_keys_plain), "grouped": (grouped, grouped_plain)}
FUSED: dict[str, tuple[Any, Any]] = {
    x.__name__: (x, fused) for x in (fused_folded, flash, flash_overload, math_kernel)
}  # fmt: skip
ALL = EXPLICIT | FUSED


def layer(mix: Any, causal: bool = False, by_hand: bool = False) -> Layer:
    torch.manual_seed(0)
    return Layer(mix, causal, by_hand)


def tokens(n: int = N) -> Tensor:
    return torch.randn(B, n, D, generator=torch.Generator().manual_seed(1))
