"""The findings with their remedies, the prescriptions, the answers of every check, and what could not be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.doctor.diagnosis import named
from softscope.doctor.judge.checks import CHECKS, KIND_NAMES, KINDS, SEVERITIES
from softscope.doctor.report.markup import both, figure, words

if TYPE_CHECKING:
    from softscope._text import Text
    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.judge.checks import CheckResult, Kind


def findings(diagnosis: Diagnosis) -> str:
    """Findings, tips and notes, one card per check that fired."""
    cards = [
        _card(diagnosis, kind, code, outcomes) for kind in SEVERITIES for code, outcomes in diagnosis.of(kind).items()
    ]
    return "".join(cards) or f'<p class="none">{words(zh="没有。", en="None.")}</p>'


def _card(diagnosis: Diagnosis, kind: Kind, code: str, outcomes: list[CheckResult]) -> str:
    check, view = CHECKS[code], diagnosis.view
    listed = [f"<li><b>{both(view.name(o.heads[0]))}</b> {both(o.says)}</li>" for o in outcomes]
    shown, more = "".join(listed[:6]), listed[6:]
    rest = ""
    if more:
        summary = words(zh=f"还有 {len(more)} 个", en=f"{len(more)} more")
        rest = f"<details><summary>{summary}</summary><ul>{''.join(more)}</ul></details>"
    reasons = "".join(
        f"<li><b>{figure(x.value)}</b> {both(x.reason)} <cite>{both(x.source)}</cite></li>" for x in check.thresholds
    )
    return (
        f'<article class="{kind}"><h4><span class="code">{code}</span> {both(check.title)} '
        f'<span class="kind">{both(KIND_NAMES[kind])} {len(outcomes)}</span></h4><ul>{shown}</ul>{rest}'
        f"<p><b>{words(zh='怎么办：', en='What to do:')}</b> {both(check.remedy)}</p>"
        f"<details><summary>{words(zh='阈值和理由', en='Threshold and why')}</summary><ul>{reasons}</ul></details>"
        "</article>"
    )


def prescriptions(diagnosis: Diagnosis) -> str:
    """Each remedy: what to do, for which heads, why, what to expect, and how well that is established."""
    cards = []
    for given in diagnosis.prescriptions:
        tried = given.tried
        rows: list[tuple[str, Text | str | None]] = [
            (words(zh="给", en="for"), named(diagnosis.view, given.heads)),
            (words(zh="试过吗", en="tried"), given.standing),
            (words(zh="为什么", en="why"), given.why),
            (words(zh="预期读数", en="expected readings"), given.expect if given.remedy != "none" else None),
            (words(zh="另外", en="beyond this model"), given.advice),
            (words(zh="也试过", en="also tried"), None if tried is None else tried.also),
            (words(zh="试的代价", en="cost of trying"), None if tried is None else tried.cost),
            (words(zh="依据", en="evidence"), given.evidence if tried is None else None),
            (words(zh="没有用的", en="what did not help"), given.does_not if tried is None else None),
        ]
        listed = "".join(f"<dt>{label}</dt><dd>{both(text)}</dd>" for label, text in rows if text is not None)
        if given.treatment is not None:
            code = f"from softscope.doctor import remedies\n{given.treatment.code()}"
            listed += f"<dt>{words(zh='代码', en='in code')}</dt><dd><pre>{both(code)}</pre></dd>"
        cards.append(f'<article class="remedy"><h4>{both(given.what)}</h4><dl>{listed}</dl></article>')
    return "".join(cards) or f'<p class="none">{words(zh="不需要。", en="None needed.")}</p>'


def answers(diagnosis: Diagnosis) -> str:
    """Every check, with the number of times it gave each answer."""
    kinds = [kind for kind in KINDS if diagnosis.counts[kind]]
    top = "".join(f'<th scope="col">{both(KIND_NAMES[kind])}</th>' for kind in kinds)
    rows = []
    for code, check in CHECKS.items():
        found = [o for o in diagnosis.outcomes if o.code == code]
        cells = "".join(f"<td>{sum(o.count for o in found if o.kind == kind) or '·'}</td>" for kind in kinds)
        why = [o.says for o in found if o.kind in ("not-applicable", "unseen")]
        reason = f"<br><small>{both(why[0])}</small>" if why else ""
        rows.append(f'<tr><th scope="row"><b>{code}</b> {both(check.title)}{reason}</th>{cells}</tr>')
    title = words(zh="每项检查的回答（按头或层计数）", en="Answers of each check (counted by head or layer)")
    return (
        f'<div class="wide"><table class="answers"><caption>{title}'
        f'</caption><thead><tr><th scope="col">{words(zh="检查", en="check")}</th>{top}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody>"
        f"</table></div>"
    )


def unseen(diagnosis: Diagnosis) -> str:
    """Modules that the probe could not read."""
    missed = diagnosis.view.history.unseen
    listed = "".join(f"<li><code>{both(name)}</code> {both(why.text)}</li>" for name, why in missed)
    return (
        f"<ul>{listed}</ul>"
        if listed
        else f'<p class="none">{words(zh="所有模块都看到了。", en="All modules were seen.")}</p>'
    )
