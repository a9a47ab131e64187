"""What the interface tests share as fixtures."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def every_warning() -> Iterator[None]:
    """PyTorch says some warnings only once in a process; here each time, so that no test hides another's."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)
