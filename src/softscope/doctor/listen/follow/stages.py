"""The stages between q·k and the weights: exponentials, their sums, logarithms of weights, and weights."""

from __future__ import annotations

import collections
import dataclasses
import threading
from typing import Any

from torch import Tensor

from softscope.doctor.listen import module_paths
from softscope.doctor.listen.follow.axes import Axes, new_axes
from softscope.doctor.listen.follow.products import Product
from softscope.doctor.listen.follow.traces import Trace, remember, trace_of


@dataclasses.dataclass(eq=False)
class Exponentials:
    """exp of logits. `masked`: some were then set to 0, which hides those keys."""

    logits: Tensor
    masked: bool = False


@dataclasses.dataclass(eq=False)
class OverRows:
    """A sum, maximum or log-sum-exp over one axis of `of`: `Exponentials`, or a weak reference to logits."""

    name: str
    of: Any
    axis: int | None


@dataclasses.dataclass(eq=False)
class Weights:
    """Weights that sum to 1 over one axis, until they are multiplied into values.

    They hold their tensors so long only if they come from a product: other softmaxes may never be multiplied.
    """

    logits: Tensor | None
    weights: Tensor | None
    axes: Axes
    axis: int
    shape: tuple[int, ...]
    product: Product | None
    factor: float | None
    capped: float | None
    module: Any
    dropout: float = 0.0
    across: bool = False  # multiplied, but summed over another axis
    altered: bool = False  # something was added to them, or they were multiplied by several numbers
    done: bool = False  # multiplied into values

    def used(self) -> None:
        """Let go of the tensors."""
        self.done = True
        self.logits = self.weights = self.product = None
        if self in _local.pending:
            _local.pending.remove(self)


@dataclasses.dataclass(eq=False)
class LogWeights:
    """The logarithm of weights, of which the logits are known."""

    logits: Tensor
    axis: int


RECENT = 4


class _Local(threading.local):
    def __init__(self) -> None:
        self.pending: list[Weights] = []
        self.recent: collections.deque[tuple[Any, Product, tuple[int, ...]]] = collections.deque()


_local = _Local()


def weigh(weights: Tensor, logits: Tensor, axis: int, hidden: Tensor | None = None) -> None:
    """Know from now on that these are weights over an axis, made from these logits."""
    trace, shape = trace_of(logits), tuple(weights.shape)
    product = trace.origin if trace is not None and isinstance(trace.origin, Product) else None
    module = module_paths.calling()
    if product is None:
        product = _lost(module, shape)
        trace = None if product is None else Trace(product.axes, factor=None, origin=product)
    if trace is None or len(trace.axes) != weights.ndim:
        trace = Trace(new_axes(shape))
    if hidden is not None:
        logits = logits.detach().masked_fill(hidden, float("-inf"))
    keep = product is not None
    record = Weights(
        logits if keep else None, weights if keep else None, trace.axes, axis % weights.ndim, shape, product,
        None if product is not None and product.linear else trace.factor, trace.capped, module,
    )  # fmt: skip
    remember(weights, Trace(trace.axes, origin=record))
    if keep:
        _local.pending.append(record)


def note_product(product: Product, shape: tuple[int, ...]) -> None:
    """Remember the last products: the way from one to the softmax may lead through a function that is not followed.

    Older ones let go of their tensors, which a trace would else hold as long as anything made from the result lives.
    """
    _local.recent.append((module_paths.calling(), product, shape))
    if len(_local.recent) > RECENT:
        _local.recent.popleft()[1].release()


def _lost(module: Any, shape: tuple[int, ...]) -> Product | None:
    for where, product, its in reversed(_local.recent):
        if where is module and its == shape:
            return product
    return None


def weights_like(x: Tensor) -> Weights | None:
    """Weights of the same module and shape as a tensor of which nothing is known."""
    module = module_paths.calling()
    found = [w for w in _local.pending if w.module is module and w.shape == tuple(x.shape)]
    return found[-1] if found else None


def unused() -> list[Weights]:
    """Weights that came from a product and were not seen to be multiplied into values; the pass is over."""
    found, _local.pending = _local.pending, []
    _local.recent.clear()
    return found
