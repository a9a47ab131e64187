"""The running probe: decides when to listen and what to keep of a call, and turns steps into snapshots."""

from __future__ import annotations

import contextlib
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from softscope.doctor import environment
from softscope.doctor.listen import forward_hooks, functions, module_paths, patches, reasons
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, padding, quiet
from softscope.doctor.listen.reasons import Reason
from softscope.doctor.listen.sampling import FEWEST, choose_rows, default_schedule
from softscope.doctor.listen.steps import Steps
from softscope.doctor.listen.unseen import unseen_modules
from softscope.doctor.read.build_snapshot import snapshot_of, widened
from softscope.doctor.read.kept_rows import KeptRows, keep_rows
from softscope.doctor.read.row_readings import read
from softscope.doctor.read.snapshot import History, Site, Snapshot
from softscope.doctor.read.tiles import RowReadings

if TYPE_CHECKING:
    from softscope.doctor.treat.prescriptions import Prescription
    from softscope.doctor.trial.head_trial import HeadTrial


class Scope:
    """The object returned by `softscope.probe`: the readings of one run, during the run and after it."""

    def __init__(self, model: nn.Module, *, every: int | None, max_rows: int | None, seed: int) -> None:
        self.model = model
        self.thread = 0
        self._every, self._max_rows, self._rng = every, max_rows, random.Random(seed)
        self._seed = seed
        self._steps = Steps(model, self._finish)
        self._sites: dict[str, Site] = {}
        self._snapshots: list[Snapshot] = []
        self._unseen: dict[str, Reason] = {}
        self._partly: dict[str, Reason] = {}  # sites that are read only in part
        self._callbacks: list[Callable[[Snapshot], None]] = []
        self._found: dict[str, list[RowReadings]] = {}  # readings of the open step
        self._waiting: list[tuple[str, KeptRows]] = []  # calls whose gradient may still arrive
        self._losses: list[Tensor] = []
        self._strongest: dict[str, Tensor] = {}
        self._calls: dict[str, int] = {}  # calls per site in the open pass
        self._places: list[patches.Patch] | None = None
        self._warned = False
        self._with_grad = False
        self._paused = False  # during a trial
        self._hooks = forward_hooks.ForwardHooks(model, self._open_pass, self._close_pass)
        self._began = time.monotonic()

    # Called by the user.

    def __enter__(self) -> Self:
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
        self._guard(lambda: self._steps.mark(_number(loss)))

    def on_snapshot(self, callback: Callable[[Snapshot], None]) -> None:
        """Call `callback` with every snapshot from now on, as soon as its step is over."""
        self._callbacks.append(callback)

    @property
    def sites(self) -> tuple[Site, ...]:
        """The sites seen so far, in the order of a snapshot's rows."""
        return tuple(self._sites.values())

    def history(self) -> History:
        """Everything read so far."""
        sites = self.sites
        reasons = self._partly | self._unseen
        missed = unseen_modules(self.model, self._sites, self._steps.passes)
        reasons.update((path, why) for path, why in missed if path not in reasons)
        asked = {"every": self._every, "max_rows": self._max_rows, "seed": self._seed}
        known = environment.of_run() | environment.of_model(self.model) | asked
        return History(sites, tuple(widened(s, sites) for s in self._snapshots), tuple(reasons.items()), known)

    def prescribe(self) -> list[Prescription]:
        """The remedies that fit the readings so far, with reason and expected reading; the most certain come first.

        A prescription that code can carry out has `apply(model)`.

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

        return list(diagnose(self.history()).prescriptions)

    def trial(
        self,
        batch: Any,
        *,
        loss: Callable[[Any, Any], Tensor] | None = None,
        heads: Mapping[str, Iterable[int]] | None = None,
    ) -> dict[tuple[str, int], HeadTrial | str]:
        """Try heads on a batch, preferably held out: how does the loss change if a head is made uniform, or softer?

        If the loss rises when a head is made uniform, the head is useful, however sharp it is. The run goes on as if
        nothing had happened, bit for bit: passes are in eval mode and without gradients. They cost 1 + 2·heads forward
        passes over the batch.

        Args:
            batch: A mapping becomes keyword arguments of the model, a tuple positional ones, anything else the one
                argument. It is cut along its first axis, so that there is a standard error.
            loss: Computes the loss from output and batch. If None, the output's own `loss` is used.
            heads: The heads to try, by site; by default those that the readings so far call starving.

        Returns:
            For `diagnose(history, trials=…)`: a `HeadTrial` for each (site, head), or a sentence that says why it could
            not be tried.

        >>> import torch, softscope as ss
        >>> model = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
        >>> with ss.probe(model) as scope:
        ...     found = scope.trial(torch.randn(16, 5, 8), loss=lambda y, x: (y - x).square().mean(),
        ...                         heads={"self_attn": [0]})
        >>> found["self_attn", 0].parts
        16
        """
        from softscope.doctor.diagnosis import diagnose
        from softscope.doctor.trial.head_trial import suspected, try_heads

        heads = suspected(diagnose(self.history()).view) if heads is None else heads
        self._paused = True
        try:
            return try_heads(self.model, batch, heads, loss=loss)
        finally:
            self._paused = False

    # Called by the forward hooks around each forward pass of the model.

    def _open_pass(self) -> None:
        if self._paused:
            return
        self._guard(self._steps.begin_pass)
        if self._steps.reading and self._sampled(self._steps.index):
            self._guard(self._listen)

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
        if (
            place is None
            or observed.result.device.type == "meta"
            or not (observed.result.numel() and observed.n and observed.m)
        ):
            return  # nothing to read
        path = module_paths.site_name(place, observed.below, self.model)
        self._calls[path] = self._calls.get(path, 0) + 1
        name = path if self._calls[path] == 1 else f"{path}#{self._calls[path]}"
        if name in self._unseen:
            return
        try:
            self._keep(name, observed)
        except Exception as error:
            self._lose(name, error)

    def _keep(self, name: str, observed: ObservedCall) -> None:
        if name not in self._sites:
            self._sites[name] = _site(name, observed)
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
            numbers = range(observed.n) if some is None else some
            kept = keep_rows(observed, numbers, torch.tensor(numbers, device=result.device), padding(observed))
            if not result.requires_grad:
                self._found.setdefault(name, []).append(read(kept, None))
                return
        self._wait(name, kept, result)

    def _wait(self, name: str, kept: KeptRows, result: Tensor) -> None:
        entry = (name, kept)
        self._waiting.append(entry)

        def arrive(grad: Tensor) -> None:
            if entry not in self._waiting:  # a second backward pass, or the step is already over
                return
            self._waiting.remove(entry)
            try:
                with patches.busy(), quiet(grad.device):
                    if not kept.untouched():
                        raise UnseenError(reasons.CHANGED)
                    self._found.setdefault(name, []).append(read(kept, grad.detach()))
            except Exception as error:
                self._lose(name, error)

        result.register_hook(arrive)  # type: ignore[no-untyped-call]

    def trouble(self, error: Exception) -> None:
        """Record that a call could not be described."""
        place = module_paths.innermost(self._paths)
        self._lose(place[0] if place else type(self.model).__name__, error)

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

    def _finish(self, step: int, loss: float | None) -> None:
        """Close the step and turn its readings into a snapshot."""
        waiting, self._waiting = self._waiting, []
        found, self._found = self._found, {}
        losses, self._losses = self._losses, []
        for name, kept in waiting:  # their gradient never came
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
        if not found:
            return
        with patches.busy(), torch.no_grad():
            if loss is None and losses:
                loss = float(torch.stack([x.float() for x in losses]).mean())
            snapshot = snapshot_of(step, time.monotonic() - self._began, loss, found, self.sites, self._strongest)
        self._snapshots.append(snapshot)
        for callback in self._callbacks:
            self._guard(lambda callback=callback: callback(snapshot))  # type: ignore[misc]


def _number(loss: Any) -> float | None:
    """Convert the loss to a number; return None if it is not one. The step counts either way."""
    if isinstance(loss, Tensor):
        loss = loss.detach().float().mean() if loss.numel() else None
    try:
        return None if loss is None else float(loss)
    except (TypeError, ValueError):
        return None


def _site(name: str, observed: ObservedCall) -> Site:
    scale = observed.options.scale
    scale = float(scale.float().mean()) if isinstance(scale, Tensor) else float(scale)
    return Site(
        name=name, kind=observed.kind, heads=observed.heads, kv_heads=observed.kv_heads, scale=scale,
        head_size=0 if observed.q is None else observed.q.shape[-1], causal=observed.causal, fused=observed.fused,
        dropout=observed.dropout, dtype=observed.dtype,
    )  # fmt: skip
