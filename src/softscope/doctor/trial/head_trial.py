"""Tries heads on a batch: how the loss changes if a head is made uniform, or softer."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from softscope.doctor.examine import Given, forward_loss, passes
from softscope.doctor.trial.intervention import CannotTryError, Intervention, Spreads
from softscope.doctor.trial.untouched import untouched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from torch import Tensor, nn

    from softscope.doctor.judge.history_view import HistoryView

PARTS = 16  # of the batch, over which standard errors are taken
CLEAR = 2.0  # standard errors between an effect and none
FEWEST = 4  # parts
NOTHING = 0.01  # of the loss


@dataclasses.dataclass(frozen=True)
class Effect:
    """The mean change of the loss, and its standard error over the parts of the batch.

    >>> Effect(0.3, 0.1).costs, Effect(-0.3, 0.1).helps, Effect(0.1, 0.1).costs
    (True, True, False)
    """

    change: float
    error: float

    @property
    def costs(self) -> bool:
        """Whether the loss clearly rises."""
        return self.change > CLEAR * self.error

    @property
    def helps(self) -> bool:
        """Whether the loss clearly falls."""
        return self.change < -CLEAR * self.error


@dataclasses.dataclass(frozen=True)
class HeadTrial:
    """What trying one head showed.

    Attributes:
        uniform: The loss if the head reads all visible keys alike, less the loss as it is.
        softened: The same if its logits are divided by `temperature`.
        temperature: The standard deviation of its logits within a row, so that softened logits have 1; at least 1.
        loss: The loss as it is.
        parts: How many parts of the batch were compared.
    """

    uniform: Effect
    softened: Effect
    temperature: float
    loss: float
    parts: int

    @property
    def useful(self) -> bool:
        """Whether the model needs what the head reads: made uniform, it costs."""
        return self.uniform.costs

    @property
    def idle(self) -> bool:
        """Whether the loss rises by less than a hundredth without it, and softening does not help."""
        most = self.uniform.change + CLEAR * self.uniform.error
        return not self.better_softer and most < NOTHING * abs(self.loss)

    @property
    def better_softer(self) -> bool:
        """Whether softening helps."""
        return self.softened.helps


def try_heads(
    model: nn.Module,
    batch: Any,
    heads: Mapping[str, Iterable[int]],
    *,
    loss: Callable[[Any, Any], Tensor] | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> dict[tuple[str, int], HeadTrial | str]:
    """Try each head; a sentence in place of a result says why a head could not be tried.

    It costs 1 + 2·heads forward passes over the batch. The model, random states, gradients and hooks are left as they
    were, bit for bit.

    Args:
        model: Any module the probe can read.
        batch: Passed to the model as `examine` does, or a list of such; cut along the first axis, so that there is a
            standard error.
        heads: The heads to try, by site, named as in `scope.sites`.
        loss: Computes the loss from output and batch. If None, the output's own `loss` is used.
        progress: Called with the share that is done.
    """
    given = Given(model, parts_of(batch), loss)
    wanted = [(site, head) for site, some in heads.items() for head in some]
    done, total = 0, 1 + 2 * len(wanted)
    with untouched(model):
        spreads = Spreads(model)
        base = []
        for part in given.batches:
            with spreads.on():
                base.append(forward_loss(given, part))
        found: dict[tuple[str, int], HeadTrial | str] = {}
        for site, head in wanted:
            done += 2
            progress(done / total)
            spread = spreads.of(site, head)
            if math.isnan(spread):
                found[site, head] = "no call of it was seen"
                continue
            temperature = max(spread, 1.0)
            try:
                uniform, softened = (
                    _effect(given, base, Intervention(model, site, head, by)) for by in (math.inf, temperature)
                )
            except CannotTryError as error:
                found[site, head] = str(error)
                continue
            mean = sum(base) / len(base)
            found[site, head] = HeadTrial(uniform, softened, temperature, mean, len(base))
    return found


def suspected(view: HistoryView) -> dict[str, list[int]]:
    """The heads that the readings call starving, by site."""
    found: dict[str, list[int]] = {}
    for head, state in view.states.items():
        if state.state == "starving" and head.head is not None:
            found.setdefault(view.site(head).name, []).append(head.head)
    return found


def parts_of(batch: Any) -> list[Any]:
    """Cut a batch, or each of a list of batches, into 16 parts in all, or 4 if it is short; else leave it whole."""
    batches = batch if isinstance(batch, list) else [batch]
    found: list[Any] = []
    for one in batches:
        for many in (-(-PARTS // len(batches)), -(-FEWEST // len(batches))):
            parts = passes(one, many)
            if parts[0] is not one:
                found += parts
                break
        else:
            found.append(one)
    return found


def _effect(given: Given, base: list[float], change: Intervention) -> Effect:
    """Compare with the loss as it is, part by part: what is common to both cancels."""
    differences = []
    for part, before in zip(given.batches, base, strict=True):
        with change.on():
            differences.append(forward_loss(given, part) - before)
    n = len(differences)
    mean = sum(differences) / n
    if n < 2:
        return Effect(mean, math.nan)
    return Effect(mean, math.sqrt(sum((d - mean) ** 2 for d in differences) / (n - 1) / n))
