"""Text in Chinese and English, kept side by side so that the two cannot drift apart."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal, get_args

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = get_args(Lang)
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, direction and other format marks, lone surrogates, line ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The same text in Chinese and English; both are keyword-only, so nobody can swap them.

    >>> Text(zh="熵", en="entropy").of("en")
    'entropy'
    """

    zh: str
    en: str

    def of(self, lang: Lang) -> str:
        """Return the text in one language."""
        return self.zh if lang == "zh" else self.en

    def format(self, *places: object, **values: object) -> Text:
        """Fill in the braces; a value that is itself a Text is filled in by language.

        >>> Text(zh="{what}：{}", en="{what}: {}").format(2, what=Text(zh="熵", en="entropy"))
        Text(zh='熵：2', en='entropy: 2')
        """
        return Text(zh=_filled(self, "zh", places, values), en=_filled(self, "en", places, values))


def same(text: str) -> Text:
    """Wrap a formula or name that needs no translation.

    >>> same("1/√d").of("zh")
    '1/√d'
    """
    return Text(zh=text, en=text)


def said(text: Text | str, lang: Lang) -> str:
    """Return what to show in a language; a plain string is a formula or a number, the same in both.

    >>> said("n = 10", "zh"), said(Text(zh="均匀", en="uniform"), "zh")
    ('n = 10', '均匀')
    """
    return text if isinstance(text, str) else text.of(lang)


def safe(text: str) -> str:
    r"""Escape anything that changes a terminal's cursor, colours or direction: we cannot trust module names.

    >>> safe("熵 a\x1b[31m\u202e")
    '熵 a\\x1b[31m\\u202e'
    """
    if text.isascii() and text.isprintable():  # almost every name
        return text
    return "".join(c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNSAFE else c for c in text)


def _filled(text: Text, lang: Lang, places: tuple[object, ...], values: dict[str, object]) -> str:
    def put(value: object) -> object:
        return value.of(lang) if isinstance(value, Text) else value

    return text.of(lang).format(*map(put, places), **{name: put(value) for name, value in values.items()})
