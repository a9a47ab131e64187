"""Half a minute of random calls, always from the same seed, so that a red run is about the change at hand."""

import os

from fuzz import cases


def test_random_calls_agree_with_the_definition() -> None:
    cases.run(float(os.environ.get("SOFTSCOPE_FUZZ_SECONDS", "15")), seed=1, fewest=100)
