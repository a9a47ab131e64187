"""Argument checks of `softscope.tasks` beyond `softscope._arguments.checks`."""

import torch
from torch import Tensor

from softscope._arguments.seen import seen


def a_generator(value: object) -> torch.Generator:
    """Return the value if it is a torch generator."""
    if not isinstance(value, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator, but got {type(value).__name__}; "
            f"pass torch.Generator().manual_seed(0)"
        )
    return value


def tokens_below(tokens: Tensor, name: str, vocabulary: int) -> None:
    """Refuse tokens outside the vocabulary; the embedding alone would only say "index out of range in self"."""
    if seen(tokens) and bool(((tokens < 0) | (tokens >= vocabulary)).any()):
        raise ValueError(
            f"{name} must be tokens in [0, {vocabulary}), but they range from {int(tokens.min())} to "
            f"{int(tokens.max())}; build the model with the task's vocabulary (copying: plus 1, for the delimiter)"
        )
