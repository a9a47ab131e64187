"""The partition's state for tensors, with correct derivatives of all orders."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softscope._backends.reference.partition import State
from softscope._backends.torch.dtypes import widest
from softscope._backends.torch.tensor_softmax import distances, hidden_to_minus_inf, maximum


def state(x: Tensor, temperature: Any, visible: Tensor | None) -> tuple[State, Tensor]:
    """Compute each row's state and its largest logit, without the axis; `reference.partition` has the definition.

    The maximum is a constant here, so the entries at the maximum must carry their own derivative. c is Σ e^d over
    these entries. u and t run over all entries (those at the maximum add 0). w includes e^2d − e^d for the entries
    at the maximum: it is 0, but makes c + w the true Σ e^2d under differentiation.
    """
    x = hidden_to_minus_inf(x.to(widest(x)), visible)
    d = distances(x, temperature)
    below = d < 0.0  # False for NaN, so that NaN reaches c and thus every reading
    e = torch.exp(d)
    # Where exp underflows to 0, d may be −inf. 0·(−inf) is NaN, so clear d before multiplying.
    d = d.masked_fill(e == 0.0, 0.0)
    at_top = e.masked_fill(below, 0.0)
    result = State(
        n=(x != -math.inf).sum(dim=-1),
        c=at_top.sum(dim=-1),
        m=maximum(x).squeeze(-1),
        r=e.masked_fill(~below, 0.0).sum(dim=-1),
        u=(e * d).sum(dim=-1),
        t=(e * d * d).sum(dim=-1),
        w=(e * e - at_top).sum(dim=-1),
    )
    return result, x.amax(dim=-1) if x.shape[-1] else result.m
