"""Check the arguments of attention and bring them into the one form that every backend takes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from softscope._arguments.arrays import Array, beside, dtype_name, floating, is_tensor, namespace
from softscope._arguments.checks import (
    alpha_number,
    alphas,
    flag,
    is_number,
    number,
    real_beside,
    short,
    whole_number,
)
from softscope._arguments.seen import seen
from softscope._backends.reference.visible_keys import LOWEST, mask_hides, offsets_allow

_TILE = 1 << 22  # logits materialised at a time, on the paths that materialise them


@dataclasses.dataclass(frozen=True)
class Options:
    """How each query sees the keys: attention's options in one record, from the public functions to the kernel.

    Attributes:
        scale: A number, or one per head as (heads, 1, 1).
        positions: Position of each query among the keys, (rows,).
        left: A query sees keys from position − left on; None means unlimited.
        right: A query sees keys up to position + right; None means unlimited. Causal attention has right = 0.
        mask: Boolean (True = attend) or additive, broadcastable to (…, heads, rows, m), or None.
        softcap: The c of c·tanh(s/c), or None.
        sink: A number, one per head as (heads, 1), or None.
        alpha: 1 for softmax, 2 for sparsemax, any other finite number above 1 for entmax; or one per head as
            (heads, 1, 1), which gives the statistics of sparse rows even where it is 1.
    """

    scale: Any
    positions: Array
    left: int | None = None
    right: int | None = None
    mask: Array | None = None
    softcap: float | None = None
    sink: Any = None
    alpha: Any = 1.0

    @property
    def sparse(self) -> bool:
        """Tell whether rows have a threshold and a support in place of a partition function."""
        return not (isinstance(self.alpha, float) and self.alpha == 1.0)

    def of_rows(self, rows: Any) -> Options:
        """Restrict the options to some of the queries, given as a slice or indices."""
        mask = self.mask
        if mask is not None and mask.ndim >= 2 and mask.shape[-2] != 1:
            mask = mask[..., rows, :]
        return dataclasses.replace(self, positions=self.positions[rows], mask=mask)

    def of_keys(self, last: int) -> Options:
        """Restrict it to the keys before `last`."""
        mask = self.mask
        if mask is not None and mask.ndim and mask.shape[-1] != 1:
            mask = mask[..., :last]
        return dataclasses.replace(self, mask=mask)

    def in_window(self, m: int) -> Array | None:
        """Return which of m keys the window shows, (rows, m), or None for all."""
        if self.left is None and self.right is None:
            return None
        return offsets_allow(_arange(m, self.positions) - self.positions[:, None], self.left, self.right)

    def visible_and_bias(self, m: int) -> tuple[Array | None, Array | None]:
        """Return which of m keys the window and mask show (None: all), and what the mask adds (None: nothing)."""
        window = self.in_window(m)
        if self.mask is None:
            return window, None
        shown, bias = self.mask, None
        if dtype_name(self.mask) != "bool":
            hidden = mask_hides(self.mask)
            xp = namespace(self.mask)
            shown, bias = ~hidden, xp.where(hidden, xp.zeros_like(self.mask), self.mask)
        return (shown if window is None else window & shown), bias


@dataclasses.dataclass(frozen=True)
class Call:
    """One attention call, with arguments checked and rows selected, but nothing copied yet.

    Shapes: q (…, heads, rows, d), k (…, kv_heads, m, d), v (…, kv_heads, m, dv) or None.
    """

    q: Array
    k: Array
    v: Array | None
    options: Options
    single: bool = False  # the caller passed one head without a heads axis
    rows: Array | None = None  # the caller's queries that were selected; None: all

    @property
    def batch(self) -> tuple[int, ...]:
        """Return the axes before the heads."""
        return joint_batch(self.q, self.k, self.v)

    def spread(self) -> Call:
        """Give each query head its own key head, for operations without grouped queries."""
        heads = self.q.shape[-3]
        v = None if self.v is None else _spread_heads(self.v, heads)
        return dataclasses.replace(self, k=_spread_heads(self.k, heads), v=v)

    def of_rows(self, rows: slice) -> Call:
        """Restrict the call to some of its rows."""
        return dataclasses.replace(self, q=self.q[..., rows, :], options=self.options.of_rows(rows))

    def of_keys(self, last: int) -> Call:
        """Restrict it to the keys before `last`."""
        v = None if self.v is None else self.v[..., :last, :]
        return dataclasses.replace(self, k=self.k[..., :last, :], v=v, options=self.options.of_keys(last))

    def tiles(self) -> list[slice]:
        """Split the rows into slices small enough to materialise their logits."""
        rows, m = self.q.shape[-2], self.k.shape[-2]
        others = math.prod(self.batch) * self.q.shape[-3] * m
        many = max(1, _TILE // max(1, others))
        return [slice(first, first + many) for first in range(0, rows, many)] or [slice(0, 0)]

    def visible_and_bias(self) -> tuple[Array | None, Array | None]:
        """Return which keys the window and mask show (None: all), and what the mask adds (None: nothing)."""
        return self.options.visible_and_bias(self.k.shape[-2])


def joint_batch(*arrays: Array | None) -> tuple[int, ...]:
    """Broadcast the axes before the heads of all arrays, and return the result."""
    first, *others = [tuple(x.shape[:-3]) for x in arrays if x is not None]
    if all(shape == first for shape in others):  # the usual case; NumPy's broadcast is slow
        return first
    return np.broadcast_shapes(first, *others)


NO_VALUES = object()


def prepare(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: Any = None,
    causal: bool = False,
    query_start: int = 0,
    window: Any = None,
    mask: Any = None,
    softcap: Any = None,
    sink: Any = None,
    alpha: Any = 1.0,
    rows: Any = None,
    same_width: bool = True,
) -> Call:
    """Check every argument of an attention function and build the `Call`; `v` is NO_VALUES if it takes none."""
    given = {"q": q, "k": k} if v is NO_VALUES else {"q": q, "k": k, "v": v}
    arrays = _alike(autocast({name: floating(value, name) for name, value in given.items()}))
    q = arrays["q"]
    single = q.ndim == 2
    arrays = {name: array[None] if single else array for name, array in arrays.items()}
    q, k, v = arrays["q"], arrays["k"], arrays.get("v")
    batch = _checked_batch(q, k, v, same_width)
    heads, n, m = q.shape[-3], q.shape[-2], k.shape[-2]
    a = _alpha(alpha, q, heads)
    if sink is not None and not (isinstance(a, float) and a == 1.0):
        which = f"alpha = {a}" if isinstance(a, float) else "an alpha per head"
        raise ValueError(f"sink works only with softmax, but got {which} with a sink; set one of them to its default")
    chosen = None if rows is None else _rows(rows, q, n)
    start = whole_number(query_start, "query_start")
    positions = _arange(n, q, start) if chosen is None else chosen + start
    left, right = sides(causal, window)
    options = Options(
        scale=_scale(scale, q, heads),
        positions=positions,
        left=left,
        right=right,
        mask=_mask(mask, q, (*batch, heads, n, m), chosen),
        softcap=_softcap(softcap),
        sink=_sink(sink, q, heads),
        alpha=a,
    )
    if tuple(q.shape[:-3]) != batch:  # every batch entry has rows of its own, also where only k or v has several
        q = namespace(q).broadcast_to(q, (*batch, *q.shape[-3:]))
    return Call(q if chosen is None else q[..., chosen, :], k, v, options, single, chosen)


def autocast(arrays: dict[str, Array]) -> dict[str, Array]:
    """Cast tensors to torch.autocast's dtype, as PyTorch's own attention does; float64 stays."""
    q = arrays["q"]
    if not is_tensor(q):
        return arrays
    torch = namespace(q)
    device = q.device.type
    if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        return arrays
    dtype = torch.get_autocast_dtype(device)
    return {name: x.to(dtype) if is_tensor(x) and dtype_name(x) != "float64" else x for name, x in arrays.items()}


def _alike(arrays: dict[str, Array]) -> dict[str, Array]:
    """Refuse arrays of different kinds, dtypes, devices or numbers of dimensions."""
    (first, q), *others = arrays.items()
    for name, array in others:
        if is_tensor(array) != is_tensor(q):
            raise TypeError(f"{name} must be of the same kind as {first}, but only one is a torch tensor; convert one")
        if array.dtype != q.dtype:
            raise TypeError(
                f"{name} must have the dtype of {first}, {dtype_name(q)}, but has {dtype_name(array)}; convert one"
            )
        if is_tensor(q) and array.device != q.device:
            raise ValueError(f"{name} must be on the device of {first}, {q.device}, but is on {array.device}; move one")
        if (array.ndim == 2) != (q.ndim == 2):
            raise ValueError(
                f"{name} must have as many heads axes as {first}, but their shapes are {tuple(array.shape)} and "
                f"{tuple(q.shape)}; use (…, heads, n, d) for all, or (n, d) for all"
            )
    for name, array in arrays.items():
        if array.ndim < 2:
            raise ValueError(
                f"{name} must be (…, heads, n, d), or (n, d), but has shape {tuple(array.shape)}; reshape it"
            )
    return arrays


def _checked_batch(q: Array, k: Array, v: Array | None, same_width: bool) -> tuple[int, ...]:
    """Check that the shapes match, and return the axes before the heads."""

    def shapes() -> str:  # built only on demand: a compiler with symbolic shapes cannot format them
        return f"q {tuple(q.shape)}, k {tuple(k.shape)}" + ("" if v is None else f", v {tuple(v.shape)}")

    if same_width and q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q and k must have the same last axis d, but got {shapes()}; project one of them")
    if v is not None and v.shape[-2] != k.shape[-2]:
        raise ValueError(f"k and v must have the same number of keys, but got {shapes()}; cut or pad one of them")
    if v is not None and v.shape[-3] != k.shape[-3]:
        raise ValueError(f"k and v must have the same number of heads, but got {shapes()}; match them")
    if k.shape[-3] == 0 or q.shape[-3] % k.shape[-3]:
        raise ValueError(f"q's heads must be a multiple of k's, but got {shapes()}; group the queries evenly")
    try:
        return joint_batch(q, k, v)
    except ValueError:
        raise ValueError(f"the axes before the heads must broadcast, but got {shapes()}; match the batch") from None


def _spread_heads(x: Array, heads: int) -> Array:
    """Repeat each key head for its group of heads/kv_heads consecutive query heads."""
    kv_heads, m, d = x.shape[-3:]
    if kv_heads == heads:
        return x
    lead = tuple(x.shape[:-3])
    group = namespace(x).broadcast_to(x[..., :, None, :, :], (*lead, kv_heads, heads // kv_heads, m, d))
    return group.reshape((*lead, heads, m, d))


def _arange(n: int, like: Array, start: int = 0) -> Array:
    xp = namespace(like)
    return xp.arange(start, start + n, device=like.device) if is_tensor(like) else xp.arange(start, start + n)


def _rows(rows: Any, q: Array, n: int) -> Array:
    index = beside(rows, q, "rows")
    if index.ndim == 1 and index.shape[0] == 0:
        return _arange(0, q)
    if index.ndim != 1 or not dtype_name(index).startswith(("int", "uint")):
        raise TypeError(
            f"rows must be a list of query indices, but got an array of shape {tuple(index.shape)} and dtype "
            f"{dtype_name(index)}; pass rows=[0, 7], for example"
        )
    xp = namespace(q)
    lowest = 0 if dtype_name(index).startswith("u") else -n  # the largest unsigned numbers turn negative in int64
    # In int64, because positions are added to them, which narrow integers could not hold.
    index = index.to(xp.int64) if is_tensor(index) else index.astype(np.int64)
    outside = (index < lowest) | (index >= n)
    if seen(outside) and bool(outside.any()):
        wrong = int(index[outside][0])
        raise ValueError(f"rows must lie in [{-n}, {n}), the queries of q, but holds {wrong}; pass indices of queries")
    return xp.where(index < 0, index + n, index)


def sides(causal: Any, window: Any) -> tuple[int | None, int | None]:
    """Return how far a query sees to the left and to the right; None means unlimited."""
    left, right = _window(window)
    return left, 0 if flag(causal, "causal") else right


def _window(window: Any) -> tuple[int | None, int | None]:
    if window is None:
        return (None, None)
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise TypeError(f"window must be (left, right), but got {short(window)}; None makes a side unlimited")
    for side in window:
        if side is not None and whole_number(side, "window's sides") < 0:
            raise ValueError(f"window's sides must be ≥ 0, but got {short(side)}; use None for an unlimited side")
    left, right = window
    return (None if left is None else int(left), None if right is None else int(right))


def _mask(mask: Any, q: Array, shape: tuple[int, ...], chosen: Array | None) -> Array | None:
    """Check the mask and select the chosen rows."""
    if mask is None:
        return None
    array = beside(mask, q, "mask")
    kind = dtype_name(array)
    if kind != "bool" and kind not in LOWEST:
        raise TypeError(f"mask must be boolean (True = attend) or additive floats, but its dtype is {kind}; convert it")
    try:
        np.broadcast_shapes(tuple(array.shape), shape)
        fits = len(array.shape) <= len(shape) and np.broadcast_shapes(tuple(array.shape), shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask must broadcast to (…, heads, n, m) = {shape}, but has shape {tuple(array.shape)}; "
            f"insert axes of size 1 where it is shared"
        )
    if chosen is not None and array.ndim >= 2 and array.shape[-2] != 1:
        array = array[..., chosen, :]
    return array


def _scale(scale: Any, q: Array, heads: int) -> Any:
    if scale is None:
        return 1.0 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0
    if is_number(scale):
        value = number(scale, "scale", "a finite number, or one per head")
        if math.isinf(value):
            raise ValueError("scale must be finite, but got inf; pass a finite number, or None for 1/sqrt(d)")
        return value
    return _per_head(scale, q, heads, "scale")[:, None, None]


def _alpha(alpha: Any, q: Array, heads: int) -> Any:
    if is_number(alpha):
        return alpha_number(alpha)
    return alphas(_per_head(alpha, q, heads, "alpha"))[:, None, None]


def _softcap(softcap: Any) -> float | None:
    if softcap is None:
        return None
    value = number(softcap, "softcap", "a finite number > 0")
    if not 0.0 < value < math.inf:
        raise ValueError(
            f"softcap must be a finite number > 0, but got {short(softcap)}; pass 50.0, for example, or None"
        )
    return value


def _sink(sink: Any, q: Array, heads: int) -> Any:
    if sink is None or is_number(sink):
        return None if sink is None else number(sink, "sink", "a number, or one per head")
    return _per_head(sink, q, heads, "sink")[:, None]


def _per_head(value: Any, q: Array, heads: int, name: str) -> Array:
    array = real_beside(value, q, name)
    if tuple(array.shape) not in ((), (1,), (heads,)):
        raise ValueError(
            f"{name} must be a number or one per head, shape ({heads},), but has shape {tuple(array.shape)}; reshape it"
        )
    return namespace(q).broadcast_to(array, (heads,))
