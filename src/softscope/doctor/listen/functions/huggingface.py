"""Hugging Face's attention functions: the entries of its registry, and the eager function of each model file.

We wrap the existing entries in place: a new name would get no mask function, and causality would be lost. `sdpa` and
`eager` call functions that we observe anyway; here we add what those calls do not show. The flash and flex kernels do
not call such functions, so their calls are reported from here.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from softscope._arguments.attention import Options
from softscope.doctor.listen import reasons
from softscope.doctor.listen.follow.scales import before_scaling
from softscope.doctor.listen.functions import flex
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, dtype_of, positions
from softscope.doctor.listen.patches import Patch
from softscope.doctor.listen.wrappers import surrounding

EAGER = "eager_attention_forward"


def patches(homes: list[ModuleType]) -> list[Patch]:
    """Patches for the registry's entries, including overrides in model files, and for the files' eager functions."""
    if "transformers.modeling_utils" not in sys.modules:
        return []
    registry = getattr(sys.modules["transformers.modeling_utils"], "AttentionInterface", None)
    mappings = [getattr(registry, "_global_mapping", None)]
    for home in homes:
        mappings += [getattr(value, "_local_mapping", None) for value in vars(home).values() if _is(value, registry)]
    found = [
        Patch(mapping, name, surrounding(_know, _kernel, lift="flex" in name))
        for mapping in {id(m): m for m in mappings if isinstance(m, dict)}.values()
        for name in mapping
    ]
    return found + [Patch(home, EAGER, surrounding(_know)) for home in homes if callable(vars(home).get(EAGER))]


def _is(value: Any, registry: Any) -> bool:
    return registry is not None and isinstance(value, registry)


def _know(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, *rest: Any, **named: Any
) -> dict[str, Any]:
    """What the inner call does not show: key heads before they are repeated and, for `eager`, q and k themselves."""
    del attention_mask, rest
    causal = named.get("is_causal")
    scale = named.get("scaling")
    given = float(query.shape[-1] ** -0.5 if scale is None else scale)
    q, k, given = before_scaling(query.detach(), key.detach(), given, query, key)
    return {
        "kind": "huggingface",
        "causal": bool(getattr(module, "is_causal", False) if causal is None else causal),
        "heads": query.shape[1],
        "kv_heads": key.shape[1],
        "q": q,
        "k": k,
        "v": value.detach(),
        "scale": given,
        "dropout": float(named.get("dropout") or 0.0),
    }


def _kernel(
    result: tuple[Tensor, Any], module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
    attention_mask: Any = None, dropout: float = 0.0, scaling: float | None = None, sliding_window: int | None = None,
    softcap: float | None = None, is_causal: bool | None = None, s_aux: Tensor | None = None,
    position_bias: Tensor | None = None, **_: Any,
) -> ObservedCall:  # fmt: skip
    """Describe a call of a self-contained kernel: flash or flex."""
    shape = (*query.shape[:3], key.shape[2])
    if type(attention_mask).__name__ == "BlockMask":
        attention_mask = flex.mask_of(attention_mask, shape, query.device)
        is_causal = False  # the mask already encodes it
    if attention_mask is not None and not isinstance(attention_mask, Tensor):
        raise UnseenError(reasons.MASK, type(attention_mask).__name__)
    if position_bias is not None:
        raise UnseenError(reasons.BIAS)
    mask = attention_mask
    if mask is not None and mask.ndim == 2:  # (batch, m), 1 marks a token
        mask = mask.bool()[:, None, None, -key.shape[2] :]
    n, m = query.shape[2], key.shape[2]
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal) and n > 1
    if attention_mask is not None and attention_mask.ndim == 4:
        causal = False  # the mask already encodes it

    def gradient(grad: Tensor) -> Tensor:
        return grad.transpose(1, 2)  # outputs are (batch, n, heads, dv)

    given = float(query.shape[-1] ** -0.5 if scaling is None else scaling)
    q, k, given = before_scaling(query.detach(), key.detach(), given, query, key)
    options = Options(
        scale=given,
        positions=positions(n, m - n, query),
        left=None if sliding_window is None else sliding_window - 1,
        right=0 if causal else None,
        mask=mask,
        softcap=softcap,
        sink=None if s_aux is None else s_aux.detach()[:, None],
    )
    return ObservedCall(
        kind="huggingface", result=result[0], gradient=gradient, heads=query.shape[1], n=n, m=m, q=q,
        k=k, v=value.detach(), options=options, start=m - n, kv_heads=key.shape[1], dropout=float(dropout),
        causal=causal, dtype=dtype_of(query),
    )  # fmt: skip
