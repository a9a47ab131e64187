"""Partition of a row: a small, mergeable state from which every reading is computed."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._arguments.arrays import Array, floating, giver, is_tensor, namespace, quiet, scalar_if_0d
from softscope._arguments.axes import Axis, Rows
from softscope._arguments.checks import temperature_for_rows, visible_for_rows
from softscope._arguments.seen import seen
from softscope._backends.choose import backend_of, plain_reading, plain_state
from softscope._backends.reference.partition import State

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """The log-partition function A(β) = log Σ exp(β·x) of each row, stored as a mergeable state.

    Let d = (x − m)/T with m = max x, and let Σ' run over the entries below the maximum. The state holds:

        n = count   c = entries at the maximum   r = Σ' e^d   u = Σ' e^d·d   t = Σ' e^d·d²   w = Σ' e^2d

    The sums exclude the maximum so that nothing cancels near one-hot. `merge` joins the states of two parts of
    one row; it is associative and commutative, and `Partition.empty()` is its identity.
    An empty row has count 0, lse and max_logit −inf, and NaN for the other readings.

    >>> p = partition([0.0, 0.0, -1000.0])
    >>> float(p.peak), int(p.count), round(float(p.effective_support), 6)
    (0.5, 3, 2.0)
    """

    state: State
    highest: Array  # the largest logit as the caller sees it; in attention, before cap and mask
    temperature: Any = 1.0
    give: Callable[[Array], Array] = scalar_if_0d

    @classmethod
    def of_numbers(cls, numbers: Array, temperature: float, give: Callable[[Array], Array]) -> Partition:
        """Make it from the engine's numbers (…, 7 or 8), which become a state when somebody asks for it."""
        made = cls.__new__(cls)
        made.__dict__.update(numbers=numbers, temperature=temperature, give=give)
        return made

    def __getattr__(self, name: str) -> Any:
        """Split the numbers; Python asks here only for what is not there yet."""
        numbers = self.__dict__.get("numbers")
        if numbers is None or name not in ("state", "highest"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        state, highest = backend_of(numbers).split(numbers)
        self.__dict__.update(state=state, highest=highest)
        return self.__dict__[name]

    @classmethod
    def empty(cls, shape: tuple[int, ...] = ()) -> Partition:
        """Return the partition of no entries; merging with it changes nothing, at any temperature.

        >>> a = partition([1.0, 2.0, 3.0])
        >>> bool(Partition.empty().merge(a).lse == a.lse)
        True
        """
        zero = np.zeros(shape)
        nothing = np.full(shape, -np.inf)
        state = State(np.zeros(shape, np.int64), zero, nothing, zero, zero, zero, zero)
        return cls(state, nothing, temperature=None)

    @property
    def count(self) -> Array:
        """Number of visible entries."""
        return self.give(self.state.n)

    @property
    def max_logit(self) -> Array:
        """Largest logit, not divided by the temperature; in attention, the largest scale·q·k before cap and mask."""
        return self.give(self.highest)

    @property
    def lse(self) -> Array:
        """log Σ exp(x/T) = m/T + log z."""
        return self._reading("lse", self._lse)

    @property
    def entropy(self) -> Array:
        """−Σ p·log p in nats: log z − u/z."""
        return self._reading("entropy", self._entropy)

    @property
    def collision(self) -> Array:
        """Probability that two draws agree: Σ p² = (c + w)/z²."""
        return self._reading("collision", lambda: (self.state.c + self.state.w) / self._z() ** 2)

    @property
    def peak(self) -> Array:
        """Largest weight: 1/z."""
        # c divided by the detached c is 1, and carries the gradient of the entries at the maximum.
        return self._reading("peak", lambda: self._top() / self._top().detach() / self._z())

    @property
    def variance(self) -> Array:
        """Variance of x/T under the weights: t/z − (u/z)²."""
        return self._reading("variance", lambda: self.state.t / self._z() - (self.state.u / self._z()) ** 2)

    @property
    def jacobian_trace(self) -> Array:
        """Trace of the softmax Jacobian, Σ p·(1 − p) = 1 − collision, in a form that does not cancel near one-hot."""
        return self._reading("jacobian_trace", self._trace)

    @property
    def effective_support(self) -> Array:
        """Number of equal weights that would have this entropy: e^entropy."""
        return self._reading("effective_support", lambda: self._entropy().exp())

    @property
    def sharpness(self) -> Array:
        """1 − entropy / log n: 0 for a uniform row, 1 for one-hot; 0 for a row with one entry."""
        return self._reading("sharpness", self._sharpness)

    def merge(self, other: Partition) -> Partition:
        """Join the partitions of two parts of a row into the partition of the whole row.

        >>> whole = partition([1.0, 2.0, 3.0, 4.0])
        >>> parts = partition([1.0, 2.0]).merge(partition([3.0, 4.0]))
        >>> bool(abs(whole.entropy - parts.entropy) < 1e-15)
        True
        """
        if not isinstance(other, Partition):
            raise TypeError(f"merge needs another Partition, but got {type(other).__name__}; call partition first")
        a, b = _alike(self, other)
        temperature = _one_temperature(a, b)
        xp = namespace(a.state.m)
        m = xp.maximum(a.state.m, b.state.m)
        left, right = _moved(a.state, m, temperature), _moved(b.state, m, temperature)
        state = State(
            n=left.n + right.n, c=left.c + right.c, m=m, r=left.r + right.r,
            u=left.u + right.u, t=left.t + right.t, w=left.w + right.w,
        )  # fmt: skip
        highest = xp.maximum(a.highest, b.highest)
        return Partition(state, highest, temperature, a.give if self.temperature is not None else b.give)

    def _reading(self, name: str, formula: Callable[[], Array]) -> Array:
        """Compute a reading in the engine, or by the formula where tensor operations must be seen."""
        found = plain_reading(name, self)
        if found is None:
            found = formula()
            if name != "lse":
                xp = namespace(found)
                found = xp.where(self.state.n == 0, xp.full_like(found, math.nan), found)
        return self.give(found)

    # The formulas, for tensors; engine/rows/readings.cc has the same.

    def _z(self) -> Array:
        """Return z = c + r, or 1 for empty rows, so that no 0/0 enters a gradient."""
        z = self.state.c + self.state.r
        return z.where(self.state.n != 0, 1.0)

    def _top(self) -> Array:
        """Return c, or 1 for empty rows."""
        return self.state.c.where(self.state.n != 0, 1.0)

    def _log_z(self) -> Array:
        c = self._top()
        return c.log() + (self.state.r / c).log1p()

    def _lse(self) -> Array:
        m, temperature = self.state.m, 1.0 if self.temperature is None else self.temperature
        lse = m.where(~m.isinf(), 0.0) / temperature + self._log_z()
        unknown = namespace(m).isnan(temperature + namespace(m).zeros_like(m))
        return lse.where(~m.isinf() | unknown, m)

    def _entropy(self) -> Array:
        return self._log_z() - self.state.u / self._z()

    def _trace(self) -> Array:
        c, r, w = self.state.c, self.state.r, self.state.w
        return (c * (c - 1.0) + 2.0 * c * r + r * r - w) / self._z() ** 2

    def _sharpness(self) -> Array:
        n, xp = self.state.n, namespace(self.state.c)
        several = n > 1
        full = xp.log(xp.where(several, n, 2) + xp.zeros_like(self.state.c))
        return xp.where(several, 1.0, 0.0) * (1.0 - self._entropy() / full)

    def __repr__(self) -> str:
        return f"Partition(shape={tuple(self.state.m.shape)}, temperature={self.temperature!r})"


def partition(x: Array, /, *, axis: Axis = -1, temperature: Any = 1.0, where: Any = None) -> Partition:
    """Compute the partition of each row of x along `axis`: lse, entropy, peak and more from one pass.

    State and readings are float64 whatever the input dtype. For tensors they are differentiable.

    Args:
        x: Real numbers of any shape, as a NumPy array, list, torch tensor or DLPack array.
        axis: Axis that forms a row: an int, a tuple of ints, or None for all axes. The readings drop it.
        temperature: A number > 0, or an array that broadcasts against x with the axis kept as 1.
        where: Boolean, broadcastable to x. False entries are ignored.

    >>> p = partition([2.0, 2.1, 2.2])
    >>> round(float(p.entropy), 4), round(float(p.effective_support), 3), int(p.count)
    (1.0953, 2.99, 3)
    """
    if where is None and type(axis) is int:
        quick = plain_state(x, temperature, axis)
        if quick is not None:
            return Partition.of_numbers(*quick, giver(x))
    array = floating(x, "x")
    rows = Rows(array.shape, axis)
    t = temperature_for_rows(temperature, array, rows)
    visible = visible_for_rows(where, array, rows)
    state, highest = backend_of(array).state(rows.bring(array), t, visible)
    return Partition(state, highest, t if isinstance(t, float) else t[..., 0], giver(x))


def _moved(part: State, m: Array, temperature: Any) -> State:
    """Re-express a part's state relative to a maximum m, which may exceed the part's own maximum.

    With δ = (m_part − m)/T, every d becomes d + δ. Where δ < 0, the part's own maximum joins the other entries.
    −inf − −inf needs its own branch: an empty part does not move.
    """
    xp = namespace(m)
    same = part.m == m
    gap = xp.where(same | (part.n == 0), xp.zeros_like(m), part.m - xp.where(same, xp.zeros_like(m), m))
    with quiet(m):
        delta = gap / (1.0 if temperature is None else temperature)
    moves = delta < 0.0  # False for NaN, which the part's own state already carries
    shrink = xp.exp(delta)
    # Where exp underflows, δ may be −inf, and 0·(−inf) is NaN.
    delta = xp.where(shrink == 0.0, xp.zeros_like(delta), delta)
    z = part.c + part.r
    return State(
        n=part.n,
        c=xp.where(moves, xp.zeros_like(part.c), part.c),
        m=m,
        r=xp.where(moves, shrink * z, part.r),
        u=xp.where(moves, shrink * (part.u + delta * z), part.u),
        t=xp.where(moves, shrink * (part.t + 2.0 * delta * part.u + delta * delta * z), part.t),
        w=xp.where(moves, shrink * shrink * (part.w + part.c), part.w),
    )


def _one_temperature(a: Partition, b: Partition) -> Any:
    """Return the temperature that both parts share; refuse parts whose temperatures differ."""
    if a.temperature is None or b.temperature is None:
        return b.temperature if a.temperature is None else a.temperature
    left, right = a.temperature, b.temperature
    same = (left == right) | ((left != left) & (right != right))  # NaN marks the same invalid row in both
    if seen(same) and not (same if isinstance(same, bool) else bool(same.all())):
        raise ValueError(
            f"merge joins parts of one row at one temperature, but got {a.temperature!r} and {b.temperature!r}; "
            f"compute both partitions at the same temperature"
        )
    return a.temperature


def _alike(a: Partition, b: Partition) -> tuple[Partition, Partition]:
    """Make both partitions the same kind of array and check that their shapes fit; an empty one is converted."""
    if is_tensor(a.state.m) != is_tensor(b.state.m):
        if a.temperature is None:
            a = _as_tensors(a, b.state.m)
        elif b.temperature is None:
            b = _as_tensors(b, a.state.m)
        else:
            raise TypeError(
                "merge needs two partitions of the same kind, but one holds tensors and one arrays; convert x first"
            )
    try:
        np.broadcast_shapes(tuple(a.state.m.shape), tuple(b.state.m.shape))
    except ValueError:
        raise ValueError(
            f"merge joins parts of the same rows, but their shapes {tuple(a.state.m.shape)} and "
            f"{tuple(b.state.m.shape)} do not match; compute both along the same axis"
        ) from None
    return a, b


def _as_tensors(empty: Partition, like: Array) -> Partition:
    xp = namespace(like)

    def convert(part: Array) -> Array:
        dtype = xp.int64 if part.dtype == np.int64 else like.dtype
        return xp.as_tensor(part, dtype=dtype, device=like.device)

    return Partition(State(*map(convert, empty.state)), convert(empty.highest), None)
