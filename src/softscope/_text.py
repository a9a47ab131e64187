"""A text in both languages, side by side so that they cannot drift apart."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = get_args(Lang)


class Text(NamedTuple):
    """The same in Chinese and English."""

    zh: str
    en: str

    def of(self, lang: Lang) -> str:
        """The text in one language."""
        return self.zh if lang == "zh" else self.en


def t(zh: str, en: str) -> Text:
    """The text in both languages, Chinese first.

    >>> t("熵", "entropy").of("en")
    'entropy'
    """
    return Text(zh, en)


def said(text: Text | str, lang: Lang) -> str:
    """What to show in a language: a plain string is a formula or a number, the same in both.

    >>> said("n = 10", "zh"), said(t("均匀", "uniform"), "zh")
    ('n = 10', '均匀')
    """
    return text if isinstance(text, str) else text.of(lang)
