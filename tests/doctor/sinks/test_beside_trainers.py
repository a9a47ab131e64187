"""Trainers that log to the same run: they start it, and nobody's numbers are lost."""

import os

import pytest
import torch

from doctor.sinks.wandb_file import written
from softscope import tasks
from softscope.doctor import HuggingFaceCallback, LightningCallback, sinks

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when it is imported
wandb = pytest.importorskip("wandb", reason="needs wandb: pip install wandb")
mlflow = pytest.importorskip("mlflow", reason="needs mlflow: pip install mlflow-skinny")
pytestmark = [
    pytest.mark.filterwarnings("ignore"), pytest.mark.filterwarnings("error::softscope.doctor.RecordWarning")
]  # fmt: skip


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """Both dashboards write below `tmp_path`."""
    for name in ("CACHE_DIR", "CONFIG_DIR", "DATA_DIR", "DIR"):
        monkeypatch.setenv(f"WANDB_{name}", str(tmp_path))
    for name, value in (("MODE", "offline"), ("SILENT", "true"), ("CONSOLE", "off"), ("DISABLE_GIT", "true")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield (tmp_path / "mlruns").as_uri()
    mlflow.set_tracking_uri(before)
    wandb.finish()


def tokens(many):
    (found,) = tasks.copy_batch(many, length=8, vocabulary=8, generator=torch.Generator().manual_seed(0)).inputs
    return found


def logged(client, run, name):
    return [metric.step for metric in client.get_metric_history(run, name)]


def test_hugging_faces(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
    pytest.importorskip("accelerate", reason="needs accelerate: pip install accelerate")
    size = {"vocab_size": 9, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    settings = transformers.GPT2Config(**size, bos_token_id=None, eos_token_id=None, loss_type="ForCausalLM")
    data = [{"input_ids": row, "labels": row} for row in tokens(16)]
    arguments = transformers.TrainingArguments(
        str(tmp_path / "trainer"), max_steps=6, per_device_train_batch_size=4, save_strategy="no", use_cpu=True,
        report_to=["wandb", "mlflow"], disable_tqdm=True, logging_steps=2,
    )  # fmt: skip
    to = sinks.MLflow()
    with HuggingFaceCallback(every=1, sinks=[sinks.WandB(), to]) as doctor:
        model = transformers.GPT2LMHeadModel(settings)
        transformers.Trainer(model, arguments, train_dataset=data, callbacks=[doctor]).train()
    wandb.finish()
    to.flush()
    rows, _, axes = written(tmp_path)
    assert [row["softscope/step"] for row in rows if "softscope/step" in row] == [0, 1, 2, 3, 4, 5]
    assert [row["train/global_step"] for row in rows if "train/loss" in row] == [2, 4, 6]
    assert axes["*"] == "train/global_step"
    assert axes["softscope/transformer.h.0.attn/blocked"] == "softscope/step"
    client = mlflow.MlflowClient()
    (run,) = client.search_runs(["0"])
    assert logged(client, run.info.run_id, "softscope/transformer.h.0.attn/blocked") == [0, 1, 2, 3, 4, 5]
    assert logged(client, run.info.run_id, "loss") == [2, 4, 6]


def test_lightnings(tmp_path, store):
    pl = pytest.importorskip("lightning.pytorch", reason="needs lightning: pip install lightning")
    loggers = pytest.importorskip("lightning.pytorch.loggers")

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = tasks.SmallTransformer(vocabulary=9, length=16, d=16, heads=2, layers=1)

        def training_step(self, batch, _):
            loss = self.model(batch).square().mean()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    theirs = loggers.MLFlowLogger(tracking_uri=store)
    to = sinks.MLflow(theirs.run_id, theirs.experiment)
    callback = LightningCallback(every=1, sinks=[sinks.WandB(), to])
    trainer = pl.Trainer(
        accelerator="cpu", max_steps=6, logger=[loggers.WandbLogger(save_dir=tmp_path, offline=True), theirs],
        callbacks=[callback], default_root_dir=tmp_path, log_every_n_steps=2, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Module(), torch.utils.data.DataLoader(tokens(24), batch_size=4))
    wandb.finish()
    to.flush()
    rows, _, axes = written(tmp_path)
    assert [row["softscope/step"] for row in rows if "softscope/step" in row] == [0, 1, 2, 3, 4, 5]
    assert [row["trainer/global_step"] for row in rows if "loss" in row] == [1, 3, 5]
    assert axes["softscope/model.blocks.0.attention/blocked"] == "softscope/step"
    assert logged(theirs.experiment, theirs.run_id, "softscope/model.blocks.0.attention/blocked") == [0, 1, 2, 3, 4, 5]
    assert logged(theirs.experiment, theirs.run_id, "loss") == [1, 3, 5]
