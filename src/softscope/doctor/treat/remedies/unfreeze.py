"""Lets the projections of q, k and v train again."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.listen.projections import projections
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies.applied import Applied, Change, unsupported
from softscope.doctor.treat.remedies.places import module_of, named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

_WHAT = Text(zh="W_Q、W_K、W_V 可以训练", en="W_Q, W_K and W_V can train")


def unfreeze(model: nn.Module, sites: Iterable[str] | str) -> Applied:
    """Set `requires_grad` of what makes q, k and v at these sites; `parameters` are those an optimizer must know.

    Args:
        model: changed in place.
        sites: names as in `scope.sites`.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> model = torch.nn.MultiheadAttention(8, 2)
    >>> _ = model.in_proj_weight.requires_grad_(False)
    >>> done = remedies.unfreeze(model, "MultiheadAttention")
    >>> model.in_proj_weight.requires_grad, len(done.parameters)         # the weight and its bias
    (True, 2)
    >>> done.undo()
    >>> model.in_proj_weight.requires_grad
    False
    """
    wanted = named(sites) or []
    found = {site: _parameters(module_of(model, site), site) for site in wanted}
    done = Applied("unfreeze", code=call("remedies.unfreeze", wanted))
    for site, parameters in found.items():
        for p in parameters:
            done.on_undo(functools.partial(_put_back, p, p.requires_grad))
            p.requires_grad_(True)
        done.parameters += parameters
        done.changes.append(Change(site, (), _WHAT, "weights"))
    return done


def _parameters(module: nn.Module, site: str) -> list[nn.Parameter]:
    """The weights and what stands beside them, such as their biases."""
    weights = {id(part.parameter) for parts in projections(module).values() for part in parts}
    if not weights:
        raise unsupported(site, "its weights of q, k and v are not known by name", "set requires_grad yourself")
    own = [[p for p in one._parameters.values() if p is not None] for one in module.modules()]
    return [p for some in own if any(id(p) in weights for p in some) for p in some]


def _put_back(parameter: nn.Parameter, needed: bool) -> None:
    parameter.requires_grad_(needed)
