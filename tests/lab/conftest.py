"""One lab for all page tests; they are marked `xdist_group("lab")`, so a single worker runs them."""

import pytest

from lab import chromium


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    with chromium.lab(tmp_path_factory.mktemp("lab")) as started:
        yield started
