"""Trained models from packages: a folder, a text, a loss that fits the model, and heads spoiled one at a time.

The folder is loaded by transformers' own classes from files alone: nothing is downloaded, and none of its code runs.
"""

from __future__ import annotations

import importlib
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from softscope import tasks
from softscope.doctor.evaluation import spoil, truth
from softscope.doctor.evaluation.corpus import Part
from softscope.doctor.evaluation.opinion import looked_at
from softscope.doctor.evaluation.patients import TRUTHS_SEED, Case, Patient, patient
from softscope.doctor.evaluation.projections import heads
from softscope.doctor.evaluation.subjects import Batch, Run, Subject

MASKED = 0.15  # of the tokens
CANDIDATES = 8  # second halves, among which the first half of a sentence finds its own
SHARP = 20.0  # factor on their cosines, as such models are trained
SPOILED = 18  # heads, one at a time
HELD_OUT = 16  # sequences
STEPS = 3  # after a treatment
RATE = 1e-5

Tokenize = Callable[[str], list[int]]


class Matching(nn.Module):
    """A sentence model that chooses among candidates: tokens (batch, 1 + candidates, n), the first is the question."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the logits of the candidates, (batch, candidates)."""
        found = self.model(input_ids=input_ids.flatten(0, 1), attention_mask=attention_mask.flatten(0, 1))
        shown = attention_mask.flatten(0, 1).unsqueeze(-1)
        mean = (found.last_hidden_state * shown).sum(dim=1) / shown.sum(dim=1)
        vectors = functional.normalize(mean, dim=-1).reshape(*input_ids.shape[:2], -1)
        return SHARP * (vectors[:, 1:] @ vectors[:, 0].unsqueeze(-1)).squeeze(-1)


def subject(folder: pathlib.Path, text: pathlib.Path) -> Subject:
    """A model and its text, one sequence per line: masked tokens if it can fill them in, else matching halves.

    Args:
        folder: Holds config.json, weights, and tokenizer.json or vocab.txt (which may be one folder up).
        text: Two lines for the doctor, two for the truth, and so on.
    """
    transformers = importlib.import_module("transformers")
    lines = [line for line in text.read_text("utf-8").splitlines() if line]
    config = json.loads((folder / "config.json").read_text("utf-8"))
    sentence = config["architectures"] == ["BertModel"]
    tokenize, special = _tokenizer(folder)

    def make(seed: int, options: tasks.AttentionOptions) -> nn.Module:
        del seed, options
        kind = transformers.AutoModel if sentence else transformers.AutoModelForMaskedLM
        model: nn.Module = kind.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        model = _unshared(model).eval()
        return Matching(model) if sentence else model

    def batch(many: int, generator: torch.Generator, part: Part) -> Batch:
        mine = [line for i, line in enumerate(lines) if (i // 2 % 2 == 1) == (part == "held out")]
        chosen = [mine[i] for i in _drawn(many, len(mine), generator)]
        if sentence:
            return _matched(chosen, mine, tokenize, special, generator)
        return _masked(chosen, tokenize, special, generator)

    return Subject(folder.name if folder.name != "model" else folder.parent.name, make, batch, 4)


def packages(folder: pathlib.Path, text: pathlib.Path, progress: Callable[[float], None]) -> Iterator[Patient]:
    """The model as it is, and with q × 30 in single heads."""
    torch.set_num_threads(1)
    quiet = importlib.import_module("transformers").logging
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()
    kind = subject(folder, text)
    batch = kind.batch(HELD_OUT, torch.Generator().manual_seed(TRUTHS_SEED), "held out")
    constant = truth.best_constant(kind.batch(64, torch.Generator(), "training")["target"], batch["target"])
    every = list(heads(kind.model(0)))
    some = [every[i * len(every) // SPOILED] for i in range(SPOILED)]
    for done, place in enumerate([None, *some]):
        progress(done / (SPOILED + 1))
        model = kind.model(0)
        run = Run(model, torch.optim.Adam(model.parameters(), RATE))
        if place is not None:
            spoil.multiply_q(heads(model)[place], torch.Generator())
        said = looked_at(run, kind, sequences=HELD_OUT)
        yield patient(
            Case("healthy" if place is None else "q × 30", kind, RATE, 0), run, () if place is None else [place], said,
            batch, constant, steps=STEPS, only_doubtful=place is not None,
        )  # fmt: skip


def _unshared(model: Any) -> Any:
    """ALBERT's layers share their weights; give each its own copy, so that a head can be spoiled in one layer alone."""
    config = model.config
    if getattr(config, "num_hidden_groups", None) != 1:
        return model
    weights = model.state_dict()
    config.num_hidden_groups = config.num_hidden_layers
    apart = type(model)(config)
    own = {
        name: weights[".".join("0" if before == "albert_layer_groups" else part for before, part in _pairs(name))]
        for name in apart.state_dict()
    }
    apart.load_state_dict(own)
    return apart


def _pairs(name: str) -> list[tuple[str, str]]:
    parts = name.split(".")
    return list(zip(["", *parts], parts, strict=False))


def _drawn(many: int, of: int, generator: torch.Generator) -> list[int]:
    """Every line once before any comes again."""
    rounds = [torch.randperm(of, generator=generator) for _ in range(-(-many // of))]
    return torch.cat(rounds)[:many].tolist()


def _masked(texts: list[str], tokenize: Tokenize, special: dict[str, int], generator: torch.Generator) -> Batch:
    tokens, shown = _padded([tokenize(text) for text in texts], special["[PAD]"])
    inside = (tokens != special["[CLS]"]) & (tokens != special["[SEP]"]) & shown.bool()
    chance = torch.rand(tokens.shape, generator=generator).masked_fill(~inside, 2.0)
    asked = (chance < MASKED) | (chance == chance.min(dim=1, keepdim=True).values)  # at least one in each sequence
    return {
        "input_ids": torch.where(asked, special["[MASK]"], tokens),
        "attention_mask": shown,
        "target": torch.where(asked, tokens, tasks.IGNORED),
    }


def _matched(
    texts: list[str], others: list[str], tokenize: Tokenize, special: dict[str, int], generator: torch.Generator
) -> Batch:
    rows, right = [], torch.randint(CANDIDATES, (len(texts),), generator=generator)
    for text, place in zip(texts, right.tolist(), strict=True):
        wrong = [others[i] for i in torch.randperm(len(others), generator=generator).tolist() if others[i] != text]
        halves = [_halves(x)[1] for x in wrong[: CANDIDATES - 1]]
        halves.insert(place, _halves(text)[1])
        rows += [tokenize(x) for x in (_halves(text)[0], *halves)]
    tokens, shown = _padded(rows, special["[PAD]"])
    shape = (len(texts), 1 + CANDIDATES, -1)
    return {"input_ids": tokens.reshape(shape), "attention_mask": shown.reshape(shape), "target": right}


def _halves(text: str) -> tuple[str, str]:
    words = text.split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


def _padded(rows: list[list[int]], filler: int) -> tuple[Tensor, Tensor]:
    length = max(map(len, rows))
    tokens = torch.tensor([row + [filler] * (length - len(row)) for row in rows])
    shown = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    return tokens, shown


def _tokenizer(folder: pathlib.Path) -> tuple[Tokenize, dict[str, int]]:
    """The folder's own tokenizer; without one, the longest word of vocab.txt that fits, again and again."""
    names = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
    if (folder / "tokenizer.json").exists():
        own = importlib.import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
        own.no_padding()
        return lambda text: own.encode(text).ids, {name: own.token_to_id(name) for name in names}
    file = next(x for x in (folder / "vocab.txt", folder.parent / "vocab.txt") if x.exists())
    words = {word: i for i, word in enumerate(file.read_text("utf-8").splitlines())}
    longest = max(map(len, words))

    def tokenize(text: str) -> list[int]:
        found, at = [words["[CLS]"]], 0
        while at < len(text):
            fits = (text[at : at + size] for size in range(min(longest, len(text) - at), 0, -1))
            word = next((x for x in fits if x in words), text[at])
            found.append(words.get(word, words["[UNK]"]))
            at += len(word)
        return [*found, words["[SEP]"]]

    return tokenize, {name: words[name] for name in names}
