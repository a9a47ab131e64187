"""One attention layer with all the options, the building block of `RecallModel` and `SmallTransformer`."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope
from softscope._arguments.checks import whole_number
from softscope.nn import lengths
from softscope.tasks.options import AttentionOptions


def seeded_linear(d_in: int, d_out: int, generator: torch.Generator, *, gain: float = 1.0) -> nn.Linear:
    """Make a bias-free linear map that turns unit variance into variance `gain²`: W ~ N(0, gain²/d_in).

    `nn.Linear` alone would draw its weights from the global random state.
    """
    layer = nn.Linear(d_in, d_out, bias=False, device="meta").to_empty(device="cpu")
    nn.init.normal_(layer.weight, std=gain / math.sqrt(d_in), generator=generator)
    return layer


def seeded_embedding(count: int, d: int, generator: torch.Generator) -> nn.Embedding:
    """Make a table of `count` unit-variance vectors, drawn only from the generator."""
    table = nn.Embedding(count, d, device="meta").to_empty(device="cpu")
    nn.init.normal_(table.weight, generator=generator)
    return table


class Attention(nn.Module):
    """Multi-head attention, `W_O · (weights · v)`; the options decide how it forms the weights.

    Where the options allow it, the heads go through `torch.nn.functional.scaled_dot_product_attention` with an
    explicit scale, so that anything that watches that function sees them. It supports no soft cap, sink or entmax;
    those go through `softscope.attention`.

    Args:
        d: Components of a token, over all heads.
        heads: Number of heads; must divide `d`.
        options: Scale and remedies.
        generator: Source of the initial weights.

    Examples:
        >>> import torch
        >>> layer = Attention(8, heads=2, options=AttentionOptions(), generator=torch.Generator())
        >>> x = torch.ones(3, 5, 8)
        >>> layer(x, x, x, causal=True).shape
        torch.Size([3, 5, 8])
    """

    q_gain: Tensor | None
    k_gain: Tensor | None
    log_temperature: Tensor | None
    sink: Tensor | None
    length_gain: Tensor | None

    def __init__(self, d: int, *, heads: int, options: AttentionOptions, generator: torch.Generator) -> None:
        super().__init__()
        d, heads = whole_number(d, "d", 1), whole_number(heads, "heads", 1)
        if not isinstance(options, AttentionOptions):
            raise TypeError(
                f"options must be AttentionOptions, but got {type(options).__name__}; "
                f"pass AttentionOptions(scale=1.0), for example"
            )
        if d % heads:
            raise ValueError(
                f"heads must divide d, but got heads={heads} and d={d}; "
                f"the nearest larger d that fits is {-(-d // heads) * heads}"
            )
        self.heads = heads
        self.w_q = seeded_linear(d, d, generator, gain=options.init_gain)
        self.w_k = seeded_linear(d, d, generator, gain=options.init_gain)
        self.w_v = seeded_linear(d, d, generator)
        self.w_o = seeded_linear(d, d, generator)
        self.take(options)

    def take(self, options: AttentionOptions) -> None:
        """Switch to these options; existing parameters stay."""
        size = self.w_q.out_features // self.heads
        self.options, self.factor = options, options.factor(size)
        rms = options.qk_norm == "rms"
        starts = {
            "q_gain": torch.ones(size) if rms else None,
            "k_gain": torch.ones(size) if rms else None,
            # Learn the logarithm, so that no optimizer step can make a temperature negative.
            "log_temperature": torch.full((self.heads,), math.log(options.temperature))
            if options.learn_temperature
            else None,
            "sink": None if options.sink is None else torch.full((self.heads,), float(options.sink)),
            "length_gain": None if options.scalable is None else torch.ones(self.heads),
        }
        for name, start in starts.items():
            # A parameter that no option needs is None, so the optimizer does not hold it.
            if start is None or self._parameters.get(name) is None:
                self.register_parameter(name, None if start is None else nn.Parameter(start.to(self.w_q.weight)))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False) -> Tensor:
        """Let (batch, n, d) attend over (batch, m, d); returns (batch, n, d)."""
        q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
        q, k = self.normalise(q, self.q_gain), self.normalise(k, self.k_gain)
        if self.log_temperature is not None:
            q = q * torch.exp(-self.log_temperature)[:, None, None]
        if self.length_gain is not None and self.options.scalable is not None:
            counts = lengths.seen_keys(None, causal=causal, n=q.shape[-2], m=k.shape[-2], device=q.device)
            q = lengths.by_length(q, self.length_gain, self.options.scalable, counts)
        if self.options.plain:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=self.factor)
        else:
            mixed = softscope.attention(
                q,
                k,
                v,
                scale=self.factor,
                causal=causal,
                softcap=self.options.softcap,
                sink=self.sink,
                alpha=self.options.alpha,
            )
        joined: Tensor = self.w_o(mixed.transpose(-3, -2).flatten(-2))
        return joined

    def split(self, x: Tensor) -> Tensor:
        """Reshape (batch, n, d) to (batch, heads, n, d/heads)."""
        return x.reshape(*x.shape[:-1], self.heads, -1).transpose(-3, -2)

    def normalise(self, x: Tensor, gain: Tensor | None) -> Tensor:
        """Apply QK-norm if the options ask for it."""
        match self.options.qk_norm:
            case "rms":
                return functional.rms_norm(x, x.shape[-1:], gain)
            case "unit":
                return functional.normalize(x, dim=-1)
            case _:
                return x
