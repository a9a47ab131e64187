"""`softscope.attention` and what `softscope.nn` computes beside it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from softscope import _attention
from softscope._arguments.attention import Call, prepare
from softscope.doctor.listen import reasons
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, dtype_of, heads_axis, mask_axes
from softscope.doctor.listen.patches import Patch, told
from softscope.nn import composite


def patches() -> list[Patch]:
    """Behind the public function, so that it does not matter under which name it was imported."""
    return [Patch(_attention, "_attend", told(_attend)), Patch(composite, "attend", told(_composite))]


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

    mask = None if call.mask is None else call.mask.detach()
    scale = call.scale.detach() if isinstance(call.scale, Tensor) else call.scale
    sink = call.sink.detach() if isinstance(call.sink, Tensor) else call.sink
    return ObservedCall(
        kind="softscope", result=output, gradient=gradient, heads=q.shape[1], n=q.shape[2], m=k.shape[2],
        q=q, k=k, v=v, scale=scale, left=call.left, right=call.right, start=_start(call),
        mask=mask if mask is None or len(shape) <= 4 else mask_axes(mask, shape),
        softcap=call.softcap, sink=sink, alpha=call.alpha, kv_heads=k.shape[1], dropout=dropout, fused=fused,
        causal=call.right == 0, dtype=dtype_of(q),
    )  # fmt: skip


def _start(call: Call) -> Any:
    """The key position of query 0: a number where looking at it costs nothing."""
    first = call.positions[:1]
    return int(first) if first.device.type == "cpu" and first.shape[0] else first
