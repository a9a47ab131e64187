"""Measure in a separate single-threaded process: earlier work does not count, and a busy machine matters less."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

# BLAS libraries read these when they load, so only a new process can set them.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "SOFTSCOPE_NUM_THREADS"), "1")

# Helpers for the measured code. They measure CPU time, so waiting for other processes does not count.
PRELUDE = """
import json, sys, time
import numpy as np
import softscope

def shortest(call, seconds=0.2, least=3):
    best, total, count, calls = float("inf"), 0.0, 0, 1
    while count < least or total < seconds:
        start = time.process_time()
        for _ in range(calls):
            call()
        taken = time.process_time() - start
        if taken < 1e-5:  # too short for the clock, which may not even have ticked
            calls *= 2
            continue
        best, total, count = min(best, taken / calls), total + taken, count + 1
    return best, count
"""


def alone(code: str, *arguments: object) -> dict[str, Any]:
    """Run the code after `PRELUDE` with the arguments in `sys.argv`, and return the JSON it printed.

    >>> alone("print(json.dumps({'sum': float(np.sum([float(x) for x in sys.argv[1:]]))}))", 1, 2)
    {'sum': 3.0}
    """
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, *map(str, arguments)],
        env=os.environ | ONE_THREAD,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the measuring process failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
