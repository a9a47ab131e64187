"""Fixtures shared by the interface tests."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def every_warning() -> Iterator[None]:
    """PyTorch issues some warnings once per process; here they appear every time, so no test hides another's."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)
