"""Layer × head, one table per reading: the number, coloured by its position between the smallest and the largest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softscope._text import Text, same
from softscope.doctor.judge.history_view import Head
from softscope.doctor.report.markup import both, figure, share, state_cell, words

if TYPE_CHECKING:
    from softscope.doctor.diagnosis import Diagnosis

# Reading, title, explanation, and whether the colours are logarithmic.
READINGS: tuple[tuple[str, Text, Text, bool], ...] = (
    (
        "blocked",
        Text(zh="被阻断的行", en="blocked rows"),
        Text(zh="梯度过不去的行", en="rows that let no gradient through"),
        False,
    ),
    (
        "transmission:median",
        Text(zh="传导率（中位数）", en="transmission (median)"),
        Text(zh="均匀为 1", en="1 if uniform"),
        True,
    ),
    (
        "advantage",
        Text(zh="优势", en="advantage"),
        Text(zh="0：不比任取一个键好", en="0: no better than any other key"),
        False,
    ),
    (
        "blocked_mass",
        Text(zh="被阻断行的最大列", en="top column of blocked rows"),
        Text(zh="≥ 0.9 为停歇", en="≥ 0.9 means resting"),
        False,
    ),
    ("sharpness", Text(zh="尖锐度", en="sharpness"), Text(zh="0 均匀，1 one-hot", en="0 uniform, 1 one-hot"), False),
    ("max_logit", Text(zh="最大分数", en="largest logit"), Text(zh="软上限和掩码之前", en="before cap and mask"), True),
    (
        "logit_spread",
        Text(zh="分数的标准差", en="standard deviation of logits"),
        Text(zh="每行可见键上", en="over a row's visible keys"),
        True,
    ),
    (
        "sink_mass",
        Text(zh="最大列的权重", en="weight of the top column"),
        Text(zh="> 0.3 很常见", en="> 0.3 is common"),
        False,
    ),
    ("q_norm", same("|q|"), Text(zh="q 的平均长度", en="mean norm of q"), True),
    ("k_norm", same("|k|"), Text(zh="k 的平均长度", en="mean norm of k"), True),
    ("cosine", same("|cos(q, k)|"), Text(zh="q 与 k 夹角的余弦", en="cosine of the angle between q and k"), False),
)


def maps(diagnosis: Diagnosis) -> str:
    """The states, then every reading that was taken."""
    return _states(diagnosis) + "".join(_map(diagnosis, *reading) for reading in READINGS)


def shortened(names: list[str]) -> list[str]:
    """Drop the words that all names begin and end with, to make room for numbers. The tooltip has the full name.

    >>> shortened(["layers.0.attention", "layers.10.attention"]), shortened(["encoder"]), shortened(["a.b", "a.b.c"])
    (['0', '10'], ['encoder'], ['a.b', 'a.b.c'])
    """
    words = [name.split(".") for name in names]
    least = min((len(parts) for parts in words), default=0)
    first = next((i for i in range(least) if len({parts[i] for parts in words}) > 1), least)
    last = next((i for i in range(least) if len({parts[-1 - i] for parts in words}) > 1), least)
    if first + last >= least:
        return names
    return [".".join(parts[first : len(parts) - last]) for parts in words]


def _table(diagnosis: Diagnosis, title: Text, about: str, cells: dict[Head, str]) -> str:
    sites = diagnosis.view.history.sites
    heads = max((site.heads for site in sites), default=0)
    corner = words(zh="层 / 头", en="layer / head")
    top = "".join(f'<th scope="col">{j}</th>' for j in range(heads))
    rows = []
    names = shortened([site.name for site in sites])
    for i, site in enumerate(sites):
        row = "".join(cells[Head(i, j)] if j < site.heads else "<td></td>" for j in range(heads))
        rows.append(f'<tr><th scope="row" title="{both(site.name)}">{both(names[i])}</th>{row}</tr>')
    return (
        f'<div class="map"><table><caption><b>{both(title)}</b> <span>{about}</span></caption>'
        f'<thead><tr><th scope="col">{corner}</th>{top}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _states(diagnosis: Diagnosis) -> str:
    cells = {head: state_cell(found.state) for head, found in diagnosis.view.states.items()}
    return _table(diagnosis, Text(zh="状态", en="state"), words(zh="每个头的情况", en="how each head is doing"), cells)


def _map(diagnosis: Diagnosis, name: str, title: Text, about: Text, logarithmic: bool) -> str:
    view = diagnosis.view
    values = {head: view.value(name, head) for head in view.heads}
    known = [x for x in values.values() if x is not None and math.isfinite(x)]
    if not known:
        return ""

    def place(x: float) -> float:
        return math.log10(max(x, 1e-6)) if logarithmic else x

    low, high = place(min(known)), place(max(known))
    cells = {}
    for head, x in values.items():
        colour = ""
        if x is not None and math.isfinite(x) and high > low:
            colour = f' style="--c:{(place(x) - low) / (high - low):.2f}"'
        text = share(x) if name == "blocked" and x is not None else figure(x, 2)
        cells[head] = f"<td{colour}>{text}</td>"
    least, most = figure(min(known)), figure(max(known))
    span = least if least == most else f"{least} … {most}"
    return _table(diagnosis, title, f"{both(about)} · {span}", cells)
