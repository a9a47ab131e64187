"""The page's figures for thousands of ranks are those of the program, and the program's times those of the formulas."""

import importlib.util
import math
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from softscope.distributed import traffic
from softscope.doctor.ranks import traffic as probe_traffic

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def simulated() -> Any:
    spec = importlib.util.spec_from_file_location("simulated", ROOT / "bench/simulated.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["simulated"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_programs_tables() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/past_one_machine.py")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    tables = done.stdout.strip().split("\n\n")
    page = (ROOT / "docs/distributed.md").read_text("utf-8")
    assert len(tables) == 3
    for table in tables:
        assert table in page, f"bench/past_one_machine.py prints another table:\n{table}"


@pytest.mark.parametrize("ranks", [2, 4, 8, 1024])
def test_without_latency_times_are_bytes(simulated: Any, ranks: int) -> None:
    machine = simulated.Machine(latency=0.0, bandwidth=1.0, flops=math.inf, merge=0.0)
    model = simulated.Model(layers=2, heads=4, kv_heads=2, d=8, vocabulary=1024, tokens=2048, itemsize=4)
    probe, loss, attention = (
        simulate(machine, model, ranks) for simulate in (simulated.probe, simulated.loss, simulated.attention)
    )
    sent = probe_traffic.of_read_step(rank=1, ranks=ranks, heads=8).bytes
    assert probe["tree"] == probe_traffic.levels(ranks) * sent
    rows: dict[str, Any] = {"rows": 2048, "ranks": ranks, "dtype": "float32"}
    assert loss["states"] == traffic.bytes_sent("cross_entropy", **rows)
    assert loss["logits"] == pytest.approx(traffic.gathered_logits(classes=1024, **rows))
    ring = traffic.attention_forward([2048 // ranks] * ranks, 2 * (8 + 8) * 4, ranks - 1)[0]
    assert attention["ring"] == ring.bytes


def test_without_bytes_times_are_messages_that_follow_each_other(simulated: Any) -> None:
    machine = simulated.Machine(latency=1.0, bandwidth=math.inf, flops=math.inf, merge=0.0)
    model = simulated.Model()
    probe, loss, attention = (
        simulate(machine, model, 8) for simulate in (simulated.probe, simulated.loss, simulated.attention)
    )
    assert (probe["tree"], probe["peer"]) == (6.0, 6.0)  # three levels of a header and a body
    assert (loss["states"], loss["reduced"], loss["planned"]) == (3.0, 18.0, 6.0)
    assert attention["ring"] == 7.0


def test_compute_hides_messages_and_is_shared(simulated: Any) -> None:
    model = simulated.Model(heads=1, kv_heads=1, d=1, tokens=8)
    alone, shared = (simulated.Machine(latency=0.5, bandwidth=math.inf, flops=4.0, cores=c) for c in (4, 2))
    # Four ranks with two keys each: a block is 4·2² flop, or 4 seconds, and longer than a hop.
    assert simulated.attention(alone, model, 4, causal=False)["ring"] == 16.0
    assert simulated.attention(shared, model, 4, causal=False)["ring"] == 32.0
    slow = simulated.Machine(latency=5.0, bandwidth=math.inf, flops=4.0)
    assert simulated.attention(slow, model, 4, causal=False)["ring"] == 3 * 5.0 + 4.0
