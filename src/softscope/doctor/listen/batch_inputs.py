"""What the model's arguments say about its tokens: which are padding, and which are the same."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

# Arguments that say which tokens are real (1 or True), and those that say which are padding.
_SHOWN = ("attention_mask", "encoder_attention_mask")
_PADDED = ("src_key_padding_mask", "key_padding_mask")
_DECODER = "decoder_attention_mask"
_NO_TOKENS = ("mask", "label", "target", "position", "type", "length")


def reads_another(site: str) -> bool:
    """Whether the site's name says that its keys come from another sequence."""
    return any(word in site for word in ("cross", "encoder_attn", "EncDec", "multihead_attn"))


class BatchInputs(NamedTuple):
    """What one call of the model was given; None for what it was not given, or what says nothing.

    Attributes:
        tokens: The ids of the tokens, (B, n).
        shown: Which tokens are real, (B, m).
        decoder: The same of the decoder's tokens.
        two: There are two sequences, the encoder's and the decoder's.
    """

    tokens: Tensor | None = None
    shown: Tensor | None = None
    decoder: Tensor | None = None
    two: bool = False

    def shown_to(self, site: str, n: int, m: int) -> Tensor | None:
        """Which of a site's keys are real tokens, (B, m); None if that is unknown."""
        inside = self.two and "decoder" in site and n == m and not reads_another(site)
        shown = self.decoder if inside else self.shown
        return shown if shown is not None and shown.shape[1] == m else None


def of_call(module: nn.Module, args: tuple[Any, ...], named: Mapping[str, Any]) -> BatchInputs:
    """Look at the arguments by name.

    >>> tokens = torch.tensor([[5, 6, 0]])
    >>> of_call(nn.Embedding(9, 2), (tokens,), {"attention_mask": torch.tensor([[1, 1, 0]])}).shown
    tensor([[ True,  True, False]])
    """
    given = _by_name(module, args, named)
    shown = next((_real(given[x]) for x in _SHOWN if x in given), None)
    for name in _PADDED:
        hidden = given.get(name)
        if shown is None and isinstance(hidden, Tensor) and hidden.dtype == torch.bool and hidden.ndim == 2:
            shown = ~hidden
    integers = (
        value for name, value in given.items()
        if isinstance(value, Tensor) and value.ndim == 2 and value.dtype in (torch.int64, torch.int32)
        and not any(word in name for word in _NO_TOKENS)
    )  # fmt: skip
    two = any(name.startswith("decoder_") and value is not None for name, value in given.items())
    two = two or bool(getattr(getattr(module, "config", None), "is_encoder_decoder", False))
    return BatchInputs(next(integers, None), shown, _real(given.get(_DECODER)), two)


def _by_name(module: nn.Module, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    names = [x for x in inspect.signature(module.forward).parameters if x not in ("args", "kwargs")]
    return dict(zip(names, args, strict=False)) | dict(named)


def _real(mask: Any) -> Tensor | None:
    """A mask of zeros and ones, one for each token."""
    if not isinstance(mask, Tensor) or mask.ndim != 2 or not mask.numel():
        return None
    if mask.dtype != torch.bool and not bool(((mask == 0) | (mask == 1)).all()):
        return None
    return mask.detach() != 0
