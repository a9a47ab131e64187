"""What is known of whether a projection trains, as numbers that a record can keep. Needs no PyTorch."""

from __future__ import annotations

from typing import Final

TRAINS: Final = 0.0
ALONE: Final = 1.0  # needs no gradient, but other parameters of its module do
WITH_ALL: Final = 2.0  # needs no gradient, and neither does the rest of its module; or adapters train in its place
NO_GRADIENT: Final = 3.0  # needs a gradient and gets none, or zeros only
NO_OPTIMIZER: Final = 4.0  # is in no optimizer that trains this model
READINGS: Final = {"q": "q_trains", "k": "k_trains", "v": "v_trains"}
