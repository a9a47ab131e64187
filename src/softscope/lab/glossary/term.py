"""A term, and how to look up its code name."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Term:
    """One concept and its names.

    Attributes:
        en: the English word, singular.
        zh: the Chinese word.
        symbol: its notation in formulas.
        code: its name in code: a softscope function, `Partition.entropy` for a reading, `attention(mask)` for an
            argument.
        forms: other English forms; the plural in -s is implied.
        also: other Chinese words a sentence may use for it.
        avoid: Chinese words that other texts use for it but ours do not; regular expressions.
        loose: whether the English word has other meanings too, so it may appear without the Chinese one.
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
        """Compile the pattern that finds it in an English text."""
        words = "|".join(re.escape(form).replace(r"\ ", r"[ -]") for form in (self.en, *self.forms))
        return re.compile(rf"(?<![\w.{{-])(?:{words})(?:e?s)?(?![\w}}(=-])", re.IGNORECASE)


def exists(code: str) -> bool:
    """Check whether softscope has that function, reading or argument.

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
