"""Hides what a site must not see, or shows what it should see, at the attention call itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor, nn

from softscope._backends.reference.visible_keys import logit_is_hidden
from softscope._text import Text
from softscope.doctor.listen import batch_inputs
from softscope.doctor.listen.functions import explicit_softmax
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies import at_call
from softscope.doctor.treat.remedies.applied import Applied, Change, NotSupportedError
from softscope.doctor.treat.remedies.places import module_of

if TYPE_CHECKING:
    import inspect
    from collections.abc import Mapping

Keys = Literal["past", "all"]
_WHAT: dict[tuple[Keys, bool], Text] = {
    ("past", False): Text(zh="藏住后面的 token 和填充", en="later tokens and padding hidden"),
    ("all", False): Text(zh="藏住填充", en="padding hidden"),
    ("past", True): Text(zh="只看得到过去的 token，不看填充", en="sees past tokens, and nothing else"),
    ("all", True): Text(zh="看得到所有 token，不看填充", en="sees all tokens, and no padding"),
}


def mask(model: nn.Module, sites: Mapping[str, Keys], *, replace: bool = False) -> Applied:
    """Let rows see what they should: the past or all tokens, and no padding, as far as the batch's mask tells.

    It is a stop-gap, which shows what the right mask would bring; the mask itself is to be mended in your code. A row
    that would see nothing is left as it is.

    Args:
        model: changed in place.
        sites: "past" or "all", per site named as in `scope.sites`.
        replace: take this mask instead of the one given, and so show what that hides; otherwise hide what either does.
            Not for modules with a softmax of their own: the logits of what is hidden are lost there.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> done = remedies.mask(model, {"MultiheadAttention": "past"})
    >>> x = torch.randn(1, 5, 8)
    >>> float(model(x, x, x)[1].detach().triu(1).max())
    0.0
    >>> done.undo()
    """
    for site, keys in sites.items():
        if keys not in get_args(Keys):
            raise ValueError(
                f'sites must map to "past" or "all", but got {keys!r} at {site}; "past" is for causal attention'
            )
    modules = {site: module_of(model, site) for site in sites}
    code = call("remedies.mask", dict(sites), **({"replace": True} if replace else {}))
    done = Applied("mask", code=code)
    inputs = _Inputs()
    done.on_undo(model.register_forward_pre_hook(inputs, with_kwargs=True).remove)
    for site, keys in sites.items():
        at_call.attach(done, modules[site], _Mask(site, keys, replace, inputs))
        done.changes.append(Change(site, (), _WHAT[keys, replace], "call"))
    return done


class _Inputs:
    """What the model was last given."""

    def __init__(self) -> None:
        self.last = batch_inputs.BatchInputs()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.last = batch_inputs.BatchInputs()
        self.last = batch_inputs.of_call(module, args, named)

    def __deepcopy__(self, _: Any) -> _Inputs:
        return _Inputs()

    def __reduce__(self) -> Any:
        return _Inputs, ()


class _Mask:
    what = "mask"

    def __init__(self, site: str, keys: Keys, replace: bool, inputs: _Inputs) -> None:
        self.site, self.keys, self.replace, self.inputs = site, keys, replace, inputs

    def sdpa(self, _: nn.Module, bound: inspect.BoundArguments) -> None:
        given = bound.arguments
        q, k = given["query"], given["key"]
        shape = (*q.shape[:-2], q.shape[-2], k.shape[-2])
        causal = self._past(shape, q) if given.get("is_causal") else None
        given |= {"attn_mask": self._joined(shape, q, given.get("attn_mask"), causal), "is_causal": False}

    def multihead(self, _: nn.Module, bound: inspect.BoundArguments) -> None:
        given = bound.arguments
        q, k, heads = given["query"], given["key"], given["num_heads"]
        if given.get("bias_k") is not None or given.get("add_zero_attn") or given.get("static_k") is not None:
            raise ValueError("its keys are not only those of the sequence")
        batch = q.shape[1] if q.ndim == 3 else 1
        shape = (batch, heads, q.shape[0], k.shape[0])
        own = given.get("attn_mask")
        own = own.reshape(-1, heads, *own.shape[1:]) if own is not None and own.ndim == 3 else own
        padded = given.get("key_padding_mask")
        if padded is not None:
            padded = padded if padded.dtype == torch.bool else logit_is_hidden(padded)
            padded = ~padded.reshape(batch, 1, 1, -1)
        if own is not None and own.dtype == torch.bool:
            own = ~own  # here True hides
        causal = self._past(shape, q) if given.get("is_causal") and own is None else None
        causal = padded if causal is None else causal if padded is None else causal & padded
        new = self._joined(shape, q, own, causal).expand(shape).flatten(0, 1)
        given |= {
            "attn_mask": ~new if new.dtype == torch.bool else new, "key_padding_mask": None, "is_causal": False,
        }  # fmt: skip

    def softmax(self, _: nn.Module, x: Any, dim: Any) -> Any:
        four = explicit_softmax.laid_out(x, dim)
        if four is None:
            return None
        if self.replace:
            raise NotSupportedError("what its mask hides is lost before the softmax")
        visible = ~logit_is_hidden(four(x))
        wanted = self._wanted(tuple(visible.shape), x) & visible
        hidden = ~wanted & wanted.any(dim=-1, keepdim=True)
        return x.masked_fill(hidden.reshape(x.shape), -torch.inf)

    def _joined(self, shape: tuple[int, ...], like: Tensor, own: Tensor | None, more: Tensor | None) -> Tensor:
        """The mask for the call: boolean, or additive if it was."""
        wanted = self._wanted(shape, like)
        visible = torch.ones_like(wanted) if more is None or self.replace else more.expand_as(wanted)
        adds = own is not None and own.dtype != torch.bool
        if own is not None and not self.replace:
            visible = visible & (~logit_is_hidden(own) if adds else own)
        both = wanted & visible
        both = torch.where(both.any(dim=-1, keepdim=True), both, visible)
        if not adds or own is None:
            return both
        bias = own.masked_fill(logit_is_hidden(own), 0.0) if self.replace else own
        hidden = ~both & both.any(dim=-1, keepdim=True)
        return bias.expand(both.shape).masked_fill(hidden, -torch.inf)

    def _wanted(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """What should be visible, (B, heads, n, m)."""
        wanted = torch.ones(shape, dtype=torch.bool, device=like.device)
        if self.keys == "past":
            wanted &= self._past(shape, like)
        real = self.inputs.last.shown_to(self.site, shape[-1])
        if real is not None and real.shape[0] == shape[0] and len(shape) == 4:
            wanted &= real.to(like.device)[:, None, None, :]
        return wanted

    @staticmethod
    def _past(shape: tuple[int, ...], like: Tensor) -> Tensor:
        n, m = shape[-2:]
        return torch.ones(n, m, dtype=torch.bool, device=like.device).tril(m - n)
