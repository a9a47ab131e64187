"""The probe at work: when to listen, what to keep of a call, and how steps become snapshots."""

from __future__ import annotations

import contextlib
import random
import threading
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from softscope.doctor import attach, facts, gate, names, reasons, seams
from softscope.doctor.build import snapshot_of, widened
from softscope.doctor.chosen import Chosen, choose
from softscope.doctor.parts import RowReadings
from softscope.doctor.rows import read
from softscope.doctor.sampling import FEWEST, choose_rows, default_schedule
from softscope.doctor.seen import Seen, UnseenError, padding, quiet
from softscope.doctor.snapshot import History, Site, Snapshot
from softscope.doctor.steps import Steps
from softscope.doctor.unseen import unseen_modules

if TYPE_CHECKING:
    from softscope.doctor.prescribe import Prescription


class Scope:
    """What `softscope.probe` gives: the readings of one run, while it runs and after it."""

    def __init__(self, model: nn.Module, *, every: int | None, rows: int | None, seed: int) -> None:
        self.model = model
        self.thread = 0
        self._every, self._rows, self._rng = every, rows, random.Random(seed)
        self._seed = seed
        self._steps = Steps(model, self._finish)
        self._sites: dict[str, Site] = {}
        self._snapshots: list[Snapshot] = []
        self._unseen: dict[str, str] = {}
        self._partly: dict[str, str] = {}  # read, but not everything of it
        self._callbacks: list[Callable[[Snapshot], None]] = []
        self._found: dict[str, list[RowReadings]] = {}  # of the open step
        self._waiting: list[tuple[str, Chosen]] = []  # calls whose gradient may still come
        self._losses: list[Tensor] = []
        self._strongest: dict[str, Tensor] = {}
        self._calls: dict[str, int] = {}  # of the open pass
        self._places: list[seams.Seam] | None = None
        self._warned = False
        self._with_grad = False
        self._gate = gate.Gate(model, self._open_pass, self._close_pass)
        self._began = time.monotonic()

    # What the user calls.

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._steps.attach()
        self._gate.attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.detach()
        seams.stop(self)
        self._steps.detach()
        self._guard(self._steps.end)

    def step(self, loss: Any = None) -> None:
        """One step is over, with this loss: a number, or a tensor with one.

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
        """Call this with every snapshot from now on, once its step is over."""
        self._callbacks.append(callback)

    @property
    def sites(self) -> tuple[Site, ...]:
        """The places where attention was seen so far; a snapshot's rows are in this order."""
        return tuple(self._sites.values())

    def history(self) -> History:
        """Everything read so far."""
        sites = self.sites
        reasons = self._partly | self._unseen
        missed = unseen_modules(self.model, sites, self._steps.passes)
        reasons.update((path, why) for path, why in missed if path not in reasons)
        asked = {"every": self._every, "rows": self._rows, "seed": self._seed}
        known = facts.of_run() | facts.of_model(self.model) | asked
        return History(sites, tuple(widened(s, sites) for s in self._snapshots), tuple(reasons.items()), known)

    def prescribe(self) -> list[Prescription]:
        """Which remedies fit what was read so far, why, and the reading to expect; the most certain first.

        Each has `apply(model)` for what can be done in code.

        >>> import torch, softscope as ss
        >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> with ss.probe(model) as scope:
        ...     _ = model(*(torch.randn(1, 5, 8) for _ in range(3)))
        >>> scope.prescribe()                       # no loss and nothing that stands out: nothing is prescribed
        []
        """
        from softscope.doctor.diagnosis import diagnose  # judging is for who asks; a probe alone does not pay for it

        return list(diagnose(self.history()).prescriptions)

    # What the gate calls around each forward pass of the model.

    def _open_pass(self) -> None:
        self._guard(self._steps.begin_pass)
        if self._steps.reading and self._sampled(self._steps.index):
            self._guard(self._listen)

    def _listen(self) -> None:
        self.thread, self._calls = threading.get_ident(), {}
        self._with_grad = torch.is_grad_enabled()
        if self._places is None:
            self._places = attach.all_seams(self.model)
            self._paths = names.paths(self.model)
        self._gate.without_compiler()
        seams.listen(self, self._places)

    def _close_pass(self, output: Any) -> None:
        seams.stop(self)
        if self._steps.reading:
            self._guard(lambda: self._look_at(output))

    def _look_at(self, output: Any) -> None:
        self._steps.end_pass(output)
        loss = getattr(output, "loss", None)
        if isinstance(loss, Tensor) and loss.numel() == 1 and self._sampled(self._steps.index):
            self._losses.append(loss.detach())

    def _sampled(self, step: int) -> bool:
        return default_schedule(step) if self._every is None else step % self._every == 0

    # What the seams call.

    def hear(self, seen: Seen) -> None:
        """Keep what reading this call takes, and read it now if no gradient can come."""
        place = names.innermost(self._paths)
        if place is None or seen.result.device.type == "meta" or not (seen.result.numel() and seen.n and seen.m):
            return  # nothing is there to read
        path = place[0] + seen.below
        self._calls[path] = self._calls.get(path, 0) + 1
        name = path if self._calls[path] == 1 else f"{path}#{self._calls[path]}"
        if name in self._unseen:
            return
        try:
            self._keep(name, seen)
        except Exception as error:
            self._lose(name, error)

    def _keep(self, name: str, seen: Seen) -> None:
        if name not in self._sites:
            self._sites[name] = _site(name, seen)
        elif self._sites[name].heads != seen.heads:
            raise UnseenError(reasons.HEADS, self._sites[name].heads, seen.heads)
        result = seen.result
        if self._with_grad and not torch.is_grad_enabled():
            self._partly[name] = reasons.NO_GRADIENT.en
        with quiet(result.device):
            first = min(FEWEST, seen.m // 2) - 1 if seen.right == 0 and seen.mask is None and seen.n == seen.m else 0
            some = choose_rows(self._rows, max(first, 0), seen.n, self._rng)
            numbers = range(seen.n) if some is None else some
            chosen = choose(seen, numbers, torch.tensor(numbers, device=result.device), padding(seen))
            if not result.requires_grad:
                self._found.setdefault(name, []).append(read(chosen, None))
                return
        self._wait(name, chosen, result)

    def _wait(self, name: str, chosen: Chosen, result: Tensor) -> None:
        entry = (name, chosen)
        self._waiting.append(entry)

        def arrive(grad: Tensor) -> None:
            if entry not in self._waiting:  # a second backward pass, or the step is over
                return
            self._waiting.remove(entry)
            try:
                with seams.busy(), quiet(grad.device):
                    if not chosen.untouched():
                        raise UnseenError(reasons.CHANGED)
                    self._found.setdefault(name, []).append(read(chosen, grad.detach()))
            except Exception as error:
                self._lose(name, error)

        result.register_hook(arrive)  # type: ignore[no-untyped-call]

    def trouble(self, error: Exception) -> None:
        """A call could not be described."""
        place = names.innermost(self._paths)
        self._lose(place[0] if place else type(self.model).__name__, error)

    def _lose(self, name: str, error: Exception) -> None:
        """From now on this site is not read."""
        known = isinstance(error, UnseenError)
        self._unseen[name] = str(error) if known else reasons.FAILED.en.format(f"{type(error).__name__}: {error}")
        self._found.pop(name, None)
        if not known:
            self._warn(f"{name} is no longer read: {type(error).__name__}: {error}")

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            with contextlib.suppress(RuntimeWarning):  # where warnings are errors, the run still goes on
                warnings.warn(f"softscope.probe: {text}; the run goes on", RuntimeWarning, stacklevel=2)

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._warn(f"{type(error).__name__}: {error}")

    # What the steps call.

    def _finish(self, step: int, loss: float | None) -> None:
        """The step is over: what was read becomes a snapshot."""
        waiting, self._waiting = self._waiting, []
        found, self._found = self._found, {}
        losses, self._losses = self._losses, []
        for name, chosen in waiting:  # no gradient came
            if name not in found and name not in self._unseen and chosen.untouched():
                with seams.busy(), quiet(chosen.rows.device):
                    found.setdefault(name, []).append(read(chosen, None))
        if not found:
            return
        with seams.busy(), torch.no_grad():
            if loss is None and losses:
                loss = float(torch.stack([x.float() for x in losses]).mean())
            snapshot = snapshot_of(step, time.monotonic() - self._began, loss, found, self.sites, self._strongest)
        self._snapshots.append(snapshot)
        for callback in self._callbacks:
            self._guard(lambda callback=callback: callback(snapshot))  # type: ignore[misc]


def _number(loss: Any) -> float | None:
    """The loss as a number; None, with the step counted all the same, where it is none."""
    if isinstance(loss, Tensor):
        loss = loss.detach().float().mean() if loss.numel() else None
    try:
        return None if loss is None else float(loss)
    except (TypeError, ValueError):
        return None


def _site(name: str, seen: Seen) -> Site:
    scale = float("nan")
    if isinstance(seen.scale, Tensor):
        scale = float(seen.scale.float().mean())
    elif seen.scale is not None:
        scale = float(seen.scale)
    return Site(
        name=name, kind=seen.kind, heads=seen.heads, kv_heads=seen.kv_heads, scale=scale,
        head_size=0 if seen.q is None else seen.q.shape[-1], causal=seen.causal, fused=seen.fused,
        dropout=seen.dropout, dtype=seen.dtype,
    )  # fmt: skip
