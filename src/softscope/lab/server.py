"""The web application: the index page, its assets, and each lesson mounted as a marimo app in run mode."""

from __future__ import annotations

import contextlib
import pathlib
from typing import TYPE_CHECKING, Any

import marimo
from starlette.applications import Starlette
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from softscope._text import LANGS
from softscope.lab import index, practice, progress
from softscope.lab.course import LESSONS
from softscope.lab.guard import Guard
from softscope.lab.language import chosen
from softscope.lab.theme import THEMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

ASSETS = pathlib.Path(__file__).parent / "assets"
# Give marimo's pages system fonts for both languages, and a layout that fits a phone. marimo declares every page
# English, but screen readers, line breaking and font choice depend on the page's language.
HEAD = """<link rel="icon" href="/assets/icon.svg"><link rel="stylesheet" href="/assets/lesson.css">
<script>{{
  const asked = new URLSearchParams(location.search).get("lang");
  const lang = ["zh", "en"].includes(asked) ? asked : "{otherwise}";
  document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
}}</script>"""

SCRIPTS = "/marimo"
SETTINGS = {
    "runtime": {"auto_instantiate": True},
    "server": {"transport": "websocket"},
}  # ignore the learner's own marimo settings


class _Scripts(StaticFiles):
    """Serves marimo's scripts (megabytes) once for all lessons; their names hold a hash, so browsers can cache them."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return the file, marked as immutable."""
        answer = super().file_response(*args, **kwargs)
        answer.headers["cache-control"] = "private, max-age=31536000, immutable"
        return answer


async def _index(request: Request) -> Response:
    lang = request.query_params.get("lang")
    if lang not in LANGS:  # the language goes into the URL, so a copied link keeps it
        return RedirectResponse(f"/?lang={chosen(lang)}", 303)
    passed = practice.passed()
    return HTMLResponse(index.page(chosen(lang), progress.current(), passed), headers={"cache-control": "no-store"})


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in {path.name for path in ASSETS.iterdir()}:
        return Response(status_code=404)
    return FileResponse(ASSETS / name)


def _painter(lessons: Any) -> Callable[[Request], Awaitable[Response]]:
    """Make the handler that changes the theme of all pages; for lessons, the theme is a marimo setting."""
    plain = [(app, app.state.config_manager) for app in _mounted(lessons)]

    def paint(theme: str) -> None:
        for app, settings in plain:
            app.state.config_manager = settings.with_overrides({**SETTINGS, "display": {"theme": theme}})

    async def changing(request: Request) -> Response:
        theme, name = request.path_params["name"], request.query_params.get("lesson")
        if theme not in THEMES:
            return Response(status_code=404)
        progress.current().paint(theme)
        paint(theme)
        known = name in {lesson.name for lesson in LESSONS}
        lang = chosen(request.query_params.get("lang"))
        return RedirectResponse(f"/lesson/{name}/?lang={lang}" if known else f"/?lang={lang}", 303)

    paint(progress.current().theme)
    return changing


async def _slash(request: Request) -> Response:
    """Redirect a lesson URL without its final slash; marimo's own redirect would lose the query string."""
    name, query = request.path_params["name"], request.url.query
    if name not in {lesson.name for lesson in LESSONS}:
        return Response(status_code=404)
    return RedirectResponse(f"/lesson/{name}/" + (f"?{query}" if query else ""), 303)


async def _nothing(_: Request) -> Response:
    """Leave out marimo's event stream: a mere GET would start a lesson's kernel. Our pages use a websocket."""
    return Response(status_code=404)


async def _icon(_: Request) -> Response:
    return FileResponse(ASSETS / "icon.svg")


def application(*, port: int, token: str) -> ASGIApp:
    """Build the whole application, behind its guard."""
    lessons = _lessons()

    @contextlib.asynccontextmanager
    async def closing(_: Starlette) -> AsyncIterator[None]:
        yield
        for app in _mounted(lessons):  # or their threads would keep the process alive
            await app.state.session_manager.shutdown()

    routes = [
        Route("/", _index),
        Route("/favicon.ico", _icon),
        Route("/assets/{name}", _asset),
        Route("/theme/{name}", _painter(lessons), methods=["POST"]),
        Mount(SCRIPTS, _Scripts(directory=pathlib.Path(marimo.__file__).parent / "_static")),
        Route("/lesson/{name}", _slash),
        Route("/lesson/{name}/sse", _nothing),
        Mount("/lesson", lessons),
    ]
    return Guard(Starlette(routes=routes, lifespan=closing), port=port, token=token)


def _lessons() -> Any:
    """Load the notebooks in run mode: users cannot edit cells, and the code is not sent."""
    head = HEAD.format(otherwise=chosen(None))
    builder = marimo.create_asgi_app(quiet=True, include_code=False, html_head=head, asset_url=SCRIPTS)
    for lesson in LESSONS:
        builder = builder.with_app(path=f"/{lesson.name}", root=str(lesson.notebook))
    return builder.build()


def _mounted(lessons: Any) -> list[Any]:
    """Return each lesson's marimo app."""
    apps: list[Any] = [route.app for route in lessons.routes if isinstance(route, Mount)]
    return [app for app in apps if hasattr(app.state, "session_manager")]
