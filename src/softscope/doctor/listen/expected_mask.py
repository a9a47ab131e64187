"""What a model's class says of the mask of a site: that tokens see the past only, or that all see all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from torch import nn

from softscope.doctor.listen.batch_inputs import reads_another

Expected = Literal["causal", "all", ""]
# Endings of Hugging Face's class names. A classifier may stand on either kind, so it says nothing; nor do the language
# models of XLNet and XLM, which see what their arguments say.
_CAUSAL = ("ForCausalLM", "GPT2LMHeadModel", "GPTLMHeadModel", "CTRLLMHeadModel", "GPT2DoubleHeadsModel")
_ALL = ("ForMaskedLM", "ForPreTraining")


def expected_mask(model: nn.Module, path: str, module: Any, n: int, m: int, declared: bool) -> Expected:
    """What the site is meant to see; "" if nothing says it, or if its keys are another sequence's.

    Args:
        model: the whole model.
        path: the site's path.
        module: the site's module.
        n: number of queries.
        m: number of keys.
        declared: the call itself says that it is causal.
    """
    if n != m or reads_another(path):
        return ""
    if declared:
        return "causal"
    for owner in _owners(model, path):
        config, kind = getattr(owner, "config", None), type(owner).__name__
        if getattr(config, "is_encoder_decoder", False):
            return "causal" if "decoder" in path else "all" if "encoder" in path else ""
        if kind.endswith(_CAUSAL):
            return "causal"
        if kind.endswith(_ALL) and not getattr(config, "is_decoder", False):
            return "all"
    return _of_torch(model, path, module)


def _owners(model: nn.Module, path: str) -> Iterator[nn.Module]:
    """The model and the modules on the way to the site: a model of transformers may be inside the user's own."""
    here: Any = model
    yield here
    for part in path.partition("#")[0].split("."):
        here = getattr(getattr(here, "_orig_mod", here), part, None)
        if not isinstance(here, nn.Module):
            return
        yield here


def _of_torch(model: nn.Module, path: str, module: Any) -> Expected:
    """PyTorch's decoder layers are causal where they read themselves; an encoder layer may be either."""
    owner, _, name = path.rpartition(".")
    if name == "self_attn" and isinstance(module, nn.Module):
        try:
            return "causal" if isinstance(model.get_submodule(owner), nn.TransformerDecoderLayer) else ""
        except AttributeError:
            return ""
    return ""
