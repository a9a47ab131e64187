"""How much does a probe slow down a training step: 6 layers, 512 tokens, forward, backward and Adam?

    .venv/bin/python bench/probe.py [--quick]

Unit: ratios to the bare step; 1.00 is free. Four copies of one model take turns in one run: bare, with a probe that
does not read this step, with one that reads 32 rows (the default), and with one that reads every row. The best of
several turns counts, in processor time on one thread: on a busy machine, wall time says more about other processes.
The script first checks that all four compute the same. "default, averaged" is the cost of the first 1000 steps with the
default sampling; the worst step is one that is read.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import torch
from torch import nn
from torch.nn import functional

import softscope as ss
from softscope.doctor.listen.sampling import default_schedule
from softscope.tasks import SmallTransformer

TOKENS = 512
NEVER = 10**9
WAYS = {"not read": {"every": NEVER}, "32 rows": {"every": 1}, "every row": {"every": 1, "max_rows": None}}
SIZES = {"d 256, 8 heads, batch 2": (256, 8, 2), "d 512, 8 heads, batch 2": (512, 8, 2)}


def stepper(
    d: int, heads: int, batch: int, wrap: Callable[[nn.Module], nn.Module] = lambda x: x
) -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    """A model, and a function that trains it for one step."""
    model = wrap(SmallTransformer(256, length=TOKENS, d=d, heads=heads, layers=6))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    tokens = torch.randint(256, (batch, TOKENS + 1), generator=torch.Generator().manual_seed(0))

    def step() -> torch.Tensor:
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, step


def best_of(contenders: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """The shortest processor time of each, in seconds; they take turns."""
    times = dict.fromkeys(contenders, math.inf)
    for _ in range(turns):
        for name, step in contenders.items():
            start = time.process_time()
            step()
            times[name] = min(times[name], time.process_time() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few turns")
    turns = 3 if parser.parse_args().quick else 9
    torch.set_num_threads(1)
    for name, size in SIZES.items():
        with ExitStack() as scopes:
            contenders: dict[str, Callable[[], object]] = {"bare": stepper(*size)[1]}
            for way, options in WAYS.items():
                model, contenders[way] = stepper(*size)
                scopes.enter_context(ss.probe(model, **options))
            losses = [[float(step()) for _ in range(2)] for step in contenders.values()]  # type: ignore[arg-type]
            assert all(loss == losses[0] for loss in losses), "a run with the probe must match the bare one"
            times = best_of(contenders, turns)
        bare = times.pop("bare")
        for way, seconds in times.items():
            print(f"{name:26} {way:20} {seconds / bare:6.3f}", flush=True)
        read = sum(map(default_schedule, range(1000))) / 1000
        average = (read * times["32 rows"] + (1.0 - read) * times["not read"]) / bare
        print(f"{name:26} {'default, averaged':20} {average:6.3f}   ({read:.1%} of 1000 steps are read)")


if __name__ == "__main__":
    main()
