"""The output console: its language, width and colours, and the characters it can show."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from typing import TYPE_CHECKING, Any, TextIO

from softscope.cli import language
from softscope.cli.layout import wrap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope._text import Lang

_NARROWEST, _WIDEST = 40, 100  # a table needs at least the first; a paragraph gets hard to read beyond the second
_STYLES = {"bold": "1", "dim": "2", "bar": "36", "negative": "31", "code": "32", "caution": "33",
           "cell.few": "30;42", "cell.many": "30;43", "cell.most": "97;41", "cell.read": "30;46"}  # fmt: skip
# Replacements for streams that cannot encode the character on the left (an ASCII locale, an old Windows code page).
_PLAIN = str.maketrans(
    {"−": "-", "–": "-", "→": "->", "·": "*", "×": "x", "√": "sqrt ", "Σ": "sum ", "≤": "<=", "…": "...", "²": "^2",
     "±": "+/-", "≥": ">=", "≠": "!=", "′": "'", "‖": "||", "∂": "d", "∞": "inf", "“": '"', "”": '"'}
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Console:
    """An output stream and how to write to it."""

    stream: TextIO | None  # None if there is no stdout at all
    lang: Lang
    width: int = 80
    colour: bool = False
    blocks: bool = True

    @classmethod
    def of(cls, stream: TextIO | None, environ: Mapping[str, str], lang: Lang | None = None) -> Console:
        """Make the console for a stream: colours only on a terminal, Chinese only if the stream can encode it."""
        wanted = lang or language.of_locale(environ)
        if wanted == "zh" and not _bears(stream, "权"):
            wanted = "en"
        columns = shutil.get_terminal_size((80, 24)).columns
        return cls(
            stream,
            wanted,
            min(max(columns, _NARROWEST), _WIDEST),
            _coloured(stream, environ),
            _bears(stream, "█▏░"),
        )

    def say(self, key: str, **values: Any) -> str:
        """Return the words for `key` in the console's language."""
        return language.say(self.lang, key, **values)

    def write(self, text: str = "") -> None:
        """Write one or more lines."""
        if self.stream is None:
            return
        if not _bears(self.stream, text):
            encoding = self.stream.encoding or "ascii"
            text = text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
        self.stream.write(text + "\n")

    def paragraph(self, text: str, first: str = "  ", rest: str | None = None) -> None:
        """Write text wrapped to the console's width."""
        for line in wrap(text, self.width, first, rest):
            self.write(line)

    def paint(self, text: str, style: str) -> str:
        """Return the text in a style, if the console has colours."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour and text else text


def forget(stream: TextIO | None) -> None:
    """Discard unwritten output; otherwise Python would retry at exit, and complain."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
        os.close(nowhere)


def _bears(stream: TextIO | None, text: str) -> bool:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _coloured(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Decide on colours: NO_COLOR forbids, FORCE_COLOR forces, otherwise use them on a terminal."""
    if environ.get("NO_COLOR") or stream is None:
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"
