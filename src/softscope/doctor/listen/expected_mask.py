"""What a model's class says of the mask of a site: that tokens see the past only, or that all see all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from torch import nn

from softscope.doctor.listen.config_of import setting
from softscope.doctor.listen.site_names import reads_another

Expected = Literal["causal", "all", ""]
# Endings of Hugging Face's class names. A classifier may stand on either kind, so it says nothing; nor do the language
# models of XLNet and XLM, which see what their arguments say.
_CAUSAL = ("ForCausalLM", "GPT2LMHeadModel", "GPTLMHeadModel", "CTRLLMHeadModel", "GPT2DoubleHeadsModel")
_ALL = ("ForMaskedLM", "ForPreTraining")
_BOTH = ("ForConditionalGeneration", "MTModel")
_PREFIX = ("git",)  # images come first and see each other


def expected_mask(model: nn.Module, path: str, n: int, m: int, *, declared: bool, own: bool) -> Expected:
    """What the site is meant to see; "" if nothing says it, or if its keys are another sequence's.

    Args:
        model: the whole model.
        path: the site's path.
        n: number of queries.
        m: number of keys.
        declared: the call itself says that it is causal.
        own: the user gave a mask of their own for each query.
    """
    if n != m or own or reads_another(path):
        return ""
    inside = ""  # the kind of the innermost model that the site belongs to
    for owner, below in reversed(list(_owners(model, path))):
        config, kind = getattr(owner, "config", None), type(owner).__name__
        family = str(setting(config, "model_type", ""))
        if family in _PREFIX or (inside and family and family != inside):
            return ""  # a vision tower in a language model
        inside = inside or family
        if setting(config, "is_encoder_decoder", False) and kind.endswith(_BOTH):
            return "causal" if "decoder" in below else "all" if "encoder" in below else ""
        if kind.endswith(_CAUSAL):
            return "causal"
        if kind.endswith(_ALL) and not setting(config, "is_decoder", False):
            return "all"
    return "causal" if declared else ""


def _owners(model: nn.Module, path: str) -> Iterator[tuple[nn.Module, list[str]]]:
    """The model and the modules on the way to the site, each with the rest of the way.

    A model of transformers may be inside the user's own.
    """
    here: Any = model
    parts = path.partition("#")[0].split(".")
    yield here, parts
    for i, part in enumerate(parts):
        here = getattr(getattr(here, "_orig_mod", here), part, None)
        if not isinstance(here, nn.Module):
            return
        yield here, parts[i + 1 :]
