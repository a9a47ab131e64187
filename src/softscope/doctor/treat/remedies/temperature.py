"""A temperature for single heads: applied to their logits, or folded into the weights of q."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Literal

import torch

from softscope._arguments.checks import positive
from softscope.doctor.treat.remedies import weights
from softscope.doctor.treat.remedies.applied import Applied, Change
from softscope.doctor.treat.remedies.options import change
from softscope.doctor.treat.remedies.places import module_of
from softscope.doctor.treat.remedies.registry import reaches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

WAYS = ("logits", "weights")


def temperature(
    model: nn.Module, heads: Mapping[str, Mapping[int, float]], *, way: Literal["logits", "weights"] = "logits"
) -> Applied:
    """Divide the logits scale·q·k of these heads by a temperature; masks, position biases and sinks stay as they are.

    Args:
        model: changed in place.
        heads: the temperature of each head, per site named as in `scope.sites`: > 0; above 1 flattens.
        way: "logits": a fixed factor per head where weights are computed; training does not change it. "weights":
            divides W_Q and b_Q of the head. That changes no code and no other head, but training may undo it: Adam
            moves small weights as far as large ones, and a starving model fell back within 60 steps (`softscope
            experiment remedies`).

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> model = torch.nn.Sequential(torch.nn.TransformerEncoderLayer(8, 2))
    >>> done = remedies.temperature(model, {"0.self_attn": {1: 4.0}}, way="weights")
    >>> [(change.site, change.heads) for change in done.changes]
    [('0.self_attn', (1,))]
    >>> done.undo()
    """
    if way not in WAYS:
        raise ValueError(f'way must be "logits" or "weights", but got {way!r}; "logits" suits training')
    for site, wanted in heads.items():
        there, _ = weights.sizes(module_of(model, site), site)
        for head, value in wanted.items():
            positive(value, "temperature", "1.0 changes nothing, larger flattens the weights")
            if not 0 <= head < there:
                raise ValueError(
                    f"head must be one of 0 … {there - 1} at {site}, but got {head}; scope.sites says how many there "
                    f"are"
                )
    return _in_weights(model, heads) if way == "weights" else _on_logits(model, heads)


def _in_weights(model: nn.Module, heads: Mapping[str, Mapping[int, float]]) -> Applied:
    found = {site: weights.projections(module_of(model, site), site) for site in heads}
    done = Applied("temperature")
    for site, wanted in heads.items():
        for head, value in wanted.items():
            held = weights.scale(found[site].q, head, 1.0 / value)
            done.on_undo(functools.partial(weights.put_back, held))
            done.changes.append(Change(site, (head,), f"temperature {value:.4g}, in W_Q"))
    return done


def _on_logits(model: nn.Module, heads: Mapping[str, Mapping[int, float]]) -> Applied:
    done = change("temperature", model, heads, "", {"temperature": True})
    done.changes.clear()
    for parameter in done.parameters:
        parameter.requires_grad_(False)  # the temperature is given, not learned
    for site, wanted in heads.items():
        module: Any = module_of(model, site)
        logarithm: Tensor = getattr(module, "softscope_log_temperature" if reaches(module) else "log_temperature")
        before = logarithm.detach().clone()
        done.on_undo(functools.partial(_put_back, logarithm, before))
        with torch.no_grad():
            for head, value in wanted.items():
                logarithm[head] += math.log(value)
                done.changes.append(Change(site, (head,), f"temperature {value:.4g}"))
    done.parameters.clear()
    return done


def _put_back(parameter: Tensor, before: Tensor) -> None:
    with torch.no_grad():
        parameter.copy_(before)
