"""Products of two tensors, `@`, `bmm`, `einsum` and kin: which axes they share, sum over, and leave free."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softscope.doctor.listen.follow.axes import Axes, Axis, Digit, Root, families, new_axis
from softscope.doctor.listen.follow.traces import Trace, is_parameter, trace_or_new


class Spec(NamedTuple):
    """A product, written as einsum does, one letter per axis; letters of axes that one side lacks may be shared."""

    left: Tensor
    right: Tensor
    left_letters: str
    right_letters: str
    out: str
    shared: frozenset[str]  # in both and in the result
    summed: frozenset[str]

    def sides(self) -> tuple[tuple[Tensor, str], tuple[Tensor, str]]:
        """Each tensor with its letters."""
        return (self.left, self.left_letters), (self.right, self.right_letters)


@dataclasses.dataclass(eq=False)
class Product:
    """The result of a product that may be q·k, with what its letters stand for.

    Attributes:
        atoms: the digits of each letter's axis.
        heads: digits that were split from the axis which is summed over, so they are heads.
        factors: what left and right had been multiplied by before.
        parameters: whether left and right are parameters.
    """

    spec: Spec
    atoms: dict[str, Axis]
    heads: frozenset[Digit]
    factors: tuple[float, float]
    parameters: tuple[bool, bool]
    times: float  # baddbmm's alpha
    held: bool = True

    def release(self) -> None:
        """Let go of left and right: too much came after it. Which axes are which stays known."""
        self.held = False
        self.spec = self.spec._replace(left=_NOTHING, right=_NOTHING)

    @property
    def linear(self) -> bool:
        """Whether one side is a parameter: a linear layer, a router, or queries that are learned."""
        return any(self.parameters)

    @property
    def axes(self) -> Axes:
        """The axes of the result."""
        return tuple(self.atoms[letter] for letter in self.spec.out)


_NOTHING = torch.empty(0, device="meta")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVW"


def matrix_product(left: Any, right: Any) -> Spec | None:
    """The spec of (…, n, d) @ (…, d, m); None for vectors."""
    if not (isinstance(left, Tensor) and isinstance(right, Tensor)) or left.ndim < 2 or right.ndim < 2:
        return None
    most = max(left.ndim, right.ndim) - 2
    if most > len(_LETTERS):
        return None
    batch = _LETTERS[:most]
    return Spec(
        left, right, batch[most + 2 - left.ndim :] + "yx", batch[most + 2 - right.ndim :] + "xz", batch + "yz",
        frozenset(batch), frozenset("x"),
    )  # fmt: skip


def einsum_product(equation: Any, *operands: Any) -> Spec | None:
    """The spec of an einsum of two tensors; None for anything else, such as a sum over an axis that only one has."""
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or len(operands) != 2 or not all(isinstance(x, Tensor) for x in operands):
        return None
    given, arrow, out = equation.replace(" ", "").partition("->")
    parts = given.split(",")
    if len(parts) != 2:
        return None
    pairs = zip(operands, parts, strict=True)
    free = [letter for letter in _LETTERS if letter not in equation]
    extra = [x.ndim - len(part.replace("...", "")) if "..." in part else 0 for x, part in pairs]
    dots = "".join(free[: max(extra)])
    parts = [part.replace("...", dots[len(dots) - more :]) for part, more in zip(parts, extra, strict=True)]
    if arrow:
        out = out.replace("...", dots)
    else:
        out = dots + "".join(sorted(x for x in set("".join(parts)) if "".join(parts).count(x) == 1 and x not in dots))
    left, right = parts
    summed = (set(left) & set(right)) - set(out)
    if any(len(set(part)) != len(part) for part in parts) or set(out) | summed != set(left) | set(right):
        return None
    shared = ((set(left) & set(right)) | set(dots)) - summed
    return Spec(operands[0], operands[1], left, right, out, frozenset(shared), frozenset(summed))


def product_of(spec: Spec, times: float = 1.0) -> Product | None:
    """Follow the axes of both sides into the result; None if nothing is summed over."""
    if not spec.summed:
        return None
    traces = trace_or_new(spec.left), trace_or_new(spec.right)
    both = zip(spec.sides(), traces, strict=True)
    own = [dict(zip(letters, trace.axes, strict=True)) for (_, letters), trace in both]
    parameters = is_parameter(spec.left), is_parameter(spec.right)
    split_off: list[set[Digit]] = []
    for axes, own_weights in zip(own, parameters, strict=True):
        of_sum = set().union(*(families(axes[letter]) for letter in spec.summed if not own_weights))
        split_off.append(
            {d for x, axis in axes.items() if x not in spec.summed for d in axis if d.root.family in of_sum}
        )
    atoms, heads = {}, set()
    for letter in dict.fromkeys(spec.left_letters + spec.right_letters):
        in_left, in_right = (axes.get(letter) for axes in own)
        if letter in spec.summed:
            atoms[letter] = new_axis(dict(zip(spec.left_letters, spec.left.shape, strict=True))[letter])
        elif not in_left and in_right:
            # q and k may be parts of one tensor: position n of one is not position n of the other.
            atoms[letter], renamed = (in_right, {}) if letter in spec.shared else _renamed(in_right)
            heads |= {renamed.get(d, d) for d in in_right if d in split_off[1]}
        elif in_left and in_right and _tells_more(in_right, split_off[1], in_left, split_off[0]):
            atoms[letter] = in_right
            heads |= split_off[1].intersection(in_right)
        else:
            atoms[letter] = in_left or ()
            heads |= split_off[0].intersection(in_left or ())
    factors = traces[0].factor or 1.0, traces[1].factor or 1.0
    return Product(spec, atoms, frozenset(heads), factors, parameters, times)


def _renamed(axis: Axis) -> tuple[Axis, dict[Digit, Digit]]:
    roots: dict[Root, Root] = {}
    names = {d: Digit(roots.setdefault(d.root, Root()), d.size, d.step) for d in axis}
    return tuple(names[d] for d in axis), names


def _tells_more(axis: Axis, heads: set[Digit], than: Axis, its_heads: set[Digit]) -> bool:
    return (bool(heads.intersection(axis)), len(axis)) > (bool(its_heads.intersection(than)), len(than))


def chooses_parameters(product: Product, letter: str) -> bool:
    """Whether the side that has this free axis is a parameter: a classifier, a router or a codebook."""
    sides = product.spec.left_letters, product.spec.right_letters
    return any(letter in letters and own for letters, own in zip(sides, product.parameters, strict=True))


def mixed(spec: Spec, logits: Trace, side: int) -> Trace:
    """Logits after a product with something else, such as a matrix that mixes heads: no longer a number times q·k."""
    (_, letters), (_, others) = spec.sides()[side], spec.sides()[1 - side]
    atoms = dict(zip(letters, logits.axes, strict=True))
    gone = [letter for letter in letters if letter in spec.summed]
    fresh = [letter for letter in spec.out if letter not in letters]
    sizes = dict(zip(others, spec.sides()[1 - side][0].shape, strict=True))
    for letter in fresh:
        same = [x for x in gone if sizes.get(x) == sizes.get(letter)]
        atoms[letter] = atoms[same[0]] if same else new_axis(sizes.get(letter, 1))
    return logits._replace(axes=tuple(atoms[letter] for letter in spec.out), factor=None)
