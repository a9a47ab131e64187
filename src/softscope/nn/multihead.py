"""Multi-head attention as a drop-in for `torch.nn.MultiheadAttention`."""

import copy
from typing import Any, Literal, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope
from softscope._arguments.checks import flag
from softscope.nn import checks, composite, lengths, masks, projections
from softscope.nn.options import Options

# The parameters that options add, and their initial values.
STARTS = {"q_gain": 1.0, "k_gain": 1.0, "log_temperature": 0.0, "sink": 0.0, "length_gain": 1.0}

Ours = TypeVar("Ours", bound="MultiheadAttention")


class MultiheadAttention(nn.MultiheadAttention):
    """Drop-in for `torch.nn.MultiheadAttention`, with the same arguments, parameters, initialisation and results.

        head = weights · v,   weights = entmax_alpha(softcap(scale · q·k / temperature) + mask, and a sink)

    State dicts of PyTorch's module load strictly, whatever options are on; the parameters of the options then start
    at their initial values. The differences from PyTorch are:

    - A query that sees no key gets zeros (PyTorch gives NaN when weights are needed). Additive masks hide a key at
      or below finfo.min/2, not only at −inf.
    - `is_causal=True` needs no `attn_mask`. The keys of add_bias_kv and add_zero_attn then stay visible (PyTorch
      hides them when no weights are needed).
    - `nn.TransformerEncoderLayer` never takes its fused path in eval mode, because that path would bypass this module
      and its options. Nested tensors need the fused path, so this module refuses them. `replace` takes care of that;
      if you build an `nn.TransformerEncoder` from such a layer yourself, set enable_nested_tensor=False.
    - TorchScript is not supported.

    The arguments up to `dtype` are PyTorch's.

    Args:
        qk_norm: Normalisation of q and k, per head, before the dot product. "rms" scales to mean square 1, times a
            learned gain per component (`q_gain`, `k_gain`). "unit" scales to norm 1, so the logits are
            `scale · cosine`.
        softcap: Cap c; `c·tanh(logits/c)` keeps the logits in (−c, c).
        temperature: Learn one temperature per head, starting at 1 (`log_temperature`, starting at 0).
        sink: Learn one logit per head (`sink`, starting at 0) that takes weight but contributes no value.
        alpha: 1 for softmax, 2 for sparsemax, any other finite number above 1 for entmax. Excludes a sink.
        scale: Factor on q·k. None means 1/√d with d the size of a head; 1.0 gives the plain dot product.
        scalable: Scalable softmax: multiply the logits of a row that sees n keys by log n / log(scalable) and by one
            learned gain per head (`length_gain`, starting at 1). Rows with `scalable` keys stay unchanged.

    >>> import torch, softscope.nn
    >>> theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> ours = softscope.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> ours.load_state_dict(theirs.state_dict())
    <All keys matched successfully>
    >>> x = torch.randn(3, 5, 8)
    >>> torch.allclose(ours(x, x, x)[0], theirs(x, x, x)[0], atol=1e-6)
    True
    """

    options: Options
    q_gain: Tensor | None
    k_gain: Tensor | None
    log_temperature: Tensor | None
    sink: Tensor | None
    length_gain: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        qk_norm: Literal["rms", "unit"] | None = None,
        softcap: float | None = None,
        temperature: bool = False,
        sink: bool = False,
        alpha: float = 1.0,
        scale: float | None = None,
        scalable: float | None = None,
    ) -> None:
        checks.sizes(embed_dim, num_heads)
        options = Options(qk_norm, softcap, temperature, sink, alpha, scale, scalable)
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype
        )
        take_options(self, options)

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention, **options: Any) -> Self:
        """Copy a PyTorch module into one of ours, with options.

        >>> import torch, softscope.nn
        >>> softscope.nn.MultiheadAttention.from_torch(torch.nn.MultiheadAttention(8, 2), alpha=1.5)
        MultiheadAttention(
          8, 2, alpha=1.5
          (out_proj): NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)
        )
        """
        if type(module) is not nn.MultiheadAttention:
            raise TypeError(
                f"module must be a torch.nn.MultiheadAttention, but got {type(module).__name__}; "
                f"a subclass's changes would be lost"
            )
        return adopt(copy.deepcopy(module), Options(**options), cls)

    def _reset_parameters(self) -> None:
        """Initialise PyTorch's parameters as PyTorch does, and those of the options to their starting values."""
        self._qkv_same_embed_dim = self.in_proj_weight is not None
        super()._reset_parameters()
        self._qkv_same_embed_dim = False
        for name, start in STARTS.items():
            learned = self._parameters.get(name)  # still missing when PyTorch's constructor calls this
            if learned is not None:
                nn.init.constant_(learned, start)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Load a state dict; if PyTorch's module saved it, the parameters of our options take their initial values."""
        saved = state_dict.get(f"{prefix}out_proj.weight")
        if saved is not None:  # else the dict has nothing of this module, and nothing must change
            starts = {
                f"{prefix}{name}": torch.full_like(parameter, STARTS[name], device=saved.device)
                for name, parameter in self._parameters.items()
                if name in STARTS and parameter is not None
            }
            state_dict = {**starts, **state_dict}
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Show sizes and options."""
        told = self.options.told()
        return f"{self.embed_dim}, {self.num_heads}" + (f", {told}" if told else "")

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        return_partition: bool = False,
    ) -> Any:
        """Return the output and the weights (or None), like PyTorch; with `return_partition`, also the partition.

        Args:
            query: (n, batch, embed_dim); with batch_first, (batch, n, embed_dim); without a batch, (n, embed_dim).
            key: Like query, with m instead of n and kdim instead of embed_dim.
            value: Like query, with m instead of n and vdim instead of embed_dim.
            key_padding_mask: (batch, m), or (m,); boolean (True = hidden) or additive floats.
            need_weights: Also return the weights, after dropout. This is slower, because it materialises all of them.
            attn_mask: (n, m) or (batch·heads, n, m); boolean (True = hidden) or additive floats.
            average_attn_weights: Return the weights averaged over the heads; otherwise (…, heads, n, m).
            is_causal: Query i sees the keys j ≤ i. Together with an `attn_mask`, it promises that the mask is causal,
                which saves reading the mask.
            return_partition: Return a third item: the `softscope.Partition` of every row, (…, heads, n), or its
                `softscope.Support` for alpha ≠ 1.

        >>> import torch, softscope.nn
        >>> layer = softscope.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = torch.zeros(3, 4, 8)
        >>> *_, partition = layer(x, x, x, need_weights=False, is_causal=True, return_partition=True)
        >>> partition.effective_support[0, 0].round(decimals=4)
        tensor([1., 2., 3., 4.], dtype=torch.float64)
        """
        checks.tokens(query, key, value, (self.embed_dim, self.kdim, self.vdim), batch_first=self.batch_first)
        length_first = query.ndim == 3 and not self.batch_first
        q, k, v = self._heads(query, key, value, length_first)
        checks.both_masks(attn_mask, key_padding_mask, q, k)
        n, m = q.shape[-2], k.shape[-2]
        k, v, extra = self._with_extra_keys(k, v)
        q, k = self._normalised(q, self.q_gain), self._normalised(k, self.k_gain)
        dropout = self.dropout if self.training else 0.0
        written = need_weights or dropout > 0.0
        # If the logits are materialised anyway, the promise saves nothing; PyTorch reads the mask there, too.
        causal = is_causal and not extra and (attn_mask is None or not written)
        if causal:
            attn_mask = None
        elif is_causal and attn_mask is None:
            attn_mask = ~masks.causal(n, m, q.device)
        mask = masks.joined(attn_mask, key_padding_mask, heads=q.shape[:-2], extra=extra)
        if self.length_gain is not None and self.options.scalable is not None:
            counts = lengths.seen_keys(mask, causal=causal, n=n, m=m + extra, device=q.device)
            q = lengths.by_length(q, self.length_gain, self.options.scalable, counts)
        arguments: dict[str, Any] = {
            "scale": self._scale(),
            "causal": causal,
            "mask": mask,
            "softcap": self.options.softcap,
            "sink": self.sink,
            "alpha": self.options.alpha,
        }
        partition: Any = None
        weights: Any = None
        if written:
            mixed, weights = composite.attend(q, k, v, dropout=dropout, **arguments)
            if return_partition:
                partition = softscope.attention_partition(q, k, **arguments)
        elif flag(return_partition, "return_partition"):
            mixed, partition = softscope.attention(q, k, v, **arguments, return_partition=True)
        else:
            mixed = softscope.attention(q, k, v, **arguments)
        output = self.out_proj(projections.join(mixed, length_first=length_first))
        if not need_weights:
            weights = None
        elif average_attn_weights:
            weights = weights.mean(dim=-3)
        return (output, weights, partition) if return_partition else (output, weights)

    def _heads(self, query: Tensor, key: Tensor, value: Tensor, length_first: bool) -> list[Tensor]:
        """Project the inputs to q, k and v as (…, heads, n, d)."""
        weight = self.in_proj_weight
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        found = projections.project(query, key, value, separate if weight is None else weight, self.in_proj_bias)
        return [projections.split(x, self.num_heads, length_first=length_first) for x in found]

    def _with_extra_keys(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, int]:
        """Append the keys and values of `add_bias_kv` and `add_zero_attn`; also return how many were added."""
        if self.bias_k is not None:
            k, v = projections.with_row(k, self.bias_k), projections.with_row(v, self.bias_v)
        if self.add_zero_attn:
            k, v = projections.with_row(k, None), projections.with_row(v, None)
        return k, v, (self.bias_k is not None) + bool(self.add_zero_attn)

    def _normalised(self, x: Tensor, gain: Tensor | None) -> Tensor:
        """Apply QK-norm if the options ask for it."""
        if self.options.qk_norm == "rms":
            return functional.rms_norm(x, x.shape[-1:], None if gain is None else gain.to(x.dtype))
        return functional.normalize(x, dim=-1) if self.options.qk_norm == "unit" else x

    def _scale(self) -> float | Tensor:
        """Return the factor on q·k: a number, or one per head if temperatures are learned."""
        scale = self.head_dim**-0.5 if self.options.scale is None else self.options.scale
        # The logarithm is the learned parameter, so no optimizer step can make a temperature negative.
        return scale if self.log_temperature is None else scale * torch.exp(-self.log_temperature)


def adopt(module: nn.MultiheadAttention, options: Options, kind: type[Ours]) -> Ours:
    """Turn a PyTorch module into one of ours in place.

    A new module would lose the hooks, and the optimizer would still hold the old parameters if these were copied.
    """
    module.__class__ = kind
    assert isinstance(module, kind)
    take_options(module, options)
    return module


def take_options(module: MultiheadAttention, options: Options) -> None:
    """Store the options and add their learned parameters; an unused one is None, like PyTorch's `bias_k`."""
    module.options = options
    # If this is True, nn.TransformerEncoderLayer in eval mode hands the parameters to one fused call and bypasses
    # this module. `in_proj_weight` still tells whether the parameters are packed.
    module._qkv_same_embed_dim = False
    gains = module.head_dim if options.qk_norm == "rms" else 0
    sizes = {"q_gain": gains, "k_gain": gains, "log_temperature": module.num_heads * options.temperature}
    sizes["sink"] = module.num_heads * options.sink
    sizes["length_gain"] = module.num_heads * (options.scalable is not None)
    for name, size in sizes.items():
        if size and module._parameters.get(name) is not None:
            continue  # already learned: keep it while the other options change
        value = module.out_proj.weight.detach().new_full((size,), STARTS[name])
        module.register_parameter(name, nn.Parameter(value) if size else None)
