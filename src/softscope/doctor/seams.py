"""Where calls are overheard: functions replaced, while somebody listens, by ones that call them and tell.

The original is called once with what came, and what it gives is given on. Nothing of ours raises into the model.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from softscope.doctor.seen import Seen

Function = Callable[..., Any]


class Seam(NamedTuple):
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

    def hear(self, seen: Seen) -> None:
        """One call."""

    def trouble(self, error: Exception) -> None:
        """One call that could not be read."""


class _Laid(NamedTuple):
    seam: Seam
    original: Function
    inherited: bool  # it was not the owner's own, so it is deleted and not laid back


class _Local(threading.local):
    def __init__(self) -> None:
        self.busy = False  # inside a call that is told as a whole, or in the doctor's own computing
        self.around: list[dict[str, Any]] = []  # what outer calls know about the inner one


_listeners: list[Listener] = []
_laid: dict[tuple[int, str], _Laid] = {}
_local = _Local()
_lock = threading.RLock()


def listen(listener: Listener, seams: list[Seam]) -> None:
    """Lay the seams that are not laid yet, and tell this listener from now on."""
    with _lock:
        _listeners.append(listener)
        for seam in seams:
            key = (id(seam.owner), seam.name)
            if key not in _laid:
                own = isinstance(seam.owner, dict) or seam.name in vars(seam.owner)
                original = seam.get()
                _laid[key] = _Laid(seam, original, not own)
                seam.put(seam.wrap(original))


def stop(listener: Listener) -> None:
    """Tell this listener nothing more; when nobody listens, everything lies as it did."""
    with _lock:
        if listener in _listeners:
            _listeners.remove(listener)
        if not _listeners:
            while _laid:
                _, (seam, original, inherited) = _laid.popitem()
                if inherited:
                    delattr(seam.owner, seam.name)
                else:
                    seam.put(original)


def told(describe: Callable[..., Seen | None]) -> Callable[[Function], Function]:
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
    know: Callable[..., dict[str, Any]], describe: Callable[..., Seen | None] | None = None
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


def _tell(describe: Callable[[], Seen | None]) -> None:
    try:
        seen = describe()
    except Exception as error:
        _trouble(error)
        return
    if seen is None:
        return
    context()["heard"] = True
    for listener in _here():
        try:
            listener.hear(seen)
        except Exception as error:
            listener.trouble(error)


def _trouble(error: Exception) -> None:
    for listener in _here():
        listener.trouble(error)
