"""The faults, from DEForm's catalogue (PyPI: defaultplusplus) and our own: how each is injected and what names it.

DEForm's injector changes nothing in a third of its faults on models of transformers 5, so each is written anew here.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from softscope.doctor.faults import hooks
from softscope.doctor.faults.models import HEADS, Kind

Undo = contextlib.ExitStack


@dataclasses.dataclass
class Target:
    """A model to be spoiled: the modules to touch, what undoes it, and parameters that the optimizer does not get."""

    model: nn.Module
    kind: Kind
    touched: dict[str, nn.Module]
    undo: Undo = dataclasses.field(default_factory=Undo)
    withheld: set[int] = dataclasses.field(default_factory=set)

    def each(self, do: Callable[[Any], object]) -> None:
        """Do something to each touched module."""
        for module in self.touched.values():
            do(module)

    def changed(self, what: str, by: Callable[[Tensor], Tensor]) -> None:
        """Pass q, k or v of the touched modules through a function."""
        self.each(lambda module: hooks.change(module, what, by, self.undo))

    def remasked(self, by: Callable[[Tensor, Tensor], Tensor]) -> None:
        """Give the touched modules another mask."""
        for path, module in self.touched.items():
            causal = self.kind.family == "causal" or "decoder" in path
            hooks.remask(self.model, module, causal, by, self.undo)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        name: For the table.
        group: The part of attention it belongs to.
        inject: Does it.
        codes: The checks that name its cause.
        families: The kinds of models it fits.
        eager: It needs attention that is computed step by step.
        repaired: The model is used without the fault, so its worth is measured without: a leak is none at the end.
        whole: It is in the whole model, so there is no mild form in one layer.
        only: Paths that it fits, by a word in them; "" for all.
        also: Checks whose findings follow from it, and are true: too large a scale saturates heads.
    """

    name: str
    group: str
    inject: Callable[[Target], object]
    codes: tuple[str, ...]
    families: tuple[str, ...] = ("causal", "encoder", "both")
    eager: bool = False
    repaired: bool = False
    whole: bool = False
    only: str = ""
    also: tuple[str, ...] = ()


def _one_head(x: Tensor) -> Tensor:
    heads = x.reshape(*x.shape[:-1], HEADS, -1)
    return heads[..., :1, :].expand_as(heads).flatten(-2)


def _on_one_line(x: Tensor) -> Tensor:
    """What is left if every head has a single component: rank one."""
    heads = x.reshape(*x.shape[:-1], HEADS, -1)
    return (heads[..., :1] * torch.ones_like(heads)).flatten(-2)


def _grown(target: Target, times: float) -> None:
    with torch.no_grad():
        for module in target.touched.values():
            for p in hooks.weights(module, "qk"):
                third = p.shape[-1] // 3
                (p[..., : 2 * third] if type(module).__name__ == "GPT2Attention" else p).mul_(times)


def _frozen(target: Target, what: str) -> None:
    for module in target.touched.values():
        for p in hooks.weights(module, what):
            p.requires_grad_(False)
            target.undo.callback(p.requires_grad_, True)


def _forgotten(target: Target) -> None:
    target.withheld |= {id(p) for module in target.touched.values() for p in hooks.weights(module)}


def _cut(target: Target) -> None:
    def detach(_: Any, __: Any, out: Any) -> Any:
        return out.detach() if isinstance(out, Tensor) else (out[0].detach(), *out[1:])

    target.each(lambda module: target.undo.callback(module.register_forward_hook(detach).remove))


def _silenced(target: Target) -> None:
    def nothing(_: Any, __: Any, out: Any) -> Any:
        return 0.0 * out if isinstance(out, Tensor) else (0.0 * out[0], *out[1:])

    target.each(lambda module: target.undo.callback(module.register_forward_hook(nothing).remove))


def _without_grad(target: Target) -> None:
    def wrapped(module: Any) -> None:
        inner = module.forward
        module.forward = torch.no_grad()(inner)
        target.undo.callback(setattr, module, "forward", inner)

    target.each(wrapped)


def _eager(target: Target, drop: float = 0.0, twice: bool = False, half: bool = False) -> None:
    def function(
        module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None,
        scaling: float | None = None, position_bias: Tensor | None = None, softcap: float | None = None, **_: Any,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        groups = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        if half:
            scores = (query.half() @ key.mT.half()).float() * (1.0 if scaling is None else scaling)
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        scores = functional.dropout(scores, drop, module.training) if drop else scores
        for bias in (position_bias, attention_mask):
            scores = scores if bias is None else scores + bias[..., : scores.shape[-1]]
        found = functional.softmax(scores, dim=-1)
        found = functional.softmax(found, dim=-1) if twice else found
        return (found @ value).transpose(1, 2).contiguous(), found

    hooks.eagerly(target.model, function, target.undo)


def _leak_next(right: Tensor, real: Tensor) -> Tensor:
    """Each query also sees the next token."""
    n = right.shape[-1]
    return torch.ones(n, n, dtype=torch.bool).tril(1) & real[:, None, None, :]


def _no_self(right: Tensor, real: Tensor) -> Tensor:
    """Each query sees only what is before it; the first one itself, since it has nothing else."""
    shown = right.tril(-1)
    shown[..., 0, 0] = True
    return shown & real[:, None, None, :]


def _neighbours(right: Tensor, real: Tensor) -> Tensor:
    """Each sequence has the padding of the one before it."""
    return right | (real.roll(1, dims=0)[:, None, None, :] & ~real[:, None, None, :])


def _causal_not(right: Tensor, real: Tensor) -> Tensor:
    n = right.shape[-1]
    return torch.ones(n, n, dtype=torch.bool).triu(1).logical_or(torch.eye(n, dtype=torch.bool)) & real[:, None, None]


def _positions(target: Target, by: Callable[[Tensor], Tensor]) -> None:
    if not hooks.positions(target.model, by, target.undo):
        raise ValueError("this model has no numbers of positions")


CAUSAL, ENCODER = ("causal",), ("encoder",)
SATURATED = ("SS001", "SS003", "SS004", "SS006", "SS009", "SS013")
NUMBERED = ("causal", "encoder")  # models whose positions are numbers: T5 has a bias
FAULTS = (
    Fault("no causal mask", "mask", lambda t: t.remasked(lambda right, real: real[:, None, None].expand_as(right)),
          ("SS014",), CAUSAL, repaired=True),
    Fault("the next token is visible", "mask", lambda t: t.remasked(_leak_next), ("SS014",), CAUSAL, repaired=True),
    Fault("no causal mask in the decoder", "mask",
          lambda t: t.remasked(lambda right, real: real[:, None, None].expand_as(right)), ("SS014",), ("both",),
          repaired=True, only="decoder"),
    Fault("causal mask inverted", "mask", lambda t: t.remasked(_causal_not), ("SS014",), CAUSAL, repaired=True),
    Fault("a token does not see itself", "mask", lambda t: t.remasked(_no_self), ("SS016",), CAUSAL),
    Fault("everything hidden", "mask", lambda t: t.remasked(lambda right, _: right & False), ("SS016",)),
    Fault("causal mask in an encoder", "mask", lambda t: t.remasked(lambda right, _: right.tril()), ("SS016",),
          ENCODER),
    Fault("padding visible", "mask", lambda t: t.remasked(lambda right, _: right | True), ("SS015",), ENCODER),
    Fault("padding mask inverted", "mask",
          lambda t: t.remasked(lambda right, real: ~real[:, None, None].expand_as(right)), ("SS015", "SS016"), ENCODER),
    Fault("padding of another sequence", "mask", lambda t: t.remasked(_neighbours), ("SS015",), ENCODER),
    Fault("q zeroed", "q, k, v", lambda t: t.changed("q", lambda x: 0.0 * x), ("SS019",)),
    Fault("k zeroed", "q, k, v", lambda t: t.changed("k", lambda x: 0.0 * x), ("SS019",)),
    Fault("v zeroed", "q, k, v", lambda t: t.changed("v", lambda x: 0.0 * x), ("SS019", "SS009")),
    Fault("one head for all", "q, k, v", lambda t: t.changed("qkv", _one_head), ("SS019",), ("encoder", "both")),
    Fault("keys on one line", "q, k, v", lambda t: t.changed("k", _on_one_line), ("SS019",), ("encoder", "both")),
    Fault("q and k swapped", "q, k, v", lambda t: t.each(lambda m: hooks.swap(m, "q", "k", t.undo)), (),
          ("encoder", "both")),
    Fault("k and v swapped", "q, k, v", lambda t: t.each(lambda m: hooks.swap(m, "k", "v", t.undo)), ()),
    Fault("q, k, v frozen", "training", lambda t: _frozen(t, "qkv"), ("SS018",)),
    Fault("q frozen", "training", lambda t: _frozen(t, "q"), ("SS018",), ("encoder", "both")),
    Fault("q, k, v in no optimizer", "training", _forgotten, ("SS018",)),
    Fault("q detached", "training", lambda t: t.changed("q", Tensor.detach), ("SS018",)),
    Fault("k detached", "training", lambda t: t.changed("k", Tensor.detach), ("SS018",)),
    Fault("v detached", "training", lambda t: t.changed("v", Tensor.detach), ("SS018",)),
    Fault("output detached", "training", _cut, ("SS017",)),
    Fault("no_grad inside", "training", _without_grad, ("SS017",)),
    Fault("output times 0", "training", _silenced, ("SS009", "SS017")),
    Fault("no 1/√d", "score", lambda t: t.each(lambda m: hooks.rescale(m, 4.0, t.undo)),
          ("SS005",), ("causal", "encoder"), also=SATURATED),
    Fault("16 times the scale", "score", lambda t: t.each(lambda m: hooks.rescale(m, 16.0, t.undo)),
          ("SS005",), ("causal", "encoder"), also=SATURATED),
    Fault("a sixteenth of the scale", "score", lambda t: t.each(lambda m: hooks.rescale(m, 1 / 16, t.undo)),
          ("SS005",), ("causal", "encoder"), also=SATURATED),
    Fault("W_Q and W_K × 8", "score", lambda t: _grown(t, 8.0), SATURATED),
    Fault("dropout before the softmax", "score", lambda t: _eager(t, drop=0.3), ("SS020",), eager=True, whole=True),
    Fault("softmax twice", "score", lambda t: _eager(t, twice=True), ("SS020",), eager=True, whole=True,
          also=("SS014", "SS015")),
    Fault("scores in float16", "score", lambda t: _eager(t, half=True), ("SS012", "SS008"), ("causal", "encoder"),
          eager=True, whole=True),
    Fault("no positions", "positions", lambda t: _positions(t, lambda at: at * 0 - 1), ("SS021",), NUMBERED,
          whole=True),
    Fault("positions end at 8", "positions", lambda t: _positions(t, lambda at: at.clamp(max=7)), ("SS021",),
          NUMBERED, whole=True),
    Fault("positions shifted by 3", "positions", lambda t: _positions(t, lambda at: (at + 3) % 24), (), NUMBERED,
          whole=True),
)  # fmt: skip
# Their names for the page in Chinese.
CHINESE = {
    "no causal mask": "没有因果掩码",
    "the next token is visible": "看得到下一个 token",
    "no causal mask in the decoder": "解码器没有因果掩码",
    "causal mask inverted": "因果掩码反了",
    "a token does not see itself": "token 看不到自己",
    "everything hidden": "全部藏住",
    "causal mask in an encoder": "编码器里有因果掩码",
    "padding visible": "看得到填充",
    "padding mask inverted": "填充掩码反了",
    "padding of another sequence": "用了别的序列的填充",
    "q zeroed": "q 为 0",
    "k zeroed": "k 为 0",
    "v zeroed": "v 为 0",
    "one head for all": "各头共用一个头",
    "keys on one line": "键在一条直线上",
    "q and k swapped": "q、k 对调",
    "k and v swapped": "k、v 对调",
    "q, k, v frozen": "q、k、v 冻结",
    "q frozen": "q 冻结",
    "q, k, v in no optimizer": "q、k、v 不在优化器里",
    "q detached": "q 被 detach",
    "k detached": "k 被 detach",
    "v detached": "v 被 detach",
    "output detached": "输出被 detach",
    "no_grad inside": "里面有 no_grad",
    "output times 0": "输出乘以 0",
    "no 1/√d": "没有 1/√d",
    "16 times the scale": "缩放的 16 倍",
    "a sixteenth of the scale": "缩放的十六分之一",
    "W_Q and W_K × 8": "W_Q、W_K × 8",
    "dropout before the softmax": "softmax 之前有 dropout",
    "softmax twice": "softmax 做两次",
    "scores in float16": "分数用 float16",
    "no positions": "没有位置",
    "positions end at 8": "位置到 8 为止",
    "positions shifted by 3": "位置平移 3",
}
