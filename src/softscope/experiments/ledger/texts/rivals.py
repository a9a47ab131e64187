"""Softmax's rivals: those that the texts name and two that they do not, each a map of one row."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from softscope.experiments import maps, properties
from softscope.testing import Report, check_simplex_map

if TYPE_CHECKING:
    from collections.abc import Callable

# Text 001's five reasons, each as the checks of the contract battery that it amounts to.
REASONS: dict[str, tuple[str, ...]] = {asked.name.en: asked.checks for asked in properties.FIVE}
KEYS = ("softmax", "entmax", "mixed", "sparsemax", "linear", "sigmoid", "relu_alone", "relu")
MAPS: dict[str, Callable[[Any], Any]] = {maps.NAMES[key].en: maps.MAPS[key] for key in KEYS}


@functools.cache
def report(name: str) -> Report:
    """What the contract battery finds about a map."""
    return check_simplex_map(MAPS[name])


@functools.cache
def marks(name: str) -> dict[properties.Property, properties.Mark]:
    """Which of text 001's reasons a map meets."""
    return properties.report(MAPS[name])


def reasons_missed(name: str) -> list[str]:
    """Text 001's reasons that a map does not meet."""
    return [asked.name.en for asked, mark in marks(name).items() if not mark.held]
