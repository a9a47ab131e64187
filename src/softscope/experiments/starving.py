"""Which models without 1/√d starve for good, and which only learn late? Runs over settings and seeds.

A row that is blocked on a wrong key opens only in sequences that lack this key. If every sequence shows the same keys,
there are none: the row starves for good. If the keys are drawn from more, every key gets its turn.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, NamedTuple

import softscope
from softscope._one_thread import one_thread
from softscope.experiments.recall import LEARNED, PAIRS, learning_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from softscope.tasks import RecallBatch, RecallModel

KEYS = (16, 20, 24, 32, 48, 64)
SEEDS = (0, 1, 2, 3, 4)
BATCH = 16
RATES = {"adam": 3e-3, "sgd": 0.3}
LAST = 20  # steps whose batches, 5,120 answers that the model was not yet trained on, give one accuracy
BLOCKED = 1e-3  # Σs(1−s) of a row that hardly lets gradient through
OPEN = 1e-2  # s(1−s) of the queried key's own weight, from which on the row pulls on it
RISING = 0.02  # accuracy; a third of one key in 16
EXAMINED = 200  # sequences


class Setting(NamedTuple):
    """What a run depends on, besides its seed and its length.

    Attributes:
        d: Components of a token.
        keys: Number of keys in all; each sequence shows `pairs` of them.
        pairs: Number of keys in a sequence.
        scaled: Whether the logits are multiplied by 1/√d.
        optimizer: "adam" or "sgd", with the rates in `RATES`; Adam's falls above d = 122, see `learning_rate`.
        slower: Divides the learning rate.
        company: "drawn": each sequence draws its keys. "fixed": the keys come in fixed groups of `pairs`, so that a
            query meets the same keys in every sequence, however many there are in all.

    Examples:
        >>> Setting(keys=64).absent, Setting(keys=16).absent, Setting(keys=64, company="fixed").absent
        (0.7619047619047619, 0.0, 0.0)
    """

    d: int = 64
    keys: int = PAIRS
    pairs: int = PAIRS
    scaled: bool = False
    optimizer: Literal["adam", "sgd"] = "adam"
    slower: float = 1.0
    company: Literal["drawn", "fixed"] = "drawn"

    @property
    def absent(self) -> float:
        """The share of sequences with a given query that lack a given other key."""
        return (self.keys - self.pairs) / (self.keys - 1) if self.company == "drawn" else 0.0

    @property
    def rate(self) -> float:
        """The learning rate."""
        rate = RATES[self.optimizer]
        return (min(rate, learning_rate(self.d)) if self.optimizer == "adam" else rate) / self.slower


class Run(NamedTuple):
    """One run: the share of right answers at each step, on new sequences, and what its rows do in the end.

    Attributes:
        answers: Share of right answers at each step.
        misled: Share of the rows that are blocked on a wrong key after the last step.
    """

    answers: list[float]
    misled: float

    def accuracy(self, after: int | None = None) -> float:
        """Return the share of right answers over the last 20 steps, of all or of the first `after`.

        >>> Run([0.0] * 20 + [1.0] * 20, 0.0).accuracy(), Run([0.0] * 20 + [1.0] * 20, 0.0).accuracy(after=30)
        (1.0, 0.5)
        """
        recent = self.answers[:after][-LAST:]
        return sum(recent) / len(recent)


class Flip(NamedTuple):
    """Where a sweep flips: up to `never` keys no seed learns, from `always` on every seed does, between them some do.

    None: not within the sweep.
    """

    never: int | None
    always: int | None


def flip(accuracies: Mapping[int, Sequence[float]], learned: float = LEARNED) -> Flip:
    """Find where a sweep from numbers of keys to accuracies, one per seed, flips.

    >>> flip({16: [0.1, 0.4], 32: [0.8, 1.0], 64: [1.0, 1.0]})
    Flip(never=16, always=64)
    >>> flip({16: [1.0, 1.0], 32: [1.0, 1.0]}), flip({16: [0.1, 0.4]})
    (Flip(never=None, always=16), Flip(never=16, always=None))
    """
    never = always = None
    for keys in sorted(accuracies):
        if max(accuracies[keys]) >= learned:
            break
        never = keys
    for keys in sorted(accuracies, reverse=True):
        if min(accuracies[keys]) < learned:
            break
        always = keys
    return Flip(never, always)


def fate(early: Sequence[float], late: Sequence[float]) -> Literal["learned", "seed", "slow", "starves"]:
    """Judge a setting by its accuracies, one per seed, half-way and at the end.

    "learned" if every seed has learned, "seed" if some have; otherwise "slow" if the second half of the steps still
    adds at least `RISING` on average, and "starves" if it does not.

    >>> fate([0.9, 0.4], [1.0, 0.5]), fate([0.2, 0.4], [0.4, 0.6]), fate([0.2, 0.4], [0.2, 0.4])
    ('seed', 'slow', 'starves')
    """
    if min(late) >= LEARNED:
        return "learned"
    if max(late) >= LEARNED:
        return "seed"
    return "slow" if sum(late) - sum(early) >= RISING * len(late) else "starves"


def model_of(setting: Setting, seed: int) -> RecallModel:
    """Make the untrained model."""
    from softscope.tasks import AttentionOptions, RecallModel

    options = AttentionOptions(scale="sqrt" if setting.scaled else 1.0)
    return RecallModel(setting.d, vocabulary=setting.keys, options=options, seed=seed)


def batch_of(setting: Setting, batch: int, generator: torch.Generator) -> RecallBatch:
    """Draw sequences; in fixed company, each shows one whole group of keys, and values from the full vocabulary."""
    import torch

    from softscope.tasks import recall_batch

    made = recall_batch(batch, pairs=setting.pairs, vocabulary=setting.keys, generator=generator)
    if setting.company == "drawn":
        return made
    group = torch.randint(setting.keys // setting.pairs, (batch, 1), generator=generator)

    def seat(tokens: torch.Tensor) -> torch.Tensor:
        rank = (made.keys[:, None, :] < tokens[:, :, None]).sum(-1)
        return group * setting.pairs + rank

    return dataclasses.replace(made, keys=seat(made.keys), query=seat(made.query))


def run(
    setting: Setting,
    *,
    steps: int,
    seed: int,
    model: RecallModel | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Train a model for `steps`, on one thread: a fresh one, or the one given, with a fresh optimizer."""
    from softscope.tasks import train

    model = model_of(setting, seed) if model is None else model
    with one_thread():
        history = train(
            model,
            lambda generator: batch_of(setting, BATCH, generator),
            steps=steps,
            learning_rate=setting.rate,
            optimizer=setting.optimizer,
            seed=seed,
            progress=progress,
        )
        return Run(history.accuracy, misled(model, setting, seed))


def misled(model: RecallModel, setting: Setting, seed: int) -> float:
    """Return the share of rows on new sequences that are blocked and give their own key less than half the weight."""
    logits, own = _examined(model, setting, seed)
    blocked = softscope.partition(logits).jacobian_trace < BLOCKED
    return float((blocked & (own < 0.5)).double().mean())


class Openings(NamedTuple):
    """How many rows pull on their own key before training, and how many keys have such a row in some sequence."""

    rows: float
    keys: float


def openings(setting: Setting, seed: int) -> Openings:
    """Measure, before training, how many rows are open, and whether these are always the same keys' rows."""
    import torch

    with one_thread():
        _, own = _examined(model_of(setting, seed), setting, seed)
        pulls = own * (1 - own) > OPEN
        found = torch.zeros(setting.keys, dtype=torch.bool)
        found[_shown(setting, seed)[pulls]] = True
    return Openings(float(pulls.double().mean()), float(found.double().mean()))


def _shown(setting: Setting, seed: int) -> torch.Tensor:
    import torch

    return batch_of(setting, EXAMINED, torch.Generator().manual_seed(seed + 1_000_003)).keys


def _examined(model: RecallModel, setting: Setting, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ask every shown key of new sequences: the logits, and the weight on the queried key itself."""
    import torch

    with torch.no_grad():
        tokens, layer = model.key_table(_shown(setting, seed)), model.attention
        logits = layer.w_q(tokens) @ layer.w_k(tokens).mT * layer.factor
        return logits, softscope.softmax(logits).diagonal(dim1=-2, dim2=-1)
