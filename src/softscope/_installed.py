"""Packages that some experiments and all charts need: whether they are there, and what to install if not."""

from __future__ import annotations

import importlib.util

DRAWING = ("altair", "vl_convert")


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of the packages that are not installed.

    >>> missing(("numpy", "no_such_package"))
    ['no_such_package']
    """
    return [package for package in packages if not _installed(package)]


def require(what: str, packages: tuple[str, ...]) -> None:
    """Raise an ImportError that says what to install, if one is missing.

    >>> require("this needs", ("numpy",))
    """
    for package in missing(packages):
        raise ImportError(f"{what} {package.replace('_', '-')}: pip install 'softscope[experiments]'")


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # made unavailable on purpose
        return False
