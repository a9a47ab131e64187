"""A soft cap: c·tanh(logit/c) keeps logits within ±c."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._arguments.checks import positive
from softscope._text import Text
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies.options import change
from softscope.doctor.treat.remedies.places import named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

    from softscope.doctor.treat.remedies.applied import Applied


def softcap(model: nn.Module, sites: Iterable[str] | None = None, *, cap: float = 30.0) -> Applied:
    """Cap the logits of every head at these sites; logits far beyond the cap lose their gradient.

    Args:
        model: changed in place.
        sites: names as in `scope.sites`; None for all known sites.
        cap: > 0.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> remedies.softcap(torch.nn.MultiheadAttention(8, 2)).changes[0].what.en
    'soft cap 30'
    """
    cap = positive(cap, "cap", "30 and 50 are in use")
    sites = named(sites)
    return change(
        "softcap", model, sites, Text(zh=f"软上限 {cap:g}", en=f"soft cap {cap:g}"), {"softcap": cap},
        code=call("remedies.softcap", sites, cap=cap),
    )  # fmt: skip
