"""The number of threads: set by a call or from outside, and never visible in a result."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import softscope as ss
from softscope import _engine, _threads


@pytest.fixture(autouse=True)
def _as_before() -> object:
    before = ss.get_num_threads()
    yield
    ss.set_num_threads(before)


def test_a_call_sets_it_for_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for name in ("softmax", "softmax_at"):
        monkeypatch.setattr(_engine, name, lambda *arguments: seen.append(arguments[-1]))
    for n in (1, 3):
        ss.set_num_threads(n)
        assert ss.get_num_threads() == _threads.count == n
        ss.softmax(np.ones((4, 5), np.float32))
        ss.softmax(np.ones((4, 5), np.float32), axis=0)
    assert seen == [1, 1, 3, 3]


def test_results_do_not_depend_on_it() -> None:
    x = np.random.default_rng(1).standard_normal((3, 400_000)).astype(np.float32)
    results = []
    for n in (1, 2, 5):
        ss.set_num_threads(n)
        results.append((ss.softmax(x), ss.log_softmax(x), ss.logsumexp(x), ss.partition(x).entropy, ss.entmax(x)))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


AT_ONCE = """
import threading
{imports}
import numpy as np
import softscope as ss

rng = np.random.default_rng(0)
arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((900, 100), (70, 2000), (3, 300_000), (1000, 1000))]
ss.set_num_threads(1)
wanted = [ss.softmax(x) for x in arrays]
ss.set_num_threads(7)
wrong = []

def work():
    for turn in range(40):
        for x, right in zip(arrays, wanted):
            if not np.array_equal(ss.softmax(x), right):
                wrong.append(turn)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(wrong))
"""


@pytest.mark.parametrize("imports", ["", "import torch"])
def test_callers_on_several_threads_share_the_helpers(imports: str) -> None:
    """With our own threads, and with those of PyTorch's OpenMP; more of both than there are cores."""
    code = AT_ONCE.format(imports=imports)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "0\n"


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2", None, 1025, 2**31, 2**40, "10**5000"])
def test_what_is_no_number_of_threads_is_refused(value: object) -> None:
    number = 10**5000 if value == "10**5000" else value  # which pytest cannot print
    with pytest.raises((TypeError, ValueError), match=r"^n must be .*"):
        ss.set_num_threads(number)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("3", "3"),
        ("", None),
        ("none", None),
        ("0", None),
        ("²", None),
        ("٣", None),
        ("-4", None),
        ("007", "7"),
        (str(2**40), "1024"),
        ("9" * 5000, "1024"),
    ],
)
def test_the_environment_sets_it(value: str, wanted: str | None) -> None:
    code = "import os, softscope as ss; print(ss.get_num_threads(), len(os.sched_getaffinity(0)))"
    environment = {**os.environ, "SOFTSCOPE_NUM_THREADS": value}
    got, cores = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert got == (wanted or cores)
