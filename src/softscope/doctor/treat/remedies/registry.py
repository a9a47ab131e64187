"""Changes how Hugging Face models compute weights, through their registry of attention functions.

The model keeps its own modules, weights and state dicts. A remedy's learned values are extra parameters beside them,
named softscope_….
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope
from softscope.doctor.treat.remedies import weights
from softscope.doctor.treat.remedies.applied import Applied, unsupported
from softscope.nn import composite, lengths, masks
from softscope.nn.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "softscope_remedy"  # the name in the registry, and the attribute that holds a module's options


def reaches(module: nn.Module) -> bool:
    """Whether this module looks up its attention in Hugging Face's registry."""
    home = sys.modules.get(type(module).__module__)
    return "transformers.modeling_utils" in sys.modules and hasattr(home, "ALL_ATTENTION_FUNCTIONS")


def prepared(
    done: Applied, model: nn.Module, module: nn.Module, site: str, wanted: dict[str, Any]
) -> Callable[[], None]:
    """The function that makes the change to this module of the model."""
    owner = _owner(model)
    if owner is None:
        raise unsupported(
            site, "the model around it has no set_attn_implementation", "pass the Hugging Face model itself"
        )
    heads, _ = weights.sizes(module, site)
    before: Options | None = getattr(module, NAME, None)
    options = dataclasses.replace(before or Options(), **wanted)
    implementation = owner.config._attn_implementation
    if implementation not in ("sdpa", NAME):
        raise unsupported(
            site,
            f"the model computes attention with {implementation}",
            'call model.set_attn_implementation("sdpa") first',
        )

    def work() -> None:
        if owner.config._attn_implementation != NAME:
            _register()
            owner.set_attn_implementation(NAME)
            done.on_undo(lambda: owner.set_attn_implementation("sdpa"))
        setattr(module, NAME, options)
        done.on_undo(lambda: delattr(module, NAME) if before is None else setattr(module, NAME, before))
        learned = {
            "sink": (options.sink, 0.0),
            "length_gain": (options.scalable is not None, 1.0),
            "log_temperature": (options.temperature, 0.0),
        }
        for name, (asked, start) in learned.items():
            if asked and f"softscope_{name}" not in module._parameters:
                device = next(module.parameters())
                parameter = nn.Parameter(torch.full((heads,), start, dtype=device.dtype, device=device.device))
                module.register_parameter(f"softscope_{name}", parameter)
                done.parameters.append(parameter)
                done.on_undo(functools.partial(delattr, module, f"softscope_{name}"))

    return work


def _owner(model: nn.Module) -> Any:
    """The model that chooses the implementation: this one, or the one inside a wrapper."""
    return next((part for part in model.modules() if hasattr(part, "set_attn_implementation")), None)


def _register() -> None:
    utils, masking = (importlib.import_module(f"transformers.{name}") for name in ("modeling_utils", "masking_utils"))
    utils.AttentionInterface.register(NAME, attend)
    # A new name needs its own mask function; without one it would get no mask, and causality would be lost.
    masking.AttentionMaskInterface.register(NAME, masking.ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None,
    dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None,
    position_bias: Tensor | None = None, **named: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Hugging Face's attention-function signature; a module without a remedy gets the result of `sdpa`."""
    options: Options | None = getattr(module, NAME, None)
    if options is None:
        sdpa = importlib.import_module("transformers.integrations.sdpa_attention").sdpa_attention_forward
        output: tuple[Tensor, None] = sdpa(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal,
            position_bias=position_bias, **named,
        )  # fmt: skip
        return output
    n, m = query.shape[2], key.shape[2]
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(causal) and n > 1 and attention_mask is None
    mask = attention_mask
    if position_bias is not None:
        shown = torch.ones((), dtype=torch.bool, device=query.device) if mask is None else masks.shown(mask)
        bias = position_bias if mask is None or mask.dtype == torch.bool else position_bias + mask
        mask = bias[..., :m].masked_fill(~shown, float("-inf"))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    q, k = _normalised(query, options), _normalised(key, options)
    logarithm = getattr(module, "softscope_log_temperature", None)
    if logarithm is not None:
        q = q * torch.exp(-logarithm).to(q.dtype)[:, None, None]
    gain = getattr(module, "softscope_length_gain", None)
    if gain is not None and options.scalable is not None:
        counts = lengths.seen_keys(mask, causal=causal, n=n, m=m, device=q.device)
        q = lengths.by_length(q, gain, options.scalable, counts)
    sink = named.get("s_aux") if not options.sink else getattr(module, "softscope_sink", None)
    arguments: dict[str, Any] = {
        "scale": scale if options.scale is None else options.scale,
        "causal": causal,
        "mask": mask,
        "softcap": options.softcap or named.get("softcap"),
        "sink": sink,
        "alpha": options.alpha,
    }
    if dropout:
        group = q.shape[1] // k.shape[1]
        k, value = (x.repeat_interleave(group, dim=1) for x in (k, value))
        mixed = composite.attend(q, k, value, dropout=dropout, **arguments)[0]
    else:
        mixed = softscope.attention(q, k, value, **arguments)
    return mixed.transpose(1, 2).contiguous(), None


def _normalised(x: Tensor, options: Options) -> Tensor:
    """Normalise without learned gains: after rotary positions, gains would make logits depend on more than distance."""
    if options.qk_norm == "rms":
        return functional.rms_norm(x, x.shape[-1:])
    return functional.normalize(x, dim=-1) if options.qk_norm == "unit" else x
