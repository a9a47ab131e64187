"""What a model's configuration says, whatever object it is."""

from __future__ import annotations

from typing import Any


def setting(config: Any, name: str, default: Any = None) -> Any:
    """A plain value of a configuration; the default if it has none, or raises when asked.

    >>> class Strict(dict):
    ...     __getattr__ = dict.__getitem__
    >>> setting(Strict(d=8), "d"), setting(Strict(d=8), "heads"), setting(None, "d", 0)
    (8, None, 0)
    """
    try:
        found = getattr(config, name, default)
    except Exception:  # a stranger's object: a dictionary with attributes raises KeyError
        return default
    return found if isinstance(found, bool | int | float | str | list | tuple) else default
