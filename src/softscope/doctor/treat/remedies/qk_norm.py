"""QK-norm: q and k are normalised before they meet, so that their logits cannot grow with their lengths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from softscope._arguments.checks import positive
from softscope.doctor.treat.remedies import weights
from softscope.doctor.treat.remedies.options import change
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
    """Normalise q and k of every head at these sites; the model has to be trained on from there.

    Args:
        model: changed in place.
        sites: as `scope.sites` names them; None for all that are known.
        kind: "unit": logits are sharpness·cosine. "rms": to mean square 1, with the scale that the model has; with
            1/√d that is √d·cosine, without a scale d·cosine. It learns gains per component, but not in Hugging Face
            models, where positions have been rotated in by then.
        sharpness: for "unit": the largest logit; √d if not given.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> remedies.qk_norm(torch.nn.MultiheadAttention(8, 2)).changes[0].what
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

    return change(f"qk-norm-{kind}", model, sites, f"QK-norm, {kind}", options)
