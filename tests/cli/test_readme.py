"""What the READMEs say to type works as it stands."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
LINES = [line for name in ("README.md", "README.zh-CN.md") for line in (ROOT / name).read_text("utf-8").splitlines()]
COMMANDS = sorted({line.removeprefix("$ ") for line in LINES if line.startswith("$ ")})


def test_there_are_some() -> None:
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize("command", COMMANDS)
def test_it_works_as_typed(command: str) -> None:
    beside = pathlib.Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert done.stdout
