"""Prometheus: its own parser reads the file, and its own server answers where one is started."""

import urllib.request

import numpy as np
import pytest

from doctor.events.played import play
from doctor.judge.histories import RESTING, history, per_head
from doctor.record.runs import one_warning
from softscope.doctor.judge.states import STATES
from softscope.doctor.sinks import Prometheus

client = pytest.importorskip("prometheus_client", reason="needs prometheus_client: pip install prometheus_client")
SITE = "layers.0.attention"


def gauges(text):
    """Every sample: its name, its labels, and its value."""
    found = {}
    for family in client.parser.text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


@pytest.fixture(autouse=True)
def _parser():
    pytest.importorskip("prometheus_client.parser")


def test_the_file_holds_the_latest_reading(tmp_path):
    path = tmp_path / "softscope.prom"
    found = history(steps=range(0, 50, 10), max_logit={1: [5, 6, 7, 8, 9]}, **per_head(0, RESTING))
    play(found, Prometheus(path), first_step=100)
    read = gauges(path.read_text("utf-8"))
    assert read["softscope_step",] == 140
    assert read["softscope_max_logit", ("head", "worst"), ("site", SITE)] == 9
    assert read["softscope_max_logit", ("head", "mean"), ("site", SITE)] == pytest.approx((3 * 6 + 9) / 4)
    assert read["softscope_site_heads", ("site", SITE), ("state", "resting")] == 1
    assert [read["softscope_heads", ("state", state)] for state in STATES] == [
        {"resting": 1, "learning": 3}.get(state, 0) for state in STATES
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["softscope.prom"]


def test_what_is_not_read_any_more_is_gone(tmp_path):
    path = tmp_path / "softscope.prom"
    sink = Prometheus(path)
    key = ("softscope_max_logit", ("head", "mean"), ("site", SITE))
    play(history(steps=[0]), sink)
    assert key in gauges(path.read_text("utf-8"))
    play(history(steps=[1], max_logit=np.nan), sink)
    assert key not in gauges(path.read_text("utf-8"))


def test_a_registry_of_ones_own_can_be_served():
    registry = client.CollectorRegistry()
    client.Gauge("loss", "Their own.", registry=registry).set(2.0)
    play(history(site={"name": 'odd "name"\\\n#2'}), Prometheus(registry=registry))
    server, thread = client.start_http_server(0, "127.0.0.1", registry=registry)
    try:
        address = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=30) as answer:
            read = gauges(answer.read().decode())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert read["loss",] == 2.0
    assert read["softscope_blocked", ("head", "mean"), ("site", 'odd "name"\\\n-2')] == 0.0


def test_before_the_first_reading_there_is_nothing():
    assert client.generate_latest(Prometheus().registry) == b""


def test_a_file_that_cannot_be_written_is_one_warning(tmp_path):
    with one_warning("the logger failed"):
        play(history(), Prometheus(tmp_path / "no such folder" / "softscope.prom"))
