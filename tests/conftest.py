"""Shared by all tests: one thread per worker, and the same examples in every run."""

import os
import platform

from hypothesis import settings

# Two workers share two cores: a second thread in each would make small tensors many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch when a test first imports it

# A test run should tell you about your change, so its examples do not vary from run to run. To search for new ones by
# hand, set HYPOTHESIS_PROFILE=search.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

LEVELS = ("neon",) if platform.machine() in ("aarch64", "arm64") else ("baseline", "avx2", "avx512")


def pytest_report_header() -> str:
    """Say which kernels this processor can test, and which it cannot."""
    from softscope import _engine

    missing = [level for level in LEVELS if level not in _engine.isas()]
    without = f"; NOT TESTED HERE, because this processor lacks it: {', '.join(missing)}" if missing else ""
    return f"softscope's kernels: {_engine.isa()} in use, {', '.join(_engine.isas())} tested{without}"
