"""Where calls are overheard: functions replaced, while somebody listens, by ones that call them and tell.

The original is called once with what came, and what it gives is given on. Nothing of ours raises into the model.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from softscope.doctor.listen.observed_call import ObservedCall

Function = Callable[..., Any]


class Patch(NamedTuple):
    """A function that lies somewhere: as an attribute, or as an item of a dictionary."""

    owner: Any
    name: str
    wrap: Callable[[Function], Function]

    def get(self) -> Function:
        """What lies there now."""
        found: Function = self.owner[self.name] if isinstance(self.owner, dict) else getattr(self.owner, self.name)
        return found

    def put(self, function: Function) -> None:
        """Lay something else there."""
        if isinstance(self.owner, dict):
            self.owner[self.name] = function
        else:
            setattr(self.owner, self.name, function)


class Listener(Protocol):
    """Who is told."""

    thread: int

    def hear(self, observed: ObservedCall) -> None:
        """One call."""

    def trouble(self, error: Exception) -> None:
        """One call that could not be read."""


class _Applied(NamedTuple):
    patch: Patch
    original: Function
    inherited: bool  # it was not the owner's own, so it is deleted and not laid back


class _Local(threading.local):
    def __init__(self) -> None:
        self.busy = False  # inside a call that is told as a whole, or in the doctor's own computing
        self.around: list[dict[str, Any]] = []  # what outer calls know about the inner one


_listeners: list[Listener] = []
_applied: dict[tuple[int, str], _Applied] = {}
_local = _Local()
_lock = threading.RLock()


def listen(listener: Listener, patches: list[Patch]) -> None:
    """Apply the patches that are not applied yet, and tell this listener from now on."""
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
    """Tell this listener nothing more; when nobody listens, everything lies as it did."""
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
        if not _listeners:
            while _applied:
                _, (patch, original, inherited) = _applied.popitem()
                if inherited:
                    delattr(patch.owner, patch.name)
                else:
                    patch.put(original)


def told(describe: Callable[..., ObservedCall | None]) -> Callable[[Function], Function]:
    """A wrapper that tells what `describe(result, *args, **kwargs)` makes of a call."""

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
    """A wrapper of a function in which an overheard call happens, of which it knows more; or, if none did, tells."""

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
    """What the nearest surrounding call knows; empty outside of all."""
    return _local.around[-1] if _local.around else {}


class busy:  # noqa: N801  (read as a word: with busy():)
    """While the doctor computes, nothing is overheard."""

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
