"""The running probe: decides when to listen and what to keep of a call, and turns steps into snapshots."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from softscope._arguments.checks import positive, whole_number
from softscope._text import Text
from softscope.doctor import environment
from softscope.doctor.listen import (
    batch_inputs,
    forward_hooks,
    functions,
    module_paths,
    patches,
    reasons,
    tensor_parallel,
)
from softscope.doctor.listen.expected_mask import expected_mask
from softscope.doctor.listen.heads import set_hint
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, padding, quiet
from softscope.doctor.listen.reasons import Reason
from softscope.doctor.listen.sampling import FEWEST, choose_rows, default_schedule
from softscope.doctor.listen.site_names import reads_another
from softscope.doctor.listen.steps import Steps
from softscope.doctor.listen.trained_parts import TrainedParts
from softscope.doctor.listen.unseen import unseen_modules
from softscope.doctor.listen.where_loss_is import WhereLossIs, reached_rows
from softscope.doctor.ranks.heads import Heads
from softscope.doctor.ranks.read_ranks import FACT as RANKS
from softscope.doctor.read.all_keys import agreed, fetch
from softscope.doctor.read.build_snapshot import snapshot_of, widened
from softscope.doctor.read.head_trial import as_facts
from softscope.doctor.read.kept_rows import KeptRows, keep_rows
from softscope.doctor.read.row_readings import read
from softscope.doctor.read.snapshot import History, Site, Snapshot
from softscope.doctor.read.tiles import RowReadings

if TYPE_CHECKING:
    from softscope._text import Text
    from softscope.doctor.ranks.together import Together
    from softscope.doctor.read.head_trial import HeadTrial, Trials
    from softscope.doctor.treat.prescriptions import Prescription
    from softscope.doctor.trial.schedule import Schedule


class Scope:
    """The object returned by `softscope.probe`: the readings of one run, during the run and after it."""

    def __init__(
        self,
        model: nn.Module,
        *,
        every: int | None,
        max_rows: int | None,
        seed: int,
        heads: int | Mapping[str, int] | None = None,
        together: Together | None = None,
    ) -> None:
        self.model = model
        self.ranks = together
        self._heads: dict[str, Heads] = {}  # of each site, those that this rank computes
        set_hint(model, heads)
        self.thread = 0
        self._every, self._max_rows, self._rng = every, max_rows, random.Random(seed)
        self._seed = seed
        self._where_loss_is = WhereLossIs(max_rows, self._rng)
        self._steps = Steps(
            model, self._finish, lambda optimizer: self._guard(lambda: self._look_at_grads(optimizer)), self._forget
        )
        self._trained_parts = TrainedParts(model)
        self._inputs = batch_inputs.BatchInputs()
        self._cut: dict[str, float] = {}  # sites of the open step: 1 if no gradient can arrive, 0 if one has
        self._sites: dict[str, Site] = {}
        self._snapshots: list[Snapshot] = []
        self._unseen: dict[str, Reason] = {}
        self._partly: dict[str, Reason] = {}  # sites that are read only in part
        self._callbacks: list[Callable[[Snapshot], None]] = []
        self._found: dict[str, list[RowReadings]] = {}  # readings of the open step
        self._waiting: list[tuple[str, KeptRows]] = []  # calls whose gradient may still arrive
        self._losses: list[Tensor] = []
        self._strongest: dict[str, Tensor] = {}
        self._expected: dict[str, str] = {}
        self._calls: dict[str, int] = {}  # calls per site in the open pass
        self._places: list[patches.Patch] | None = None
        self._warned = False
        self._agreed: bool | None = None  # whether all ranks that share out the keys of the present call read it
        self._told = 0  # of what is no longer seen on other ranks
        self._with_grad = False
        self._paused = False  # during a trial
        self.trials: dict[tuple[str, int], HeadTrial | Text] = {}  # the latest of each head
        self._schedule: Schedule | None = None
        self._hooks = forward_hooks.ForwardHooks(model, self._open_pass, self._close_pass)
        self._began = time.monotonic()

    # Called by the user.

    def __enter__(self) -> Self:
        if self.ranks is not None:
            self.ranks.open(self.model, (self._every, self._max_rows, self._seed))
        self._began = time.monotonic()
        self._steps.attach()
        self._hooks.attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hooks.detach()
        patches.stop(self)
        self._steps.detach()
        self._guard(self._steps.end)
        if self.ranks is not None:
            self._guard(self.ranks.close)
            self._guard(self._collect)

    def step(self, loss: Any = None) -> None:
        """Mark the end of a step, optionally with its loss: a number, or a tensor holding one.

        >>> import torch, softscope as ss
        >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = torch.randn(1, 5, 8)
        >>> with ss.probe(model) as scope:
        ...     _ = model(x, x, x)
        ...     scope.step(loss=0.5)
        >>> scope.history().snapshots[0].loss
        0.5
        """
        self._guard(lambda: self._steps.mark(loss))

    def on_snapshot(self, callback: Callable[[Snapshot], None]) -> None:
        """Call `callback` with every snapshot from now on, as soon as its step is over."""
        self._callbacks.append(callback)

    @property
    def sites(self) -> tuple[Site, ...]:
        """The sites seen so far, in the order of a snapshot's rows."""
        return tuple(self._sites.values()) if self.ranks is None else self.ranks.sites

    def history(self) -> History:
        """Everything read so far."""
        self._guard(self._collect)
        sites = self.sites
        reasons = self._partly | self._unseen
        missed = unseen_modules(self.model, self._sites, self._steps.passes, self._hooks.whole)
        reasons.update((path, why) for path, why in missed if path not in reasons)
        asked = {"every": self._every, "max_rows": self._max_rows, "seed": self._seed}
        known: dict[str, Any] = environment.of_run() | environment.of_model(self.model) | asked
        if self.trials:
            known["trials"] = as_facts(self.trials)
        if self.ranks is not None:
            known[RANKS] = self.ranks.read().as_facts()
        return History(sites, tuple(widened(s, sites) for s in self._snapshots), tuple(reasons.items()), known)

    def prescribe(
        self,
        batch: Any = None,
        *,
        loss: Callable[[Any, Any], Tensor] | None = None,
        optimizer: Any = None,
        steps: int = 20,
    ) -> list[Prescription]:
        """The remedies that fit the readings so far, with reason and expected reading; with a batch, those that help.

        With a batch, suspected heads are tried first, then several remedies and doses: on half of the batch each is
        trained for a few steps, and the other half tells how the loss changes against the same steps without it. Only
        what clearly lowers that loss is prescribed. The run goes on as if nothing had happened, bit for bit. Without a
        batch, prescriptions are candidates that nobody has tried. A prescription that code can carry out has
        `apply(model)`.

        Args:
            batch: As for `trial`; the more rows, the smaller the standard errors.
            loss: As for `trial`.
            optimizer: Yours: the steps use a copy of its state, and it is never stepped itself; a function from
                parameters to an optimizer; or None for AdamW.
            steps: Training steps for each remedy; 0 compares the losses at once.

        >>> import torch, softscope as ss
        >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> with ss.probe(model) as scope:
        ...     _ = model(*(torch.randn(1, 5, 8) for _ in range(3)))
        >>> scope.prescribe()                       # no loss and nothing that stands out: nothing is prescribed
        []
        """
        from softscope.doctor.diagnosis import (
            diagnose,  # imported here: a probe that nobody asks for a diagnosis should not pay for it
        )

        if batch is None:
            return list(diagnose(self.history(), trials=self.trials).prescriptions)
        from softscope.doctor.trial.head_trial import suspects
        from softscope.doctor.trial.on_one_rank import on_one_rank
        from softscope.doctor.trial.remedy_trial import try_plans

        model = on_one_rank(self.model)
        doubted = suspects(diagnose(self.history())).items()
        untried = {site: [h for h in heads if (site, h) not in self.trials] for site, heads in doubted}
        if any(untried.values()):
            self.trial(batch, loss=loss, heads=untried)
        given = diagnose(self.history(), trials=self.trials).prescriptions
        self._paused = True
        try:
            return try_plans(model, given, batch, loss=loss, optimizer=optimizer, steps=whole_number(steps, "steps", 0))
        finally:
            self._paused = False

    def trial(
        self,
        batch: Any,
        *,
        loss: Callable[[Any, Any], Tensor] | None = None,
        heads: Mapping[str, Iterable[int]] | None = None,
    ) -> Trials:
        """Try heads on a batch, preferably held out: how does the loss change if a head is made uniform, or softer?

        If the loss rises when a head is made uniform, the head is useful, however sharp it is. The run goes on as if
        nothing had happened, bit for bit: passes are in eval mode, and no parameter gets a gradient. They cost
        1 + 2·heads forward passes over the batch, and three more for each head that these leave open; `cost` tells.
        `scope.prescribe` uses the result.

        Args:
            batch: A mapping becomes keyword arguments of the model, a tuple positional ones, anything else the one
                argument. It is cut along its first axis, so that there is a standard error.
            loss: Computes the loss from output and batch. If None, the output's own `loss` is used.
            heads: The heads to try, by site; by default those that the readings so far suspect.

        Returns:
            For `diagnose(history, trials=…)`: a `HeadTrial` for each (site, head), or a sentence that says why it could
            not be tried; with the cost.

        >>> import torch, softscope as ss
        >>> model = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
        >>> with ss.probe(model) as scope:
        ...     found = scope.trial(torch.randn(16, 5, 8), loss=lambda y, x: (y - x).square().mean(),
        ...                         heads={"self_attn": [0]})
        >>> found["self_attn", 0].parts
        16
        """
        from softscope.doctor.diagnosis import diagnose
        from softscope.doctor.trial.head_trial import suspects, try_heads
        from softscope.doctor.trial.on_one_rank import on_one_rank

        model = on_one_rank(self.model)
        heads = suspects(diagnose(self.history())) if heads is None else heads
        self._paused = True
        try:
            found = try_heads(model, batch, heads, loss=loss)
        finally:
            self._paused = False
        for place, trial in found.items():
            self.trials[place] = (
                trial if isinstance(trial, Text) else dataclasses.replace(trial, step=self._steps.index)
            )
        return found

    def try_regularly(
        self, batch: Any, *, loss: Callable[[Any, Any], Tensor] | None = None, every: int = 1000, share: float = 0.01
    ) -> None:
        """From now on, try the suspected heads by itself: after a step that is read, every so many steps at most.

        The first trial of the run is not counted against `share`, because nobody knows its cost before. After that, a
        trial waits until all trials together have taken no more than `share` of the run's time.

        Args:
            batch: As for `trial`.
            loss: As for `trial`.
            every: The fewest steps between two trials.
            share: The most of the run's time that trials may take.

        >>> import torch, softscope as ss
        >>> model = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
        >>> with ss.probe(model) as scope:
        ...     scope.try_regularly(torch.randn(16, 5, 8), loss=lambda y, x: (y - x).square().mean(), every=100)
        """
        from softscope.doctor.trial.schedule import Schedule

        self._schedule = Schedule(batch, loss, whole_number(every, "every", 1), positive(share, "share", "0.01 is 1%"))

    # Called by the forward hooks around each forward pass of the model.

    def _open_pass(self, part: bool, inputs: forward_hooks.Inputs) -> None:
        if self._paused:
            return
        self._guard(lambda: self._steps.begin_pass(part))
        if self._steps.reading and self._sampled(self._steps.index):
            self._guard(lambda: self._read_inputs(*inputs))
            self._guard(self._listen)

    def _read_inputs(self, module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._inputs = batch_inputs.BatchInputs()  # those of the last pass, should the next line fail
        with quiet(torch.device("cpu")):
            self._inputs = batch_inputs.of_call(module, args, named)

    def _listen(self) -> None:
        self.thread, self._calls = threading.get_ident(), {}
        self._with_grad = torch.is_grad_enabled()
        if self._places is None:
            self._places = functions.all_patches(self.model)
            self._paths = module_paths.paths(self.model)
        self._hooks.without_compiler()
        patches.listen(self, self._places)

    def _close_pass(self, output: Any) -> None:
        if self._paused:
            return
        self._guard(lambda: patches.stop(self))
        self._inputs = batch_inputs.BatchInputs()
        if self._steps.reading:
            self._guard(lambda: self._look_at(output))

    def _look_at(self, output: Any) -> None:
        self._steps.end_pass(output)
        loss = getattr(output, "loss", None)
        if isinstance(loss, Tensor) and loss.numel() == 1 and self._sampled(self._steps.index):
            self._losses.append(loss.detach())

    def _sampled(self, step: int) -> bool:
        return default_schedule(step) if self._every is None else step % self._every == 0

    # Called by the patches.

    def hear(self, observed: ObservedCall) -> None:
        """Keep what is needed to read this call, and read it at once if no gradient can come."""
        place = module_paths.innermost(self._paths)
        if place is None or observed.result.device.type == "meta":
            return
        path = module_paths.site_name(place, observed.below, self.model)
        self._calls[path] = self._calls.get(path, 0) + 1
        name = path if self._calls[path] == 1 else f"{path}#{self._calls[path]}"
        shards, self._agreed = observed.shards, None
        if shards is not None and (self.ranks is None or not self.ranks.has(shards.group)):
            self._unseen[name] = Reason(reasons.SHARDS, (str(shards.group.size()),))
        if name in self._unseen or not (observed.result.numel() and observed.n and observed.m):
            self._agree(observed, False)
            return
        try:
            if name not in self._sites:
                self._find_heads(name, place[1], observed.heads)
            self._place(name, place[1], observed)
            self._keep(name, observed)
        except Exception as error:
            self._lose(name, error)
            self._agree(observed, False)

    def _agree(self, observed: ObservedCall, fine: bool) -> bool:
        """Whether all ranks that share out the keys of this call read it: they fetch each other's, or none does."""
        shards = observed.shards
        if shards is None or self.ranks is None or not self.ranks.has(shards.group):
            return fine
        if self._agreed is None:  # asked once for each call
            self._agreed = agreed(shards.group, fine)
        return self._agreed

    def _find_heads(self, name: str, module: Any, heads: int) -> None:
        """Note which of the site's heads this rank computes."""
        rank, ranks = tensor_parallel.place(module) or (0, 1)
        self._heads[name] = Heads(rank * heads, ranks)
        why = tensor_parallel.elsewhere(module, heads) if self.ranks is None else None
        if why is not None:
            self._partly[name] = why

    def _place(self, name: str, module: Any, observed: ObservedCall) -> None:
        """Add what the model's arguments and its modules say about this call."""
        if isinstance(module, nn.Module):
            self._trained_parts.note(name, module)
            if self._with_grad and not observed.result.requires_grad:
                self._cut[name] = 1.0
        like = observed.q if observed.logits is None else observed.logits
        assert like is not None
        real, tokens = (
            x if x is not None and (x.shape[0], x.device) == (like.shape[0], like.device) else None
            for x in (self._inputs.shown_to(name, observed.m), self._inputs.tokens)
        )
        if real is not None and not self._inputs.sure:
            with quiet(like.device):
                known = padding(observed)
            if known is not None and bool((known == ~real).all()):
                real = None  # all see just the others: here the mask means the opposite
        observed.real = real
        other = reads_another(name) or (self._inputs.two and "decoder" in name)
        if tokens is not None and tokens.shape[1] == observed.m == observed.n and not other:
            observed.tokens = tokens
            observed.first = len(self._calls) == 1 and self._calls.get(name) == 1 and not _drops(self.model)
        if name not in self._sites:
            self._expected[name] = expected_mask(
                self.model, name, observed.n, observed.m, declared=observed.causal, own=self._inputs.own_mask
            )

    def _keep(self, name: str, observed: ObservedCall) -> None:
        if name not in self._sites:
            self._sites[name] = _site(name, observed, self._expected.get(name, ""))
        elif self._sites[name].heads != observed.heads:
            raise UnseenError(reasons.HEADS, self._sites[name].heads, observed.heads)
        result = observed.result
        if self._with_grad and not torch.is_grad_enabled():
            self._partly[name] = Reason(reasons.NO_GRADIENT)
        with quiet(result.device):
            first = (
                min(FEWEST, observed.m // 2) - 1
                if observed.options.right == 0 and observed.options.mask is None and observed.n == observed.m
                else 0
            )
            some = choose_rows(self._max_rows, max(first, 0), observed.n, self._rng)
            some = None if some is None else self._where_loss_is.with_remembered(name, some, observed.n)
            kept = keep_rows(observed, range(observed.n) if some is None else some, padding(observed))
            if not self._agree(observed, True):
                return
            if not result.requires_grad:
                self._found.setdefault(name, []).append(read(kept, None))
                return
        # Which rows the loss cares about shows only in the gradient. Queries, keys and values stay in memory until then
        # anyway; logits of an explicit softmax do not, so there the next reading looks at the right rows.
        again = observed if some is not None and observed.logits is None and observed.q is not None else None
        self._wait(name, kept, result, again)

    def _wait(self, name: str, kept: KeptRows, result: Tensor, whole: ObservedCall | None) -> None:
        entry = (name, kept)
        self._waiting.append(entry)

        def arrive(grad: Tensor) -> None:
            if entry not in self._waiting:  # a second backward pass, or the step is already over
                return
            self._waiting.remove(entry)
            self._cut[name] = 0.0
            try:
                with patches.busy(), quiet(grad.device):
                    keys = fetch(kept)  # before anything that may fail on this rank alone
                    if not kept.untouched():
                        raise UnseenError(reasons.CHANGED)
                    reached = reached_rows(kept.observed.gradient(grad.detach()))
                    more = self._where_loss_is.missed(name, kept.numbers, reached)
                    here = kept if whole is None or not more else keep_rows(whole, more, padding(whole))
                    found = read(here, grad.detach(), keys)
                    found.reached = reached.float().mean(dim=-1)
                    self._found.setdefault(name, []).append(found)
            except Exception as error:
                self._lose(name, error)

        result.register_hook(arrive)  # type: ignore[no-untyped-call]

    def trouble(self, error: Exception) -> None:
        """Record that a call could not be described."""
        place = module_paths.innermost(self._paths)
        self._lose(place[0] if place else type(self.model).__name__, error)

    def unread(self, reason: Reason, module: Any) -> None:
        """Note that something in this module was not read."""
        path = self._paths.get(id(module))
        if path is not None:
            self._partly.setdefault(path, reason)

    def _lose(self, name: str, error: Exception) -> None:
        """Stop reading this site."""
        self._found.pop(name, None)
        if isinstance(error, UnseenError):
            self._unseen[name] = error.reason
            return
        what = f"{type(error).__name__}: {error}"
        self._unseen[name] = Reason(reasons.FAILED, (what,))
        self._warn(f"{name} is no longer read: {what}")

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            with contextlib.suppress(RuntimeWarning):  # the run goes on even where warnings are errors
                warnings.warn(f"softscope.probe: {text}; the run goes on", RuntimeWarning, stacklevel=2)

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._warn(f"{type(error).__name__}: {error}")

    # Called when a step ends.

    def _finish(self, step: int, loss: Any) -> None:
        """Close the step and turn its readings into a snapshot."""
        self._where_loss_is.settle()
        waiting, self._waiting = self._waiting, []
        found, self._found = self._found, {}
        losses, self._losses = self._losses, []
        cut, self._cut = self._cut, {}
        back = self._steps.went_back or 0.0 in cut.values()
        cut = {name: value for name, value in cut.items() if back}
        for name, kept in waiting:  # their gradient never came
            if back and cut.get(name) != 0.0:
                cut[name] = 1.0
            if name in found or name in self._unseen:
                continue
            if not kept.untouched():
                self._partly[name] = Reason(reasons.CHANGED)
                continue
            try:
                with patches.busy(), quiet(kept.rows.device):
                    found[name] = [read(kept, None)]
            except Exception as error:
                self._lose(name, error)
        if not found and not (self.ranks is not None and self._sampled(step)):
            return
        with patches.busy(), torch.no_grad():
            loss = _number(loss)  # not before: it may be on its way from a device
            if loss is None and losses:
                loss = float(torch.stack([x.float() for x in losses]).mean())
            cut = {
                name: float(value and off)
                for name, value in cut.items()
                if (off := self._trained_parts.cut_off(name)) is not None
            }
            of_sites = self._trained_parts.taken()
            for name, value in cut.items():
                of_sites.setdefault(name, {})["cut"] = value
            seconds = time.monotonic() - self._began
            sites = tuple(self._sites.values())
            if self.ranks is None:
                self._tell(snapshot_of(step, seconds, loss, found, sites, self._strongest, of_sites))
            else:
                self.ranks.submit(step, seconds, loss, found, sites, self._heads, self._strongest, of_sites)
        self._collect()
        if self._schedule is not None and self._schedule.due(step, time.monotonic() - self._began):
            self._guard(self._try_now)

    def _tell(self, snapshot: Snapshot) -> None:
        self._snapshots.append(snapshot)
        for callback in self._callbacks:
            self._guard(lambda callback=callback: callback(snapshot))  # type: ignore[misc]

    def _collect(self) -> None:
        """Take what has arrived from other ranks; only a group's first rank gets any."""
        if self.ranks is not None:
            for snapshot in self.ranks.snapshots():
                self._tell(snapshot)
            for what in self.ranks.lost[self._told :]:
                self._told += 1
                with contextlib.suppress(RuntimeWarning):
                    warnings.warn(f"softscope.probe: {what}; the run goes on", RuntimeWarning, stacklevel=2)

    def _forget(self) -> None:
        """Drop what was read before training began; a record replaces it, as it does when a run starts over."""
        self._snapshots.clear()
        if self.ranks is not None:
            self.ranks.start_over()

    def _look_at_grads(self, optimizer: torch.optim.Optimizer) -> None:
        self._trained_parts.stepped(optimizer, self._sampled(self._steps.index))

    def _try_now(self) -> None:
        assert self._schedule is not None
        with self._schedule.timed():
            self.trial(self._schedule.batch, loss=self._schedule.loss)


def _number(loss: Any) -> float | None:
    """Convert the loss to a number; return None if it is not one. The step counts either way."""
    if isinstance(loss, Tensor):
        loss = loss.detach().float().mean() if loss.numel() else None
    try:
        return None if loss is None else float(loss)
    except (TypeError, ValueError):
        return None


def _drops(model: nn.Module) -> bool:
    """Whether a dropout may change the embeddings, so that equal tokens differ for that reason alone."""
    return any(isinstance(x, nn.Dropout) and x.training and x.p > 0.0 for x in model.modules())


def _site(name: str, observed: ObservedCall, expects: str) -> Site:
    scale = observed.options.scale
    scale = float(scale.float().mean()) if isinstance(scale, Tensor) else float(scale)
    return Site(
        name=name, kind=observed.kind, heads=observed.heads, kv_heads=observed.kv_heads, scale=scale,
        head_size=0 if observed.q is None else observed.q.shape[-1], causal=observed.causal, fused=observed.fused,
        dropout=observed.dropout, dtype=observed.dtype, expects=expects,
    )  # fmt: skip
