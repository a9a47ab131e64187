"""A temperature for single heads, put into the weights of q: exact, and no other head is touched."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from softscope._arguments import positive
from softscope.doctor.remedies import weights
from softscope.doctor.remedies.applied import Applied, Change
from softscope.doctor.remedies.places import module_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn


def temperature(model: nn.Module, heads: Mapping[str, Mapping[int, float]]) -> Applied:
    """Divide the logits of these heads by a temperature: W_Q and b_Q of the head become W_Q/T and b_Q/T.

    Masks, position biases, soft caps and sinks stay as they are. The weights go on training from there.

    Args:
        model: changed in place.
        heads: for each site, as `scope.sites` names them, the temperature of each head: > 0, above 1 flattens.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> model = torch.nn.Sequential(torch.nn.TransformerEncoderLayer(8, 2))
    >>> done = remedies.temperature(model, {"0.self_attn": {1: 4.0}})
    >>> [(change.site, change.heads) for change in done.changes]
    [('0.self_attn', (1,))]
    >>> done.undo()
    """
    found = {site: weights.projections(module_of(model, site), site) for site in heads}
    for site, wanted in heads.items():
        for head, value in wanted.items():
            positive(value, "temperature", "1.0 changes nothing, larger flattens the weights")
            if not 0 <= head < found[site].heads:
                raise ValueError(
                    f"head must be one of 0 … {found[site].heads - 1} at {site}, but {head} came; scope.sites says "
                    f"how many there are"
                )
    done = Applied("temperature")
    for site, wanted in heads.items():
        for head, value in wanted.items():
            held = weights.scale(found[site].q, head, 1.0 / value)
            done.on_undo(functools.partial(weights.put_back, held))
            done.changes.append(Change(site, (head,), f"temperature {value:.4g}, in W_Q"))
    return done
