"""The examples of docs/examples run as they are, and record."""

import pathlib
import runpy
import subprocess
import sys

import pytest

import softscope
from doctor.record.scopes import FakeScope
from softscope.doctor import read_record

EXAMPLES = pathlib.Path(__file__).parents[3] / "docs" / "examples"


def trains(name, tmp_path, monkeypatch):
    """Run an example with a stand-in for the probe, and return what it recorded."""
    monkeypatch.setattr(softscope, "probe", FakeScope, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "run.db"])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return read_record(tmp_path / "run.db")


def test_the_plain_loop_with_a_stand_in(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    found = trains("train_loop.py", tmp_path, monkeypatch)
    assert len(found.snapshots) >= 20
    assert found.snapshots[-1].loss < found.snapshots[0].loss
    assert found.facts["model"] == "SmallTransformer"


def test_hugging_faces_trainer_with_a_stand_in(tmp_path, monkeypatch):
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package, reason=f"needs {package}: pip install {package}")
    found = trains("huggingface_trainer.py", tmp_path, monkeypatch)
    assert [s.step for s in found.snapshots] == list(range(len(found.snapshots)))
    assert len(found.snapshots) >= 10
    assert found.snapshots[-1].loss is not None


@pytest.mark.parametrize("name", ["train_loop.py", "huggingface_trainer.py"])
def test_the_examples_with_the_probe_itself(tmp_path, name):
    if not hasattr(softscope, "probe"):
        pytest.skip("softscope.probe is not there yet")
    for package in ("torch", *(("transformers", "accelerate") if "hugging" in name else ())):
        pytest.importorskip(package, reason=f"needs {package}: pip install {package}")
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, tmp_path / "run.db"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = read_record(tmp_path / "run.db")
    assert found.sites
    assert found.snapshots[-1].has_loss
    assert found.series("blocked").shape[1:] == (len(found.sites), max(site.heads for site in found.sites))
