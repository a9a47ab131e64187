"""A page's language: the one in its URL, or else the one the lab was started with."""

from __future__ import annotations

from softscope._text import Lang

_preferred: Lang = "en"


def prefer(lang: Lang) -> None:
    """Set the language for pages whose URL does not name one."""
    global _preferred
    _preferred = lang


def chosen(wanted: object) -> Lang:
    """Return the requested language if we support it, or else the default.

    >>> chosen("zh"), chosen("fr"), chosen(None)
    ('zh', 'en', 'en')
    """
    return "zh" if wanted == "zh" else "en" if wanted == "en" else _preferred
