"""The rows of one call that are to be read, and what has to be kept until they can be."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torch import Tensor

from softscope._attention_call import Call
from softscope.doctor.seen import Seen


@dataclasses.dataclass(eq=False)
class Chosen:
    """The rows of one call that are to be read, and all that is needed to read them later.

    Keys and values are the model's own tensors. What is held besides, until the backward pass or the end of the step,
    is small: the chosen rows of q, or where weights were written down the chosen rows of these and of their logits.
    """

    seen: Seen
    rows: Tensor  # (R,)
    numbers: Sequence[int]  # the same, on this side of the device
    call: Call | None  # of the chosen rows, if q and k are known
    logits: Tensor | None  # else the chosen rows of what the softmax got
    weights: Tensor | None  # and gave
    known_keys: Tensor | None  # (B or 1, m): keys that anybody sees
    versions: tuple[int, ...]

    def last_key(self, part: slice) -> int | None:
        """One past the last key that these rows can see, or None where that is not known."""
        right, start = self.seen.right, self.seen.start
        return None if right is None or not isinstance(start, int) else self.numbers[part][-1] + start + right + 1

    def positions(self, part: slice) -> Sequence[int] | None:
        """Where among the keys these queries stand; None where they need not be of one sequence with them."""
        seen = self.seen
        if not isinstance(seen.start, int) or (seen.n != seen.m and seen.right is None):
            return None
        inside = 0 <= seen.start <= seen.m - seen.n
        return [number + seen.start for number in self.numbers[part]] if inside else None

    def untouched(self) -> bool:
        """Whether q, k, v still hold what they held: somebody may have written into them."""
        return self.versions == _versions(self.call)


def choose(seen: Seen, numbers: Sequence[int], rows: Tensor, known_keys: Tensor | None) -> Chosen:
    """Keep what reading these rows takes."""
    if not seen.queries_and_keys():
        assert seen.logits is not None
        assert seen.weights is not None
        logits, weights = (x.index_select(2, rows) for x in (seen.logits, seen.weights))
        call = _call(seen, rows) if seen.q is not None else None
        seen = dataclasses.replace(seen, logits=None, weights=None, result=rows)  # frees the whole matrices
        return Chosen(seen, rows, numbers, call, logits, weights, known_keys, _versions(call))
    call = _call(seen, rows)
    seen = dataclasses.replace(seen, q=None, k=None, v=None, mask=None, result=rows)
    return Chosen(seen, rows, numbers, call, None, None, known_keys, _versions(call))


def _call(seen: Seen, rows: Tensor) -> Call:
    assert seen.q is not None
    mask = seen.mask
    if mask is not None and mask.ndim >= 2 and mask.shape[-2] != 1:
        mask = mask.index_select(-2, rows)
    return Call(
        q=seen.q.index_select(2, rows), k=seen.k, v=seen.v, scale=seen.scale, positions=rows + seen.start,
        left=seen.left, right=seen.right, mask=mask, softcap=seen.softcap, sink=seen.sink, alpha=seen.alpha,
        single=False, rows=rows,
    )  # fmt: skip


def _versions(call: Call | None) -> tuple[int, ...]:
    if call is None:
        return ()
    return tuple(x._version for x in (call.k, call.v) if x is not None and not x.is_inference())
