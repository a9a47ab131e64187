"""What the user can mend: one line on stderr, exit code 2."""

from __future__ import annotations

import unicodedata
from typing import Any

_LONGEST = 60  # characters of the user's own text that one line can bear
REASON = 200  # and of what another program says is wrong
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, direction and other marks, half characters, ends of lines


class UsageError(Exception):
    """A mistake in the command or in what it reads, told by the sentence `key` of the words."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


def safe(text: str) -> str:
    r"""The text without what moves a terminal's cursor, colours or direction: names of modules are strangers' words.

    >>> safe("熵 a\x1b[31m\u202e")
    '熵 a\\x1b[31m\\u202e'
    """
    return "".join(c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNSAFE else c for c in text)


def shown(text: object, longest: int = _LONGEST) -> str:
    r"""The user's own text, short and on one line whatever it holds.

    >>> shown("2,5x"), shown("a\nb\x1b[31m"), len(shown("x" * 1000))
    ('2,5x', 'a\\nb\\x1b[31m', 60)
    """
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in str(text))
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"
