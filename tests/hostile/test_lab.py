"""A client of the lab that never finishes, sends too much, or sends nonsense: the lab stays up and hangs up."""

import asyncio
import contextlib
import socket
import threading
import time

import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from hostile.budget import attempts
from softscope.lab import connection, guard
from softscope.lab.start import configuration, listen

TOKEN = "t" * 32
SHORT = 1.0  # seconds that a client gets in some tests to finish its request


async def echo(scope, receive, send):
    """Say how much came; close a websocket after each message."""
    if scope["type"] == "lifespan":
        return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": str(len(message.get("text") or message.get("bytes") or b""))})
        return
    count, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        count, more = count + len(message["body"]), message.get("more_body", False)
    if scope["path"] == "/slow":
        await asyncio.sleep(1.5 * SHORT)
    text = str(count).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(connection, "SECONDS", SHORT)


@pytest.fixture
def served():
    """The lab's server around a small application: the port."""
    opened = listen()
    port = opened.getsockname()[1]
    server = uvicorn.Server(configuration(guard.Guard(echo, port=port, token=TOKEN)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield port
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


def lines(port, first, *more, cookie=True):
    """The beginning of a request, headers included, without the empty line that ends them."""
    headers = [first, f"Host: 127.0.0.1:{port}", f"Origin: http://127.0.0.1:{port}", *more]
    if cookie:
        headers.append(f"Cookie: softscope-lab-{port}={TOKEN}")
    return "\r\n".join(headers).encode() + b"\r\n"


def closed(client, patience=30.0):
    """Everything the server says until it closes; fails if it does not."""
    client.settimeout(patience)
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := client.recv(2**16):
            said += chunk
    return said


def answer(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request)
        with client.makefile("rb") as stream:
            said, length = b"", 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                said += line
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            return said + line + stream.read(length)


def works(port):
    assert answer(port, lines(port, "POST /x HTTP/1.1", "Content-Length: 3") + b"\r\nabc").endswith(b"\r\n3")


HALVES = {
    "nothing": lambda _: b"",
    "half a line": lambda _: b"GET /",
    "headers without an end": lambda port: lines(port, "GET / HTTP/1.1"),
    "no body": lambda port: lines(port, "POST / HTTP/1.1", "Content-Length: 10") + b"\r\n",
    "half a body": lambda port: lines(port, "POST / HTTP/1.1", "Content-Length: 10") + b"\r\nabc",
    "chunks without an end": lambda port: (
        lines(port, "POST / HTTP/1.1", "Transfer-Encoding: chunked") + b"\r\n3\r\nabc\r\n"
    ),
    "half a websocket handshake": lambda port: lines(
        port, "GET /ws HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket"
    ),
    "a handshake without a key": lambda port: (
        lines(port, "GET /ws HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket") + b"\r\n"
    ),
    "no token and no body": lambda port: lines(port, "POST / HTTP/1.1", "Content-Length: 10", cookie=False) + b"\r\n",
    "a second request": lambda port: lines(port, "GET / HTTP/1.1") + b"\r\nGET / HT",
}


@pytest.mark.usefixtures("hasty")
def test_a_request_that_is_never_finished_ends_with_its_connection(served):
    """All at once, and each sends a byte now and then: that must not buy it time for ever."""
    with contextlib.ExitStack() as stack:
        clients = {}
        for name, half in HALVES.items():
            clients[name] = stack.enter_context(socket.create_connection(("127.0.0.1", served), timeout=30))
            clients[name].sendall(half(served))
        for name in ("headers without an end", "chunks without an end"):
            threading.Thread(target=drip, args=(clients[name],), daemon=True).start()
        works(served)
        for name, client in clients.items():
            try:
                said = closed(client)
            except TimeoutError:
                raise AssertionError(f"{name}: still open") from None
            assert not said or said.startswith(b"HTTP/1.1"), (name, said)
        works(served)


def drip(client):
    with contextlib.suppress(OSError):
        while True:
            client.sendall(b"1")
            time.sleep(SHORT / 5)


@pytest.mark.usefixtures("hasty")
def test_a_slow_application_and_an_open_websocket_are_not_cut_off(served):
    """Time runs only while the client owes something."""
    slow = lines(served, "POST /slow HTTP/1.1", "Content-Length: 1") + b"\r\nx"
    assert answer(served, slow).endswith(b"\r\n1")
    address = f"ws://127.0.0.1:{served}/ws"
    cookie = {"Cookie": f"softscope-lab-{served}={TOKEN}"}
    with connect(address, origin=f"http://127.0.0.1:{served}", additional_headers=cookie) as opened:
        time.sleep(1.5 * SHORT)
        opened.send("abc")
        assert opened.recv(timeout=20) == "3"


def test_a_large_body_is_refused_and_not_kept(served):
    most = guard.LARGEST
    fits = lines(served, "POST / HTTP/1.1", f"Content-Length: {most}") + b"\r\n" + bytes(most)
    assert answer(served, fits).endswith(b"\r\n%d" % most)
    for head, body in (
        (f"Content-Length: {most + 1}", bytes(most + 1)),
        ("Content-Length: 999999999999", b""),
        ("Transfer-Encoding: chunked", b"10000\r\n%s\r\n" % bytes(2**16) * (most // 2**16 + 1) + b"0\r\n\r\n"),
    ):
        said = answer(served, lines(served, "POST / HTTP/1.1", head) + b"\r\n" + body)
        assert said.startswith(b"HTTP/1.1 413 "), said[:100]
        assert b"larger than 4 MiB" in said
        assert "请求超过 4 MiB".encode() in said
    works(served)


@pytest.mark.parametrize("parts", [1, 64])
def test_a_large_websocket_message_closes_it(served, parts):
    cookie = {"Cookie": f"softscope-lab-{served}={TOKEN}"}
    address, origin = f"ws://127.0.0.1:{served}/ws", f"http://127.0.0.1:{served}"
    for compression in ("deflate", None):
        with connect(address, origin=origin, additional_headers=cookie, compression=compression) as opened:
            opened.send("x" * guard.LARGEST)
            assert opened.recv(timeout=30) == str(guard.LARGEST)
            part = "x" * (guard.LARGEST // parts + 1)
            with contextlib.suppress(ConnectionClosed):  # it may be closed before we have sent everything
                opened.send(part if parts == 1 else iter([part] * parts))
            with pytest.raises(ConnectionClosed) as ended:
                opened.recv(timeout=30)
            assert ended.value.rcvd is None or ended.value.rcvd.code == 1009
    works(served)


PIECES = (
    b"GET ",
    b"POST ",
    b"/",
    b"/?token=",
    TOKEN.encode(),
    b"//x",
    b" HTTP/1.1",
    b" HTTP/9.9",
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"\x00",
    b"Host: 127.0.0.1",
    b"Host: 127.0.0.1:PORT",
    b"Origin: http://127.0.0.1:PORT",
    b"Content-Length: 5",
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: x",
    b"Upgrade: websocket",
    b"Connection: Upgrade",
    b"Sec-WebSocket-Key: x",
    b"Sec-WebSocket-Version: 13",
    b"Cookie: softscope-lab-PORT=" + TOKEN.encode(),
    b"Cookie: =;=",
    b"Expect: 100-continue",
    b"ffffffffffffffff\r\n",
    b"0\r\n\r\n",
    b"\xff\xfe",
    b"%2e%2e%2f",
    b"a" * 20_000,
)


def test_nonsense_neither_stops_it_nor_gets_in(served):
    """Requests put together from parts; without the cookie no answer is a good one."""
    for seed, rng in attempts(60):
        chosen = [PIECES[i] for i in rng.integers(len(PIECES), size=rng.integers(1, 14))]
        request = b"".join(chosen).replace(b"PORT", str(served).encode())
        with socket.create_connection(("127.0.0.1", served), timeout=30) as client:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
            said = closed(client)
        if b"Cookie: softscope" not in request:
            assert b"HTTP/1.1 2" not in said, f"seed {seed}: {request!r}"
    works(served)
