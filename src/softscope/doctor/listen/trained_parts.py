"""Which of the projections of q, k and v train: what an optimizer's step shows of their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from softscope.doctor.listen.projections import Part, Role, adapted, projections
from softscope.doctor.listen.trained_codes import ALONE, NO_GRADIENT, NO_OPTIMIZER, READINGS, TRAINS, WITH_ALL

if TYPE_CHECKING:
    from collections.abc import Iterable


class TrainedParts:
    """Looks at the projections of each site when an optimizer has stepped.

    Gradients are looked at right after that, and only those of the optimizer's own parameters: by the next forward pass
    they may have been deleted, and with one optimizer for each parameter those of the others already are.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._held: set[int] = set()  # parameters that any optimizer has
        self._known: dict[str, nn.Module] = {}
        self._moved: dict[tuple[str, Role], bool] = {}  # whether a gradient was there
        self._reached: set[str] = set()  # sites with a gradient in any parameter of their modules
        self._stepped = False

    def note(self, site: str, module: nn.Module) -> None:
        """Look at this site's projections from now on."""
        self._known.setdefault(site, module)

    def stepped(self, optimizer: torch.optim.Optimizer, reading: bool) -> None:
        """An optimizer of this model has stepped; look at the gradients if the step is read."""
        own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self._held |= own
        if not reading:
            return
        self._stepped = True
        for site, module in self._known.items():
            mine = [Part(p).of(p.grad) for p in module.parameters() if id(p) in own and p.grad is not None]
            if site not in self._reached and _some(mine):
                self._reached.add(site)
            # Looked up each time: in a forward pass, FSDP has other parameters here than the optimizer knows.
            for role, of_role in projections(module).items():
                those = [part for part in of_role if id(part.parameter) in own and part.parameter.requires_grad]
                those = [part for part in those if part.of(part.parameter).numel()]  # else other ranks hold it
                grads = [part.of(part.parameter.grad) for part in those if part.parameter.grad is not None]
                if those:
                    self._moved[site, role] = self._moved.get((site, role), False) or _some(grads)

    def taken(self) -> dict[str, dict[str, float]]:
        """What the step that is over has shown, by site and reading; {} if no optimizer stepped."""
        found: dict[str, dict[str, float]] = {}
        if self._stepped:
            few = _few_trained(self._model)
            for site, module in self._known.items():
                codes = {
                    READINGS[role]: self._code(site, role, module, of_role, few)
                    for role, of_role in projections(module).items()
                }
                found |= {site: codes} if codes else {}
        self._moved, self._stepped, self._reached = {}, False, set()
        return found

    def cut_off(self, site: str) -> bool | None:
        """Whether no parameter of the site's module got a gradient in this step; None if none is meant to.

        An output without a gradient proves nothing by itself: the module may be called again, as in recycling and in
        reentrant checkpointing, or train behind its softmax.
        """
        if site not in self._known or not self._stepped:
            return None
        module = self._known[site]
        held = any(id(p) in self._held for p in module.parameters() if p.requires_grad)
        return site not in self._reached if held else None

    def _code(self, site: str, role: Role, module: nn.Module, parts: list[Part], few: bool) -> float:
        if not any(part.parameter.requires_grad for part in parts):
            alone = not few and not adapted(module) and any(p.requires_grad for p in module.parameters())
            return ALONE if alone else WITH_ALL
        moved = self._moved.get((site, role))
        if moved is None:
            if any(id(part.parameter) in self._held for part in parts):
                return TRAINS  # by an optimizer that did not step this time
            # A module of which nothing is held is left alone on purpose, or its optimizer is yet to step.
            return NO_OPTIMIZER if any(id(p) in self._held for p in module.parameters()) else WITH_ALL
        return TRAINS if moved else NO_GRADIENT


def _few_trained(model: nn.Module) -> bool:
    """Whether most of the model is frozen, as in fine-tuning."""
    some = [(p.numel(), p.requires_grad) for p in model.parameters()]
    return 2 * sum(n for n, trained in some if trained) < sum(n for n, _ in some)


@torch.no_grad()
def _some(grads: Iterable[torch.Tensor]) -> bool:
    """Whether any of them is not zero; the first entries tell in most cases."""
    return any(bool(grad.reshape(-1)[:64].any()) or bool(grad.any()) for grad in grads)
