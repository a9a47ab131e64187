"""Two workers share two cores: a second thread in each would make small tensors many times slower."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch when a test first imports it
