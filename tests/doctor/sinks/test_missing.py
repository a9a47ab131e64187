"""A sink whose package is missing says what to install, and none of the packages is imported before it is used."""

import subprocess
import sys

import pytest

from softscope.doctor import sinks


@pytest.mark.parametrize(
    ("name", "package"), [("WandB", "wandb"), ("MLflow", "mlflow"), ("Prometheus", "prometheus_client")]
)
def test_it_says_what_to_install(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"^softscope.doctor.sinks.{name} needs [\w-]+: pip install {package}$"):
        getattr(sinks, name)()


def test_nothing_is_imported_before_it_is_used():
    code = """
import sys
from softscope.doctor import HuggingFaceCallback, LightningCallback, sinks, watch_training
HuggingFaceCallback(), LightningCallback(), sinks.WandB(), sinks.MLflow()
print({"torch", "transformers", "accelerate", "lightning", "pytorch_lightning", "wandb", "mlflow", "tensorboard"}
      & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("set()", "")
