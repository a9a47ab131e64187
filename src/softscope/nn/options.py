"""The options that softscope's multi-head attention adds to PyTorch's, validated in one place."""

from dataclasses import dataclass
from typing import Literal

from softscope._arguments.checks import alpha_number, flag, positive, short


def check_qk_norm(value: object) -> None:
    """Refuse an unknown normalisation of q and k."""
    if value not in (None, "rms", "unit"):
        raise ValueError(
            f'qk_norm must be None, "rms" or "unit", but got {short(value)}; '
            f'"rms" gives q and k mean square 1, "unit" norm 1'
        )


def check_scalable(value: object) -> None:
    """Refuse a value that is not a row length above 1."""
    if value is not None and positive(value, "scalable", "pass the length of the rows in training") <= 1:
        raise ValueError(
            f"scalable must be above 1, but got {short(value)}; pass how many keys a row sees in training (log n "
            f"is divided by its logarithm), or None to turn it off"
        )


@dataclass(frozen=True)
class Options:
    """How q and k become weights; the defaults match PyTorch's attention.

        logits = softcap(scale · q·k / temperature) + mask,   weights = entmax_alpha(logits and sink)

    `MultiheadAttention` documents each option.

    >>> Options(softcap=30.0).told()
    'softcap=30.0'
    """

    qk_norm: Literal["rms", "unit"] | None = None
    softcap: float | None = None
    temperature: bool = False
    sink: bool = False
    alpha: float = 1.0
    scale: float | None = None
    scalable: float | None = None

    def __post_init__(self) -> None:
        check_qk_norm(self.qk_norm)
        if self.softcap is not None:
            positive(self.softcap, "softcap", "use None for no cap")
        if self.scale is not None:
            positive(self.scale, "scale", "None is 1/√d of a head, 1.0 the plain dot product")
        check_scalable(self.scalable)
        flag(self.temperature, "temperature")
        if flag(self.sink, "sink") and self.alpha != 1:
            raise ValueError(f"sink needs alpha = 1, but got sink=True and alpha={self.alpha}; leave one of them out")
        alpha_number(self.alpha)

    def told(self) -> str:
        """Format the options that are on, as they would appear in a call."""
        default = Options()
        chosen = {name: value for name, value in vars(self).items() if value != getattr(default, name)}
        return ", ".join(f"{name}={value!r}" for name, value in chosen.items())
