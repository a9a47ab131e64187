"""Shared by all tests: one thread per worker, and the same examples in every run."""

import os

from hypothesis import settings

# Two workers share two cores: a second thread in each would make small tensors many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch when a test first imports it

# A test run should tell you about your change, so its examples do not vary from run to run. To search for new ones by
# hand, set HYPOTHESIS_PROFILE=search.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
