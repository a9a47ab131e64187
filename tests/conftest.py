"""What all tests share: one thread for each worker, and the same examples in every run."""

import os

from hypothesis import settings

# Two workers share two cores: a second thread in each would make small tensors many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch when a test first imports it

# A check of a change must say something about that change, so its examples do not vary from run to run. To look for
# new ones by hand: HYPOTHESIS_PROFILE=search.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
