"""The report as one self-contained page: both languages, light and dark, printable; it makes no requests."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING

import softscope
from softscope._text import Lang, Text
from softscope.doctor.judge.checks import KIND_NAMES
from softscope.doctor.report.findings import answers, findings, prescriptions, unseen
from softscope.doctor.report.heads import heads, losses
from softscope.doctor.report.maps import maps
from softscope.doctor.report.markup import both, words
from softscope.doctor.report.plane import plane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.judge.checks import Kind

TITLE = Text(zh="softscope 体检报告", en="softscope checkup")
# Nothing may be fetched, whatever a module's name contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(diagnoses: Sequence[Diagnosis], lang: Lang = "en") -> str:
    """The whole page, opening in the given language.

    >>> from softscope.doctor import History, diagnose
    >>> 'src="http' in page([diagnose(History((), ()))])
    False
    """
    room = importlib.resources.files("softscope.doctor.report")
    style, script = (room.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    parts = "\n".join(_one(diagnosis, i, len(diagnoses)) for i, diagnosis in enumerate(diagnoses))
    return (
        f'<!doctype html>\n<html lang="{lang}" data-lang="{lang}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{both(TITLE.of(lang))}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"{_bar(diagnoses)}\n<main>\n{parts}\n<footer>softscope {softscope.__version__}</footer>\n</main>\n"
        f'<div id="tip" role="tooltip" hidden></div>\n<script>\n{script}</script>\n</body>\n</html>\n'
    )


def _bar(diagnoses: Sequence[Diagnosis]) -> str:
    links = ""
    if len(diagnoses) > 1:
        links = "".join(f'<a href="#part{i}">{both(d.title)}</a>' for i, d in enumerate(diagnoses))
    return (
        f'<header class="bar"><h1>{both(TITLE)}</h1><nav>{links}</nav><div class="tools">'
        f'<button data-lang="zh" lang="zh">中文</button><button data-lang="en" lang="en">English</button>'
        f'<button id="theme">{words(zh="深色 / 浅色", en="Dark / light")}</button>'
        f'<button id="print">{words(zh="打印", en="Print")}</button></div></header>'
    )


def _one(diagnosis: Diagnosis, index: int, of: int) -> str:
    severe: tuple[Kind, ...] = ("finding", "tip")
    kind: str = next((kind for kind in severe if diagnosis.counts[kind]), "passed")
    if kind == "passed" and diagnosis.states["unjudged"]:
        kind = "unjudged"
    counted = "".join(
        f'<li class="{name}">{both(KIND_NAMES[name])} <b>{count}</b></li>' for name, count in diagnosis.counts.items()
    )
    title = f"<h2>{both(diagnosis.title)}</h2>" if diagnosis.title else ""
    sections = (
        (words(zh="传导率 × 优势", en="Transmission × advantage"), plane(diagnosis) + losses(diagnosis)),
        (words(zh="发现", en="Findings"), findings(diagnosis)),
        (words(zh="处方", en="Prescription"), prescriptions(diagnosis)),
        (words(zh="各头", en="Heads"), heads(diagnosis)),
        (words(zh="层 × 头", en="Layer × head"), f'<div class="maps">{maps(diagnosis)}</div>'),
        (words(zh="全部回答", en="All answers"), answers(diagnosis)),
        (words(zh="没有看到的", en="Not seen"), unseen(diagnosis)),
    )
    body = "".join(f"<section><h3>{name}</h3>{content}</section>\n" for name, content in sections)
    return (
        f'<article class="case" id="part{index}" aria-label="{index + 1}/{of}">{title}'
        f'<p class="verdict {kind}">{both(diagnosis.verdict)}</p><ul class="counts">{counted}</ul>{body}</article>'
    )
