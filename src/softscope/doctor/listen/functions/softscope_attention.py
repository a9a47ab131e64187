"""`softscope.attention`, the attention that `softscope.nn` computes without it, and that of `softscope.distributed`."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from torch import Tensor

from softscope import _attention
from softscope._arguments.attention import Call, Options, prepare
from softscope.doctor.listen import reasons
from softscope.doctor.listen.follow.scales import before_scaling
from softscope.doctor.listen.observed_call import ObservedCall, Shards, UnseenError, dtype_of, heads_axis, mask_axes
from softscope.doctor.listen.patches import Patch
from softscope.doctor.listen.wrappers import told
from softscope.nn import composite


def patches() -> list[Patch]:
    """Patches behind the public function, so the name it was imported under does not matter."""
    return [Patch(_attention, "attend", told(_attend)), Patch(composite, "attend", told(_composite))]


def sharded_patches() -> list[Patch]:
    """Those of `softscope.distributed`, if the program uses it."""
    sharded = sys.modules.get("softscope.distributed._attention")
    return [] if sharded is None else [Patch(sharded, "around_the_ring", told(_sharded))]


def _attend(result: Any, call: Call, give: Any, return_partition: bool, additive: Any = None) -> ObservedCall | None:
    del give
    if not isinstance(call.q, Tensor):
        return None
    if additive is not None:
        raise UnseenError(reasons.ADDITIVE)
    output: Tensor = result[0] if return_partition else result
    return _observed(output, call, fused=True)


def _composite(result: tuple[Tensor, Tensor], q: Tensor, k: Tensor, v: Tensor, **named: Any) -> ObservedCall:
    dropout = named.pop("dropout", 0.0)
    return _observed(result[0], prepare(q, k, v, **named), fused=False, dropout=dropout)


def _sharded(result: tuple[Tensor, Tensor], call: Call, how: Any, layout: Any) -> ObservedCall:
    return dataclasses.replace(_observed(result[0], call, fused=True), shards=Shards(how.group, layout))


def _observed(output: Tensor, call: Call, *, fused: bool, dropout: float = 0.0) -> ObservedCall:
    assert call.v is not None
    shape = (*call.batch, call.q.shape[-3], call.q.shape[-2], call.k.shape[-2])
    q, k, v = (
        heads_axis(x.detach().expand(*call.batch, *x.shape[-3:])[(None,) * (x.ndim == 3)])
        for x in (call.q, call.k, call.v)
    )

    def gradient(grad: Tensor) -> Tensor:
        while grad.ndim < 4:
            grad = grad[None]
        return heads_axis(grad)

    options = call.options
    mask = None if options.mask is None else options.mask.detach()
    scale = options.scale.detach() if isinstance(options.scale, Tensor) else options.scale
    q, k, scale = before_scaling(q, k, scale, call.q, call.k)
    sink = options.sink.detach() if isinstance(options.sink, Tensor) else options.sink
    alpha = options.alpha.detach() if isinstance(options.alpha, Tensor) else options.alpha
    if mask is not None and len(shape) > 4:
        mask = mask_axes(mask, shape)
    return ObservedCall(
        kind="softscope", result=output, gradient=gradient, heads=q.shape[1], n=q.shape[2], m=k.shape[2],
        q=q, k=k, v=v, options=dataclasses.replace(options, scale=scale, mask=mask, sink=sink, alpha=alpha),
        start=_start(options), kv_heads=k.shape[1], dropout=dropout, fused=fused,
        causal=options.right == 0, dtype=dtype_of(q),
    )  # fmt: skip


def _start(options: Options) -> int | None:
    """The key position of query 0, if it can be read without waiting for the device."""
    first = options.positions[:1]
    return int(first) if first.device.type == "cpu" and first.shape[0] else None
