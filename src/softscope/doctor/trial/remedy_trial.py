"""Tries remedies before they are prescribed: the held-out loss at once and after a few steps, against no treatment."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from softscope._probe import probe
from softscope._text import Text, same
from softscope.doctor.examine import Given, forward_loss, passes, tensor_loss
from softscope.doctor.judge.thresholds import MANY
from softscope.doctor.read.effect import Effect, effect
from softscope.doctor.treat import remedies
from softscope.doctor.treat.code import round_up
from softscope.doctor.treat.remedies import weights
from softscope.doctor.treat.remedies.places import module_of
from softscope.doctor.treat.wordings import DO, short
from softscope.doctor.trial.head_trial import parts_of
from softscope.doctor.trial.intervention import Spreads
from softscope.doctor.trial.remedy_result import AlsoTried, RemedyTrial
from softscope.doctor.trial.short_training import Borrowed, resumed, steps, why_not
from softscope.doctor.trial.untouched import untouched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from softscope.doctor.treat.prescriptions import Prescription
    from softscope.doctor.treat.remedies import Applied
    from softscope.doctor.treat.treatment import Treatment

STEPS = 20
EVERY = 4  # a step sees a quarter of what there is to train on
TINY = 1e-3  # of the loss: a gain below is clear on paper only


class _Result(NamedTuple):
    """The held-out loss of each part, at once and after the steps; None if there were none."""

    now: list[float]
    after: list[float] | None


def try_plans(
    model: nn.Module,
    prescriptions: Sequence[Prescription],
    batch: Any,
    *,
    loss: Callable[[Any, Any], Tensor] | None = None,
    optimizer: Any = None,
    steps: int = STEPS,
    progress: Callable[[float], None] = lambda _: None,
) -> list[Prescription]:
    """Try the candidates of each prescription and keep the best; those that do not help clearly are not prescribed.

    Half of the batch's parts are for training, the others for judging. Prescriptions are tried one after the other,
    each with the ones before it in force. Afterwards the model is as it was, bit for bit: parameters, buffers,
    gradients, random states and the optimizer, which is never stepped.

    Args:
        model: the model that was read.
        prescriptions: with candidates, as `plans` makes them.
        batch: as for `try_heads`; the more rows, the smaller the standard error.
        loss: computes the loss from output and batch. If None, the output's own `loss` is used.
        optimizer: an optimizer, which goes on from a copy of its state; a function from parameters to an optimizer; or
            None for AdamW.
        steps: training steps for each candidate; 0 compares at once.
        progress: called with the share that is done.
    """
    if not any(given.candidates for given in prescriptions):
        return list(prescriptions)
    return _Trying(model, batch, loss, optimizer, steps, progress).of(prescriptions)


class _Trying:
    def __init__(
        self, model: nn.Module, batch: Any, loss: Any, optimizer: Any, count: int, progress: Callable[[float], None]
    ) -> None:
        inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel) else model
        self.model, self.optimizer, self.count, self.progress = inner, optimizer, count, progress
        self.given = Given(inner, (), loss)
        self.taught, judged = _halves(batch if isinstance(batch, list) else [batch])
        self.trains = count > 0 and bool(self.taught) and not why_not(inner)
        self.judged = parts_of(judged if self.trains else batch)
        self.passes, self.done, self.total = 0.0, 0, 1

    def of(self, prescriptions: Sequence[Prescription]) -> list[Prescription]:
        spread = why_not(self.model).startswith("its parameters are spread")
        if spread or len(self.judged) < 2:
            why = (
                Text(zh="没有试过：参数分布在多个进程上", en="not tried: its parameters are spread over processes")
                if spread
                else Text(zh="没有试过：批次只有一行，没有标准误差", en="not tried: one row has no standard error")
            )
            return [dataclasses.replace(given, untried=why) for given in prescriptions]
        self.total = 1 + sum(len(given.candidates) for given in prescriptions)
        found: list[Prescription] = []
        chosen: list[Treatment] = []
        with Borrowed(self.model) as borrowed:
            self.borrowed = borrowed
            self.layouts = self._layouts()
            base = self._untreated()
            for given in prescriptions:
                if not given.candidates:
                    found.append(given)
                    continue
                if given.candidates[0].repairs:
                    mended, base = self._mended(given, chosen, base)
                    chosen += [] if mended.tried is None else [given.candidates[0]]
                    found.append(mended)
                    continue
                tried, treatment, base = self._best(given, chosen, base)
                chosen += [] if treatment is None else [treatment]
                found.append(_prescribed(given, tried, treatment))
        return sorted(found, key=_order)

    def _best(
        self, given: Prescription, chosen: Sequence[Treatment], base: _Result
    ) -> tuple[RemedyTrial, Treatment | None, _Result]:
        began, passes = time.monotonic(), self.passes
        results: list[tuple[RemedyTrial, Treatment, _Result]] = []
        others: list[AlsoTried] = []
        for candidate in given.candidates:
            self._advance()
            try:
                treatment = self._calibrated(self._laid_out(candidate), chosen)
                blocked = self._blocked(treatment, chosen) if given.freed else 0.0
                result = self._run((*chosen, treatment)) if blocked < MANY.value else None
            except remedies.NotSupportedError as error:
                others.append(AlsoTried(short(candidate), same(str(error))))
                continue
            if result is None:
                why = Text(zh=f"{blocked:.0%} 的行仍被阻断", en=f"{blocked:.0%} of the rows stay blocked")
                if blocked < MANY.value:
                    why = Text(zh="损失不再有限", en="the loss is no longer finite")
                others.append(AlsoTried(short(treatment), why))
            else:
                results.append((self._compared(base, result, len(given.candidates)), treatment, result))
        results.sort(key=lambda entry: entry[0].effect.change)
        good = [entry for entry in results if entry[0].helps]
        less = [(trial, treatment) for trial, treatment, _ in results if not good or treatment is not good[0][1]]
        others = [AlsoTried(short(treatment), trial.effect.text, trial.effect) for trial, treatment in less] + others
        empty = RemedyTrial(_mean(base.now), math.nan, math.nan, Effect(math.nan, math.nan), None, 0, helps=False)
        trial = good[0][0] if good else results[0][0] if results else empty
        trial = dataclasses.replace(
            trial, others=tuple(others), passes=self.passes - passes, seconds=time.monotonic() - began
        )
        return (trial, good[0][1], good[0][2]) if good else (trial, None, base)

    def _mended(self, given: Prescription, chosen: Sequence[Treatment], base: _Result) -> tuple[Prescription, _Result]:
        """Try a repair. It stays prescribed whatever a few steps show, because a fault is no matter of taste.

        A model is used without later tokens and mostly without padding. What leaks is therefore judged with the right
        mask both times: as it is, it only feigns a low loss.
        """
        began, passes = time.monotonic(), self.passes
        (treatment,) = given.candidates
        self._advance()
        left, result = base, None
        try:
            if treatment.remedy == "unfreeze" and self._unknown_to_us(treatment):
                raise remedies.NotSupportedError("which weights your optimizer holds is unknown; pass optimizer=")
            left = (self._run(chosen, judged=treatment) if treatment.in_use else base) or base
            result = self._run((*chosen, treatment))
        except remedies.NotSupportedError as error:
            why = Text(zh=f"没有试过：{error}", en=f"not tried: {error}")
            return dataclasses.replace(given, treatment=None, untried=why), base
        if result is None:
            why = Text(zh="试过，损失不再有限", en="tried, but the loss is no longer finite")
            return dataclasses.replace(given, treatment=None, untried=why), base
        trial = dataclasses.replace(
            self._compared(left, result, 1, whatever=True),
            repair=True,
            feigned=_mean(base.now) if treatment.in_use else None,
            passes=self.passes - passes,
            seconds=time.monotonic() - began,
        )
        return dataclasses.replace(given, tried=trial), result

    def _unknown_to_us(self, treatment: Treatment) -> bool:
        """Whether only the user's optimizer could tell what does not train."""
        if isinstance(self.optimizer, torch.optim.Optimizer):
            return False
        needed = {id(p) for p in self.model.parameters() if p.requires_grad}
        with self._applied((treatment,)) as done:
            return all(id(p) in needed for one in done for p in one.parameters)

    def _compared(self, base: _Result, result: _Result, among: int, *, whatever: bool = False) -> RemedyTrial:
        """After the steps, unless they made the model worse on what is held out: then they say nothing of a remedy.

        With `whatever`, after the steps in any case.

        What clearly costs at once must gain more than that: the head was in use, and at a high rate a few steps go up
        or down by chance.
        """
        at_once, after = effect(_less(result.now, base.now)), None
        if base.after is not None and result.after is not None:
            after = effect(_less(result.after, base.after))
            if not whatever and effect(_less(result.after, base.now)).costs:
                after = None
        if after is None or not (whatever or after.helps or after.costs or not at_once.helps):
            return RemedyTrial(
                _mean(base.now), _mean(result.now), _mean(base.now), at_once, None, 0,
                helps=_clear(at_once, base, among),
            )  # fmt: skip
        last = result.after or [], base.after or []
        return RemedyTrial(
            _mean(base.now), _mean(last[0]), _mean(last[1]), at_once, after, self.count,
            helps=_clear(after, base, among) and (whatever or not (at_once.costs and after.change > -at_once.change)),
        )  # fmt: skip

    # One candidate.

    def _untreated(self) -> _Result:
        """What it comes to without any treatment; a model that cannot be trained is compared at once."""
        after = None
        if self.trains:
            with contextlib.suppress(Exception), self._applied(()):
                after = self._trained()
            self.trains = after is not None
        with self._applied(()):
            now = self._judge()
        self._advance()
        return _Result(now, after)

    def _run(self, treatments: Sequence[Treatment], *, judged: Treatment | None = None) -> _Result | None:
        """Apply, judge, train, judge again, and undo; None if a loss is not finite.

        With `judged`, that treatment is in force while the model is judged, and not while it trains.
        """
        more = () if judged is None else (judged,)
        with self._applied(treatments) as done:
            now = self._judge(more)
            after = self._trained(done, more) if self.trains else None
            if why := next((why for one in done for why in one.without_effect), None):
                raise remedies.NotSupportedError(f"it would have no effect: {why}")
        fine = all(map(math.isfinite, now)) and not (self.trains and after is None)
        return _Result(now, after) if fine else None

    def _advance(self) -> None:
        self.done += 1
        self.progress(self.done / self.total)

    @contextlib.contextmanager
    def _applied(self, treatments: Sequence[Treatment]) -> Iterator[list[Applied]]:
        self.borrowed.reset()
        done: list[Applied] = []
        try:
            for treatment in treatments:
                done.append(treatment.apply(self.model))  # noqa: PERF401  (if the second fails, the first is undone)
            yield done
        finally:
            for one in reversed(done):
                one.undo()
            self.borrowed.reset()

    def _judge(self, more: Sequence[Treatment] = ()) -> list[float]:
        self.passes += 0.5 if self.trains else 1.0
        done = [treatment.apply(self.model) for treatment in more]
        try:
            with untouched(self.model):
                return [forward_loss(self.given, part) for part in self.judged]
        finally:
            for one in reversed(done):
                one.undo()

    def _trained(self, done: Sequence[Applied] = (), more: Sequence[Treatment] = ()) -> list[float] | None:
        parts = itertools.cycle(self.taught)
        losses = (functools.partial(tensor_loss, self.given, part) for part in parts)
        self.passes += 1.5 * self.count / len(self.taught)
        optimizer = resumed(self.optimizer, self.model)
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        new = [p for one in done for p in one.parameters if id(p) not in held]
        if new:
            optimizer.add_param_group({"params": new})
        if not steps(optimizer, losses, self.count):
            return None
        found = self._judge(more)
        return found if all(map(math.isfinite, found)) else None

    def _blocked(self, treatment: Treatment, chosen: Sequence[Treatment]) -> float:
        """The largest share of blocked rows among the treated heads, read again once they are treated."""
        with self._applied((*chosen, treatment)), probe(self.model, every=1, max_rows=None) as scope:
            self.model.eval()
            for part in self.judged[:EVERY]:
                self.passes += 1.5 / len(self.judged)
                loss = tensor_loss(self.given, part)
                trained = [p for p in self.model.parameters() if p.requires_grad]
                if loss.requires_grad and trained:
                    torch.autograd.grad(loss, trained, allow_unused=True)
                scope.step()
            history = scope.history()
        found = [0.0]
        for i, site in enumerate(history.sites):
            shares = history.series("blocked")[:, i] if history.snapshots else None
            if shares is not None:
                found += [float(shares[:, head].mean()) for head in treatment.heads.get(site.name, ())]
        return max(x for x in found if not math.isnan(x))

    def _calibrated(self, treatment: Treatment, chosen: Sequence[Treatment]) -> Treatment:
        """Heads drawn anew get a spread of 1 on this batch, whatever the size of the layer's inputs."""
        if treatment.remedy != "reinitialise":
            return treatment
        spreads = Spreads(self.model)
        with self._applied((*chosen, treatment)), untouched(self.model):
            for part in self.judged[:EVERY]:
                self.passes += 0.5 / len(self.judged)
                with spreads.on():
                    forward_loss(self.given, part)
        heads = {
            site: {head: _inverse(dose, spreads.of(site, head)) for head, dose in doses.items()}
            for site, doses in treatment.heads.items()
        }
        return dataclasses.replace(treatment, heads=heads)

    def _layouts(self) -> dict[str, remedies.Layout]:
        with untouched(self.model), remedies.layouts(self.model) as found:
            forward_loss(self.given, self.judged[0])
        return dict(found)

    def _laid_out(self, treatment: Treatment) -> Treatment:
        """With the layouts of those sites that are not known by name."""
        needed = {}
        for site in treatment.heads:
            try:
                weights.projections(self.model, module_of(self.model, site), site)
            except remedies.NotSupportedError:
                if site in self.layouts:
                    needed[site] = self.layouts[site]
        return dataclasses.replace(treatment, layouts=needed) if needed else treatment


def _prescribed(given: Prescription, trial: RemedyTrial, treatment: Treatment | None) -> Prescription:
    if treatment is None:
        nothing = Text(
            zh="试过的办法都没有明显降低损失，所以什么都不开",
            en="nothing that was tried lowers the loss clearly, so nothing is prescribed",
        )
        return dataclasses.replace(given, remedy="none", what=nothing, treatment=None, tried=trial, does_not=None)
    first = treatment.remedy == given.candidates[0].remedy and treatment.tau == given.candidates[0].tau
    remedy = given.remedy if first else treatment.remedy
    what = DO[treatment.remedy]
    return dataclasses.replace(given, remedy=remedy, what=what, treatment=treatment, tried=trial)


def _halves(batches: list[Any]) -> tuple[list[Any], list[Any]]:
    """What to train on, in a few pieces of at least two rows, and what to judge by; a batch of one row goes to one."""
    taught: list[Any] = []
    judged: list[Any] = []
    for i, one in enumerate(batches):
        first, second = passes(one, 2)
        if first is one:
            (taught if i % 2 else judged).append(one)
            continue
        many = next((n for n in (EVERY, 2) if passes(first, 2 * n)[0] is not first), 1)
        taught += passes(first, many) if len(batches) < EVERY else [first]
        judged.append(second)
    return taught, judged


def _order(given: Prescription) -> tuple[bool, float]:
    """Faults first, then what helps most."""
    fault = given.remedy == "repair" and all(way.repairs for way in given.candidates)
    return not fault, math.inf if given.tried is None else given.tried.effect.change


def _clear(effect: Effect, base: _Result, among: int) -> bool:
    return effect.helps_among(among) and effect.change < -TINY * abs(_mean(base.now))


def _inverse(dose: float, spread: float) -> float:
    return round_up(dose / spread) if math.isfinite(spread) and spread > 0 else dose


def _less(one: list[float], other: list[float]) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
