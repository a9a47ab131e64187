"""What a term is, and how its code name is looked up."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Term:
    """One thing and its names.

    Attributes:
        en: the English word, singular.
        zh: the Chinese word.
        symbol: how formulas write it.
        code: how code writes it: a function of softscope, `Partition.entropy` for a reading, `attention(mask)` for an
            argument.
        forms: other English forms; the plural with s is understood.
        also: other Chinese words that may stand for it in a sentence.
        avoid: Chinese words that other texts use for it, and ours do not; regular expressions.
        loose: the English word has other meanings too, so that it may stand where the Chinese does not.
    """

    en: str
    zh: str
    symbol: str
    code: str
    forms: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    loose: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """Where an English text uses it."""
        words = "|".join(re.escape(form).replace(r"\ ", r"[ -]") for form in (self.en, *self.forms))
        return re.compile(rf"(?<![\w.{{-])(?:{words})(?:e?s)?(?![\w}}(=-])", re.IGNORECASE)


def exists(code: str) -> bool:
    """Whether softscope has that function, reading or argument.

    >>> exists("softmax"), exists("Partition.entropy"), exists("attention(mask)"), exists("softmin")
    (True, True, True, False)
    """
    import softscope

    name, _, argument = code.rstrip(")").partition("(")
    found = softscope
    for part in name.split("."):
        found = getattr(found, part, None)  # type: ignore[assignment]
    if found is None:
        return False
    return not argument or argument in inspect.signature(found).parameters  # type: ignore[arg-type]
