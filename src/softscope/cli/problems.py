"""Problems the user can fix: one line on stderr, exit code 2."""

from __future__ import annotations

from typing import Any

_LONGEST = 60  # characters of the user's own text that fit in one line
REASON = 200  # characters of another program's error message


class UsageError(Exception):
    """A mistake in the command or its input; `key` names the sentence that explains it."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


def shown(text: object, longest: int = _LONGEST) -> str:
    r"""Shorten the user's own text to one line, whatever it holds.

    >>> shown("2,5x"), shown("a\nb\x1b[31m"), len(shown("x" * 1000))
    ('2,5x', 'a\\nb\\x1b[31m', 60)
    """
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in str(text))
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"
