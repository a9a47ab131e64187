"""How a wrong map is registered: with the properties it breaks, and the options to test it with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wrong:
    f: Callable[..., Any]
    broken: frozenset[str]
    options: dict[str, Any]


class WrongMaps(dict[str, Wrong]):
    def breaking(self, *broken: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator that registers a map under its name."""

        def listed(f: Callable[..., Any]) -> Callable[..., Any]:
            self[f.__name__] = Wrong(f, frozenset(broken), options)
            return f

        return listed
