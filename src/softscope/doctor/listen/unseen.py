"""Modules that look like attention but made no observed call."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torch import nn

from softscope.doctor.listen import module_paths, reasons
from softscope.doctor.listen.reasons import Reason

_ATTENTION = re.compile(r"attention|attn|mha$", re.IGNORECASE)


def unseen_modules(model: nn.Module, sites: Iterable[str], passes: int, whole: bool = True) -> list[tuple[str, Reason]]:
    """Path and reason of each missed module, outermost modules only.

    Args:
        model: The model.
        sites: Names of what was read.
        passes: How many forward passes were seen.
        whole: Whether the model itself was called; else only parts of it were.
    """
    sites = list(sites)
    if passes and not whole and not sites:
        return [(type(model).__name__, Reason(reasons.PARTS))]
    observed = [site.partition("#")[0] for site in sites]
    why = Reason(reasons.SILENT if passes else reasons.NO_PASS)
    known = module_paths.paths(model)
    missed: list[str] = []
    for module in model.modules():
        path = known[id(module)]
        if not _ATTENTION.search(type(module).__name__) or not any(True for _ in module.parameters()):
            continue
        near = any(_inside(path, site) or _inside(site, path) for site in observed)
        if not near and not any(_inside(path, other) for other in missed):
            missed.append(path)
    if not passes and not missed:
        missed.append(type(model).__name__)
    return [(path, why) for path in missed]


def _inside(path: str, outer: str) -> bool:
    return path == outer or path.startswith(outer + ".")
