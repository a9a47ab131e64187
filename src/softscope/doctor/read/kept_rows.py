"""The rows of one call to be read, and what must be kept until then."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from softscope._arguments.attention import Call
from softscope.doctor.listen.observed_call import ObservedCall, hidden_keys_at_infinity


@dataclasses.dataclass(eq=False)
class KeptRows:
    """The rows of one call to be read, with everything needed to read them later.

    Keys and values are the model's own tensors. Whatever else is held until the backward pass or the end of the step is
    small: the kept rows of q, or, for materialised weights, the kept rows of the weights and their logits.
    """

    observed: ObservedCall
    rows: Tensor  # (R,)
    numbers: Sequence[int]  # the same indices on the host
    call: Call | None  # of the kept rows, if q and k are known
    logits: Tensor | None  # else the kept rows of the softmax input
    weights: Tensor | None  # and of its output
    known_keys: Tensor | None  # (B or 1, m): keys that at least one query sees
    versions: tuple[int, ...]

    def last_key(self, part: slice) -> int:
        """One past the last key these rows can see; at least one, and all keys if that is unknown."""
        right, start, m = self.observed.options.right, self.observed.start, self.observed.m
        if right is None or start is None:
            return m
        if self.observed.places is not None:
            return min(max(max(self.observed.places[number] for number in self.numbers[part]) + right + 1, 1), m)
        return min(max(self.numbers[part][-1] + start + right + 1, 1), m)

    def positions(self, part: slice) -> Sequence[int] | None:
        """Positions of these queries among the keys; None if queries and keys may come from different sequences."""
        if self.observed.places is not None:
            return [self.observed.places[number] for number in self.numbers[part]]
        start, n, m = self.observed.start, self.observed.n, self.observed.m
        if start is None or (n != m and self.observed.options.right is None):
            return None
        inside = 0 <= start <= m - n
        return [number + start for number in self.numbers[part]] if inside else None

    def over_keys(self, norms: Tensor) -> Tensor:
        """Mean of one number per key, (B, heads, m), over the keys that any row sees: (B, heads)."""
        if self.known_keys is None or self.known_keys.shape[-1] != norms.shape[-1]:
            return norms.mean(dim=-1)
        known = self.known_keys[:, None]
        return norms.masked_fill(~known, 0.0).sum(dim=-1) / known.sum(dim=-1)

    def untouched(self) -> bool:
        """Whether q, k and v still hold their original values; the model may have written into them."""
        return self.versions == _versions(self.call)


def keep_rows(observed: ObservedCall, numbers: Sequence[int], known_keys: Tensor | None) -> KeptRows:
    """Keep what is needed to read these rows."""
    rows = torch.tensor(numbers, device=observed.result.device)
    call = None
    if observed.q is not None:
        options = observed.options.of_rows(rows)
        options = dataclasses.replace(options, mask=hidden_keys_at_infinity(options.mask))
        call = Call(observed.q.index_select(2, rows), observed.k, observed.v, options, rows=rows)
    logits, weights = (None if x is None else x.index_select(2, rows) for x in (observed.logits, observed.weights))
    # Release the full matrices; a mask may be one.
    options = dataclasses.replace(observed.options, mask=None)
    observed = dataclasses.replace(
        observed, q=None, k=None, v=None, logits=None, weights=None, options=options, result=rows
    )
    return KeptRows(observed, rows, numbers, call, logits, weights, known_keys, _versions(call))


def _versions(call: Call | None) -> tuple[int, ...]:
    if call is None:
        return ()
    return tuple(x._version for x in (call.k, call.v) if x is not None and not x.is_inference())
