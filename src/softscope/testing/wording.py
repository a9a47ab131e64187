"""Turn a finding into a sentence: pick the language, fill in the values, keep arrays short."""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope._text import Lang
from softscope.testing.sentences import CLAIMS, SENTENCES

_LONGEST = 160  # maximum characters of foreign text (an error message, a strange object) in a sentence


def title(name: str, lang: Lang) -> str:
    """Return the short name of a property, for a table header.

    >>> title("shift", "en"), title("shift", "zh")
    ('ignores a shift', '平移不变')
    """
    return CLAIMS[name][0].of(lang)


def say(key: str, name: str, lang: Lang, values: dict[str, Any]) -> str:
    """Return the sentence `key` about the property `name`, with the values filled in.

    >>> say("held", "responds", "en", {})
    'The weights depend on the logits.'
    """
    texts = {part: value if isinstance(value, str) else show(value) for part, value in values.items()}
    if "want" in texts and texts["want"] == texts.get("got"):  # different values must look different
        texts |= {part: show(values[part], digits=17) for part in ("want", "got")}
    sentence = SENTENCES[key].of(lang).format(claim=CLAIMS[name][1].of(lang), **texts)
    return sentence[0].upper() + sentence[1:]


def show(value: Any, digits: int = 6) -> str:
    """Format a number, an array or a tuple of arrays as short text; long arrays lose their middle.

    >>> show(np.array([0.0, 0.5, -np.inf])), show(np.arange(100)), show((np.zeros(1), np.ones(1)))
    ('[0, 0.5, -inf]', '[0, 1, 2, ..., 97, 98, 99]', '[0], [1]')
    >>> show(1 / 3), show(1 - 1e-12)  # what is not quite 1 must not look like 1
    ('0.333333', '0.999999999999')
    """
    if isinstance(value, tuple) and any(isinstance(part, np.ndarray) for part in value):
        return ", ".join(show(part, digits) for part in value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        text = np.array2string(
            value,
            separator=", ",
            threshold=20,
            formatter={"all": lambda number: show(number, digits)},
            max_line_width=10**6,
        )
        return " ".join(text.split())
    if isinstance(value, float | np.floating):
        short = f"{float(value):.{digits}g}"
        return repr(float(value)) if short in ("0", "1", "-0") and float(short) != value else short
    if isinstance(value, int | np.integer | np.bool_):
        return str(value)
    return foreign(value)


def foreign(value: object) -> str:
    """Format an object made by the map under test, whose own repr may be long or may fail.

    >>> foreign(None), foreign([0.5, 0.5]), foreign(ValueError("bad"))
    ('None', '[0.5, 0.5]', "ValueError('bad')")
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
