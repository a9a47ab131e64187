"""Every command in the READMEs and docs pages works as written."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md")]
LINES = [line for page in PAGES for line in page.read_text("utf-8").splitlines()]
# Without their comments, so that a command of both languages' pages runs once.
COMMANDS = sorted({re.split(r"\s+# ", line.removeprefix("$ "))[0] for line in LINES if line.startswith("$ ")})


def test_there_are_some() -> None:
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("command", COMMANDS)
def test_it_works_as_typed(command: str) -> None:
    beside = pathlib.Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert done.stdout
