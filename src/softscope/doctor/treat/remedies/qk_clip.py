"""QK-clip: shrinks W_Q and W_K of heads whose logits exceed a bound (MuonClip, Kimi K2)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from softscope._arguments.checks import positive
from softscope._text import Text
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies import weights
from softscope.doctor.treat.remedies.applied import Applied, Change, NotSupportedError
from softscope.doctor.treat.remedies.places import module_of
from softscope.doctor.treat.remedies.temperature import temperature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

    from softscope.doctor.treat.remedies.layout import Layout

TAU = 100.0  # the value of Kimi K2
# Rounding errors of the weights' dtype to stay below the bound, so that rounded logits respect it. With 8, about one
# layer in twenty ended above the bound.
MARGIN = 64.0


def qk_clip(
    model: nn.Module,
    largest: Mapping[str, Sequence[float] | Mapping[int, float]],
    *,
    tau: float = TAU,
    layout: Mapping[str, Layout] | None = None,
) -> Applied:
    """Shrink W_Q and W_K, with their biases, of every head above `tau` so that its largest logit becomes `tau`.

    It only shrinks, and only heads above the bound: the others keep every bit. With γ = τ/largest, q and k get √γ each.
    A key head shared by several query heads gets √ of the largest γ among them (1, so no change, if one of them is
    healthy), and each of its query heads gets the rest of its own γ. Clipping a layer changes the input of later
    layers: measure again until nothing is clipped, or clip after every optimizer step, as Kimi K2 did. Where the
    weights of q and k cannot be found or scaled, the logits get a temperature of largest/τ instead.

    Args:
        model: changed in place.
        largest: for each site the largest |scale·q·k| of each head, as `largest_logits` measures it, with NaN for a
            head that was not measured; or, per site, a dictionary of only the heads to clip.
        tau: the bound.
        layout: where modules that are not known by name keep W_Q and W_K, as `remedies.layouts` finds it.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> _ = torch.manual_seed(0)
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
    tops = {site: _by_head(given) for site, given in largest.items()}
    above = {site: {h: top for h, top in some.items() if top > tau} for site, some in tops.items()}
    above = {site: some for site, some in above.items() if some}
    for site, some in above.items():
        for head, top in some.items():
            if not math.isfinite(top):
                raise ValueError(
                    f"largest must be finite, but head {head} of {site} has {top}; its weights or inputs are broken, "
                    f"go back to a checkpoint before that"
                )
    found: dict[str, weights.Projections] = {}
    for site in above:
        module = module_of(model, site)
        with contextlib.suppress(NotSupportedError):  # these get a temperature
            found[site] = weights.projections(model, module, site, layout)
    for site, projections in found.items():
        if not isinstance(largest[site], Mapping) and projections.heads != len(largest[site]):
            raise ValueError(
                f"largest must have one number for each head, but {site} has {projections.heads} heads and "
                f"got {len(largest[site])}; take them from largest_logits"
            )
    used = {site: layout[site] for site in found if layout is not None and site in layout}
    done = Applied("qk-clip")
    done.absorb(
        temperature(model, {s: {h: x / tau for h, x in some.items()} for s, some in above.items() if s not in found})
    )
    done.code = call("remedies.qk_clip", above, tau=tau, layout=used)
    for site, projections in found.items():
        for group in range(len(projections.k)):
            members = range(group * projections.group, (group + 1) * projections.group)
            _clip(done, site, projections, group, {h: above[site].get(h, 0.0) for h in members}, tau)
    return done


def _by_head(tops: Sequence[float] | Mapping[int, float]) -> dict[int, float]:
    return dict(tops) if isinstance(tops, Mapping) else dict(enumerate(tops))


def _clip(
    done: Applied, site: str, projections: weights.Projections, group: int, tops: dict[int, float], tau: float
) -> None:
    bound = tau * (1.0 - MARGIN * torch.finfo(projections.q[0].weight.dtype).eps)
    factors = {head: bound / top if top > tau else 1.0 for head, top in tops.items()}
    if all(factor == 1.0 for factor in factors.values()):
        return
    shared = math.sqrt(max(factors.values()))
    held = weights.scale(projections.k[group], shared) if shared < 1.0 else ()
    for head, factor in factors.items():
        if factor < 1.0:
            held += weights.scale(projections.q[head], factor / shared)
            which = "W_Q" if shared == 1.0 else "W_Q and W_K"
            figures = f"{tops[head]:.4g}", f"{tau:.4g}"
            what = Text(
                zh=f"{which.replace(' and ', '、')} 缩小：{figures[0]} 到 {figures[1]}",
                en=f"{which} shrunk: {figures[0]} to {figures[1]}",
            )
            done.changes.append(Change(site, (head,), what, projections.place))
    done.on_undo(lambda: weights.put_back(held))
