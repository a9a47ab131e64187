"""Softmax's rivals: those that the texts name and two that they do not, each a map of one row."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from softscope.experiments import maps, properties

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = ("softmax", "entmax", "mixed", "sparsemax", "linear", "sigmoid", "relu_alone", "relu")
MAPS: dict[str, Callable[[Any], Any]] = {maps.NAMES[key].en: maps.MAPS[key] for key in KEYS}


@functools.cache
def marks(name: str) -> dict[properties.Property, properties.Mark]:
    """Which of text 001's five reasons a map meets."""
    return properties.report(MAPS[name])
