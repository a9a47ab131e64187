"""Start the lab: bind a free loopback port, make a fresh token, open the browser, and shut down cleanly."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import socket
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING

import uvicorn

from softscope.lab import language, progress
from softscope.lab.connection import Connection
from softscope.lab.guard import LARGEST
from softscope.lab.server import application
from softscope.lab.state_folder import LESSONS, state_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from softscope._text import Lang

LOOPBACK = "127.0.0.1"
PATIENCE = 2  # seconds that open pages get to disconnect


class _Server(uvicorn.Server):
    """A uvicorn server that reports when it is listening."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def listen(port: int = 0) -> socket.socket:
    """Open a socket on the loopback address; port 0 picks a free port. Raises OSError if the port is taken."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with contextlib.suppress(OSError):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # lets a lab restart right after it stopped
    try:
        opened.bind((LOOPBACK, port))
    except OSError:
        opened.close()
        raise
    return opened


def configuration(app: ASGIApp) -> uvicorn.Config:
    """Return the server's settings: quiet, and with limits on what one client can send and how long it may take."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws_max_size=LARGEST,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
    )


def serve(opened: socket.socket, *, lang: Lang, browser: bool, announce: Callable[[str], None]) -> None:
    """Serve the course on this socket until Ctrl-C; call `announce` with the address once the server answers."""
    port, token = opened.getsockname()[1], secrets.token_urlsafe(24)
    address = f"http://{LOOPBACK}:{port}/?lang={lang}&token={token}"
    language.prefer(lang)
    kept = progress.LessonProgress(state_folder() / LESSONS)
    kept.try_to_keep()  # tell the learner now if progress cannot be saved, not after an hour
    progress.use(kept)

    def ready() -> None:
        announce(address)
        if browser:
            # In its own thread: a slow browser start would block the server.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    config = configuration(application(port=port, token=token))
    before = set(threading.enumerate())
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has already closed everything; it just re-raises
        _Server(config, ready).run(sockets=[opened])
    if set(threading.enumerate()) - before:
        atexit.register(_leave)


def _leave() -> None:
    """End the process without ending its threads.

    A lesson may still be computing in one. Python would stop it inside compiled code, and C++ answers with an abort.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
