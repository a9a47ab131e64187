"""While a stranger's folder is read: nobody can be asked, nothing is fetched, and transformers keeps quiet."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def closed() -> Iterator[None]:
    """Close standard input and the network: nobody can be asked, and nothing can be fetched.

    The library may have been imported already, in which case it no longer reads the environment.
    """
    stdin, offline = sys.stdin, os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    constants = importlib.import_module("huggingface_hub.constants")
    known, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True  # type: ignore[attr-defined]
    sys.stdin = io.StringIO()
    try:
        yield
    finally:
        sys.stdin = stdin
        constants.HF_HUB_OFFLINE = known  # type: ignore[attr-defined]
        del os.environ["HF_HUB_OFFLINE"]
        if offline is not None:
            os.environ["HF_HUB_OFFLINE"] = offline


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the loading reports and progress bars of transformers; they are not ours to show."""
    logging = importlib.import_module("transformers").utils.logging
    before = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
