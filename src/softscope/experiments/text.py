"""What an experiment says, English and Chinese side by side."""

from __future__ import annotations

from typing import NamedTuple

from softscope.testing.sentences import LANGS, Lang

__all__ = ["LANGS", "Lang", "Text", "same"]


class Text(NamedTuple):
    """One text in both languages; called with a language it gives that one.

    >>> Text("entropy", "熵")("zh")
    '熵'
    """

    en: str
    zh: str

    def __call__(self, lang: Lang) -> str:
        """The text in one language."""
        return self[LANGS.index(lang)]


def same(text: str) -> Text:
    """A formula or a name that needs no translation.

    >>> same("1/√d")("zh")
    '1/√d'
    """
    return Text(text, text)
