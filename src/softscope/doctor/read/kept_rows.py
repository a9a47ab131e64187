"""The rows of one call that are to be read, and what has to be kept until they can be."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torch import Tensor

from softscope._arguments.attention import Call
from softscope.doctor.listen.observed_call import ObservedCall


@dataclasses.dataclass(eq=False)
class KeptRows:
    """The rows of one call that are to be read, and all that is needed to read them later.

    Keys and values are the model's own tensors. What is held besides, until the backward pass or the end of the step,
    is small: the chosen rows of q, or where weights were written down the chosen rows of these and of their logits.
    """

    observed: ObservedCall
    rows: Tensor  # (R,)
    numbers: Sequence[int]  # the same, on this side of the device
    call: Call | None  # of the chosen rows, if q and k are known
    logits: Tensor | None  # else the chosen rows of what the softmax got
    weights: Tensor | None  # and gave
    known_keys: Tensor | None  # (B or 1, m): keys that anybody sees
    versions: tuple[int, ...]

    def last_key(self, part: slice) -> int | None:
        """One past the last key that these rows can see, or None where that is not known."""
        right, start = self.observed.right, self.observed.start
        return None if right is None or not isinstance(start, int) else self.numbers[part][-1] + start + right + 1

    def positions(self, part: slice) -> Sequence[int] | None:
        """Where among the keys these queries stand; None where they need not be of one sequence with them."""
        observed = self.observed
        if not isinstance(observed.start, int) or (observed.n != observed.m and observed.right is None):
            return None
        inside = 0 <= observed.start <= observed.m - observed.n
        return [number + observed.start for number in self.numbers[part]] if inside else None

    def untouched(self) -> bool:
        """Whether q, k, v still hold what they held: somebody may have written into them."""
        return self.versions == _versions(self.call)


def keep_rows(observed: ObservedCall, numbers: Sequence[int], rows: Tensor, known_keys: Tensor | None) -> KeptRows:
    """Keep what reading these rows takes."""
    if not observed.queries_and_keys():
        assert observed.logits is not None
        assert observed.weights is not None
        logits, weights = (x.index_select(2, rows) for x in (observed.logits, observed.weights))
        call = _call(observed, rows) if observed.q is not None else None
        observed = dataclasses.replace(observed, logits=None, weights=None, result=rows)  # frees the whole matrices
        return KeptRows(observed, rows, numbers, call, logits, weights, known_keys, _versions(call))
    call = _call(observed, rows)
    observed = dataclasses.replace(observed, q=None, k=None, v=None, mask=None, result=rows)
    return KeptRows(observed, rows, numbers, call, None, None, known_keys, _versions(call))


def _call(observed: ObservedCall, rows: Tensor) -> Call:
    assert observed.q is not None
    mask = observed.mask
    if mask is not None and mask.ndim >= 2 and mask.shape[-2] != 1:
        mask = mask.index_select(-2, rows)
    return Call(
        q=observed.q.index_select(2, rows), k=observed.k, v=observed.v, scale=observed.scale,
        positions=rows + observed.start, left=observed.left, right=observed.right, mask=mask,
        softcap=observed.softcap, sink=observed.sink, alpha=observed.alpha, single=False, rows=rows,
    )  # fmt: skip


def _versions(call: Call | None) -> tuple[int, ...]:
    if call is None:
        return ()
    return tuple(x._version for x in (call.k, call.v) if x is not None and not x.is_inference())
