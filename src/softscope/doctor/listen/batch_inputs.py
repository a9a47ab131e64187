"""What the model's arguments say about its tokens: which are padding, and which are the same."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from softscope.doctor.listen.config_of import setting
from softscope.doctor.listen.site_names import reads_another

# Arguments that say which tokens of a sequence are padding, in PyTorch's own modules.
_PADDED = {"shown": ("src_key_padding_mask", "key_padding_mask"), "decoder": ("tgt_key_padding_mask",),
           "cross": ("memory_key_padding_mask",)}  # fmt: skip
# Those that say which are real, in Hugging Face's models and many others.
_REAL = {"shown": "attention_mask", "decoder": "decoder_attention_mask", "cross": "encoder_attention_mask"}
_NO_TOKENS = ("mask", "label", "target", "position", "type", "length")


class BatchInputs(NamedTuple):
    """What one call of the model was given; None for what it was not given, or what says nothing.

    Attributes:
        tokens: The ids of the tokens, (B, n); None if positions were given, too, since those may repeat.
        shown: Which tokens are real, (B, m).
        decoder: The same of the decoder's tokens, where there are two sequences.
        cross: The same of the keys that another sequence reads.
        two: There are two sequences, the encoder's and the decoder's.
        sure: It is known that a mask means this, and not the opposite.
        own_mask: A mask of three axes or more was given, so what is seen is what the user wants.
    """

    tokens: Tensor | None = None
    shown: Tensor | None = None
    decoder: Tensor | None = None
    cross: Tensor | None = None
    two: bool = False
    sure: bool = False
    own_mask: bool = False

    def shown_to(self, site: str, m: int) -> Tensor | None:
        """Which of a site's keys are real tokens, (B, m); None if that is unknown."""
        shown = self.decoder if self.two and "decoder" in site else self.shown
        if reads_another(site):
            shown = self.shown if self.two and self.cross is None else self.cross
        return shown if shown is not None and shown.shape[1] == m else None


def of_call(module: nn.Module, args: tuple[Any, ...], named: Mapping[str, Any]) -> BatchInputs:
    """Look at the arguments by name.

    >>> tokens = torch.tensor([[5, 6, 0]])
    >>> of_call(nn.Embedding(9, 2), (tokens,), {"attention_mask": torch.tensor([[1, 1, 0]])}).shown
    tensor([[ True,  True, False]])
    """
    given = _by_name(module, args, named)
    known = {role: _real(given.get(name)) for role, name in _REAL.items()}
    torchs = type(module).__module__.startswith("torch.nn.")
    for role, names in _PADDED.items():
        hidden = next((given[name] for name in names if name in given), None)
        if torchs and isinstance(hidden, Tensor) and hidden.dtype == torch.bool and hidden.ndim == 2:
            known[role] = _some_real(~hidden)
    integers = (
        value for name, value in given.items()
        if isinstance(value, Tensor) and value.ndim == 2 and value.dtype in (torch.int64, torch.int32)
        and not any(word in name for word in _NO_TOKENS)
    )  # fmt: skip
    two = any(name.startswith(("decoder_", "tgt")) and value is not None for name, value in given.items())
    two = two or bool(setting(getattr(module, "config", None), "is_encoder_decoder", False))
    return BatchInputs(
        None if given.get("position_ids") is not None else next(integers, None), known["shown"], known["decoder"],
        known["cross"], two, torchs or type(module).__module__.startswith("transformers."),
        any(isinstance(x, Tensor) and x.ndim > 2 for name, x in given.items() if "mask" in name),
    )  # fmt: skip


def _by_name(module: nn.Module, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    names = [x for x in inspect.signature(module.forward).parameters if x not in ("args", "kwargs")]
    return dict(zip(names, args, strict=False)) | dict(named)


def _real(mask: Any) -> Tensor | None:
    """A mask of zeros and ones, one for each token."""
    if not isinstance(mask, Tensor) or mask.ndim != 2 or not mask.numel():
        return None
    if mask.dtype != torch.bool and not bool(((mask == 0) | (mask == 1)).all()):
        return None
    return _some_real(mask.detach() != 0)


def _some_real(shown: Tensor) -> Tensor | None:
    """None if a sequence has no token at all: an additive mask of zeros hides nothing."""
    return shown if bool(shown.any(dim=1).all()) else None
