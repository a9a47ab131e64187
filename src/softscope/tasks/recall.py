"""Associative recall: the model sees pairs of key and value, and must answer a queried key with its value."""

from dataclasses import dataclass

import torch
from torch import Tensor

from softscope._arguments.checks import between, whole_number
from softscope.tasks._checks import a_generator


@dataclass(frozen=True, eq=False)
class RecallBatch:
    """One batch of associative recall.

    Attributes:
        keys: Key tokens, (batch, pairs), each at most once in a sequence.
        values: Value tokens, (batch, pairs); `values[b, j]` belongs to `keys[b, j]`.
        query: Queried key tokens of the same sequence, (batch, queries).
        target: Value of the queried key, or a random label where noise hits, (batch, queries).
        clean_target: Value of the queried key, (batch, queries).

    Examples:
        >>> import torch
        >>> made = recall_batch(1, pairs=4, queries=2, generator=torch.Generator().manual_seed(0))
        >>> bool((made.target == made.clean_target).all())        # no noise was asked for
        True
    """

    keys: Tensor
    values: Tensor
    query: Tensor
    target: Tensor
    clean_target: Tensor

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The arguments for `RecallModel`: keys, values, query."""
        return self.keys, self.values, self.query


def recall_batch(
    batch: int,
    *,
    pairs: int = 16,
    vocabulary: int | None = None,
    queries: int = 16,
    noise: float = 0.0,
    generator: torch.Generator,
) -> RecallBatch:
    """Make a batch of sequences: `query[b, i] = keys[b, j]`, and its clean target is `values[b, j]`.

    Keys are drawn without repetition; values, queries and noise with repetition. Every sequence gets fresh values, so
    there is nothing to memorise: a model must look.

    The vocabulary decides how stuck an unscaled model gets. With `vocabulary == pairs`, a query always meets the same
    keys, hence the same logits, so a row that is blocked on a wrong key stays blocked: at d = 64, 6% to 41% of the
    answers are right after 600 steps of Adam, by seed. With a larger vocabulary, the wrong key is sometimes absent, and
    the unscaled model learns through these openings, only later: 88% to 100% with 32 keys, 99% and more with 64. See
    `softscope.experiments.starving`.

    Args:
        batch: Number of sequences.
        pairs: Number of pairs in a sequence.
        vocabulary: Number of key tokens, and of value tokens; `pairs` by default.
        queries: Number of queried keys per sequence.
        noise: Share of labels, in [0, 1], replaced by a uniformly random label, which is right by chance in 1 of
            `vocabulary` cases.
        generator: The only source of randomness; the tensors are created on its device.

    Examples:
        >>> import torch
        >>> made = recall_batch(2, pairs=4, queries=1, generator=torch.Generator().manual_seed(0))
        >>> shown = made.keys == made.query            # where the queried key stands among the pairs
        >>> bool((made.values[shown] == made.target[:, 0]).all())
        True
    """
    batch, pairs = whole_number(batch, "batch", 1), whole_number(pairs, "pairs", 1)
    vocabulary = pairs if vocabulary is None else whole_number(vocabulary, "vocabulary", 1)
    queries = whole_number(queries, "queries", 1)
    if pairs > vocabulary:
        raise ValueError(
            f"pairs must be at most vocabulary, since keys do not repeat, "
            f"but got pairs={pairs} and vocabulary={vocabulary}; show fewer pairs or enlarge the vocabulary"
        )
    noise = between(noise, "noise", 0, 1, "0.3 makes 30% of the labels random")
    device = a_generator(generator).device

    def tokens(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator, device=device)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=device)

    keys = uniform(batch, vocabulary).argsort(dim=1)[:, :pairs]
    values = tokens(vocabulary, batch, pairs)
    asked = tokens(pairs, batch, queries)
    clean_target = values.gather(1, asked)
    # Draw these at any noise level, so that batches of one seed differ only in their noisy labels.
    replaced, labels = uniform(batch, queries) < noise, tokens(vocabulary, batch, queries)
    target = torch.where(replaced, labels, clean_target)
    return RecallBatch(keys, values, keys.gather(1, asked), target, clean_target)
