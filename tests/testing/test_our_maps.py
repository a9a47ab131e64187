"""The maps of this package keep the whole contract, for arrays and tensors alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import softscope as ss
from softscope.testing import check_simplex_map

ALPHAS = (1.0, 1.001, 1.25, 1.5, 1.75, 2.0)
MAPS: dict[str, Callable[..., Any]] = {
    "softmax": ss.softmax,
    "sparsemax": ss.sparsemax,
    **{f"entmax-{alpha}": partial(ss.entmax, alpha=alpha) for alpha in ALPHAS},
}


@pytest.mark.parametrize("name", MAPS)
def test_arrays(name: str) -> None:
    check_simplex_map(MAPS[name], axis=True, where=True, lipschitz=1.0).raise_if_broken()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax-1.5"])
def test_coarser_dtypes(name: str, dtype: type) -> None:
    check_simplex_map(MAPS[name], axis=True, where=True, dtype=dtype, lipschitz=1.0).raise_if_broken()


@pytest.mark.parametrize("temperature", [0.1, 10.0])
@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax-1.5"])
def test_temperatures(name: str, temperature: float) -> None:
    f = partial(MAPS[name], temperature=temperature)
    check_simplex_map(f, axis=True, where=True, lipschitz=1.0 / temperature).raise_if_broken()


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax-1.5"])
def test_tensors(name: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'softscope[torch]'")

    def f(x: np.ndarray, **options: Any) -> np.ndarray:
        if "where" in options:
            options["where"] = torch.tensor(options["where"])
        result: np.ndarray = MAPS[name](torch.tensor(x), **options).numpy()
        return result

    check_simplex_map(f, axis=True, where=True, lipschitz=1.0).raise_if_broken()


@pytest.mark.parametrize(("alpha", "status"), [(1.0, "held"), (1.5, "held"), (1.75, "held"), (2.0, "broken")])
def test_only_sparsemax_has_kinks(alpha: float, status: str) -> None:
    assert check_simplex_map(MAPS[f"entmax-{alpha}"])["smooth"].status == status


@pytest.mark.parametrize("alpha", [2.5, 4.0])
def test_beyond_sparsemax(alpha: float) -> None:
    check_simplex_map(partial(ss.entmax, alpha=alpha), axis=True, where=True).raise_if_broken()
