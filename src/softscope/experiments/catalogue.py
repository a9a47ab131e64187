"""The experiments by name, and running one.

Each is a module of this package with `QUESTION` (both languages), `SECONDS` (about how long it takes with its
defaults on two cores), `measure(progress, *, seed, …)` and `draw(result, lang)`; `NEEDS` names what it imports
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
    "entropy",
    "gradients",
    "normalisers",
    "scores",
    "learning",
    "remedies",
    "initialisation",
    "cost",
)


class Entry(NamedTuple):
    """What is known of an experiment before it runs.

    >>> entry("saturation").needs
    ('sympy',)
    """

    name: str
    question: Text
    seconds: float
    needs: tuple[str, ...]


def entry(name: str) -> Entry:
    """The question of an experiment, and about how long it takes.

    >>> entry("overflow").name
    'overflow'
    """
    module = _module(name)
    return Entry(name, module.QUESTION, module.SECONDS, getattr(module, "NEEDS", ()))


def run(name: str, *, lang: Lang = "en", seed: int = 0, **options: Any) -> Result:
    """Run one experiment.

    Args:
        name: one of `NAMES`.
        lang: "en" or "zh": what the result speaks unless told otherwise. Every text is there in both.
        seed: decides all that is random.
        options: sizes, as the experiment's `measure` names them.

    >>> run("overflow", lang="zh").tables[0].columns[0].title.zh
    '数据类型'
    """
    if lang not in LANGS:
        raise ValueError(f"lang must be one of {', '.join(LANGS)}, but {lang!r} came; pass one of these")
    module = _module(name)
    require(f"experiment {name} needs", entry(name).needs)  # before the work, not at its end
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
    """The experiment that a misspelt name may mean; '' if none is near.

    >>> nearest("overflw"), nearest("xyz")
    ('overflow', '')
    """
    return "".join(difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.5))


def _module(name: str) -> ModuleType:
    if name not in NAMES:
        guess = nearest(name) if isinstance(name, str) else ""
        raise ValueError(
            f"name must be one of {', '.join(NAMES)}, but {name!r} came; "
            + (f"did you mean {guess!r}?" if guess else "pass one of these")
        )
    return importlib.import_module(f"softscope.experiments.{name}")
