"""QK-norm: normalises q and k before their product, so that logits cannot grow with their norms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from softscope._arguments.checks import positive
from softscope._text import Text
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies import weights
from softscope.doctor.treat.remedies.options import change
from softscope.doctor.treat.remedies.places import named
from softscope.nn.options import check_qk_norm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

    from softscope.doctor.treat.remedies.applied import Applied


def qk_norm(
    model: nn.Module,
    sites: Iterable[str] | None = None,
    *,
    kind: Literal["unit", "rms"] = "unit",
    sharpness: float | None = None,
) -> Applied:
    """Normalise q and k of every head at these sites; the model needs further training afterwards.

    Args:
        model: changed in place.
        sites: names as in `scope.sites`; None for all known sites.
        kind: "unit": logits are sharpness·cosine. "rms": normalise to mean square 1 and keep the model's scale; with
            1/√d the logits are √d·cosine, without a scale d·cosine. "rms" learns gains per component, except in Hugging
            Face models, where rotary positions have already been applied at that point.
        sharpness: for "unit": the largest logit; √d by default.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> remedies.qk_norm(torch.nn.MultiheadAttention(8, 2)).changes[0].what.en
    'QK-norm, unit'
    """
    check_qk_norm(kind)
    if sharpness is not None:
        positive(sharpness, "sharpness", "√d suits a head of d components")

    def options(module: nn.Module, site: str) -> dict[str, Any]:
        if kind == "rms":
            return {"qk_norm": kind}
        _, size = weights.sizes(module, site)
        return {"qk_norm": kind, "scale": math.sqrt(size) if sharpness is None else float(sharpness)}

    sites = named(sites)
    return change(
        f"qk-norm-{kind}", model, sites, Text(zh=f"QK 归一化（{kind}）", en=f"QK-norm, {kind}"), options,
        code=call("remedies.qk_norm", sites, kind=kind, sharpness=sharpness),
    )  # fmt: skip
