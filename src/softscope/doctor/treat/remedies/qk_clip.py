"""QK-clip: shrinks W_Q and W_K of heads whose logits exceed a bound (MuonClip, Kimi K2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from softscope._arguments.checks import positive
from softscope.doctor.treat.remedies import weights
from softscope.doctor.treat.remedies.applied import Applied, Change
from softscope.doctor.treat.remedies.places import head_count, module_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

TAU = 100.0  # the value of Kimi K2
# Rounding errors of the weights' dtype to stay below the bound, so that rounded logits respect it. With 8, about one
# layer in twenty ended above the bound.
MARGIN = 64.0


def qk_clip(
    model: nn.Module, largest: Mapping[str, Sequence[float] | Mapping[int, float]], *, tau: float = TAU
) -> Applied:
    """Shrink W_Q and W_K, with their biases, of every head above `tau` so that its largest logit becomes `tau`.

    It only shrinks, and only heads above the bound: the others keep every bit. With γ = τ/largest, q and k get √γ each.
    A key head shared by several query heads gets √ of the largest γ among them (1, so no change, if one of them is
    healthy), and each of its query heads gets the rest of its own γ. Clipping a layer changes the input of later
    layers: measure again until nothing is clipped, or clip after every optimizer step, as Kimi K2 did.

    Args:
        model: changed in place.
        largest: for each site the largest |scale·q·k| of each head, as `largest_logits` measures it, with NaN for a
            head that was not measured; or, per site, a dictionary of only the heads to clip.
        tau: the bound.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = 100 * torch.ones(1, 5, 8)
    >>> with remedies.largest_logits(model) as largest:
    ...     _ = model(x, x, x)
    >>> done = remedies.qk_clip(model, largest, tau=1.0)
    >>> with remedies.largest_logits(model) as largest:
    ...     _ = model(x, x, x)
    >>> max(largest["MultiheadAttention"]) <= 1.0
    True
    """
    tau = positive(tau, "tau", "100 is what large models were clipped at")
    measured = {site: _of_each(model, site, tops) for site, tops in largest.items()}
    above = {site: [h for h, top in enumerate(tops) if top > tau] for site, tops in measured.items()}
    for site, heads in above.items():
        for head in heads:
            if not math.isfinite(measured[site][head]):
                raise ValueError(
                    f"largest must be finite, but head {head} of {site} has {measured[site][head]}; its weights or "
                    f"inputs are broken, go back to a checkpoint before that"
                )
    found = {site: weights.projections(module_of(model, site), site) for site, heads in above.items() if heads}
    for site, projections in found.items():
        if projections.heads != len(measured[site]):
            raise ValueError(
                f"largest must have one number for each head, but {site} has {projections.heads} heads and "
                f"got {len(measured[site])}; take them from largest_logits"
            )
    done = Applied("qk-clip")
    for site, projections in found.items():
        for group in range(projections.heads // projections.group):
            members = range(group * projections.group, (group + 1) * projections.group)
            _clip(done, site, projections, group, {h: measured[site][h] for h in members}, tau)
    return done


def _of_each(model: nn.Module, site: str, tops: Sequence[float] | Mapping[int, float]) -> Sequence[float]:
    if not isinstance(tops, Mapping):
        return tops
    return [tops.get(head, math.nan) for head in range(head_count(model, site))]


def _clip(
    done: Applied, site: str, projections: weights.Projections, group: int, tops: dict[int, float], tau: float
) -> None:
    bound = tau * (1.0 - MARGIN * torch.finfo(projections.q[0].dtype).eps)
    factors = {head: bound / top if top > tau else 1.0 for head, top in tops.items()}
    if all(factor == 1.0 for factor in factors.values()):
        return
    shared = math.sqrt(max(factors.values()))
    held = weights.scale(projections.k, group, shared) if shared < 1.0 else ()
    for head, factor in factors.items():
        if factor < 1.0:
            held += weights.scale(projections.q, head, factor / shared)
            done.changes.append(
                Change(
                    site, (head,), f"{'W_Q and W_K' if shared < 1.0 else 'W_Q'} shrunk: {tops[head]:.4g} to {tau:.4g}"
                )
            )
    done.on_undo(lambda: weights.put_back(held))
