"""MLflow itself, with files as its store: what its client reads back."""

import os
import threading
import types

import pytest

from doctor.events.played import GREAT, play
from doctor.judge.histories import history
from doctor.record.runs import one_warning
from softscope.doctor.sinks import MLflow

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when it is imported
mlflow = pytest.importorskip("mlflow", reason="needs mlflow: pip install mlflow-skinny")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:mlflow")
SITE = "softscope/layers.0.attention"


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database would need the whole of MLflow
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(before)


@pytest.fixture
def run(client):
    return client.create_run(client.create_experiment("softscope")).info.run_id


def sent(found, sink, **options):
    play(found, sink, **options)
    sink.flush()


def values(client, run, name):
    return [(metric.step, metric.value) for metric in client.get_metric_history(run, name)]


def test_metrics_and_tags(client, run):
    found = history(steps=range(0, 80, 10), max_logit=[6, GREAT, GREAT, GREAT, GREAT, 6, 6, 6])
    sent(found, MLflow(run, client), first_step=100)
    largest = values(client, run, f"{SITE}/max_logit_worst")
    assert largest[:2] == [(100, 6), (110, GREAT)]
    assert [step for step, _ in largest] == list(range(100, 180, 10))
    assert values(client, run, "softscope/heads/learning")[0] == (100, 4)
    assert client.get_run(run).data.tags["softscope.SS003"].startswith("step 170 SS003 Large or growing logits ended")


def test_a_snapshot_is_one_request(client, run, monkeypatch):
    sizes = []
    batch = client.log_batch
    monkeypatch.setattr(client, "log_batch", lambda run, metrics: sizes.append(len(metrics)) or batch(run, metrics))
    sent(history(steps=range(2)), MLflow(run, client))
    assert len(sizes) == 2
    sent(history(steps=[2], sites=120), MLflow(run, client))  # more than MLflow takes at once
    assert sizes[2:] == [1000, sum(sizes[2:]) - 1000]
    assert values(client, run, "softscope/heads/learning") == [(0, 4), (1, 4), (2, 480)]


def test_the_active_run_is_used_and_may_begin_later_than_the_sink(client):
    sink = MLflow()
    with mlflow.start_run() as started:
        sent(history(steps=range(2)), sink)
    assert len(values(client, started.info.run_id, f"{SITE}/blocked")) == 2


@pytest.mark.parametrize("name", ["layers.0.self_attn#2", "a/../b", "a//b", "./a", "towers.(0)", "塔.0", 80 * "long."])
def test_it_takes_every_name(client, run, name):
    sent(history(site={"name": name}), MLflow(run, client))
    logged = [metric for metric in client.get_run(run).data.metrics if metric.endswith("/blocked_worst")]
    assert len(logged) == 1
    assert logged[0].startswith("softscope/")


@pytest.mark.usefixtures("client")
def test_without_a_run_there_is_one_warning():
    with one_warning(r"the logger failed \(no run of MLflow is active; call mlflow.start_run\(\) first"):
        play(history(), MLflow())


def test_training_does_not_wait_for_a_server_and_one_that_fails_is_one_warning():
    answers, calls = threading.Event(), []

    def log_batch(*_):
        calls.append(1)
        assert answers.wait(60)
        raise ConnectionError("no route to host")

    sink = MLflow("run", types.SimpleNamespace(log_batch=log_batch))
    play(history(steps=range(4)), sink)  # comes back, although nobody has answered
    assert not answers.is_set()
    with one_warning(r"the logger failed \(no route to host\): training goes on without it"):
        answers.set()
        sink.flush()
        play(history(steps=range(4, 8)), sink)
        sink.flush()
    assert calls == [1]  # what waited behind it is not tried, nor what comes later
