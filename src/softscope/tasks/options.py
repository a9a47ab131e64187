"""How a model forms its attention weights: the scale, and the remedies for a wrong one."""

import math
from dataclasses import dataclass
from typing import Literal

from softscope._arguments.checks import alpha_number, number, positive
from softscope.nn.options import check_qk_norm, check_scalable


@dataclass(frozen=True)
class AttentionOptions:
    """How q and k become weights; the defaults give plain scaled dot-product attention.

        logits = softcap(scale · q·k / temperature),   weights = entmax_alpha(logits and sink)

    Args:
        scale: "sqrt" for 1/√d with d the size of a head, or a number; 1.0 gives the plain dot product.
        temperature: Divides the logits; > 0.
        learn_temperature: Learn one temperature per head, starting at `temperature`.
        qk_norm: Normalisation of q and k before the dot product. "rms" scales to mean square 1, times a learned gain
            per component (as large models do; the logits reach ±d before the scale). "unit" scales to norm 1, so the
            logits are `scale · cosine`, which needs a small temperature to be sharp.
        softcap: Cap c; `c·tanh(logits/c)` keeps the logits in (−c, c).
        sink: Initial logit of a learned sink per head, which takes weight but contributes no value.
        alpha: 1 for softmax, 2 for sparsemax, any other finite number above 1 for entmax. Excludes a sink.
        init_gain: Multiplies the initial W_Q and W_K. At 1, q and k start with unit variance, and unscaled logits
            with a standard deviation of √d; at g, of g²·√d.
        scalable: Scalable softmax: multiply the logits of a row that sees n keys by log n / log(scalable) and by one
            learned gain per head, which starts at 1.

    Examples:
        >>> AttentionOptions(scale=1.0).factor(256)         # the plain dot product
        1.0
        >>> AttentionOptions(scale=1.0, temperature=16.0).factor(256) == AttentionOptions().factor(256)
        True
    """

    scale: float | Literal["sqrt"] = "sqrt"
    temperature: float = 1.0
    learn_temperature: bool = False
    qk_norm: Literal["rms", "unit"] | None = None
    softcap: float | None = None
    sink: float | None = None
    alpha: float = 1.0
    init_gain: float = 1.0
    scalable: float | None = None

    def __post_init__(self) -> None:
        if self.scale != "sqrt":
            rule, fix = '"sqrt" or a positive number', '"sqrt" is 1/√d, 1.0 the plain dot product'
            positive(self.scale, "scale", fix, rule=rule)
        positive(self.temperature, "temperature", "1.0 changes nothing, larger flattens the weights")
        check_qk_norm(self.qk_norm)
        check_scalable(self.scalable)
        if self.softcap is not None:
            positive(self.softcap, "softcap", "use None for no cap")
        if self.sink is not None and not math.isfinite(number(self.sink, "sink")):
            raise ValueError(f"sink must be a finite number, but got {self.sink}; use None for no sink")
        alpha_number(self.alpha)
        if self.sink is not None and self.alpha != 1:
            raise ValueError(
                f"sink needs alpha = 1, but got sink={self.sink} and alpha={self.alpha}; leave one of them out"
            )
        positive(self.init_gain, "init_gain", "1.0 starts q and k with unit variance")

    @property
    def plain(self) -> bool:
        """Whether PyTorch's `scaled_dot_product_attention` supports the options: no cap, no sink, softmax."""
        return self.softcap is None and self.sink is None and self.alpha == 1

    def factor(self, d: int) -> float:
        """Return the factor on `q·k` for heads with `d` components: scale/temperature, or the scale alone.

        It excludes a learned temperature, which is a parameter of the model.
        """
        scale = 1 / math.sqrt(d) if self.scale == "sqrt" else float(self.scale)
        return scale if self.learn_temperature else scale / self.temperature
