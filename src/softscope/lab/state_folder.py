"""The folder for the learner's progress in the lessons and the homework."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LESSONS, HOMEWORK = "lab.json", "homework.json"  # the files in that folder


def state_folder(environ: Mapping[str, str] = os.environ) -> pathlib.Path:
    """Return $SOFTSCOPE_HOME, else $XDG_STATE_HOME/softscope, else ~/.local/state/softscope.

    >>> state_folder({"SOFTSCOPE_HOME": "/there"}).as_posix(), state_folder({"XDG_STATE_HOME": "/state"}).as_posix()
    ('/there', '/state/softscope')
    """
    if environ.get("SOFTSCOPE_HOME"):
        return pathlib.Path(environ["SOFTSCOPE_HOME"])
    state = environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    return pathlib.Path(state) / "softscope"
