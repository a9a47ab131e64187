"""Patches: while somebody listens, attention functions are replaced by wrappers that call them and report the call.

A wrapper calls the original once with unchanged arguments and returns its result. Our code never raises into the model.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import torch

from softscope.doctor.listen import module_paths
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError
from softscope.doctor.listen.reasons import Reason

Function = Callable[..., Any]
# From a function and its arguments to the arguments it is called with; it must not raise.
Rewrite = Callable[[Function, tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


@dataclasses.dataclass(eq=False)
class Patch:
    """A function to replace: an attribute of an object, or an item of a dictionary."""

    owner: Any
    name: str
    wrap: Callable[[Function], Function]
    made: tuple[Function, Function] | None = None  # the last original and its wrapper

    def wrapper(self, original: Function) -> Function:
        """The wrapper of this original; made once, since every pass that is read needs it."""
        if self.made is None or self.made[0] is not original:
            self.made = original, self.wrap(original)
        return self.made[1]

    def get(self) -> Function:
        """The current function."""
        found: Function = self.owner[self.name] if isinstance(self.owner, dict) else getattr(self.owner, self.name)
        return found

    def put(self, function: Function) -> None:
        """Replace the function."""
        if isinstance(self.owner, dict):
            self.owner[self.name] = function
        else:
            setattr(self.owner, self.name, function)


class Listener(Protocol):
    """Receives observed calls."""

    thread: int

    def hear(self, observed: ObservedCall) -> None:
        """Receive one call."""

    def trouble(self, error: Exception) -> None:
        """Receive the error of a call that could not be read."""


class _Applied(NamedTuple):
    patch: Patch
    original: Function
    inherited: bool  # the owner inherited it, so undoing means deleting ours, not restoring the original


class _State(threading.local):
    def __init__(self) -> None:
        self.busy = False  # inside a call that is reported as a whole, or in the doctor's own computation
        self.around: list[dict[str, Any]] = []  # what outer calls know about the inner one
        self.rewrites: list[Rewrite] = []  # remedies at the call: they change its arguments before anybody reads them


_listeners: list[Listener] = []
_applied: dict[tuple[int, str], _Applied] = {}
state = _State()
_lock = threading.RLock()


def listen(listener: Listener, patches: list[Patch]) -> None:
    """Apply the patches that are not applied yet, and report to this listener from now on."""
    with _lock:
        _listeners.append(listener)
        for patch in patches:
            if (id(patch.owner), patch.name) not in _applied:
                _apply(patch)


def _apply(patch: Patch, original: Function | None = None) -> None:
    own = isinstance(patch.owner, dict) or patch.name in vars(patch.owner)
    original = patch.get() if original is None else original
    _applied[id(patch.owner), patch.name] = _Applied(patch, original, not own)
    patch.put(patch.wrapper(original))


def _restore() -> None:
    while _applied:
        _, (patch, original, inherited) = _applied.popitem()
        if inherited:
            with contextlib.suppress(AttributeError):  # somebody else removed it
                delattr(patch.owner, patch.name)
        else:
            patch.put(original)


_endings: list[Callable[[], None]] = []  # what to do when a pass is over


def at_the_end(ending: Callable[[], None]) -> None:
    """Call `ending` whenever a pass is over, while it can still report."""
    if ending not in _endings:
        _endings.append(ending)


def _finish() -> None:
    for ending in _endings:
        try:
            ending()
        except Exception as error:
            lost.append(error)


def stop(listener: Listener) -> None:
    """Stop reporting to this listener; once nobody listens, restore every original."""
    with _lock:
        if listener in _listeners and listener.thread == threading.get_ident() and len(here()) == 1:
            _finish()
        if listener in _listeners:
            _listeners.remove(listener)
        if not _listeners:
            _restore()


@contextlib.contextmanager
def lifted() -> Iterator[None]:
    """Restore every original for a while, and compilation with them.

    A function that compiles its arguments must not find our wrappers in them, and must not be run uncompiled: without
    compilation, FlexAttention writes down every logit.
    """
    with _lock:
        applied = list(_applied.values())
        _restore()
    try:
        with torch.compiler.set_stance("default"):
            yield
    finally:
        with _lock:
            for patch, original, _ in applied:
                if _listeners:
                    _apply(patch, original)


lost: collections.deque[Exception] = collections.deque(maxlen=8)  # why traces were lost, for tests


def quietly(follow: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Follow a call; what that raises is kept for tests and goes nowhere else."""
    try:
        follow(*args, **kwargs)
    except Exception as error:
        lost.append(error)


def context() -> dict[str, Any]:
    """What the nearest surrounding call knows; empty outside all of them."""
    return state.around[-1] if state.around else {}


def rewrites() -> list[Rewrite]:
    """The remedies at the call in force in this thread; who adds one takes it off again."""
    return state.rewrites


def is_busy() -> bool:
    """Whether this thread is inside a call that is being reported, or in the doctor's own computation."""
    return state.busy


class busy:  # noqa: N801  (read as a word: with busy():)
    """Pauses observation during the doctor's own computations."""

    def __enter__(self) -> None:
        self._before, state.busy = state.busy, True

    def __exit__(self, *_: object) -> None:
        state.busy = self._before


def here() -> list[Listener]:
    """Who listens to this thread."""
    thread = threading.get_ident()
    return [listener for listener in _listeners if listener.thread == thread]


def tell(describe: Callable[[], ObservedCall | None]) -> None:
    """Tell everybody who listens here of a call, or why it could not be described."""
    try:
        observed = describe()
    except Exception as error:
        trouble(error)
        return
    if observed is None:
        return
    context()["heard"] = True
    for listener in here():
        try:
            listener.hear(observed)
        except Exception as error:
            listener.trouble(error)


def trouble(error: Exception) -> None:
    """Tell everybody who listens here of an error."""
    if isinstance(error, UnseenError):
        unread(error.reason, module_paths.calling())
        return
    for listener in here():
        listener.trouble(error)


def unread(reason: Reason, module: Any) -> None:
    """Tell whoever keeps a list that something in this module was not read."""
    for listener in here():
        tell = getattr(listener, "unread", None)  # an intervention listens only to what it can change
        if tell is not None:
            tell(reason, module)
