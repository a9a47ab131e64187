"""Text in columns: terminal character widths, padding, wrapping, bars."""

from __future__ import annotations

import re
import unicodedata

_BLOCKS = " ▏▎▍▌▋▊▉█"
# Chinese typography: these may not start a line, and opening marks may not end one.
_NOT_FIRST = set("，。；：、）」！？,.;:)!?%")
_NOT_LAST = set("（「(")
_GLUE = re.compile(" ([=→]) ")


def width(text: str) -> int:
    """Count columns on a terminal: a Chinese character takes two, a combining mark none.

    Characters that Unicode calls ambiguous (−, →, █) count as one, as terminals draw them by default.

    >>> width("softmax"), width("权重"), width("T = 1 时")
    (7, 4, 8)
    """
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def pad(text: str, columns: int, right: bool = False) -> str:
    """Pad text with spaces to the given columns, on the right or, for figures, on the left.

    >>> pad("熵", 4) + "|", pad("2.0", 5, right=True)
    ('熵  |', '  2.0')
    """
    blanks = " " * max(0, columns - width(text))
    return blanks + text if right else text + blanks


def wrap(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Wrap to lines no wider than the columns, starting with `first` and `rest`. Chinese may break after any character.

    Text around = and → stays together.

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
    """Split text into pieces that a line break must not divide, each with its leading space."""
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
    """Draw a bar over |share| of the cells, in eighths of a cell; a negative share is hatched.

    A nonzero share shows at least the thinnest block, and a share short of 1 never looks full.

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
