"""The server: loopback only, a token, Host and Origin checks (websockets too), a free port, and a clean exit."""

import asyncio
import contextlib
import http.client
import re
import socket
import threading

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from lab.chromium import lab
from softscope.lab import start as running_module
from softscope.lab.guard import HEADERS, Guard
from softscope.lab.server import HEAD
from softscope.lab.start import listen

pytestmark = pytest.mark.xdist_group("lab")


def get(running, path="/", *, cookie=True, **headers):
    """Status, headers and text."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if cookie:
        headers["Cookie"] = f"softscope-lab-{running.port}={running.token}"
    with contextlib.closing(connection):
        connection.request(headers.pop("method", "GET"), path, headers=headers)
        answer = connection.getresponse()
        endless = "event-stream" in answer.headers.get("content-type", "")
        return answer.status, answer.headers, "" if endless else answer.read().decode("utf-8", "replace")


def post(running, path, **headers):
    return get(running, path, method="POST", Origin=running.origin, **headers)


def test_without_the_token_nobody_gets_in(running):
    for path in (
        "/",
        "/lesson/overflow/",
        "/lesson/overflow/api/status",
        "/assets/index.css",
        "/?token=wrong",
        "/nothing",
    ):
        status, _, text = get(running, path, cookie=False)
        assert status == 403, path
        assert "token is missing or wrong" in text
        assert "令牌不对" in text
        assert running.token not in text


def test_the_token_becomes_a_cookie_and_leaves_the_address(running):
    status, headers, _ = get(running, f"/?lang=zh&token={running.token}", cookie=False)
    assert (status, headers["location"]) == (303, "/?lang=zh")
    assert f"softscope-lab-{running.port}={running.token}" in headers["set-cookie"]
    assert "HttpOnly" in headers["set-cookie"]
    assert get(running, f"//elsewhere.example/?token={running.token}", cookie=False)[1]["location"].startswith(
        "/elsewhere"
    )


def test_the_index_and_its_language(running):
    status, headers, text = get(running, "/?lang=zh")
    assert status == 200
    assert "从分数到概率" in text
    assert get(running, "/?lang=en")[2].count('<li class="') == 10
    status, headers, _ = get(running, "/")
    assert (status, headers["location"]) == (303, "/?lang=en")
    assert get(running, "/?lang=fr")[1]["location"] == "/?lang=en"
    assert "default-src 'self'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost", "evil.example:{port}", "127.0.0.1.nip.io:{port}", ""]
)
def test_a_wrong_host_is_refused(running, host):
    assert get(running, "/?lang=en", Host=host.format(port=running.port))[0] in (400, 403)


def test_the_two_right_hosts(running):
    for host in ("127.0.0.1", "localhost"):
        assert get(running, "/?lang=en", Host=f"{host}:{running.port}")[0] == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:1", "file://"]
)
def test_a_wrong_origin_is_refused(running, origin):
    assert get(running, "/?lang=en", Origin=origin)[0] == 403
    assert get(running, "/lesson/overflow/api/kernel/run", method="POST", Origin=origin)[0] == 403


def test_a_lesson_without_its_slash_keeps_its_language(running):
    status, headers, _ = get(running, "/lesson/overflow?lang=zh")
    assert (status, headers["location"]) == (303, "/lesson/overflow/?lang=zh")
    assert get(running, "/lesson/overflow")[1]["location"] == "/lesson/overflow/"
    assert get(running, "/lesson/nothing?lang=zh")[0] == 404


def test_a_lesson_says_its_language_to_the_browser(running):
    text = get(running, "/lesson/overflow/?lang=zh")[2]
    assert "document.documentElement.lang" in text
    assert '? asked : "en"' in text
    assert "{{" not in HEAD.format(otherwise="en")


def test_the_theme_is_one_choice_for_all_pages(running):
    assert 'data-theme="system"' in get(running, "/?lang=en")[2]
    for theme in ("dark", "light"):
        status, headers, _ = post(running, f"/theme/{theme}?lang=zh&lesson=overflow")
        assert (status, headers["location"]) == (303, "/lesson/overflow/?lang=zh")
        assert f'data-theme="{theme}"' in get(running, "/?lang=en")[2]
        assert re.search(rf'"theme": ?"{theme}"', get(running, "/lesson/overflow/")[2])
    assert post(running, "/theme/system?lesson=//elsewhere.example")[1]["location"] == "/?lang=en"
    assert post(running, "/theme/pink")[0] == 404
    assert 'data-theme="system"' in get(running, "/?lang=en")[2]


def kept(folder):
    """Every file of the learner's, with its text."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def sessions(running):
    return get(running, "/lesson/overflow/api/status/connections")[2]


def test_reading_a_page_changes_nothing(tmp_path):
    """No GET or HEAD writes a file, changes the theme or starts a lesson's kernel, not even one with the token."""
    with lab(tmp_path) as running:
        (tmp_path / "homework.json").write_text("not JSON", "utf-8")  # which a change would put aside
        before, index, started = kept(tmp_path), get(running, "/?lang=en")[2], sessions(running)
        paths = ["/", "/?lang=zh", "/favicon.ico", "/assets/index.css", "/lesson/overflow", "/lesson/overflow/?lang=zh"]
        paths += [f"/theme/{theme}?lang=zh&lesson=overflow" for theme in ("dark", "light", "system")]
        paths += [
            f"/lesson/overflow{path}"
            for path in (
                "/sse?session_id=s_test02",
                "/api/status",
                "/api/version",
                "/ws?session_id=s_test03",
                "/auth/login",
                "/api/kernel/instantiate",
                "/api/kernel/run",
                "/health",
            )
        ]
        for method in ("GET", "HEAD"):
            for path in paths:
                get(running, path, method=method)
        get(running, f"/theme/dark?token={running.token}", cookie=False)
        assert kept(tmp_path) == before
        assert sessions(running) == started
        assert get(running, "/?lang=en")[2] == index
        assert get(running, "/theme/dark")[0] == 405
        assert get(running, "/lesson/overflow/sse?session_id=s_test02")[0] == 404


def test_what_changes_state_needs_an_origin(running):
    for path in ("/theme/dark", "/lesson/overflow/api/kernel/run"):
        assert get(running, path, method="POST")[0] == 403
        assert get(running, path, method="POST", Origin="null")[0] == 403
    assert 'data-theme="system"' in get(running, "/?lang=en")[2]


def test_assets_are_those_and_no_others(running):
    assert get(running, "/assets/index.css")[0] == 200
    assert get(running, "/favicon.ico")[0] == 200
    for path in ("/assets/../server.py", "/assets/%2e%2e%2fserver.py", "/assets/nothing.css"):
        assert get(running, path)[0] == 404


def socket_of(running, *, cookie=True, origin=None):
    headers = {"Cookie": f"softscope-lab-{running.port}={running.token}"} if cookie else {}
    address = f"ws://127.0.0.1:{running.port}/lesson/overflow/ws?session_id=s_test01"
    return connect(address, origin=origin, additional_headers=headers, open_timeout=20)


@pytest.mark.parametrize(
    "wrong", [{"cookie": False, "origin": "right"}, {"origin": "https://evil.example"}, {"origin": None}], ids=str
)
def test_a_websocket_needs_cookie_and_origin(running, wrong):
    wrong = {**wrong, "origin": running.origin if wrong["origin"] == "right" else wrong["origin"]}
    with pytest.raises(InvalidStatus) as refused, socket_of(running, **wrong):
        pass
    assert refused.value.response.status_code == 403


def test_the_right_websocket_is_let_through(running):
    with socket_of(running, origin=running.origin) as opened:
        assert opened.recv(timeout=20)


def test_it_listens_on_the_loopback_address_alone(running):
    host = socket.gethostname()
    for family, _, _, _, address in socket.getaddrinfo(host, running.port, type=socket.SOCK_STREAM):
        if address[0].startswith("127.") or address[0] == "::1":
            continue
        with socket.socket(family, socket.SOCK_STREAM) as outside:
            outside.settimeout(2)
            assert outside.connect_ex(address) != 0
    with listen() as opened:
        assert opened.getsockname()[0] == "127.0.0.1"


def test_two_labs_find_two_ports_and_ctrl_c_ends_one_while_a_page_is_open(running, tmp_path):
    with lab(tmp_path) as second:
        assert second.port != running.port
        assert second.token != running.token
        assert get(second, "/?lang=en")[0] == 200
        with socket_of(second, origin=second.origin) as opened:
            assert opened.recv(timeout=20)
            said, errors, code = second.stop()
    assert code == 0, errors[-2500:]
    assert "Stopped" in said
    assert "Traceback" not in errors
    assert get(running, "/?lang=en")[0] == 200


def test_a_port_that_is_taken():
    with listen() as opened:
        opened.listen()
        with pytest.raises(OSError, match="in use"):
            listen(opened.getsockname()[1])


@pytest.mark.slow
def test_it_is_up_within_five_seconds(tmp_path):
    seconds = []
    for _ in range(3):
        with lab(tmp_path) as started:
            seconds.append(started.seconds)
    assert min(seconds) < 5.0, seconds


def test_the_guard_lets_only_lifespans_pass_unasked():
    seen = []

    async def app(scope, *_):
        seen.append(scope["type"])

    asyncio.run(Guard(app, port=1, token="x")({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]
    assert "frame-ancestors" in HEADERS["content-security-policy"]


def test_the_browser_is_opened_at_the_address_unless_told_not_to(monkeypatch):
    opened, announced, done = [], [], threading.Event()
    monkeypatch.setattr(running_module.webbrowser, "open", lambda address: (opened.append(address), done.set()))
    monkeypatch.setattr(running_module._Server, "run", lambda self, **_: self._ready())
    monkeypatch.setattr(running_module, "application", lambda **_: None)
    monkeypatch.setattr(running_module.progress, "use", lambda _: None)
    monkeypatch.setattr(running_module.language, "prefer", lambda _: None)
    for browser in (True, False):
        with listen() as taken:
            running_module.serve(taken, lang="zh", browser=browser, announce=announced.append)
    assert done.wait(10)
    assert opened == announced[:1]
    assert len(announced) == 2
    assert all(re.fullmatch(r"http://127\.0\.0\.1:\d+/\?lang=zh&token=[\w-]{32}", one) for one in announced)
