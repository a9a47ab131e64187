"""Small models with heads spoiled on purpose, several seeds per method, and the doctor's diagnosis of each."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

import softscope
from softscope import tasks
from softscope._text import Text, same
from softscope.doctor.diagnosis import Diagnosis, diagnose
from softscope.doctor.evaluation.corpus import VOCABULARY, text_batch

D, HEADS, LENGTH, PAIRS, STEPS, EVERY = 256, 4, 96, 16, 100, 10
TIMES = 30.0  # factor on q, where q is multiplied; and the shift of k, in norms of k

Place = tuple[int, int]  # layer and head

WAYS: dict[str, Text] = {
    "healthy": Text(zh="没有弄坏", en="not spoiled"),
    "no scale": Text(zh="没有 1/√d", en="no scale"),
    "scale 4": Text(zh="分数是 4·q·k", en="logits 4·q·k"),
    "q × 30": same("q × 30"),
    "k shifted": Text(zh="k 移向一个固定方向", en="k shifted to a constant direction"),
    "logits × 4": Text(zh="开始时分数 × 4", en="logits × 4 at the start"),
    "high rate": Text(zh="学习率太高", en="too high a learning rate"),
}
# Options and learning rate of the models whose flaw, if any, is there from the start of training.
TRAINED: dict[str, tuple[dict[str, Any], float]] = {
    "healthy": ({}, 1e-3),
    "no scale": ({"scale": 1.0}, 1e-3),
    "scale 4": ({"scale": 4.0}, 1e-3),
    "logits × 4": ({"init_gain": 2.0}, 1e-3),
    "high rate": ({}, 1e-2),
}


@dataclasses.dataclass(frozen=True, eq=False)
class SpoiledModel:
    """A model, the heads touched to spoil them, and the doctor's diagnosis with and without a loss."""

    way: str
    task: str
    model: Any
    batch: Any
    touched: frozenset[Place]
    with_loss: Diagnosis
    without_loss: Diagnosis


def patients(seed: int, progress: Callable[[float], None]) -> Iterator[SpoiledModel]:
    """All models of one seed."""
    torch.set_num_threads(1)
    healthy: Any = None
    work = [(way, task) for way in TRAINED for task in ("text", "recall") if (way, task) != ("high rate", "recall")]
    for done, (way, task) in enumerate(work):
        progress(done / len(work))
        options, rate = TRAINED[way]
        model = _model(task, seed, tasks.AttentionOptions(**options))
        with_loss = _trained(model, task, seed, rate)
        every = frozenset((layer, head) for layer in range(len(_layers(model))) for head in range(HEADS))
        touched = frozenset[Place]() if way == "healthy" else every
        yield SpoiledModel(way, task, model, _held_out(task), touched, with_loss, looked_at(model, task, loss=False))
        if (way, task) == ("healthy", "text"):
            healthy = model
    generator = torch.Generator().manual_seed(seed)
    for way, spoil in (("q × 30", multiply_q), ("k shifted", shift_k)):
        for first in range(2):
            model = copy.deepcopy(healthy)
            touched = frozenset((layer, (seed + first + 2 * layer) % HEADS) for layer in range(2))
            for layer, head in touched:
                spoil(_layers(model)[layer], head, generator)
            said = [looked_at(model, "text", loss=loss) for loss in (True, False)]
            yield SpoiledModel(way, "text", model, _held_out("text"), touched, *said)


def _model(task: str, seed: int, options: tasks.AttentionOptions) -> Any:
    if task == "recall":
        return tasks.RecallModel(D, vocabulary=PAIRS, heads=HEADS, options=options, seed=seed)
    return tasks.SmallTransformer(
        VOCABULARY, length=LENGTH, d=D, heads=HEADS, layers=2, options=options, seed=seed
    )  # fmt: skip


def _layers(model: Any) -> list[tasks.Attention]:
    return [module for module in model.modules() if isinstance(module, tasks.Attention)]


def _batch(task: str, generator: torch.Generator, times: int = 1) -> Any:
    if task == "recall":
        return tasks.recall_batch(16 * times, pairs=PAIRS, generator=generator)
    return text_batch(4 * times, length=LENGTH, generator=generator)


def _held_out(task: str) -> Any:
    return _batch(task, torch.Generator().manual_seed(10_000), times=6)


def _trained(model: Any, task: str, seed: int, rate: float) -> Diagnosis:
    with softscope.probe(model, every=EVERY, max_rows=None) as scope:
        tasks.train(
            model, lambda generator: _batch(task, generator), steps=STEPS, learning_rate=rate, seed=seed,
            on_step=lambda _, loss, __: scope.step(loss=loss),
        )  # fmt: skip
    return diagnose(scope.history())


def looked_at(model: Any, task: str, *, loss: bool) -> Diagnosis:
    """Diagnose a model as it is, from three readings; without a loss there is no backward pass."""
    generator = torch.Generator().manual_seed(20_000)
    with softscope.probe(model, every=1, max_rows=None) as scope:
        for _ in range(3):
            batch = _batch(task, generator)
            if loss:
                logits = model(*batch.inputs)
                functional.cross_entropy(logits.flatten(0, -2), batch.target.flatten()).backward()  # type: ignore[no-untyped-call]
                model.zero_grad()
            else:
                with torch.no_grad():
                    model(*batch.inputs)
            scope.step()
    return diagnose(scope.history())


@torch.no_grad()
def multiply_q(layer: tasks.Attention, head: int, generator: torch.Generator) -> None:
    """Multiply the head's W_Q by 30."""
    del generator
    _rows(layer.w_q, layer, head).mul_(TIMES)


@torch.no_grad()
def shift_k(layer: tasks.Attention, head: int, generator: torch.Generator) -> None:
    """Push the head's keys along one direction, each in proportion to one component of its token.

    Shifting every key by the same amount would change nothing: softmax ignores a constant added to all its logits.
    """
    weight = _rows(layer.w_k, layer, head)
    size, d = weight.shape
    along = functional.normalize(torch.randn(size, generator=generator), dim=0)
    seen = functional.normalize(torch.randn(d, generator=generator), dim=0)
    length = float(torch.linalg.matrix_norm(weight))  # norm of a key, for tokens of unit variance
    weight.add_(TIMES * length * torch.outer(along, seen))


def _rows(linear: torch.nn.Linear, layer: tasks.Attention, head: int) -> torch.Tensor:
    size = linear.out_features // layer.heads
    return linear.weight[head * size : (head + 1) * size]
