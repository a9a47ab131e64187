"""The access check: only this machine's browser gets in, with the right address and token; websockets too.

Kernels run whatever a request asks of a lesson. Without these checks, any page open in the same browser could send
such requests (a wrong Origin) or reach the server under its own host name (a wrong Host).

Opening the printed address is a GET that logs in: it sets a cookie in that browser and changes nothing here.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"
LARGEST = 4 * 2**20  # bytes in a request's body or a websocket's message; the longest answer needs a tenth of that
# marimo's page builds charts with eval and widgets from blobs; nothing may load from or connect to other hosts.
POLICY = (
    "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'self'; base-uri 'self'; "
    "form-action 'self'; object-src 'none'"
)
NO_TOKEN = (
    "The token is missing or wrong: open the address that softscope lab printed.\n"
    "缺少令牌，或令牌不对：请打开 softscope lab 打印的地址。"
)
TOO_LARGE = "The request is larger than 4 MiB.\n请求超过 4 MiB。"
_READS = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


class Guard:
    """Passes a request on to the app if Host, Origin and token are right."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"softscope-lab-{port}"  # cookies ignore ports, and two labs may run at once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or websocket."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        wrong = self._wrong(connection, scope["type"])
        if wrong is None and not self._knows(connection.cookies.get(self.cookie, "")):
            if scope["type"] == "http" and self._knows(connection.query_params.get(TOKEN, "")):
                await self._welcome(connection)(scope, receive, send)
                return
            wrong = NO_TOKEN
        if wrong is None and scope["type"] == "websocket":
            await self.app(scope, receive, send)
        elif wrong is None:
            await self._pass_on(connection, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse(wrong + "\n", 403, HEADERS)(scope, receive, send)

    def _wrong(self, connection: HTTPConnection, kind: str) -> str | None:
        host, origin = connection.headers.get("host"), connection.headers.get("origin")
        if host not in self.hosts:
            return "wrong Host"
        if origin is None:  # browsers always send it for websockets and for requests that change state
            return "no Origin" if kind == "websocket" or connection.scope["method"] not in _READS else None
        return None if origin == f"http://{host}" else "wrong Origin"

    async def _pass_on(self, connection: HTTPConnection, receive: Receive, send: Send) -> None:
        """Read the whole body first, as far as it may go, so that no handler has to count bytes."""
        scope = connection.scope
        announced = connection.headers.get("content-length", "")
        body = None if announced.isdigit() and int(announced) > LARGEST else bytearray()
        while body is not None:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > LARGEST:
                body = None
            elif not message.get("more_body", False):
                await self.app(scope, _replaying(bytes(body), receive), _adding_headers(send))
                return
        await PlainTextResponse(TOO_LARGE + "\n", 413, HEADERS)(scope, receive, send)

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())

    def _welcome(self, connection: HTTPConnection) -> Response:
        """Move the token from the URL to a cookie, since history and screenshots would keep the URL."""
        rest = [(key, value) for key, value in parse_qsl(connection.url.query) if key != TOKEN]
        path = "/" + connection.url.path.lstrip("/")  # "//elsewhere" would redirect to another machine
        answer = RedirectResponse(path + ("?" + urlencode(rest) if rest else ""), 303, HEADERS)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="lax", path="/")
        return answer


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body we have read, and then whatever follows it: the disconnection."""
    unread = [body]

    async def receiving() -> Message:
        return {"type": "http.request", "body": unread.pop(), "more_body": False} if unread else await receive()

    return receiving


def _adding_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return sending
