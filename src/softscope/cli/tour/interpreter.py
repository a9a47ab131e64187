"""A Python interpreter that runs what it shows, so the tour cannot show a call that differs from the one it made."""

from __future__ import annotations

from typing import Any

import numpy as np


class Interpreter:
    """The names that earlier lines have set, and the values they returned."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.values: list[Any] = []

    def run(self, code: str) -> str:
        """Run one line and return what Python would show, with four digits; nothing for an assignment.

        >>> interpreter = Interpreter()
        >>> interpreter.run("x = [1.0, 2.0]"), interpreter.run("x[0] / 3, x[1]")
        ('', '0.3333, 2')
        """
        # The first stop overflows on purpose; its warning would appear on stderr between the lines.
        with np.errstate(all="ignore"):
            try:
                compiled = compile(code, "<tour>", "eval")
            except SyntaxError:
                exec(code, self.names)
                return ""
            value = eval(compiled, self.names)
        self.values.append(value)
        return shown(value)


def shown(value: Any) -> str:
    """Format a number, an array or several with four digits; integers stay as they are.

    >>> import math
    >>> shown(0.123456), shown(np.array([0.25, math.nan])), shown(np.int64(3)), shown((1.0, 1e-17))
    ('0.1235', '[0.25  nan]', '3', '1, 1e-17')
    """
    if isinstance(value, tuple):
        return ", ".join(shown(part) for part in value)
    if isinstance(value, np.ndarray) and value.ndim:
        return np.array2string(value, precision=4, suppress_small=True)
    if isinstance(value, int | np.integer):
        return str(value)
    return f"{float(value):.4g}"
