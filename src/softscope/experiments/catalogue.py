"""Look up experiments by name, and run them.

Each experiment is a module in this package. It defines `QUESTION` (in both languages), `SECONDS` (a rough run time
with the defaults on two cores), `measure(progress, *, seed, …)` and `draw(result, lang)`. `NEEDS` lists its imports
beyond NumPy.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from softscope._installed import require
from softscope._progress_bar import ProgressBar
from softscope._text import LANGS, Lang, Text
from softscope.experiments.result import Result

if TYPE_CHECKING:
    from types import ModuleType

NAMES = (
    "overflow",
    "extremes",
    "temperature",
    "saturation",
    "variance",
    "lanes",
    "entropy",
    "gradients",
    "normalisers",
    "weights",
    "attention",
    "scores",
    "learning",
    "remedies",
    "initialisation",
    "cost",
)


class Entry(NamedTuple):
    """What is known about an experiment before it runs.

    >>> entry("saturation").needs
    ('sympy',)
    """

    name: str
    question: Text
    seconds: float
    needs: tuple[str, ...]


def entry(name: str) -> Entry:
    """Look up an experiment's question and rough run time.

    >>> entry("overflow").name
    'overflow'
    """
    module = _module(name)
    return Entry(name, module.QUESTION, module.SECONDS, getattr(module, "NEEDS", ()))


def run(name: str, *, lang: Lang = "en", seed: int = 0, **options: Any) -> Result:
    """Run one experiment.

    Args:
        name: one of `NAMES`.
        lang: "en" or "zh", the result's default language. Every text comes in both.
        seed: seeds every random draw.
        options: sizes, named as the arguments of the experiment's `measure`.

    Returns:
        The tables and the findings; it draws its chart on request.

    Raises:
        ValueError: if `name` or `lang` is not one of those listed.
        TypeError: if the experiment has no such option.
        ImportError: if a package the experiment needs is not installed.

    >>> run("overflow", lang="zh").tables[0].columns[0].title.zh
    '数据类型'
    """
    if lang not in LANGS:
        raise ValueError(f"lang must be one of {', '.join(LANGS)}, but got {lang!r}; pass one of these")
    module = _module(name)
    require(f"experiment {name} needs", entry(name).needs)  # fail before the work starts, not at the end
    known = list(inspect.signature(module.measure).parameters)[1:]
    for option in options:
        if option not in known:
            raise TypeError(f"{name} has no option {option!r}; it has {', '.join(known)}")
    progress = ProgressBar(name)
    start = time.monotonic()
    try:
        tables, notes = module.measure(progress, seed=seed, **options)
    finally:
        progress.wipe()
    defaults = {key: p.default for key, p in inspect.signature(module.measure).parameters.items() if key in known}
    return Result(
        name=name,
        question=module.QUESTION,
        tables=tuple(tables),
        notes=tuple(notes),
        settings=defaults | {"seed": seed} | options,
        lang=lang,
        seconds=time.monotonic() - start,
    )


def nearest(name: str) -> str:
    """Guess which experiment a misspelt name means; '' if nothing is close.

    >>> nearest("overflw"), nearest("xyz")
    ('overflow', '')
    """
    return "".join(difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.5))


def _module(name: str) -> ModuleType:
    if name not in NAMES:
        guess = nearest(name) if isinstance(name, str) else ""
        raise ValueError(
            f"name must be one of {', '.join(NAMES)}, but got {name!r}; "
            + (f"did you mean {guess!r}?" if guess else "pass one of these")
        )
    return importlib.import_module(f"softscope.experiments.{name}")
