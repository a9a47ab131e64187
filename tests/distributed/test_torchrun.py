"""Started by torchrun, as people start their trainings: 2 and 4 ranks, and again after a rank has died."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from distributed import doctored
from distributed.elastic import STEPS
from softscope.doctor.record import read_record

SCRIPT = Path(__file__).with_name("elastic.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
def test_a_run_that_is_started_again_goes_on_in_its_record(tmp_path: Path, ranks: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--max-restarts=1"]
    done = subprocess.run(
        [*command, "--standalone", str(SCRIPT), str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert [path.name for path in tmp_path.glob("*.db")] == ["run.db"]
    history = read_record(tmp_path / "run.db")
    assert [s.step for s in history.snapshots] == list(range(STEPS))
    assert history.facts["ranks"]["size"] == ranks
    wanted = doctored.alone(STEPS, {}, every=1)
    for name in ("sharpness", "transmission", "advantage", "demand", "judged", "blocked"):
        np.testing.assert_allclose(history.series(name), wanted.series(name), rtol=2e-4, atol=2e-6, err_msg=name)
