"""Starting the lab: a free port on the loopback address, a fresh token, the browser, and a clean end."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import webbrowser
from typing import TYPE_CHECKING

import uvicorn

from softscope.lab import language, progress
from softscope.lab.server import application
from softscope.lab.state_folder import LESSONS, state_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._text import Lang

LOOPBACK = "127.0.0.1"
PATIENCE = 2  # seconds that open pages get to say goodbye


class _Server(uvicorn.Server):
    """uvicorn, which says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def listen(port: int = 0) -> socket.socket:
    """A socket on the loopback address; port 0 takes a free one. OSError if the port is taken."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with contextlib.suppress(OSError):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a lab stopped a moment ago may start again
    try:
        opened.bind((LOOPBACK, port))
    except OSError:
        opened.close()
        raise
    return opened


def serve(opened: socket.socket, *, lang: Lang, browser: bool, announce: Callable[[str], None]) -> None:
    """Serve the course on this socket until Ctrl-C; `announce` gets the address as soon as it answers."""
    port, token = opened.getsockname()[1], secrets.token_urlsafe(24)
    address = f"http://{LOOPBACK}:{port}/?lang={lang}&token={token}"
    language.prefer(lang)
    kept = progress.LessonProgress(state_folder() / LESSONS)
    kept.try_to_keep()  # the learner hears now that it cannot be kept, not after an hour
    progress.use(kept)

    def ready() -> None:
        announce(address)
        if browser:
            # Beside the server: a browser that starts slowly would keep it from answering.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    config = uvicorn.Config(
        application(port=port, token=token),
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
    )
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has closed everything, and tells us again
        _Server(config, ready).run(sockets=[opened])
