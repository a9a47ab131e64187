"""An explicit softmax: weights over keys, made from a product of q and k, and multiplied into values.

Whether a softmax is attention shows only when its weights meet the values, so that is when it is reported. The products
on both sides of it show which axes are batch, head, query and key. The weights are known and their gradient is observed
directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softscope._arguments.attention import Options, autocast
from softscope.doctor.listen import heads, module_paths, patches, reasons
from softscope.doctor.listen.follow import stages
from softscope.doctor.listen.follow.axes import Axes, Axis, cut, cuts, families, length, new_axis
from softscope.doctor.listen.follow.layout import Roles, arranged, roles
from softscope.doctor.listen.follow.products import Product, Spec, chooses_parameters
from softscope.doctor.listen.follow.stages import Weights
from softscope.doctor.listen.follow.traces import is_parameter, trace_of
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, dtype_of, positions
from softscope.doctor.listen.patches import Patch, context
from softscope.doctor.listen.reasons import Reason
from softscope.doctor.listen.wrappers import told


def softmax_patches() -> list[Patch]:
    """The entry points of one operation; a nested call is reported once."""
    owners = (torch, functional, torch.Tensor, torch.special)
    return [Patch(owner, "softmax", told(describe)) for owner in owners]


def describe(
    weights: Tensor,
    input: Tensor,  # noqa: A002  (torch's own name)
    dim: int | None = None,
    *_: Any,
    **named: Any,
) -> ObservedCall | None:
    """Describe the call at once if a surrounding call knows its heads; else remember the weights."""
    dim = named.get("axis", dim)
    if dim is None or not isinstance(input, Tensor) or weights.is_nested or weights.numel() == 0 or not weights.ndim:
        return None
    known = context()
    if "heads" not in known:
        stages.weigh(weights, input, dim)
        return None
    four = laid_out(weights, dim)
    if four is None:
        return None
    full = four(weights).shape
    q, k = known.get("q"), known.get("k")
    return ObservedCall(
        kind=known.get("kind", "softmax"), result=weights, gradient=four, heads=full[1], n=full[2], m=full[3],
        options=Options(known.get("scale", float("nan")), positions(full[2], 0, input)),
        q=q, k=k, v=known.get("v"), logits=four(input.detach()), weights=four(weights.detach()),
        kv_heads=known.get("kv_heads", full[1]), dropout=known.get("dropout", 0.0), fused=False,
        causal=known.get("causal", False),
        dtype=dtype_of(input) if q is None else dtype_of(q),
    )  # fmt: skip


def laid_out(x: Tensor, dim: int | None) -> Callable[[Tensor], Tensor] | None:
    """A function that brings a softmax's tensors into (B, heads, n, m) without following them; None if nothing tells.

    That is: a softmax over the last axis of four, or of three if it is known how many heads the first one holds. Where
    the module says another number of heads than the second axis has, the axes are in another order.
    """
    if dim not in (-1, x.ndim - 1) or x.ndim not in (3, 4):
        return None
    module, shape = module_paths.calling(), tuple(x.shape)
    count = context().get("heads") or heads.hinted(module)
    said = heads.said_by(module) if count is None else count
    if x.ndim == 4:
        return (lambda y: y) if said in (None, shape[1]) or "heads" in context() else None
    if count is None:
        if shape[-1] != shape[-2] or said not in (None, 1):
            return None
        count = 1
    count = count if shape[0] % count == 0 else 1
    return lambda y: y.reshape(shape[0] // count, count, *y.shape[1:])


def met_values(spec: Spec) -> ObservedCall | None:
    """Describe the attention whose weights this product multiplies into values; None if it does no such thing."""
    for side in (0, 1):
        x = spec.sides()[side][0]
        trace = trace_of(x)
        followed = trace is not None and isinstance(trace.origin, Weights)
        found = trace.origin if followed and trace is not None else None if trace else stages.weights_like(x)
        if isinstance(found, Weights) and not found.done:
            axes = trace.axes if followed and trace is not None else found.axes
            return _attention(found, spec, side, axes, followed)
    return None


def _attention(found: Weights, spec: Spec, side: int, axes: Axes, followed: bool) -> ObservedCall | None:
    x, letters = spec.sides()[side]
    v, v_letters = spec.sides()[1 - side]
    own = dict(zip(letters, axes, strict=True))
    key = found.axes[found.axis]
    over = [own[letter] for letter in letters if letter in spec.summed]
    if len(over) != 1 or (key and not families(over[0]) & families(key)):
        found.across = found.product is not None
        return None
    shape = "×".join(map(str, found.shape))
    if found.product is None:
        free = [letter for letter in letters if letter not in v_letters and letter not in spec.shared]
        several = any(_more(x, letters, letter) for letter in free)
        if free and not is_parameter(v) and (v.ndim == 3 or (several and v.ndim > 3)):
            raise UnseenError(reasons.NO_PRODUCT, shape)
        return None
    product, here = found.product, module_paths.calling()
    hint = heads.hinted(here)
    hint = heads.hinted(found.module) if hint is None else hint
    said = heads.said_by(here) or heads.said_by(found.module)
    told_roles = roles(product, found.axes, found.axis, hint=hint, said=said)
    if told_roles is None:
        return None
    role, letter, q_side = told_roles
    of_query = families(role.query)
    if chooses_parameters(product, letter) or any(
        of_query & families(own[x]) for x in letters if x in v_letters and x in spec.shared and _more(v, v_letters, x)
    ):
        found.used()  # a router, a codebook, or a gate with values of its own for each query
        return None
    values = _Values(v, v_letters, own | {y: over[0] for y in letters if y in spec.summed}, over[0])
    return _observed(found, product, role, letter, q_side, x, axes if followed else None, values)


def _more(x: Tensor, letters: str, letter: str) -> bool:
    return x.shape[letters.index(letter)] > 1


def _observed(
    found: Weights, product: Product, role: Roles, letter: str, q_side: int, x: Tensor, x_axes: Axes | None,
    values: _Values,
) -> ObservedCall:  # fmt: skip
    assert found.logits is not None
    assert found.weights is not None
    weights, four = found.weights, role.four(found.axes)
    result, gradient = weights, four
    if not weights.requires_grad and not _same_memory(weights, x):
        # Who changes weights must change those that the model goes on with.
        fits = x_axes is not None and not found.altered and _fits(x_axes, role)
        result, gradient = (x, role.four(x_axes or ())) if fits else (weights, lambda y: four(y).clone())
    logits, parts = four(found.logits.detach()), [length(group) for group in (role.batch, role.heads)]
    n, m = length(role.query), length(role.key)
    q, k, scale, cap = _queries_and_keys(found, product, role, letter, q_side)
    options = Options(scale, positions(n, 0, logits), softcap=cap)
    known = context() if context().get("heads") == parts[1] else {}
    call = ObservedCall(
        kind=known.get("kind", "softmax"), result=result, gradient=gradient, heads=parts[1], n=n, m=m, options=options,
        q=q, k=k, v=None if q is None else values.arranged(role), logits=logits, weights=four(weights.detach()),
        kv_heads=known.get("kv_heads", parts[1] if k is None else k.shape[1]), dropout=found.dropout, fused=False,
        causal=known.get("causal", False), dtype=dtype_of(logits if q is None else q),
    )  # fmt: skip
    found.used()
    return call


def _fits(axes: Axes, role: Roles) -> bool:
    wanted = {d for group in (role.batch, role.heads, role.query, role.key) for d in group}
    return {d for axis in axes for d in cut(axis, cuts([tuple(wanted)]))} == wanted


def _same_memory(a: Tensor, b: Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _own_heads(axes: Axes, role: Roles) -> Axis:
    """The heads that keys or values have, each for neighbouring heads of the queries."""
    has = {d for axis in axes for d in cut(axis, cuts([role.batch, role.heads]))}
    own = tuple(d for d in role.heads if d in has)
    return own if own == role.heads[: len(own)] else role.heads


class _Values(NamedTuple):
    """The values, with the digits of their axes as the weights have them."""

    v: Tensor
    letters: str
    digits: dict[str, Axis]
    key: Axis

    def arranged(self, role: Roles) -> Tensor | None:
        """The values as (B, heads, m, dv); None if the digits do not fit."""
        sizes = zip(self.letters, self.v.shape, strict=True)
        axes = tuple(() if size == 1 else self.digits.get(letter) or new_axis(size) for letter, size in sizes)
        known = {d for digits in self.digits.values() for d in digits}
        width = tuple(d for axis in axes for d in axis if d not in known)
        try:
            return arranged(self.v.detach(), axes, (role.batch, _own_heads(axes, role), self.key, width))
        except ValueError:
            return None


def _queries_and_keys(
    found: Weights, product: Product, role: Roles, letter: str, q_side: int
) -> tuple[Tensor | None, Tensor | None, float, float | None]:
    """q, k, scale and soft cap, where the logits are known to be these numbers times q·k, plus a mask or bias."""
    nothing = None, None, math.nan, None
    if found.factor is None or not product.held:
        return nothing
    spec = product.spec
    (q, q_letters), (k, k_letters) = spec.sides()[q_side], spec.sides()[1 - q_side]
    summed: Axis = tuple(d for x in q_letters if x in spec.summed for d in product.atoms[x])
    q_axes = tuple(product.atoms[x] if size > 1 else () for x, size in zip(q_letters, q.shape, strict=True))
    k_axes = tuple(product.atoms[x] if size > 1 else () for x, size in zip(k_letters, k.shape, strict=True))
    key = product.atoms[letter]
    own = _own_heads(k_axes, role)
    with torch.no_grad():
        tensors = autocast({"q": q.detach(), "k": k.detach()})
        try:
            q = arranged(tensors["q"], q_axes, (role.batch, role.heads, role.query, summed))
            k = arranged(tensors["k"], k_axes, (role.batch, own, key, summed))
        except ValueError:  # sliced or concatenated in between
            return nothing
        factors = product.factors[q_side], product.factors[1 - q_side]
        q, k = (x if factor == 1.0 else x / factor for x, factor in zip((q, k), factors, strict=True))
    times = product.times * factors[0] * factors[1]
    if found.capped is not None:
        return q, k, found.capped * found.factor * times, abs(found.factor)
    return q, k, found.factor * times, None


def pass_is_over() -> None:
    """List the softmaxes of q·k of which nothing came."""
    for found in stages.unused():
        code = reasons.OTHER_AXIS if found.across else reasons.NOT_MULTIPLIED
        if found.product is not None and not _routes(found):
            patches.unread(Reason(code, ("×".join(map(str, found.shape)),)), found.module)


def _routes(found: Weights) -> bool:
    """Whether it chooses among parameters: a classifier, a router, a codebook."""
    return found.product is not None and found.product.linear
