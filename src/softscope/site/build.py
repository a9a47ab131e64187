"""Write the whole site, one part after the other."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from softscope._installed import missing
from softscope._text import LANGS
from softscope.lab.course import LESSONS as COURSE
from softscope.site import frame, front, glossary, homework, pictures, reference, report, speed
from softscope.site.lessons import lesson as lessons
from softscope.site.standalone import with_way_back

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from softscope._text import Lang

PARTS = ("front", "homework", "glossary", "speed", "report", "ledger", "reference", *(one.name for one in COURSE))
SHARES = {"ledger": 30.0, "report": 20.0, "reference": 6.0, "scaling": 12.0, "rivals": 10.0, "patient": 12.0}


def build(
    folder: pathlib.Path,
    *,
    ledger: Callable[[Lang], str] | None = None,
    progress: Callable[[str, float], None] = lambda _, __: None,
    only: Collection[str] = PARTS,
) -> list[frame.Place]:
    """Write the site into the folder and return the pages it could not have here.

    Args:
        folder: where to; it is made if it is not there.
        ledger: gives the ledger's page in a language; without it there is none.
        progress: called with the part at hand and the share done.
        only: the parts to write, for trying one of them; links to others then lead nowhere.
    """
    absent = [place for place, there in (
        (frame.LEDGER, ledger is not None), (frame.SPEED, speed.available()), (frame.REFERENCE, not missing(("pdoc",)))
    ) if not there]  # fmt: skip
    site = frame.Frame([place for place in frame.PLACES if place not in absent])
    writer = _Writer(folder)
    parts = [part for part in PARTS if part in only and part not in _parts(absent)]
    total, done = sum(SHARES.get(part, 1.0) for part in parts), 0.0
    writer.both("lessons/index.html", lambda lang: front.lessons(site, lang))
    writer.assets()
    for part in parts:
        share = SHARES.get(part, 1.0)

        def at(within: float, part: str = part, start: float = done, share: float = share) -> None:
            progress(part, (start + within * share) / total)

        at(0.0)
        match part:
            case "front":
                writer.both(frame.FRONT.path, lambda lang: front.page(site, lang))
            case "homework":
                writer.both(frame.HOMEWORK.path, lambda lang: homework.page(site, lang))
            case "glossary":
                writer.both(frame.GLOSSARY.path, lambda lang: glossary.page(site, lang))
            case "speed":
                writer.both(frame.SPEED.path, lambda lang: speed.page(site, lang))
                writer.write("assets/lengths.svg", speed.chart().read_text("utf-8"))
            case "report":
                _report(writer, at)
            case "ledger":
                assert ledger is not None
                for lang in LANGS:
                    page = with_way_back(ledger(lang), lang, frame.LEDGER.path)
                    writer.write(frame.home(frame.LEDGER.path, lang), page)
            case "reference":
                reference.build(folder / "reference")
            case name:
                _lesson(writer, site, name, at)
        done += share
    return absent


def _parts(places: Collection[frame.Place]) -> set[str]:
    return {place.path.partition("/")[0].removesuffix(".html") for place in places}


def _report(writer: _Writer, progress: Callable[[float], None]) -> None:
    from softscope.doctor.report import page

    found = report.diagnoses(progress)
    writer.both(frame.REPORT.path, lambda lang: with_way_back(page(found, lang), lang, frame.REPORT.path))


def _lesson(writer: _Writer, site: frame.Frame, name: str, progress: Callable[[float], None]) -> None:
    for i, lang in enumerate(LANGS):
        progress(i / len(LANGS))
        made = lessons.page(site, name, lang)
        writer.write(frame.home(f"lessons/{name}.html", lang), made.html)
        for file, text in made.assets.items():
            writer.write(f"assets/{file}", text)


class _Writer:
    """Writes pages and the files they share."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")

    def both(self, path: str, page: Callable[[Lang], str]) -> None:
        for lang in LANGS:
            self.write(frame.home(path, lang), page(lang))

    def assets(self) -> None:
        """Write what pages of several kinds share."""
        from softscope.lab.widgets.pictures import FOLDER

        lab = pathlib.Path(FOLDER).parent / "assets"
        self.write("assets/site.css", frame.asset("site.css"))
        self.write("assets/icon.svg", (lab / "icon.svg").read_text("utf-8"))
        self.write("assets/pictures.css", (FOLDER / "style.css").read_text("utf-8"))
        self.write("assets/lesson.css", (lab / "lesson.css").read_text("utf-8") + frame.asset("lesson.css"))
        self.write("assets/maths.js", pictures.maths())
        for name in ("pictures.js", "replay.js", "quiz.js", "head.js", "trainer.js"):
            self.write(f"assets/{name}", frame.asset(name))
