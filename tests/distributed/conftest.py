"""Two and four processes for all tests in this folder, in one worker of pytest-xdist."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from distributed.ranks import Ranks


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("distributed"))


@pytest.fixture(scope="session")
def two() -> Iterator[Ranks]:
    """Two ranks."""
    with Ranks(2) as ranks:
        yield ranks


@pytest.fixture(scope="session")
def four() -> Iterator[Ranks]:
    """Four ranks."""
    with Ranks(4) as ranks:
        yield ranks


@pytest.fixture(scope="session")
def eight() -> Iterator[Ranks]:
    """Eight ranks."""
    with Ranks(8) as ranks:
        yield ranks


@pytest.fixture(params=["two", "four", pytest.param("eight", marks=pytest.mark.slow)])
def several(request: pytest.FixtureRequest) -> Ranks:
    """Two, four and eight ranks, one after the other."""
    return request.getfixturevalue(request.param)
