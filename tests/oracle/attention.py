"""Attention for one head, as loops over queries and keys."""

from collections.abc import Sequence
from typing import NamedTuple

from mpmath import mp, mpf

from oracle import readings, rows, sparse
from oracle.rows import Number, exact

Matrix = Sequence[Sequence[Number]]


class Options(NamedTuple):
    """How one head turns products into weights; `hidden_at` is the additive mask that hides a key."""

    causal: bool = False
    query_start: int = 0
    window: tuple[int | None, int | None] | None = None
    mask: Sequence[Sequence[bool]] | Matrix | None = None
    hidden_at: float = float("-inf")
    softcap: Number | None = None
    sink: Number | None = None
    alpha: Number = 1


def products(q: Matrix, k: Matrix, scale: Number) -> list[list[mpf]]:
    """The products scale * q_i . k_j, before cap and mask."""
    with mp.workdps(max(mp.dps, rows.DIGITS + 20)):
        return [
            [exact(scale) * mp.fsum(exact(a) * exact(b) for a, b in zip(qi, kj, strict=True)) for kj in k] for qi in q
        ]


def additive_products(q: Matrix, k: Matrix, w_q: Matrix, w_k: Matrix, v_a: Sequence[Number]) -> list[list[mpf]]:
    """The products v_a . tanh(q_i W_q + k_j W_k) of additive attention."""

    def times(x: Sequence[Number], w: Matrix, h: int) -> mpf:
        return mp.fsum(exact(value) * exact(w[d][h]) for d, value in enumerate(x))

    with mp.workdps(max(mp.dps, rows.DIGITS + 20)):
        return [
            [mp.fsum(exact(a) * mp.tanh(times(qi, w_q, h) + times(kj, w_k, h)) for h, a in enumerate(v_a)) for kj in k]
            for qi in q
        ]


def visible(i: int, n_keys: int, options: Options) -> list[bool]:
    """Which keys query i sees."""
    position = options.query_start + i
    left, right = options.window or (None, None)
    see = []
    for j in range(n_keys):
        ok = not (options.causal and j > position)
        ok = ok and (left is None or j - position >= -left) and (right is None or j - position <= right)
        if ok and options.mask is not None:
            entry = options.mask[i][j]
            ok = entry if isinstance(entry, bool) else float(entry) > options.hidden_at
        see.append(ok)
    return see


def logits(i: int, raw: Sequence[Number], options: Options) -> list[mpf]:
    """The logits of query i from its products: capped, then masked; -inf where a key is hidden."""
    out = []
    for j, (s, see) in enumerate(zip(raw, visible(i, len(raw), options), strict=True)):
        value = exact(s)
        if options.softcap is not None:
            value = exact(options.softcap) * mp.tanh(value / exact(options.softcap))
        if options.mask is not None and not isinstance(options.mask[i][j], bool) and see:
            value += exact(options.mask[i][j])
        out.append(value if see else -mp.inf)
    return out


def key_weights(i: int, raw: Sequence[Number], options: Options, sink: Number | None = None) -> list[mpf]:
    """The weights of query i over its keys, plus the sink as one more key if there is one."""
    row = logits(i, raw, options)
    return sparse.entmax(row if sink is None else [*row, exact(sink)], options.alpha)


def outputs(raw: Matrix, v: Matrix, options: Options) -> list[list[mpf]]:
    """The output of every query: sum over its keys of weight times value."""
    with mp.workdps(max(mp.dps, rows.DIGITS + 20)):
        weights = [key_weights(i, row, options, options.sink)[: len(v)] for i, row in enumerate(raw)]
        width = len(v[0])
        return [[mp.fsum(w * exact(vj[d]) for w, vj in zip(p, v, strict=True)) for d in range(width)] for p in weights]


def partition(i: int, raw: Sequence[Number], options: Options) -> readings.Readings:
    """The readings of query i over its keys, without the sink; max_logit is the largest of the visible products."""
    row = logits(i, raw, options)
    seen = [exact(s) for s, value in zip(raw, row, strict=True) if value != -mp.inf]
    return readings.partition(row)._replace(max_logit=max(seen, default=-mp.inf))
