"""The report as lines with text, indentation and style; the printer does the wrapping and colouring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from softscope._text import Lang, Text, said
from softscope.doctor.diagnosis import named
from softscope.doctor.judge.checks import CHECKS, KIND_NAMES, SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.treat.prescriptions import Prescription

MOST = 4  # heads named per check


Style = Literal["", "title", "finding", "tip", "informative", "passed", "dim"]


class Line(NamedTuple):
    """One paragraph.

    >>> Line("No finding.", style="passed").indent
    0
    """

    text: str
    indent: int = 0
    style: Style = ""


LABELS = {
    "found": Text(zh="发现", en="Findings"),
    "prescribed": Text(zh="处方", en="Prescription"),
    "code": Text(
        zh="代码（from softscope.doctor import remedies）：", en="In code (from softscope.doctor import remedies): "
    ),
    "why": Text(zh="为什么：", en="Why: "),
    "expect": Text(zh="预期：", en="Expect: "),
    "advice": Text(zh="另外：", en="Beyond this model: "),
    "also": Text(zh="也试过：", en="Also tried: "),
    "cost": Text(zh="试的代价：", en="Cost of trying: "),
    "unseen": Text(zh="没有看到的模块", en="Modules not seen"),
}


def lines(diagnosis: Diagnosis, lang: Lang) -> Iterator[Line]:
    """The verdict first, then findings by check, prescriptions, what was not seen, and the count of every answer.

    >>> from softscope.doctor import History, diagnose
    >>> [line.text for line in lines(diagnose(History((), ()), "my run"), "en")][:2]
    ['my run', 'No attention was found: there is nothing to judge.']
    """
    if diagnosis.title:
        yield Line(said(diagnosis.title, lang), 0, "title")
    style: Style = "finding" if diagnosis.counts["finding"] else "tip" if diagnosis.counts["tip"] else "passed"
    yield Line(diagnosis.verdict.of(lang), 0, style)
    yield from _found(diagnosis, lang)
    yield from _prescribed(diagnosis, lang)
    if diagnosis.view.history.unseen:
        yield Line("")
        yield Line(LABELS["unseen"].of(lang), 0, "title")
        for name, why in diagnosis.view.history.unseen:
            yield Line(f"{name}: {why.text.of(lang)}", 2)
    if diagnosis.view.cost is not None:
        yield Line("")
        yield Line(_sentence(diagnosis.view.cost.of(lang)), 0, "dim")
    counted = (f"{KIND_NAMES[name].of(lang)} {n}" for name, n in diagnosis.counts.items() if n)
    yield Line("")
    yield Line(" · ".join(counted), 0, "dim")


def _found(diagnosis: Diagnosis, lang: Lang) -> Iterator[Line]:
    fired = [(kind, code, of) for kind in SEVERITIES for code, of in diagnosis.of(kind).items()]
    if fired:
        yield Line("")
        yield Line(LABELS["found"].of(lang), 0, "title")
    for kind, code, outcomes in fired:
        yield Line(f"{code} {CHECKS[code].title.of(lang)}", 2, kind)
        for outcome in outcomes[:MOST]:
            colon = "：" if lang == "zh" else ": "
            yield Line(diagnosis.view.name(outcome.heads[0]).of(lang) + colon + outcome.says.of(lang), 4)
        if len(outcomes) > MOST:
            rest = [head for outcome in outcomes[MOST:] for head in outcome.heads]
            more = named(diagnosis.view, rest)
            yield Line(Text(zh=f"还有 {more.zh}", en=f"also {more.en}").of(lang), 4, "dim")


def _prescribed(diagnosis: Diagnosis, lang: Lang) -> Iterator[Line]:
    if diagnosis.prescriptions:
        yield Line("")
        yield Line(LABELS["prescribed"].of(lang), 0, "title")
    for given in diagnosis.prescriptions:
        yield Line(f"{_sentence(given.what.of(lang))} {_for(diagnosis, given, lang)}", 2, "passed")
        if given.standing is not None:
            yield Line(_sentence(given.standing.of(lang)) + _stop(lang), 4, "" if given.tried is not None else "tip")
        yield Line(LABELS["why"].of(lang) + given.why.of(lang), 4)
        if given.treatment is not None:
            yield Line(LABELS["expect"].of(lang) + given.expect.of(lang), 4)
            first, *rest = given.treatment.code().split("\n")
            yield Line(LABELS["code"].of(lang) + first, 4)
            for code in rest:
                yield Line(code.strip(), 6)
        if given.advice is not None:
            yield Line(LABELS["advice"].of(lang) + given.advice.of(lang), 4)
        if given.tried is not None and given.tried.also is not None:
            yield Line(LABELS["also"].of(lang) + given.tried.also.of(lang), 4, "dim")
        if given.tried is not None:
            yield Line(LABELS["cost"].of(lang) + given.tried.cost.of(lang), 4, "dim")
            continue
        yield Line(_sentence(given.evidence.of(lang)) + _stop(lang), 4, "dim")
        if given.does_not is not None:
            yield Line(_sentence(given.does_not.of(lang)) + _stop(lang), 4, "dim")


def _for(diagnosis: Diagnosis, given: Prescription, lang: Lang) -> str:
    heads = named(diagnosis.view, given.heads).of(lang)
    return f"（{heads}）" if lang == "zh" else f"({heads})"


def _stop(lang: Lang) -> str:
    return "。" if lang == "zh" else "."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
