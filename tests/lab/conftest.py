"""One lab for all tests of its pages; those carry `xdist_group("lab")`, so that one worker has them."""

import pytest

from lab import chromium


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    with chromium.lab(tmp_path_factory.mktemp("lab")) as started:
        yield started
