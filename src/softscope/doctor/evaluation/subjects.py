"""The models under test: what each learns, how it is built, and its batches for training and for tests."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from softscope import tasks
from softscope.doctor.evaluation import corpus
from softscope.doctor.evaluation.corpus import VOCABULARY, Part

LENGTH, HEADS, PAIRS, COPIED, MARKS = 64, 4, 16, 16, 8
INITIAL = 0.1  # of transformers' models; their own 0.02 leaves heads of so small models nearly uniform
CLS = VOCABULARY + MARKS  # the token in front of a text that is to be classified

Batch = dict[str, Tensor]  # the model's arguments by name, and "target"
BatchMaker = Callable[[int, torch.Generator, Part], Batch]
ModelMaker = Callable[[int, tasks.AttentionOptions], nn.Module]


@dataclasses.dataclass
class Answer:
    """What a model answers: logits (..., classes), and their mean cross-entropy."""

    logits: Tensor
    loss: Tensor


class Answering(nn.Module):
    """A model that also takes the target and gives its loss, as transformers' own models do.

    >>> model = Answering(tasks.RecallModel(d=8, vocabulary=4))
    >>> made = tasks.recall_batch(2, pairs=4, generator=torch.Generator().manual_seed(0))
    >>> model(keys=made.keys, values=made.values, query=made.query, target=made.target).logits.shape
    torch.Size([2, 16, 4])
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *, target: Tensor, **inputs: Tensor) -> Answer:
        """Answer a batch."""
        found = self.model(**inputs)
        logits: Tensor = found if isinstance(found, Tensor) else found.logits
        flat = logits.reshape(-1, logits.shape[-1])
        return Answer(logits, functional.cross_entropy(flat, target.flatten(), ignore_index=tasks.IGNORED))


@dataclasses.dataclass
class Run:
    """A model in training, with its optimizer; a deep copy goes on where this one is."""

    model: Answering
    update: torch.optim.Optimizer

    def backward(self, batch: Batch) -> float:
        """Compute the gradients of a batch, and return its loss."""
        self.update.zero_grad()
        loss: Tensor = self.model(**batch).loss
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    def step(self, batch: Batch) -> float:
        """Train on a batch, and return its loss."""
        loss = self.backward(batch)
        self.update.step()
        return loss


@dataclasses.dataclass(frozen=True)
class Subject:
    """A kind of model and what it learns.

    Attributes:
        name: For the table.
        make: Builds a model from a seed and options of its attention; transformers' models ignore the options.
        batch: Makes `many` sequences.
        size: Sequences in a training batch.
        held_out: Sequences on which the truth is measured; more where a sequence says little.
    """

    name: str
    make: ModelMaker
    batch: BatchMaker
    size: int = 8
    held_out: int = 48

    def model(self, seed: int, options: tasks.AttentionOptions | None = None) -> Answering:
        """A fresh model."""
        torch.manual_seed(seed)  # transformers draws its weights from the global state
        return Answering(self.make(seed, options or tasks.AttentionOptions()))

    def run(self, seed: int, rate: float, options: tasks.AttentionOptions | None = None) -> Run:
        """A fresh model and its Adam."""
        model = self.model(seed, options)
        return Run(model, torch.optim.Adam(model.parameters(), rate))


def _text(many: int, generator: torch.Generator, part: Part) -> Batch:
    made = corpus.text_batch(many, length=LENGTH, generator=generator, part=part)
    return {"tokens": made.tokens, "target": made.target}


def _keywords(many: int, generator: torch.Generator, part: Part) -> Batch:
    del part  # drawn anew every time
    made = corpus.keyword_batch(many, length=LENGTH, generator=generator)
    return {"tokens": made.tokens, "target": made.target}


def _copied(many: int, generator: torch.Generator, part: Part) -> Batch:
    del part
    made = tasks.copy_batch(many, length=COPIED, vocabulary=16, generator=generator)
    return {"tokens": made.tokens, "target": made.target}


def _recalled(vocabulary: int) -> BatchMaker:
    def batch(many: int, generator: torch.Generator, part: Part) -> Batch:
        del part
        made = tasks.recall_batch(many, pairs=PAIRS, vocabulary=vocabulary, generator=generator)
        return {"keys": made.keys, "values": made.values, "query": made.query, "target": made.target}

    return batch


def _next_token(many: int, generator: torch.Generator, part: Part) -> Batch:
    made = _text(many, generator, part)
    return {"input_ids": made["tokens"], "target": made["target"]}


def _classified(many: int, generator: torch.Generator, part: Part) -> Batch:
    pieces, mark = corpus.marked_batch(many, length=LENGTH - 1, marks=MARKS, generator=generator, part=part)
    return {"input_ids": functional.pad(pieces, (1, 0), value=CLS), "target": mark}


def _transformer(vocabulary: int, length: int, d: int, layers: int) -> ModelMaker:
    return lambda seed, options: tasks.SmallTransformer(
        vocabulary, length=length, d=d, heads=HEADS, layers=layers, options=options, seed=seed
    )


def _recall(d: int, vocabulary: int) -> ModelMaker:
    return lambda seed, options: tasks.RecallModel(d, vocabulary=vocabulary, heads=HEADS, options=options, seed=seed)


def _family(model: str, config: str, **sizes: Any) -> ModelMaker:
    def make(seed: int, options: tasks.AttentionOptions) -> nn.Module:
        del seed, options
        transformers = importlib.import_module("transformers")
        settings = getattr(transformers, config)(
            vocab_size=CLS + 1,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=None,
            use_cache=False,
            initializer_range=INITIAL,
            **sizes,
        )
        made: nn.Module = getattr(transformers, model)(settings)
        return made

    return make


TEXT = Subject("text", _transformer(VOCABULARY, LENGTH, 128, 2), _text, 4)
DEEP = Subject("text, 4 layers", _transformer(VOCABULARY, LENGTH, 64, 4), _text, 4)
KEYWORDS = Subject("keywords", _transformer(VOCABULARY, LENGTH, 64, 2), _keywords)
COPYING = Subject("copying", _transformer(17, 2 * COPIED, 64, 2), _copied, 16, 96)
RECALL = Subject("recall, 16 keys", _recall(64, 16), _recalled(16), 16, 256)
RECALL_64 = Subject("recall, 64 keys", _recall(128, 64), _recalled(64), 16, 256)
RECALL_WIDE = Subject("recall, d = 256", _recall(256, 16), _recalled(16), 16, 256)
GPT2 = Subject(
    "GPT-2",
    _family("GPT2LMHeadModel", "GPT2Config", n_embd=64, n_layer=2, n_head=HEADS, n_positions=LENGTH,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    _next_token,
)  # fmt: skip
LLAMA = Subject(
    "Llama",
    _family("LlamaForCausalLM", "LlamaConfig", hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=HEADS, num_key_value_heads=2, max_position_embeddings=LENGTH),
    _next_token,
)  # fmt: skip
BERT = Subject(
    "BERT",
    _family("BertForSequenceClassification", "BertConfig", hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=HEADS, max_position_embeddings=LENGTH, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0, num_labels=MARKS),
    _classified, 16, 128,
)  # fmt: skip

OURS = (TEXT, DEEP, KEYWORDS, COPYING, RECALL, RECALL_64)
FAMILIES = (GPT2, LLAMA, BERT)
