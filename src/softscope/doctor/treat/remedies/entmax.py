"""α-entmax instead of softmax: weights can be exactly 0, and gradient flows among those that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._arguments.checks import alpha_number
from softscope._text import same
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies.options import change
from softscope.doctor.treat.remedies.places import named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

    from softscope.doctor.treat.remedies.applied import Applied


def entmax(model: nn.Module, sites: Iterable[str] | None = None, *, alpha: float = 1.5) -> Applied:
    """Use entmax for the weights of every head at these sites.

    Args:
        model: changed in place.
        sites: names as in `scope.sites`; None for all known sites.
        alpha: 1 is softmax, 2 is sparsemax, any other finite number above 1 is entmax.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> remedies.entmax(torch.nn.MultiheadAttention(8, 2)).changes[0].what.en
    'entmax 1.5'
    """
    alpha = alpha_number(alpha)
    sites = named(sites)
    return change(
        "entmax", model, sites, same(f"entmax {alpha:g}"), {"alpha": alpha},
        code=call("remedies.entmax", sites, alpha=alpha),
    )  # fmt: skip
