"""Draws W_Q and W_K of single heads anew: for heads that are stuck on what they learned, or never learned anything."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from softscope._arguments.checks import positive, whole_number
from softscope._text import Text
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies import registry, weights
from softscope.doctor.treat.remedies.applied import Applied, Change
from softscope.doctor.treat.remedies.places import module_of
from softscope.tasks import Attention

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor, nn

    from softscope.doctor.treat.remedies.layout import Layout
    from softscope.doctor.treat.remedies.linear_maps import HeadRows

Held = tuple[tuple["Tensor", "Tensor"], ...]


def reinitialise(
    model: nn.Module,
    heads: Mapping[str, Iterable[int] | Mapping[int, float]],
    *,
    seed: int = 0,
    layout: Mapping[str, Layout] | None = None,
) -> Applied:
    """Draw W_Q and W_K of these heads anew, so that their logits have a standard deviation of about 1.

    W_K ~ N(0, 1/(s·√d·m)) and W_Q ~ N(0, spread²/(s²·m·‖W_K‖²)) for m inputs, heads of d components and a factor s on
    q·k: with s = 1/√d, both are the usual N(0, 1/m). Biases become 0 in modules that start them at 0; others are drawn
    as `nn.Linear` does, and LoRA's B becomes 0. A key head that other query heads share stays as it is. The head
    forgets what it read, and the model needs further training; an optimizer's moments of these rows fade by themselves.

    Args:
        model: changed in place.
        heads: the heads of each site, named as in `scope.sites`; or their standard deviations of the logits, for inputs
            of variance 1.
        seed: decides the new weights.
        layout: where modules that are not known by name keep W_Q and W_K, as `remedies.layouts` finds it.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> before = model.in_proj_weight.detach().clone()
    >>> done = remedies.reinitialise(model, {"MultiheadAttention": [1]})
    >>> done.changes[0].heads, bool((model.in_proj_weight[4:8] != before[4:8]).all())
    ((1,), True)
    >>> done.undo()
    >>> torch.equal(model.in_proj_weight, before)
    True
    """
    seed = whole_number(seed, "seed", 0)
    wanted = {site: _spreads(some) for site, some in heads.items()}
    found = {site: weights.projections(model, module_of(model, site), site, layout) for site in wanted}
    for site, spreads in wanted.items():
        for head in spreads:
            if not 0 <= head < found[site].heads:
                raise ValueError(
                    f"head must be one of 0 … {found[site].heads - 1} at {site}, but got {head}; scope.sites says how "
                    f"many there are"
                )
    used = {site: layout[site] for site in wanted if layout is not None and site in layout}
    done = Applied("reinitialise", code=call("remedies.reinitialise", wanted, seed=seed, layout=used))
    generator = torch.Generator().manual_seed(seed)
    for site, spreads in wanted.items():
        module, projections = module_of(model, site), found[site]
        draw = functools.partial(_drawn, generator=generator, zero=_starts_at_zero(module))
        size = projections.q[0].weight.shape[0]
        factor = _factor(module, size)
        for head in sorted(spreads):
            shared = range(head - head % projections.group, head - head % projections.group + projections.group)
            key = projections.k[head // projections.group]
            whole = all(member in spreads for member in shared)
            held: Held = ()
            if whole and head == shared[0]:
                held += draw(key, (factor * math.sqrt(size) * key.weight.shape[1]) ** -0.5)
            query = projections.q[head]
            length = float(torch.linalg.matrix_norm(key.weight.detach().double()))
            held += draw(query, spreads[head] / (factor * math.sqrt(query.weight.shape[1]) * max(length, 1e-12)))
            done.on_undo(functools.partial(weights.put_back, held))
            what = Text(zh="重新抽取 W_Q、W_K", en="W_Q and W_K drawn anew") if whole else Text(
                zh="重新抽取 W_Q；W_K 与其他头共用，不变", en="W_Q drawn anew; W_K is shared with other heads and stays"
            )  # fmt: skip
            done.changes.append(Change(site, (head,), what, projections.place))
    return done


def _spreads(some: Iterable[int] | Mapping[int, float]) -> dict[int, float]:
    spreads = dict(some) if isinstance(some, Mapping) else dict.fromkeys(some, 1.0)
    for spread in spreads.values():
        positive(spread, "spread", "1.0 is a fresh head's")
    return spreads


def _drawn(rows: HeadRows, std: float, *, generator: torch.Generator, zero: bool) -> Held:
    """Draw one head's rows in place, on the CPU so that every device gets the same; return the earlier values."""
    held = tuple((part.detach(), part.detach().clone()) for part in rows.tensors)

    def put(part: Tensor, values: Tensor) -> None:
        part.detach().copy_(values.to(part))

    with torch.no_grad():
        put(rows.weight, std * torch.randn(rows.weight.shape, generator=generator))
        if rows.bias is not None:
            among = rows.weight.shape[1] ** -0.5
            drawn = torch.zeros(rows.bias.shape)
            put(rows.bias, drawn if zero else drawn.uniform_(-among, among, generator=generator))
        for adapter in rows.adapters:
            adapter.detach().zero_()
        if rows.extra is not None:  # as PyTorch draws `bias_k`
            put(rows.extra, rows.weight.shape[1] ** -0.5 * torch.randn(rows.extra.shape, generator=generator))
    return held


def _starts_at_zero(module: nn.Module) -> bool:
    """Whether the module's own initialisation sets biases to 0: PyTorch's multi-head layer and Hugging Face do."""
    return isinstance(module, torch.nn.MultiheadAttention) or registry.reaches(module)


def _factor(module: Any, size: int) -> float:
    """The factor on q·k, where the module names it; 1/√d otherwise."""
    named = [getattr(module, "scaling", None), getattr(module, "scale", None)]
    if isinstance(module, Attention):
        named = [module.factor]
    elif isinstance(module, torch.nn.MultiheadAttention):
        named = [getattr(getattr(module, "options", None), "scale", None)]
    found = next((x for x in named if isinstance(x, float | int) and not isinstance(x, bool) and x > 0), None)
    return size**-0.5 if found is None else float(found)
