"""A connection whose client must finish its request in time, or else it is closed.

uvicorn waits for ever for headers or a body that do not come, so a few hundred half-sent requests would use up all of
the lab's file descriptors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

SECONDS = 30.0  # for a whole request, from the moment it is due; bytes that trickle in do not extend it


class Connection(H11Protocol):
    """One client's connection. Time runs only while the client owes us something, not while we prepare a response."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the first request."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in some of a request; a whole one, or a websocket's handshake, stops the clock."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Expect the next request, or the rest of one that we have already answered."""
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        ours = self.transport.get_protocol() is self  # or else it has become a websocket, which has pings
        if not ours or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing():
            self._cancel()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(SECONDS, self.transport.abort)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
