"""The examples of docs/examples that have a doctor run as they are, and record."""

import pathlib
import subprocess
import sys

import pytest

from softscope.doctor import read_record

EXAMPLES = pathlib.Path(__file__).parents[3] / "docs" / "examples"
PACKAGES = {
    "accelerate_loop.py": ("accelerate",),
    "huggingface_trainer.py": ("transformers", "accelerate"),
    "lightning_trainer.py": ("lightning",),
    "train_loop.py": (),
}


def test_all_of_them_are_here():
    doctored = [file.name for file in EXAMPLES.glob("*.py") if "softscope.doctor" in file.read_text("utf-8")]
    assert sorted(doctored) == sorted(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_an_example(tmp_path, name):
    for package in PACKAGES[name]:
        pytest.importorskip(package, reason=f"needs {package}: pip install {package}")
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, "run.db"],
        capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("softscope watch run.db --once\n")
    assert [file.name for file in tmp_path.iterdir()] == ["run.db"]
    found = read_record(tmp_path / "run.db")
    assert [s.step for s in found.snapshots][:11] == list(range(11))
    assert found.snapshots[-1].loss < found.snapshots[0].loss
    assert found.snapshots[-1].has_loss
    assert found.series("blocked").shape[1:] == (len(found.sites), max(site.heads for site in found.sites)) == (2, 4)
