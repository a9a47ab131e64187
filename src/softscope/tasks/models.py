"""Two small models: one attention layer for recall, and a causal transformer for sequences."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from softscope._arguments.checks import whole_number
from softscope.tasks._checks import tokens_below
from softscope.tasks.layer import Attention, seeded_embedding, seeded_linear
from softscope.tasks.options import AttentionOptions


class RecallModel(nn.Module):
    """Associative recall in one attention layer: the queries attend over the pairs.

        q = W_Q·E[query],   k = W_K·E[keys],   v = W_V·V[values],   logits = R·W_O·attention(q, k, v)

    Query and keys share the table E. W_Q and W_K are drawn independently, so at the start a key is no closer to its
    own query than to any other: the model must learn where to look. q and k start with unit variance, so with
    `scale=1.0` the attention logits start with a standard deviation of √d.

    Args:
        d: Components of a token.
        vocabulary: Number of key tokens, and of value tokens; must match the task's.
        heads: Number of heads; must divide `d`.
        options: Scale and remedies.
        seed: Decides the initial weights.

    Examples:
        >>> import torch
        >>> from softscope.tasks import recall_batch
        >>> made = recall_batch(2, pairs=4, queries=3, generator=torch.Generator().manual_seed(0))
        >>> RecallModel(d=8, vocabulary=4)(*made.inputs).shape      # (batch, queries, vocabulary)
        torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        d: int = 256,
        *,
        vocabulary: int = 16,
        heads: int = 1,
        options: AttentionOptions | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary = whole_number(vocabulary, "vocabulary", 1)
        generator = torch.Generator().manual_seed(seed)
        options = AttentionOptions() if options is None else options
        self.attention = Attention(d, heads=heads, options=options, generator=generator)
        self.key_table = seeded_embedding(vocabulary, d, generator)
        self.value_table = seeded_embedding(vocabulary, d, generator)
        self.readout = seeded_linear(d, vocabulary, generator)

    def forward(self, keys: Tensor, values: Tensor, query: Tensor) -> Tensor:
        """Return logits over the value tokens, (batch, queries, vocabulary)."""
        for name, tokens in (("keys", keys), ("values", values), ("query", query)):
            tokens_below(tokens, name, self.vocabulary)
        read = self.attention(self.key_table(query), self.key_table(keys), self.value_table(values))
        logits: Tensor = self.readout(read)
        return logits


class Block(nn.Module):
    """One layer of the transformer: `x + attention(norm(x))`, then `x + W_2·gelu(W_1·norm(x))`."""

    def __init__(self, d: int, heads: int, options: AttentionOptions, generator: torch.Generator) -> None:
        super().__init__()
        self.attention = Attention(d, heads=heads, options=options, generator=generator)
        self.norm_attention, self.norm_hidden = nn.LayerNorm(d), nn.LayerNorm(d)
        self.w_1 = seeded_linear(d, 4 * d, generator)
        self.w_2 = seeded_linear(4 * d, d, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, n, d) to (batch, n, d); position i sees positions j ≤ i."""
        seen = self.norm_attention(x)
        x = x + self.attention(seen, seen, seen, causal=True)
        hidden: Tensor = self.w_2(functional.gelu(self.w_1(self.norm_hidden(x))))
        return x + hidden


class SmallTransformer(nn.Module):
    """A causal transformer: position i predicts token i + 1 from tokens 0 … i.

    It has learned positions, LayerNorm before each part, and no dropout. It learns the copying task; with characters
    as tokens, it is a small language model.

    Args:
        vocabulary: Number of tokens; for copying, the task's plus 1 for the delimiter.
        length: Maximum length of a sequence; for copying, twice the task's `length`.
        d: Components of a token.
        heads: Number of heads; must divide `d`.
        layers: Number of layers.
        options: Scale and remedies, the same in every layer.
        seed: Decides the initial weights.

    Examples:
        >>> import torch
        >>> model = SmallTransformer(vocabulary=5, length=8, d=16, heads=2, layers=1)
        >>> model(torch.tensor([[0, 1, 2]])).shape                  # (batch, n, vocabulary)
        torch.Size([1, 3, 5])
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        length: int,
        d: int = 64,
        heads: int = 2,
        layers: int = 2,
        options: AttentionOptions | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary = whole_number(vocabulary, "vocabulary", 1)
        self.length = whole_number(length, "length", 1)
        layers = whole_number(layers, "layers", 1)
        d = whole_number(d, "d", 1)
        generator = torch.Generator().manual_seed(seed)
        options = AttentionOptions() if options is None else options
        self.token_table = seeded_embedding(vocabulary, d, generator)
        self.position_table = seeded_embedding(self.length, d, generator)
        self.blocks = nn.ModuleList(Block(d, heads, options, generator) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.readout = seeded_linear(d, vocabulary, generator)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token, (batch, n, vocabulary), for tokens (batch, n)."""
        n = tokens.shape[-1]
        if n > self.length:
            raise ValueError(
                f"tokens must have at most length={self.length} positions, but got {n}; "
                f"shorten the sequences or build the model with a larger length"
            )
        tokens_below(tokens, "tokens", self.vocabulary)
        x = self.token_table(tokens) + self.position_table.weight[:n]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.readout(self.norm(x))
        return logits
