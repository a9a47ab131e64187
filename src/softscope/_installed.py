"""Optional packages: whether one is installed, its version, and what to install if it is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util

DRAWING = ("altair", "vl_convert")


def missing(packages: tuple[str, ...]) -> list[str]:
    """Return the packages that are not installed.

    >>> missing(("numpy", "no_such_package"))
    ['no_such_package']
    """
    return [package for package in packages if not _installed(package)]


def version(package: str) -> str | None:
    """Return a package's version without importing it, or None if it is not installed.

    >>> version("no_such_package") is None
    True
    """
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def require(what: str, packages: tuple[str, ...], install: str = "'softscope[experiments]'") -> None:
    """Raise an ImportError that says what to install if a package is missing.

    >>> require("this needs", ("numpy",))
    """
    for package in missing(packages):
        raise ImportError(f"{what} {package.replace('_', '-')}: pip install {install}")


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # deliberately made unavailable
        return False
