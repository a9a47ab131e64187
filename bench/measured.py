"""The four numbers of this computer, and what they predict for 2 and 4 ranks, next to what these take.

Each rank has one thread. All contenders begin together, the slowest rank counts, the best of several turns counts.
Compute is measured on one rank while the others wait; with 4 ranks on 2 cores it counts twice.
"""

from __future__ import annotations

import dataclasses
import math
import multiprocessing as mp
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import simulated
import torch
from harness import machine as computer
from sharded_context import slowest
from simulated import PEER, Machine, Model
from torch import distributed as dist

import softscope as ss
from softscope import distributed as sd
from softscope.distributed._ring import KEYS, Passing
from softscope.doctor.ranks import fields
from softscope.doctor.ranks.message import Message, read_bytes
from softscope.doctor.ranks.tree import Tree
from softscope.doctor.read.snapshot import Site

TURNS = 9
SHORT, LONG = 64, 2**22  # float32 numbers of the messages that give latency and bandwidth
HEADS = 96
SITES = tuple(Site(f"layer{i}", "self", HEADS, HEADS, 0.1, 128) for i in range(96))
ROWS, CLASSES = 32_768, 1024
SHAPE = (1, 4, 8192, 64)


def best(function: Callable[[], object], turns: int = TURNS) -> float:
    return min(slowest(function) for _ in range(turns))


def alone(function: Callable[[], object]) -> float:
    return best(lambda: function() if dist.get_rank() == 0 else None)


def passed(numbers: int, times: int) -> Callable[[], None]:
    """So many messages around the ring, one after the other."""

    def run() -> None:
        rank, ranks, block = dist.get_rank(), dist.get_world_size(), torch.zeros(numbers)
        for _ in range(times):
            block = Passing(block, (rank + 1) % ranks, numbers, (rank - 1) % ranks, dist.group.WORLD, KEYS).arrived()

    return run


def message() -> Message:
    heads = sum(site.heads for site in SITES)
    sums = fields.nothing(heads) + np.random.default_rng(0).random((heads, fields.NUMBERS), np.float32)
    seen = np.arange(dist.get_world_size()) == dist.get_rank()
    return Message(0, SITES, np.nan_to_num(sums), np.ones(len(fields.NAMES), bool), seen)


def merging() -> Callable[[], object]:
    """What a rank does with a message besides sending it: pack, unpack, merge."""
    one = message()
    return lambda: one.merged(read_bytes(one.to_bytes(), 0, SITES, dist.get_world_size()))


def reduction() -> float:
    """Seconds until the first rank has the readings of all."""
    tree, took = Tree("measured", dist.get_rank(), dist.get_world_size(), 60.0, print), []
    tree.agree((0, 0))
    one = message()
    for step in range(TURNS):
        dist.barrier()
        start = time.perf_counter()
        tree.submit(dataclasses.replace(one, step=step))
        if dist.get_rank() == 0:
            tree.ready.get()
            took.append(time.perf_counter() - start)
    tree.close()
    return min(took, default=0.0)


def work(rank: int, ranks: int, store: str, results: Any) -> None:
    """One rank: measure everything, and let the first rank tell."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    latency = best(passed(SHORT, 100)) / 100
    logits, targets = torch.randn(ROWS, CLASSES // ranks), torch.randint(0, CLASSES // ranks, (ROWS,))
    shard = torch.randn(*SHAPE[:2], SHAPE[2] // ranks, SHAPE[3])
    flop = 4 * math.prod(SHAPE) * SHAPE[2] / ranks**2
    metrics = torch.zeros(PEER // 8, dtype=torch.float64)
    found = {
        "latency": latency,
        "bandwidth": 4 * LONG / (best(passed(LONG, 1)) - latency),
        "flops": flop / alone(lambda: ss.attention(shard, shard, shard)),
        "merge": alone(merging()) / len(message().to_bytes()),
        "part of the loss": alone(lambda: ss.cross_entropy(logits, targets)),
        "probe": reduction(),
        "all-reduce": best(lambda: dist.all_reduce(metrics)),
        "loss": best(lambda: sd.cross_entropy(logits, targets)),
        "attention": best(lambda: sd.attention(shard, shard, shard)),
    }
    if rank == 0:
        results.put(found)
    dist.barrier()
    dist.destroy_process_group()


def measured(ranks: int) -> dict[str, float]:
    context = mp.get_context("spawn")
    results: Any = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=work, args=(r, ranks, f"{folder}/store", results)) for r in range(ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    return results.get()


def check(table: Callable[[list[str], list[list[str]]], str]) -> str:
    """Predictions for this computer, and what it measures, as a table."""
    found = {ranks: measured(ranks) for ranks in (2, 4)}
    two, cores = found[2], len(os.sched_getaffinity(0))
    machine = Machine(two["latency"], two["bandwidth"], two["flops"], two["merge"], cores)
    rows = []
    for ranks, times in found.items():
        of_loss = Model(tokens=ROWS, vocabulary=CLASSES)
        of_attention = Model(heads=SHAPE[1], kv_heads=SHAPE[1], d=SHAPE[3], tokens=SHAPE[2], itemsize=4)
        loss = simulated.loss(machine, of_loss, ranks)["states"] + machine.compute(ranks, times["part of the loss"])
        ring = simulated.attention(machine, of_attention, ranks, causal=False)["ring"]
        predicted = {
            "probe": simulated.probe(machine, Model(), ranks)["tree"],
            "all-reduce": machine.all_reduce(ranks, PEER),
            "loss": loss,
            "attention": ring,
        }
        rows += [
            [
                f"{name}, {ranks} ranks",
                *(f"{1e3 * x:.2f} ms" for x in (guess, times[name])),
                f"{times[name] / guess:.2f}",
            ]
            for name, guess in predicted.items()
        ]
    head = (
        f"{computer()}\n{cores} cores; latency {1e6 * machine.latency:.0f} µs, "
        f"bandwidth {machine.bandwidth / 1e9:.2f} GB/s, "
        f"compute {machine.flops / 1e9:.0f} Gflop/s, merging {1e9 * machine.merge:.1f} ns a byte\n\n"
    )
    return head + table(["", "predicted", "measured", "ratio"], rows)
