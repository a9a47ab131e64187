"""What an error must say: which argument, the rule, what was given, and what to do."""

from collections.abc import Callable
from typing import Any

import pytest


def refused(call: Callable[[], Any], name: str, *came: str) -> None:
    """The call raises ValueError or TypeError, and the message names the argument first, shows the value and hints."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    message = str(caught.value)
    rule, _, hint = message.rpartition(";")
    assert message.startswith(name), f"{name!r} is not named at the beginning of: {message}"
    missing = [part for part in came if part not in message]
    assert not missing, f"{missing} came, but the message does not say so: {message}"
    assert rule.strip(), f"no rule and hint, apart by a semicolon, in: {message}"
    assert len(hint.split()) >= 2, f"no hint what to do in: {message}"
