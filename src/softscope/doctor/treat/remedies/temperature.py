"""A temperature for single heads: applied to their logits, or folded into the weights of q."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Literal

import torch

from softscope._arguments.checks import positive
from softscope._text import Text
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies import temperature_at_call, weights
from softscope.doctor.treat.remedies.applied import Applied, Change, NotSupportedError, Place
from softscope.doctor.treat.remedies.options import change, supported
from softscope.doctor.treat.remedies.places import module_of
from softscope.doctor.treat.remedies.registry import reaches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from softscope.doctor.treat.remedies.layout import Layout

WAYS = ("logits", "weights")
_WHERE: dict[Place, Text] = {
    "weights": Text(zh="温度 {:.4g}，写进 W_Q", en="temperature {:.4g}, in W_Q"),
    "adapter": Text(zh="温度 {:.4g}，写进 W_Q 和它的适配器", en="temperature {:.4g}, in W_Q and its adapters"),
    "options": Text(zh="温度 {:.4g}", en="temperature {:.4g}"),
    "call": Text(zh="温度 {:.4g}，在注意力调用处", en="temperature {:.4g}, at the attention call"),
}


def temperature(
    model: nn.Module,
    heads: Mapping[str, Mapping[int, float]],
    *,
    way: Literal["logits", "weights"] = "logits",
    layout: Mapping[str, Layout] | None = None,
) -> Applied:
    """Divide the logits scale·q·k of these heads by a temperature; masks, position biases and sinks stay as they are.

    A module that forms its weights in code of its own gets a hook that divides q where it calls attention; if it calls
    a plain softmax, position biases among its logits are divided, too.

    Args:
        model: changed in place.
        heads: the temperature of each head, per site named as in `scope.sites`: > 0; above 1 flattens.
        way: "logits": a fixed factor per head where weights are computed; training does not change it. "weights":
            divides W_Q and b_Q of the head. That changes no code and no other head and is saved with the weights, but
            training may undo it: Adam moves small weights as far as large ones, and a starving model fell back within
            60 steps (`softscope experiment remedies`). `fold()` moves the one into the other at the end of training.
        layout: for "weights": where modules that are not known by name keep W_Q, as `remedies.layouts` finds it.

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
        there = _count(model, site)
        for head, value in wanted.items():
            positive(value, "temperature", "1.0 changes nothing, larger flattens the weights")
            if not 0 <= head < there:
                raise ValueError(
                    f"head must be one of 0 … {there - 1} at {site}, but got {head}; scope.sites says how many there "
                    f"are"
                )
    plain = {site: dict(wanted) for site, wanted in heads.items()}
    return _in_weights(model, plain, layout) if way == "weights" else _on_logits(model, plain)


def _count(model: nn.Module, site: str) -> float:
    """Number of heads; infinity where only the call itself will tell."""
    try:
        return weights.sizes(module_of(model, site), site)[0]
    except NotSupportedError:
        if "#" in site:
            raise
        return math.inf


def _in_weights(
    model: nn.Module, heads: dict[str, dict[int, float]], layout: Mapping[str, Layout] | None, *, before: Any = None
) -> Applied:
    found = {site: weights.projections(model, module_of(model, site), site, layout) for site in heads}
    for site, wanted in heads.items():
        if not all(head < found[site].heads for head in wanted):
            raise ValueError(f"head must be one of 0 … {found[site].heads - 1} at {site}, but got {max(wanted)}")
    if before is not None:
        before()
    used = {site: layout[site] for site in heads if layout is not None and site in layout}
    done = Applied("temperature", code=call("remedies.temperature", heads, way="weights", layout=used))
    for site, wanted in heads.items():
        place = found[site].place
        for head, value in wanted.items():
            held = weights.scale(found[site].q[head], 1.0 / value)
            done.on_undo(functools.partial(weights.put_back, held))
            done.changes.append(Change(site, (head,), _WHERE[place].format(value), place))
    return done


def _on_logits(model: nn.Module, heads: dict[str, dict[int, float]]) -> Applied:
    optional = {site: wanted for site, wanted in heads.items() if supported(model, site, {"temperature": True})}
    done = Applied("temperature")
    if optional:
        done = change("temperature", model, list(optional), Text(zh="", en=""), {"temperature": True})
        done.changes.clear()
    done.code = call("remedies.temperature", heads)
    for parameter in done.parameters:
        parameter.requires_grad_(False)  # the temperature is given, not learned
    done.parameters.clear()
    for site, wanted in heads.items():
        module: Any = module_of(model, site)
        place: Place = "options" if site in optional else "call"
        if place == "options":
            logarithm: Tensor = getattr(module, "softscope_log_temperature" if reaches(module) else "log_temperature")
            before = logarithm.detach().clone()
            done.on_undo(functools.partial(_put_back, logarithm, before))
            with torch.no_grad():
                for head, value in wanted.items():
                    logarithm[head] += math.log(value)
        else:
            temperature_at_call.attach(done, module, wanted)
        done.changes += [Change(site, (head,), _WHERE[place].format(value), place) for head, value in wanted.items()]
    done.on_fold(lambda layout: _in_weights(model, heads, layout, before=done.undo))
    return done


def _put_back(parameter: Tensor, before: Tensor) -> None:
    with torch.no_grad():
        parameter.copy_(before)
