"""Multi-head attention in the place of `torch.nn.MultiheadAttention`."""

import copy
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope
from softscope._arguments.checks import flag
from softscope.nn import checks, composite, lengths, masks, projections
from softscope.nn.options import Options

# The parameters that options add, and where each starts.
STARTS = {"q_gain": 1.0, "k_gain": 1.0, "log_temperature": 0.0, "sink": 0.0, "length_gain": 1.0}


class MultiheadAttention(nn.MultiheadAttention):
    """Multi-head attention: the arguments, parameters, first values and results of `torch.nn.MultiheadAttention`.

        head = weights · v,   weights = entmax_alpha(softcap(scale · q·k / temperature) + mask, and a sink)

    State dicts of PyTorch's module load, strictly, whatever options are on: what the options learn then starts
    anew. What is different:

    - A query that sees no key gets zeros (PyTorch: NaN where weights are needed). Additive masks hide a key from
      finfo.min/2 down, not at −inf alone.
    - `is_causal=True` needs no `attn_mask`. The keys of add_bias_kv and add_zero_attn stay visible with it
      (PyTorch hides them where no weights are needed).
    - The one fused call of `nn.TransformerEncoderLayer` in eval mode, which would pass this module by and its
      options with it, is never taken; nested tensors, which need it, are refused. `replace` sees to that; who
      builds an `nn.TransformerEncoder` of such a layer sets enable_nested_tensor=False.
    - No TorchScript.

    Args:
        embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype: as
            PyTorch's.
        qk_norm: how q and k are normalised, head by head, before they meet. "rms": to mean square 1, times a learned
            gain per component (`q_gain`, `k_gain`). "unit": to norm 1, so that logits are `scale · cosine`.
        softcap: `c·tanh(logits/c)` keeps the logits in (−c, c).
        temperature: one learned temperature per head, starting at 1 (`log_temperature`, at 0).
        sink: one learned logit per head (`sink`, starting at 0) that takes weight and gives nothing.
        alpha: 1 is softmax, 2 sparsemax, between them entmax. Not together with a sink.
        scale: multiplies q·k; None is 1/√d of a head, 1.0 the plain dot product.
        scalable: scalable softmax: the logits of a row that sees n keys times log n / log(scalable), and times one
            learned gain per head (`length_gain`, starting at 1). Rows of `scalable` keys stay as they are.

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
        self._take(options)

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention, **options: Any) -> Self:
        """A copy of PyTorch's module, with the options of ours.

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
        return cls._adopt(copy.deepcopy(module), Options(**options))

    @classmethod
    def _adopt(cls, module: nn.MultiheadAttention, options: Options) -> Self:
        """PyTorch's module itself made into one of ours.

        A new module would lose the hooks, and its parameters, if copied, the optimizer that holds the old ones.
        """
        module.__class__ = cls
        assert isinstance(module, cls)
        module._take(options)
        return module

    def _take(self, options: Options) -> None:
        """Keep the options, and add the parameters they learn; None where one is off, as PyTorch's `bias_k`."""
        self.options = options
        # In eval mode nn.TransformerEncoderLayer hands the parameters of its attention to one fused call if this
        # says True, and asks the attention nothing more. Whether they are packed, `in_proj_weight` tells.
        self._qkv_same_embed_dim = False
        gains = self.head_dim if options.qk_norm == "rms" else 0
        sizes = {"q_gain": gains, "k_gain": gains, "log_temperature": self.num_heads * options.temperature}
        sizes["sink"] = self.num_heads * options.sink
        sizes["length_gain"] = self.num_heads * (options.scalable is not None)
        for name, size in sizes.items():
            if size and self._parameters.get(name) is not None:
                continue  # learned already: other options are taken, this one stays
            value = self.out_proj.weight.detach().new_full((size,), STARTS[name])
            self.register_parameter(name, nn.Parameter(value) if size else None)

    def _reset_parameters(self) -> None:
        """Draw PyTorch's first values as PyTorch does, and set what the options learn to its start."""
        self._qkv_same_embed_dim = self.in_proj_weight is not None
        super()._reset_parameters()
        self._qkv_same_embed_dim = False
        for name, start in STARTS.items():
            learned = self._parameters.get(name)  # none yet, when PyTorch's constructor calls this
            if learned is not None:
                nn.init.constant_(learned, start)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Where PyTorch's module was saved, what our options learn is not there: it starts at its first value."""
        saved = state_dict.get(f"{prefix}out_proj.weight")
        if saved is not None:  # else nothing of this module is there, and nothing of it must change
            starts = {
                f"{prefix}{name}": torch.full_like(parameter, STARTS[name], device=saved.device)
                for name, parameter in self._parameters.items()
                if name in STARTS and parameter is not None
            }
            state_dict = {**starts, **state_dict}
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Sizes and options."""
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
        """The output, and the weights or None, as PyTorch's; with `return_partition` also the partition.

        Args:
            query: (n, batch, embed_dim), with batch_first (batch, n, embed_dim), without a batch (n, embed_dim).
            key, value: the same with m, and kdim or vdim.
            key_padding_mask: (batch, m), or (m,); boolean (True = hidden) or additive floats.
            need_weights: also return the weights, after dropout: slower, as all of them are written down.
            attn_mask: (n, m) or (batch·heads, n, m); boolean (True = hidden) or additive floats.
            average_attn_weights: one weight for each query and key, the mean over the heads; else (…, heads, n, m).
            is_causal: query i sees the keys j ≤ i. With an `attn_mask` it is a promise that the mask says this,
                which saves reading the mask.
            return_partition: a third item, the `softscope.Partition` of every row, (…, heads, n); for alpha ≠ 1 its
                `softscope.Support`.

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
        # Where logits are written down anyway the promise saves nothing, and PyTorch reads the mask, too.
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
        """q, k and v as (…, heads, n, d)."""
        weight = self.in_proj_weight
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        found = projections.project(query, key, value, separate if weight is None else weight, self.in_proj_bias)
        return [projections.split(x, self.num_heads, length_first=length_first) for x in found]

    def _with_extra_keys(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, int]:
        """The keys and values that `add_bias_kv` and `add_zero_attn` put behind the given ones, and how many."""
        if self.bias_k is not None:
            k, v = projections.with_row(k, self.bias_k), projections.with_row(v, self.bias_v)
        if self.add_zero_attn:
            k, v = projections.with_row(k, None), projections.with_row(v, None)
        return k, v, (self.bias_k is not None) + bool(self.add_zero_attn)

    def _normalised(self, x: Tensor, gain: Tensor | None) -> Tensor:
        """QK-norm, if it was asked for."""
        if self.options.qk_norm == "rms":
            return functional.rms_norm(x, x.shape[-1:], None if gain is None else gain.to(x.dtype))
        return functional.normalize(x, dim=-1) if self.options.qk_norm == "unit" else x

    def _scale(self) -> float | Tensor:
        """What multiplies q·k: a number, or with learned temperatures one for each head."""
        scale = self.head_dim**-0.5 if self.options.scale is None else self.options.scale
        # The logarithm is learned, so that no step of an optimizer makes a temperature negative.
        return scale if self.log_temperature is None else scale * torch.exp(-self.log_temperature)
