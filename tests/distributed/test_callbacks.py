"""Callbacks attach on every rank, and the first one alone records."""

import math
import os

import pytest

from distributed import callbacks
from softscope.doctor import read_record


@pytest.mark.parametrize(
    ("package", "train", "model", "site", "first"),
    [
        ("torch", callbacks.plain_loop, "SmallTransformer", "blocks.0.attention", 10),
        ("accelerate", callbacks.with_accelerate, "SmallTransformer", "blocks.0.attention", 0),
        ("transformers", callbacks.with_hugging_face, "GPT2LMHeadModel", "transformer.h.0.attn", 0),
        ("lightning", callbacks.with_lightning, "Copies", "model.blocks.0.attention", 0),
    ],
)
def test_every_rank_attaches_and_one_records(two, tmp_path, package, train, model, site, first):
    pytest.importorskip(package, reason=f"needs {package}: pip install {package}")
    assert two.run(train, str(tmp_path / "run.db")) == 2 * [(model, 2)]
    found = read_record(tmp_path / "run.db")
    assert [s.step for s in found.snapshots] == [first, first + 1, first + 2]
    losses = [s.loss for s in found.snapshots if s.loss is not None]
    assert losses == pytest.approx(len(losses) * [math.log(9)], rel=0.35)  # nothing is learned in 3 steps
    assert losses
    assert [site.name for site in found.sites] == [site]  # as on one rank, without DistributedDataParallel's `module`


def test_which_ranks_is_a_choice(two, tmp_path):
    first, second = two.run(callbacks.groups, str(tmp_path / "run"))
    assert first == [(True, 2), (True, 0), (True, 1), (False, 0), (True, 2), (True, 2)]
    assert second == [(True, 2), (False, 0), (False, 0), (False, 0), (True, 2), (True, 2)]
    # Rank 0 is not in the group of rank 1: nothing is read there.
    assert sorted(name for name in os.listdir(tmp_path) if name.endswith(".db")) == [
        f"run{number}.db" for number in (0, 1, 2, 4, 5)
    ]
