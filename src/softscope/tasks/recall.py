"""Associative recall: shown pairs of key and value, and asked a key again, answer its value."""

from dataclasses import dataclass

import torch
from torch import Tensor

from softscope._arguments.checks import between, whole_number
from softscope.tasks._checks import a_generator


@dataclass(frozen=True, eq=False)
class RecallBatch:
    """One batch of associative recall.

    Attributes:
        keys: (batch, pairs) key tokens, each at most once in a sequence.
        values: (batch, pairs) value tokens; `values[b, j]` belongs to `keys[b, j]`.
        query: (batch, queries) key tokens of the same sequence, asked again.
        target: (batch, queries) the value of the queried key, or a random label where noise fell.
        clean_target: (batch, queries) the value of the queried key.

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
        """What `RecallModel` is called with: keys, values, query."""
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
    """A batch of `batch` sequences: `query[b, i] = keys[b, j]`, and its clean target is `values[b, j]`.

    Keys are drawn without repetition, values, queries and noise with it. Values are drawn anew for
    every sequence, so there is nothing to learn by heart: a model must look.

    The vocabulary decides how stuck an unscaled model gets. With `vocabulary == pairs` a query
    always meets the same keys, hence the same logits: a row that starts blocked on a wrong key stays
    blocked. In a larger vocabulary the wrong key is now and then absent, and an adaptive optimizer
    uses these openings: the unscaled model gets out, later and not completely.

    Args:
        batch: how many sequences.
        pairs: how many pairs a sequence shows.
        vocabulary: how many key tokens there are, and how many value tokens; `pairs` if not given.
        queries: how many keys a sequence asks.
        noise: the share of labels replaced with a uniformly random one, which by chance is the right
            one in 1 of `vocabulary` cases. In [0, 1].
        generator: the only source of randomness; the tensors are made on its device.

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
    # Drawn whatever the noise is: batches of one seed differ in their noisy labels and in nothing else.
    replaced, labels = uniform(batch, queries) < noise, tokens(vocabulary, batch, queries)
    target = torch.where(replaced, labels, clean_target)
    return RecallBatch(keys, values, keys.gather(1, asked), target, clean_target)
