"""Tries heads on a batch: how the loss changes if a head is made uniform, or softer."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING, Any

from softscope.doctor.examine import Given, forward_loss, passes
from softscope.doctor.judge.checks.scale import too_large
from softscope.doctor.judge.states import DOUBTED
from softscope.doctor.read.effect import Effect, effect
from softscope.doctor.read.head_trial import HeadTrial, Trials
from softscope.doctor.trial.intervention import NO_CALL, CannotTryError, Intervention, Spreads
from softscope.doctor.trial.untouched import untouched
from softscope.doctor.trial.would_learn import PASSES, would_learn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from torch import Tensor, nn

    from softscope.doctor.diagnosis import Diagnosis

PARTS = 16  # of the batch, over which standard errors are taken
FEWEST = 4  # parts

# Checks that compare a head with its siblings or with its past: a trial tells whether it does harm.
NAMED = ("SS004", "SS006")


def try_heads(
    model: nn.Module,
    batch: Any,
    heads: Mapping[str, Iterable[int]],
    *,
    loss: Callable[[Any, Any], Tensor] | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Trials:
    """Try each head: as it is, uniform, softer, and, if that decides nothing, where its gradient points then.

    It costs 1 + 2·heads forward passes over the batch, and one more with its backward pass for each head that is
    neither useful nor better at once. The model, random states, gradients and hooks are left as they were, bit for bit.

    Args:
        model: Any module the probe can read.
        batch: Passed to the model as `examine` does, or a list of such; cut along the first axis, so that there is a
            standard error.
        heads: The heads to try, by site, named as in `scope.sites`.
        loss: Computes the loss from output and batch. If None, the output's own `loss` is used.
        progress: Called with the share that is done.
    """
    began = time.monotonic()
    found = Trials()
    wanted = [(site, head) for site, some in heads.items() for head in some]
    if not wanted:
        return found
    given = Given(model, parts_of(batch), loss)

    def passed(many: float) -> None:
        found.passes += many

    with untouched(model):
        spreads = Spreads(model)
        base = []
        for part in given.batches:
            with spreads.on():
                base.append(forward_loss(given, part))
        passed(1.0)
        for done, (site, head) in enumerate(wanted):
            progress(done / len(wanted))
            try:
                found[site, head] = _tried(given, base, spreads, site, head, passed)
            except CannotTryError as error:
                found[site, head] = error.why
    progress(1.0)
    found.seconds = time.monotonic() - began
    return found


def _tried(
    given: Given, base: list[float], spreads: Spreads, site: str, head: int, passed: Callable[[float], None]
) -> HeadTrial:
    spread = spreads.of(site, head)
    if math.isnan(spread):
        raise CannotTryError(NO_CALL)
    temperature = max(spread, 1.0)

    def changed(by: float) -> Effect:
        differences = []
        for part, before in zip(given.batches, base, strict=True):  # part by part: what is common to both cancels
            with Intervention(given.model, site, head, by).on():
                differences.append(forward_loss(given, part) - before)
        passed(1.0)
        return effect(differences)

    mean = math.fsum(base) / len(base)
    found = HeadTrial(changed(math.inf), changed(temperature), temperature, mean, len(base))
    if found.useful or found.better_softer:
        return found
    passed(PASSES)
    known = spreads.queries_and_keys(site, head)
    return dataclasses.replace(found, slope=would_learn(given, site, head, temperature, known))


def suspects(diagnosis: Diagnosis) -> dict[str, list[int]]:
    """The heads worth a trial, by site: those that the readings suspect, and those named by what may be harmless."""
    view = diagnosis.view
    wanted = {head for head, found in view.states.items() if found.state in DOUBTED}
    for outcome in diagnosis.outcomes:
        if outcome.code in NAMED and outcome.kind in ("finding", "tip"):
            wanted.update(head for head in outcome.heads if head.head is not None)
    # A scale that is too large does harm before many rows are blocked.
    wanted.update(head for head in view.heads if too_large(view, head.site))
    found: dict[str, list[int]] = {}
    for head in view.heads:
        if head in wanted and head.head is not None:
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
