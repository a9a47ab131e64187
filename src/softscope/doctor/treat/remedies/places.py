"""From the name of a site to the module that computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.doctor.listen import module_paths
from softscope.doctor.treat.remedies.applied import unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn


def module_of(model: nn.Module, site: str) -> nn.Module:
    """The module at a site, named as in `scope.sites`."""
    if "#" in site:
        raise unsupported(
            site,
            "this module is called several times in one pass, and what changes one call changes all",
            f"treat {site.partition('#')[0]} if all its calls need it",
        )
    paths = module_paths.paths(model)
    for module in model.modules():
        if paths[id(module)] == site:
            return module
    raise ValueError(f"site must be the path of a module, but got {site!r}; scope.sites lists those with attention")


def head_count(model: nn.Module, site: str) -> int:
    """Number of query heads at a site.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> remedies.head_count(torch.nn.TransformerEncoderLayer(8, 2), "self_attn")
    2
    """
    from softscope.doctor.treat.remedies import weights

    return weights.sizes(module_of(model, site), site)[0]


def attention_modules(model: nn.Module) -> list[str]:
    """Paths of the modules known to compute attention: the default target of a remedy."""
    from softscope.doctor.treat.remedies.weights import known

    paths = module_paths.paths(model)
    return [paths[id(module)] for module in model.modules() if known(module)]


def named(sites: Iterable[str] | None) -> list[str] | None:
    """The names as a list, which can be walked through twice."""
    return None if sites is None else [sites] if isinstance(sites, str) else list(sites)


def chosen(model: nn.Module, sites: Iterable[str] | None) -> list[str]:
    """The named sites, or all known ones; raises if there are none."""
    wanted = named(sites)
    found = attention_modules(model) if wanted is None else wanted
    if not found:
        raise ValueError(
            "model must have attention that softscope knows, but none was found; name the modules with sites=[…], as "
            "scope.sites does"
        )
    return found
