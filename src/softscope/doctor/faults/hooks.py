"""Where a model can be changed: its attention modules, their q, k and v, their masks, positions and softmax.

Nothing here is shared with what the doctor uses to find them.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

NAMES = (("q_proj", "k_proj", "v_proj"), ("query", "key", "value"), ("q", "k", "v"))
MAPS = "qkv"


def attentions(model: nn.Module) -> dict[str, nn.Module]:
    """The self-attention modules by path."""
    return {
        path: module for path, module in model.named_modules()
        if _maps(module) and "EncDec" not in path and not path.endswith("output")
    }  # fmt: skip


def weights(module: nn.Module, what: str = MAPS) -> list[nn.Parameter]:
    """The parameters of the maps that make q, k or v; GPT-2 has one for all."""
    maps = _maps(module)
    return [p for letter in what for p in maps[letter].parameters()]


def change(module: nn.Module, what: str, by: Callable[[Tensor], Tensor], undo: contextlib.ExitStack) -> None:
    """Pass what makes q, k or v through a function, from now on."""
    maps = _maps(module)
    packed = maps["q"] is maps["k"]

    def one(_: Any, __: Any, out: Tensor) -> Tensor:
        return by(out)

    def third(_: Any, __: Any, out: Tensor) -> Tensor:
        parts = list(out.chunk(3, dim=-1))
        for letter in what:
            parts[MAPS.index(letter)] = by(parts[MAPS.index(letter)])
        return torch.cat(parts, dim=-1)

    for own in {id(maps[letter]): maps[letter] for letter in what}.values():
        undo.callback(own.register_forward_hook(third if packed else one).remove)


def swap(module: nn.Module, one: str, other: str, undo: contextlib.ExitStack) -> None:
    """Let two of q, k and v change places."""
    maps = _maps(module)
    if maps["q"] is maps["k"]:
        order = [MAPS.index({one: other, other: one}.get(letter, letter)) for letter in MAPS]
        undo.callback(
            maps["q"]
            .register_forward_hook(lambda _, __, out: torch.cat([out.chunk(3, dim=-1)[i] for i in order], dim=-1))
            .remove
        )
        return
    names = next(names for names in NAMES if hasattr(module, names[0]))
    first, second = names[MAPS.index(one)], names[MAPS.index(other)]
    setattr(module, first, maps[other])
    setattr(module, second, maps[one])
    undo.callback(setattr, module, first, maps[one])
    undo.callback(setattr, module, second, maps[other])


def remask(
    model: nn.Module,
    module: nn.Module,
    causal: bool,
    by: Callable[[Tensor, Tensor], Tensor],
    undo: contextlib.ExitStack,
) -> None:
    """Give a module another mask: `by(right, real)` gets what each query should see, and which keys are tokens."""
    given: dict[str, Tensor] = {}

    def note(_: Any, __: Any, named: dict[str, Any]) -> None:
        given["real"] = named["attention_mask"].bool()

    def replace(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x = args[0] if args else named["hidden_states"]
        batch, n = x.shape[:2]
        real = given["real"] if given["real"].shape[1] == n else torch.ones(batch, n, dtype=torch.bool)
        right = real[:, None, None, :].expand(batch, 1, n, n)
        right = right.tril() if causal else right
        shown = by(right.clone(), real)
        mask = torch.zeros(shown.shape).masked_fill(~shown, torch.finfo(torch.float32).min)
        names = list(inspect.signature(module.forward).parameters)
        name = "attention_mask" if "attention_mask" in names else "mask"
        bound = dict(zip(names, args, strict=False)) | named | {name: mask}
        return (), bound

    undo.callback(model.register_forward_pre_hook(note, with_kwargs=True).remove)
    undo.callback(module.register_forward_pre_hook(replace, with_kwargs=True).remove)


def rescale(module: Any, times: float, undo: contextlib.ExitStack) -> None:
    """Multiply the scale of q·k."""
    before = module.scaling
    module.scaling = before * times
    undo.callback(setattr, module, "scaling", before)


def eagerly(model: nn.Module, function: Callable[..., Any], undo: contextlib.ExitStack) -> None:
    """Let every layer of a model with eager attention compute it with another function."""
    homes = {sys.modules[type(module).__module__] for module in attentions(model).values()}
    for home in homes:
        undo.callback(setattr, home, "eager_attention_forward", home.eager_attention_forward)
        home.eager_attention_forward = function  # type: ignore[attr-defined]


def positions(model: nn.Module, by: Callable[[Tensor], Tensor], undo: contextlib.ExitStack) -> bool:
    """Pass the numbers of positions through a function; −1 stands for no position. False if the model has none."""
    for module in model.modules():
        kind = type(module).__name__
        if kind.endswith("RotaryEmbedding"):
            undo.callback(module.register_forward_hook(lambda _, __, out: _rotated(out, by)).remove)
            return True
        for name in ("wpe", "position_embeddings"):
            table = getattr(module, name, None)
            if isinstance(table, nn.Embedding):
                undo.callback(table.register_forward_hook(lambda of, args, _: _looked_up(of, by(args[0]))).remove)
                return True
    return False


def _looked_up(table: nn.Module, at: Tensor) -> Tensor:
    assert isinstance(table, nn.Embedding)
    found = nn.functional.embedding(at.clamp(min=0, max=table.num_embeddings - 1), table.weight)
    return found * (at >= 0)[..., None]


def _rotated(out: tuple[Tensor, Tensor], by: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    at = by(torch.arange(out[0].shape[-2]))
    where = at.clamp(min=0, max=out[0].shape[-2] - 1)
    kept = (at >= 0)[:, None]
    cos, sin = (x[..., where, :] for x in out)
    return torch.where(kept, cos, 1.0), torch.where(kept, sin, 0.0)


def _maps(module: nn.Module) -> dict[str, nn.Module]:
    if type(module).__name__ == "GPT2Attention":
        return dict.fromkeys(MAPS, module.c_attn)  # type: ignore[arg-type]
    for names in NAMES:
        found = [getattr(module, name, None) for name in names]
        if all(isinstance(one, nn.Linear) for one in found):
            return dict(zip(MAPS, found, strict=True))  # type: ignore[arg-type]
    return {}
