"""Which language a page speaks: what its address says, else what the lab was started with."""

from __future__ import annotations

from softscope._text import Lang

_preferred: Lang = "en"


def prefer(lang: Lang) -> None:
    """Let pages speak this one where their address does not say."""
    global _preferred
    _preferred = lang


def chosen(wanted: object) -> Lang:
    """The language that was asked for, if it is one of the two.

    >>> chosen("zh"), chosen("fr"), chosen(None)
    ('zh', 'en', 'en')
    """
    return "zh" if wanted == "zh" else "en" if wanted == "en" else _preferred
