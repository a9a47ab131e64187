"""Remedies that change how weights are computed from q and k, for the modules that support it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from torch import nn

import softscope.nn
from softscope._text import Text
from softscope.doctor.treat.remedies import registry
from softscope.doctor.treat.remedies.applied import Applied, Change, NotSupportedError, unsupported
from softscope.doctor.treat.remedies.places import chosen, module_of
from softscope.nn.multihead import adopt, take_options
from softscope.nn.options import Options
from softscope.nn.replacing import encoders_around
from softscope.tasks import Attention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

INSTEAD = "build the layer with softscope.nn.MultiheadAttention, or call softscope.attention in it"


def change(
    remedy: str, model: nn.Module, sites: Iterable[str] | None, what: Text, options: Any, code: str = ""
) -> Applied:
    """Change the attention options at these sites (None: at all known sites).

    Args:
        remedy: its name, for the report.
        model: changed in place; if one site cannot be changed, none is.
        sites: names as in `scope.sites`.
        what: the change in words.
        options: fields of `softscope.nn.options.Options`, or a function from module and site to them.
        code: the call that does the same.
    """
    done = Applied(remedy, code=code)
    work: list[Callable[[], None]] = []
    for site in chosen(model, sites):
        module = module_of(model, site)
        wanted = options(module, site) if callable(options) else options
        work.append(_prepared(done, model, module, site, wanted))
        done.changes.append(Change(site, (), what, "options"))
    for step in work:
        step()
    return done


def supported(model: nn.Module, site: str, options: dict[str, Any]) -> bool:
    """Whether the module at this site takes these options."""
    try:
        _prepared(Applied(""), model, module_of(model, site), site, options)
    except NotSupportedError:
        return False
    return True


def _prepared(done: Applied, model: nn.Module, module: nn.Module, site: str, wanted: dict[str, Any]) -> Any:
    """The function that makes the change; raises first if the module does not support it."""
    if isinstance(module, Attention):
        return _task(done, module, wanted)
    if isinstance(module, softscope.nn.MultiheadAttention):
        return _ours(done, module, dataclasses.replace(module.options, **wanted))
    if type(module) is nn.MultiheadAttention:
        return _torch(done, model, module, Options(**wanted))
    if registry.reaches(module):
        return registry.prepared(done, model, module, site, wanted)
    raise unsupported(site, f"{type(module).__name__} forms its weights in code of its own", INSTEAD)


def _ours(done: Applied, module: softscope.nn.MultiheadAttention, options: Options) -> Any:
    before = module.options

    def work() -> None:
        _taking(done, module, lambda: take_options(module, options))
        done.on_undo(back)

    def back() -> None:
        if isinstance(module, softscope.nn.MultiheadAttention):  # else an earlier undo has already reverted this
            take_options(module, before)

    return work


def _task(done: Applied, layer: Attention, wanted: dict[str, Any]) -> Any:
    before = layer.options
    named = dict(wanted)
    if "sink" in named:
        named["sink"] = 0.0 if named["sink"] else None
    if "temperature" in named:
        del named["temperature"]
        named["learn_temperature"] = True  # starts at the layer's current temperature
    elif named.get("scale") is not None and not before.learn_temperature:
        named["temperature"] = 1.0
    options = dataclasses.replace(before, **named)

    def work() -> None:
        _taking(done, layer, lambda: layer.take(options))
        done.on_undo(lambda: layer.take(before))

    return work


def _torch(done: Applied, model: nn.Module, module: nn.MultiheadAttention, options: Options) -> Any:
    def work() -> None:
        same, had = module._qkv_same_embed_dim, set(module._parameters)
        _taking(done, module, lambda: adopt(module, options, softscope.nn.MultiheadAttention))
        encoders = [(e, e.use_nested_tensor) for e in encoders_around(model, [module])]
        for encoder, _ in encoders:
            encoder.use_nested_tensor = False

        def back() -> None:
            module.__class__ = nn.MultiheadAttention
            module._qkv_same_embed_dim = same
            del module.options
            for name in set(module._parameters) - had:
                del module._parameters[name]
            for encoder, nested in encoders:
                encoder.use_nested_tensor = nested

        done.on_undo(back)

    return work


def _taking(done: Applied, module: nn.Module, take: Callable[[], object]) -> None:
    """Make the change and record which parameters are new."""
    had = {id(parameter) for parameter in module.parameters()}
    take()
    done.parameters += [parameter for parameter in module.parameters() if id(parameter) not in had]
