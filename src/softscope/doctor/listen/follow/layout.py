"""Which digits of the weights' axes are batch, head, query and key, and how to bring tensors into (B, heads, n, m)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from torch import Tensor

from softscope.doctor.listen import reasons
from softscope.doctor.listen.follow.axes import Axes, Axis, Digit, Root, cut, cuts, families, length, new_axis
from softscope.doctor.listen.follow.products import Product
from softscope.doctor.listen.follow.traces import trace_of
from softscope.doctor.listen.observed_call import UnseenError


@dataclasses.dataclass(frozen=True)
class Roles:
    """The digits of each role, outermost first."""

    batch: Axis
    heads: Axis
    query: Axis
    key: Axis

    def four(self, axes: Axes) -> Callable[[Tensor], Tensor]:
        """A function that brings a tensor with these axes into (B, heads, n, m), as a view where there is one."""
        groups = (self.batch, self.heads, self.query, self.key)
        return lambda x: arranged(x, axes, groups)


def arranged(x: Tensor, axes: Axes, groups: Sequence[Axis]) -> Tensor:
    """Bring a tensor with these axes into one axis per group; digits that it lacks are broadcast."""
    at = cuts(groups)
    parts = [cut(axis, at) for axis in axes]
    flat = [digit for part in parts for digit in part]
    y = x.reshape([digit.size for digit in flat])
    wanted = [digit for group in groups for digit in group]
    y = y.permute([flat.index(digit) for digit in wanted if digit in flat])
    for i, digit in enumerate(wanted):
        if digit not in flat:
            y = y.unsqueeze(i)
    y = y.expand([digit.size for digit in wanted])
    return y.reshape([length(group) for group in groups])


def key_letter(product: Product, key: Axis) -> str | None:
    """The free letter of the product that the softmax runs over; None if the axis is no free axis of either side."""
    its = families(key)
    for letter in product.spec.out:
        if letter not in product.spec.shared and its & families(product.atoms[letter]):
            return letter
    return None


def roles(
    product: Product, axes: Axes, axis: int, *, hint: int | None = None, said: int | None = None
) -> tuple[Roles, str, int] | None:
    """The roles of the digits of weights over an axis, the key's letter, and which side of the product is the queries'.

    None if these are not weights over keys: the axis is shared by both sides.
    """
    letter = key_letter(product, axes[axis])
    if letter is None:
        return None
    spec = product.spec
    side = 1 if letter in spec.left_letters else 0  # q is the side without keys
    q_letters, k_letters = spec.sides()[side][1], spec.sides()[1 - side][1]
    at = cuts([*axes, *product.atoms.values()])
    rest = [digit for i, its in enumerate(axes) if i != axis for digit in cut(its, at)]
    in_order = [digit for x in q_letters if x not in spec.summed for digit in cut(product.atoms[x], at)]
    rest = [d for d in rest if d not in in_order] + [d for d in in_order if d in rest]
    of_heads, free = families(product.heads), [x for x in q_letters if x not in k_letters and x not in spec.shared]
    of_queries = set().union(*(families(product.atoms[x]) for x in free)) - of_heads
    query = tuple(d for d in rest if d.root.family in of_queries)
    heads = tuple(d for d in rest if d.root.family in of_heads)
    others = [x for x in q_letters if x in spec.shared]
    heads = _counted(product, [d for d in rest if d not in query], query, heads, others, at, hint, said)
    query = tuple(d for d in query if d not in heads)
    at = cuts([*product.atoms.values(), *axes, heads])
    rest_cut = [d for digit in rest for d in cut((digit,), at)]
    batch = tuple(d for d in rest_cut if d not in heads and d not in query)
    return Roles(batch, heads, query, cut(axes[axis], at)), letter, side


def _counted(
    product: Product, rest: list[Digit], query: Axis, heads: Axis, others: list[str], at: dict[Root, set[int]],
    hint: int | None, said: int | None,
) -> Axis:  # fmt: skip
    """The digits of the heads: by the hint, as split from the features, by the module's number, or by convention."""
    if hint is not None and length(heads) != hint:
        found = _of_size(rest, query, hint, fold=True)
        if found is None and not heads:
            raise UnseenError(reasons.HINT, hint, "×".join(str(d.size) for d in (*rest, *query)) or "1")
        return found or heads
    if heads or hint == 1 or said == 1:
        return heads
    found = None if said is None else _of_size(rest, query, said, fold=False)
    if found is not None:
        return found
    if len(others) >= 2:  # (batch, heads, n, d)
        return tuple(d for d in cut(product.atoms[others[-1]], at) if d in rest)
    folded_heads(length(product.atoms[others[0]]) if others else 1, said)
    return ()


def first_axis(size: int, tensors: Sequence[Tensor], *, hint: int | None, said: int | None) -> tuple[Axis, Axis]:
    """The first axis of tensors (X, n, d), and which of its digits are heads."""
    axis = new_axis(size)
    for x in tensors:
        trace = trace_of(x)
        if trace is None or x.shape[0] != size:
            continue
        axis = trace.axes[0]
        heads = tuple(d for d in axis if d.root.family in families(trace.axes[-1]))
        if heads and hint in (None, length(heads)):
            return axis, heads
    if hint is not None and size % hint:
        raise UnseenError(reasons.HINT, hint, size)
    if hint is not None:
        axis = new_axis(size)
        return axis, () if hint == 1 else (Digit(axis[0].root, hint, 1),)
    folded_heads(size, said)
    return axis, ()


def folded_heads(size: int, said: int | None) -> None:
    """Refuse to call an axis the batch if it may hold batch and heads, as far as the module's own number tells."""
    if said is not None and said > 1 and size >= said and size % said == 0:
        raise UnseenError(reasons.FOLDED, size, said)


def _of_size(rest: list[Digit], query: Axis, size: int, *, fold: bool) -> Axis | None:
    """The last digit of this size, or (if `fold`) the inner part of the last digit that it divides.

    One of several digits of the queries may be meant too: if keys are shared by all heads, these look like queries.
    """
    same = [digit for digit in rest if digit.size == size]
    if same:
        return (same[-1],)
    if size == 1:
        return ()
    folded = [digit for digit in rest if digit.size % size == 0] if fold else []
    if folded:
        return (Digit(folded[-1].root, size, folded[-1].step),)
    same = [digit for digit in query if digit.size == size] if len(query) > 1 else []
    return (same[-1],) if same else None
