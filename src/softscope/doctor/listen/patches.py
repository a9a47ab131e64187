"""Patches: while somebody listens, attention functions are replaced by wrappers that call them and report the call.

A wrapper calls the original once with unchanged arguments and returns its result. Our code never raises into the model.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from softscope.doctor.listen.observed_call import ObservedCall

Function = Callable[..., Any]


class Patch(NamedTuple):
    """A function to replace: an attribute of an object, or an item of a dictionary."""

    owner: Any
    name: str
    wrap: Callable[[Function], Function]

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


class _Local(threading.local):
    def __init__(self) -> None:
        self.busy = False  # inside a call that is reported as a whole, or in the doctor's own computation
        self.around: list[dict[str, Any]] = []  # what outer calls know about the inner one


_listeners: list[Listener] = []
_applied: dict[tuple[int, str], _Applied] = {}
_local = _Local()
_lock = threading.RLock()


def listen(listener: Listener, patches: list[Patch]) -> None:
    """Apply the patches that are not applied yet, and report to this listener from now on."""
    with _lock:
        _listeners.append(listener)
        for patch in patches:
            key = (id(patch.owner), patch.name)
            if key not in _applied:
                own = isinstance(patch.owner, dict) or patch.name in vars(patch.owner)
                original = patch.get()
                _applied[key] = _Applied(patch, original, not own)
                patch.put(patch.wrap(original))


def stop(listener: Listener) -> None:
    """Stop reporting to this listener; once nobody listens, restore every original."""
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
        if not _listeners:
            while _applied:
                _, (patch, original, inherited) = _applied.popitem()
                if inherited:
                    with contextlib.suppress(AttributeError):  # somebody else removed it
                        delattr(patch.owner, patch.name)
                else:
                    patch.put(original)


def told(describe: Callable[..., ObservedCall | None]) -> Callable[[Function], Function]:
    """Wrap a function to report what `describe(result, *args, **kwargs)` makes of each call."""

    def wrap(original: Function) -> Function:
        @functools.wraps(original)
        def overheard(*args: Any, **kwargs: Any) -> Any:
            if _local.busy or not _here():
                return original(*args, **kwargs)
            _local.busy = True
            try:
                result = original(*args, **kwargs)
                _tell(lambda: describe(result, *args, **kwargs))
            finally:
                _local.busy = False
            return result

        return overheard

    return wrap


def surrounding(
    know: Callable[..., dict[str, Any]], describe: Callable[..., ObservedCall | None] | None = None
) -> Callable[[Function], Function]:
    """Wrap a function that contains an observed call, and add to it what `know` returns.

    If no inner call was observed, report what `describe` makes of this one.
    """

    def wrap(original: Function) -> Function:
        @functools.wraps(original)
        def around(*args: Any, **kwargs: Any) -> Any:
            if _local.busy or not _here():
                return original(*args, **kwargs)
            known: dict[str, Any] = {}
            try:
                known = know(*args, **kwargs)
            except Exception as error:
                _trouble(error)
            _local.around.append(known)
            try:
                result = original(*args, **kwargs)
            finally:
                _local.around.pop()
            if describe is not None and not known.get("heard"):
                _local.busy = True
                try:
                    _tell(lambda: describe(result, *args, **kwargs))
                finally:
                    _local.busy = False
            return result

        return around

    return wrap


def context() -> dict[str, Any]:
    """What the nearest surrounding call knows; empty outside all of them."""
    return _local.around[-1] if _local.around else {}


class busy:  # noqa: N801  (read as a word: with busy():)
    """Pauses observation during the doctor's own computations."""

    def __enter__(self) -> None:
        self._before, _local.busy = _local.busy, True

    def __exit__(self, *_: object) -> None:
        _local.busy = self._before


def _here() -> list[Listener]:
    thread = threading.get_ident()
    return [listener for listener in _listeners if listener.thread == thread]


def _tell(describe: Callable[[], ObservedCall | None]) -> None:
    try:
        observed = describe()
    except Exception as error:
        _trouble(error)
        return
    if observed is None:
        return
    context()["heard"] = True
    for listener in _here():
        try:
            listener.hear(observed)
        except Exception as error:
            listener.trouble(error)


def _trouble(error: Exception) -> None:
    for listener in _here():
        listener.trouble(error)
