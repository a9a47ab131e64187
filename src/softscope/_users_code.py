"""Calls into the user's code, which may raise anything: `sys.exit(0)` in it must not look like a finished checkup."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Raised(Exception):  # noqa: N818 - what the user's code raised, not an error of its own
    """The user's code raised `error`; the message names it in one line."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(told(error))
        self.error = error


def told(error: BaseException) -> str:
    """Name an exception and its message, even if that cannot be formatted.

    >>> told(SystemExit(0)), told(ValueError())
    ('SystemExit: 0', 'ValueError')
    """
    try:
        message = str(error)
    except BaseException:
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


@contextlib.contextmanager
def whatever_it_raises() -> Iterator[None]:
    """Turn anything raised inside into `Raised`, but for the KeyboardInterrupt of a real Ctrl-C.

    >>> with contextlib.suppress(Raised), whatever_it_raises():
    ...     raise SystemExit
    """
    before = signal.getsignal(signal.SIGINT)
    interrupted = False

    def note(number: int, frame: Any) -> None:
        nonlocal interrupted
        interrupted = True
        before(number, frame)  # type: ignore[operator, misc]

    noted = callable(before) and threading.current_thread() is threading.main_thread()
    if noted:
        signal.signal(signal.SIGINT, note)
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and (interrupted or not noted):
            raise
        raise Raised(error) from error
    finally:
        if noted and signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, before)
