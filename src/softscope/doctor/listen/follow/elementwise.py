"""Operations that keep a tensor's axes: what they do to the factor, and when they make weights."""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor

from softscope.doctor.listen.follow.axes import Axes, Axis, length, new_axis
from softscope.doctor.listen.follow.products import Product
from softscope.doctor.listen.follow.stages import Exponentials, LogWeights, OverRows, Weights, weigh
from softscope.doctor.listen.follow.traces import Trace, as_number, forget, remember, trace_of, trace_or_new


def kept(result: Tensor, *args: Any, **named: Any) -> None:
    """Follow a cast, mask, copy or dropout: everything known stays."""
    found = _main(result, [*args, *named.values()])
    if found is not None:
        remember(result, found[1]._replace(axes=_axes(result, *found)))


def dropped(result: Tensor, x: Tensor, p: float = 0.5, training: bool = True, *_: Any, **named: Any) -> None:
    """Follow dropout."""
    kept(result, x)
    trace = trace_of(result)
    if trace is not None and isinstance(trace.origin, Weights) and named.get("train", training):
        trace.origin.dropout = float(p)


def masked(result: Tensor, x: Any, *args: Any, **named: Any) -> None:
    """Follow a mask: among exponentials it hides keys."""
    kept(result, x, *args, **named)
    trace = trace_of(result)
    if trace is not None:
        hides = isinstance(trace.origin, Exponentials)
        origin = Exponentials(trace.origin.logits, masked=True) if hides else trace.origin
        remember(result, trace._replace(origin=origin, unshifted=None))


def normalised(result: Tensor, x: Tensor, *args: Any, **named: Any) -> None:
    """Follow a norm: only the axes stay. Exponentials divided by their sum are weights."""
    trace = trace_of(x)
    if trace is None:
        return
    p, dim = (*args, 2.0, 1)[:2] if len(args) >= 2 else (named.get("p", (*args, 2.0)[0]), named.get("dim", 1))
    if isinstance(trace.origin, Exponentials) and p == 1 and isinstance(dim, int):
        _divided(result, x, trace.origin, dim)
        return
    remember(result, Trace(_axes(result, x, trace)))


def layer_normalised(result: Tensor, x: Tensor, *_: Any, **__: Any) -> None:
    """Follow a norm: only the axes stay."""
    trace = trace_of(x)
    if trace is not None:
        remember(result, Trace(_axes(result, x, trace)))


def multiplied(result: Tensor, a: Any, b: Any, *_: Any, **__: Any) -> None:
    """Follow a·b: a number goes into the factor."""
    _times(result, a, b, 1)


def divided(result: Tensor, a: Any, b: Any, *_: Any, **__: Any) -> None:
    """Follow a/b; exponentials divided by their own sum are weights."""
    top, bottom = trace_of(a), trace_of(b)
    if top is not None and isinstance(top.origin, Exponentials) and bottom is not None:
        rows = bottom.origin
        if isinstance(rows, OverRows) and rows.of is top.origin and rows.axis is not None:
            _divided(result, a, top.origin, rows.axis)
            return
    if isinstance(a, Tensor):
        _times(result, a, b, -1)


def added(result: Tensor, a: Any, b: Any, *_: Any, **__: Any) -> None:
    """Follow a + b: a bias or mask on logits leaves the number before q·k as it is; a second product does not."""
    found = _main(result, [a, b])
    if found is None:
        return
    x, trace = found
    other = trace_of(b if x is a else a)
    factor = trace.factor
    if isinstance(trace.origin, Exponentials):
        forget(result)
        return
    if isinstance(trace.origin, Weights):
        trace.origin.altered = True
    if _is_logits(trace):
        factor = None if other is not None and isinstance(other.origin, Product) else factor
    elif factor != (1.0 if other is None else other.factor):
        factor = 1.0
    remember(result, trace._replace(axes=_axes(result, x, trace), factor=factor, unshifted=None))


def subtracted(result: Tensor, a: Any, b: Any, *_: Any, **__: Any) -> None:
    """Follow a − b: logits less their maximum are still logits; less their log-sum-exp, logarithms of weights."""
    trace, other = trace_of(a), trace_of(b)
    rows = None if other is None else other.origin
    if trace is not None and isinstance(rows, OverRows) and _is(rows.of, a):
        if rows.name == "logsumexp" and rows.axis is not None:
            remember(result, Trace(trace.axes, origin=LogWeights(a, rows.axis)))
        else:
            remember(result, trace._replace(axes=_axes(result, a, trace), unshifted=a))
        return
    if trace is not None and isinstance(trace.origin, Weights | Exponentials):
        forget(result)
        return
    added(result, a, b)


def negated(result: Tensor, a: Tensor, *_: Any, **__: Any) -> None:
    """Follow −a. Of q or k, a sign is no part of the scale: half of a rotation has one."""
    trace = trace_of(a)
    if trace is not None and not _is_logits(trace):
        kept(result, a)
    elif trace is not None:
        _times(result, a, -1.0, 1)


def squashed(result: Tensor, x: Tensor, *_: Any, **__: Any) -> None:
    """Follow tanh: on logits it may be a soft cap, c·tanh(s/c); nothing else survives it."""
    trace = trace_of(x)
    if trace is None:
        return
    capped = isinstance(trace.origin, Product) and trace.capped is None and trace.factor is not None
    new = Trace(trace.axes, origin=trace.origin if isinstance(trace.origin, Product) else None)
    if isinstance(trace.origin, Product):
        new = new._replace(factor=1.0 if capped else None, capped=trace.factor if capped else None)
    remember(result, new)


def exponential(result: Tensor, x: Tensor, *_: Any, **__: Any) -> None:
    """Follow exp: of logarithms of weights it gives weights; of logits, what weights are made from."""
    trace = trace_of(x)
    if trace is None:
        return
    if isinstance(trace.origin, LogWeights):
        weigh(result, trace.origin.logits, trace.origin.axis)
    elif isinstance(trace.origin, Product):
        before = trace.unshifted
        logits = before if before is not None and before.shape == x.shape else x
        remember(result, Trace(trace.axes, origin=Exponentials(logits)))


def over_rows(name: str) -> Any:
    """Follow a sum, maximum or log-sum-exp."""

    def follow(result: Any, x: Any, dim: Any = None, *_: Any, **named: Any) -> None:
        trace = trace_of(x)
        if trace is None or not isinstance(trace.origin, Product | Exponentials):
            return
        dim = named.get("axis", dim)
        if isinstance(dim, tuple | list) and len(dim) == 1:
            dim = dim[0]
        found = result[0] if isinstance(result, tuple) else result
        axis = dim % x.ndim if isinstance(dim, int) and not isinstance(dim, bool) else None
        if name == "sum":
            if isinstance(trace.origin, Exponentials):
                origin = OverRows(name, trace.origin, axis)
                remember(found, Trace(tuple(() for _ in found.shape), origin=origin))
        elif isinstance(trace.origin, Product):
            remember(found, Trace(tuple(() for _ in found.shape), origin=OverRows(name, weakref.ref(x), axis)))

    return follow


def logarithms(result: Tensor, x: Tensor, dim: int | None = None, *_: Any, **named: Any) -> None:
    """Follow log_softmax."""
    dim = named.get("axis", dim)
    trace = trace_of(x)
    if isinstance(dim, int) and trace is not None and isinstance(trace.origin, Product):
        remember(result, Trace(trace.axes, origin=LogWeights(x, dim)))


def _is_logits(trace: Trace) -> bool:
    """Whether it comes from q·k; a product with a parameter may be q itself."""
    return isinstance(trace.origin, Product) and not trace.origin.linear


def _is(reference: Any, x: Any) -> bool:
    return isinstance(reference, weakref.ref) and reference() is x


def _divided(result: Tensor, x: Tensor, of: Exponentials, axis: int) -> None:
    hidden = (x == 0).detach() if of.masked else None
    weigh(result, of.logits, axis, hidden)


def _times(result: Tensor, a: Any, b: Any, power: int) -> None:
    number = as_number(b)
    x: Any = a
    if number is None and power == 1 and as_number(a) is not None:
        number, x = as_number(a), b
    if number is not None and isinstance(x, Tensor) and x.shape == result.shape:
        trace = trace_or_new(x)
        if isinstance(trace.origin, OverRows):
            forget(result)
            return
        factor = None if trace.factor is None or number == 0.0 else trace.factor * number**power
        remember(result, trace._replace(factor=factor, unshifted=None))
        return
    found = _main(result, [a, b])
    if found is None:
        return
    x, trace = found
    other = a if x is b else b
    origin, factor = trace.origin, trace.factor
    if _is_logits(trace):
        factor = None if isinstance(other, Tensor) else factor
    elif isinstance(origin, Exponentials):
        origin = Exponentials(origin.logits, masked=True)
    elif isinstance(origin, Weights):
        origin.altered = True
    axes = _axes(result, x, trace)
    remember(result, trace._replace(axes=axes, factor=factor, origin=origin, unshifted=None))


def _main(result: Any, given: list[Any]) -> tuple[Tensor, Trace] | None:
    """Of the tensors given, the one that the result continues."""
    if not isinstance(result, Tensor):
        return None
    known = [(x, trace) for x in given if isinstance(x, Tensor) and (trace := trace_of(x)) is not None]
    for x, trace in known:
        if trace.origin is not None and not isinstance(trace.origin, OverRows):
            return x, trace
    for x, trace in known:
        if x.shape == result.shape:
            return x, trace
    return known[0] if len(known) == 1 and isinstance(known[0][1].origin, OverRows) else None


def _axes(result: Tensor, x: Tensor, trace: Trace) -> Axes:
    """The axes of a result to which x was broadcast."""
    if x.shape == result.shape:
        return trace.axes
    more = result.ndim - x.ndim
    axes: list[Axis] = [()] * max(more, 0) + list(trace.axes[max(-more, 0) :])
    return tuple(
        axis if length(axis) == size else new_axis(size) for axis, size in zip(axes, result.shape, strict=True)
    )
