"""Text in columns: how wide characters are on a terminal, padding, wrapping, bars."""

from __future__ import annotations

import re
import unicodedata

_BLOCKS = " ▏▎▍▌▋▊▉█"
# Chinese typography: these do not begin a line, and the opening ones do not end it.
_NOT_FIRST = set("，。；：、）」！？,.;:)!?%")
_NOT_LAST = set("（「(")
_GLUE = re.compile(" ([=→]) ")


def width(text: str) -> int:
    """Columns on a terminal: Chinese takes two, combining marks none.

    Characters that Unicode calls ambiguous (−, →, █) count as one, as terminals draw them by default.

    >>> width("softmax"), width("权重"), width("T = 1 时")
    (7, 4, 8)
    """
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def pad(text: str, columns: int, right: bool = False) -> str:
    """Text filled with blanks to the columns, on its right side or, for figures, its left.

    >>> pad("熵", 4) + "|", pad("2.0", 5, right=True)
    ('熵  |', '  2.0')
    """
    blanks = " " * max(0, columns - width(text))
    return blanks + text if right else text + blanks


def wrap(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Lines no wider than the columns; `first` and `rest` begin them. Chinese may break after any character.

    What stands around = and → stays together.

    >>> wrap("the weight is spread", 12, "- ", "  ")
    ['- the weight', '  is spread']
    >>> wrap("权重的总和为 1。", 8)
    ['权重的总', '和为 1。']
    """
    lines, line, start = [], first, True
    rest = first if rest is None else rest
    for piece in _pieces(_GLUE.sub("\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", text)):
        if start:
            piece = piece.lstrip(" ")
        if not start and width(line) + width(piece) > columns:
            lines.append(line)
            line, piece = rest, piece.lstrip(" ")
        line += piece
        start = False
    return [part.replace("\N{NO-BREAK SPACE}", " ") for part in (*lines, line)]


def _pieces(text: str) -> list[str]:
    """What a line break must not divide, each with the blank before it."""
    pieces: list[str] = []
    for c in text:
        wide = unicodedata.east_asian_width(c) in "WF"
        before = pieces[-1][-1] if pieces else ""
        joined = before and (
            c in _NOT_FIRST
            or before in _NOT_LAST
            or before == " "
            or (c != " " and not wide and unicodedata.east_asian_width(before) not in "WF")
        )
        if joined:
            pieces[-1] += c
        else:
            pieces.append(c)
    return pieces


def bar(share: float, cells: int, blocks: bool = True) -> str:
    """A bar of |share| of the cells, in eighths of a cell; a negative share is drawn hatched.

    What is not 0 shows at least the thinnest block, what is not whole leaves a little out.

    >>> bar(0.5, 4), bar(0.3, 4), bar(1e-9, 4), bar(0.0, 4), bar(-0.5, 4), bar(0.5, 4, blocks=False)
    ('██', '█▎', '▏', '', '░░', '##')
    """
    size = min(abs(share), 1.0)
    if not blocks or share < 0.0:
        whole = round(size * cells)
        return ("░" if blocks else "-" if share < 0.0 else "#") * (max(1, whole) if size > 0.0 else 0)
    eighths = round(size * cells * 8)
    if size > 0.0:
        eighths = max(1, min(eighths, cells * 8 - (size < 1.0)))
    return _BLOCKS[8] * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")
