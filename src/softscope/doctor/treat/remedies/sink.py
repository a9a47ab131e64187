"""A sink: one learned logit per head that takes weight and contributes nothing, so a head can rest without a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies.options import change
from softscope.doctor.treat.remedies.places import named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

    from softscope.doctor.treat.remedies.applied import Applied


def sink(model: nn.Module, sites: Iterable[str] | None = None) -> Applied:
    """Give every head at these sites a sink that starts at 0, "softmax off by one".

    The new parameters are in `.parameters`; add them to an optimizer created earlier.

    Args:
        model: changed in place.
        sites: names as in `scope.sites`; None for all known sites.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> [tuple(p.shape) for p in remedies.sink(torch.nn.MultiheadAttention(8, 2)).parameters]
    [(2,)]
    """
    sites = named(sites)
    return change(
        "sink", model, sites, Text(zh="一个 sink，从 0 开始", en="a sink, from 0"), {"sink": True},
        code=call("remedies.sink", sites),
    )  # fmt: skip
