"""Training runs on associative recall and their final readings; shared by `learning` and `normalisers`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import softscope
from softscope.experiments.table import Measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.tasks import RecallBatch, RecallModel

PAIRS = 16  # with a vocabulary of 16 too, a query always meets the same keys: see `starving`
BATCH = 8
EXAMINED = 48  # sequences
LEARNED = 0.9  # share of right answers that counts as learned; below half of it counts as stuck. Chance is 1/PAIRS


class RecallRun(NamedTuple):
    """One run: loss (nats) and accuracy on new sequences, the gradient readings there, and the training curve.

    Standard errors are over sequences, not rows; of `pooled` runs, over runs. Readings are None if the weights are
    neither softmax nor entmax.
    """

    loss: Measured
    accuracy: Measured
    transmission: float | None
    advantage: Measured | None
    blocked: Measured | None
    losses: list[float]
    stopped_at: int | None


def pooled(runs: list[RecallRun]) -> RecallRun:
    """Average runs that differ in their seed: errors are over runs, and the losses are means at each step."""

    def mean(name: str) -> Measured:
        return Measured.of([getattr(run, name).value for run in runs])

    known = all(run.transmission is not None for run in runs)
    return RecallRun(
        mean("loss"),
        mean("accuracy"),
        float(np.nanmedian([run.transmission for run in runs])) if known else None,
        mean("advantage") if known else None,
        mean("blocked") if known else None,
        [float(np.mean(at)) for at in zip(*(run.losses for run in runs), strict=False)],  # one may have stopped early
        min((run.stopped_at for run in runs if run.stopped_at is not None), default=None),
    )


def learning_rate(d: int) -> float:
    """Return Adam's learning rate for width d; 1e-3 suits d = 256.

    Adam moves every weight by about the learning rate. So q moves by about d times that, and q·k/√d by d·d/√d times.
    A rate that does not shrink like d^(−3/2) would saturate a wide model by itself, scaled or not.
    """
    return min(1e-2, 4.096 / d**1.5)


def learn(
    model: RecallModel, *, d: int, steps: int, seed: int, progress: Callable[[int, int], None] | None = None
) -> RecallRun:
    """Train the model on recall, then test it on unseen sequences."""
    import torch

    from softscope.tasks import recall_batch, train

    history = train(
        model,
        lambda generator: recall_batch(BATCH, pairs=PAIRS, vocabulary=model.vocabulary, generator=generator),
        steps=steps,
        learning_rate=learning_rate(d),
        seed=seed,
        progress=progress,
    )
    new = torch.Generator().manual_seed(seed + 1_000_003)
    examined = recall_batch(EXAMINED, pairs=PAIRS, vocabulary=model.vocabulary, generator=new)
    with torch.no_grad():
        logits = model(*examined.inputs)
        losses = softscope.cross_entropy(logits, examined.target, reduction="none").mean(-1)
        right = (logits.argmax(-1) == examined.clean_target).double().mean(-1)
    transmission, advantage, blocked = gradient_state(model, examined)
    return RecallRun(
        Measured.of(losses.numpy()),
        Measured.of(right.numpy()),
        transmission,
        advantage,
        blocked,
        history.loss,
        history.stopped_at,
    )


def gradient_state(model: Any, batch: RecallBatch) -> tuple[float | None, Measured | None, Measured | None]:
    """Compute median transmission, advantage and share of blocked rows from the gradient at attention's output."""
    import torch

    layer = model.attention
    if not hasattr(layer, "attend"):
        layer = _Plain(layer)
    if layer.attend is None:
        return None, None, None
    mixed, q, k, v, options = layer.attend(
        model.key_table(batch.query), model.key_table(batch.keys), model.value_table(batch.values)
    )
    logits = model.readout(layer.w_o(mixed.transpose(-3, -2).flatten(-2)))
    loss = softscope.cross_entropy(logits, batch.target, reduction="sum")
    (grad,) = torch.autograd.grad(loss, mixed)
    readings = softscope.gradient_readings(q.detach(), k.detach(), v.detach(), grad, **options)
    transmission, advantage = (np.asarray(x.detach()) for x in (readings.transmission, readings.advantage))
    if not np.isfinite(transmission).any():
        return math.nan, Measured(math.nan, math.nan), Measured(math.nan, math.nan)
    known = np.where(np.isfinite(advantage), advantage, np.nan).reshape(len(advantage), -1)
    with np.errstate(invalid="ignore"):
        by_sequence = [row[~np.isnan(row)].mean() if (~np.isnan(row)).any() else math.nan for row in known]
    blocked = np.asarray(readings.blocked).reshape(len(advantage), -1).mean(axis=1)
    return float(np.nanmedian(transmission)), Measured.of(by_sequence), Measured.of(blocked)


def attention_weights(model: Any, query: Any, keys: Any) -> Any:
    """Return the weights of each query over the keys, (batch, queries, keys), of a one-headed `RecallModel`.

    We read them off as the output of attention over one-hot values, so that every option counts.
    """
    import torch

    with torch.no_grad():
        embedded = model.key_table(keys)
        _, q, k, _, options = _Plain(model.attention).attend(model.key_table(query), embedded, embedded)
        shown = torch.eye(k.shape[-2], dtype=q.dtype).expand(*k.shape[:-1], -1)
        return softscope.attention(q, k, shown, **options)[:, 0]


class _Plain:
    """The layer of `softscope.tasks`, opened up to expose q, k, v and the output."""

    def __init__(self, layer: Any) -> None:
        self.layer, self.w_o = layer, layer.w_o

    def attend(self, query: Any, key: Any, value: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Return the output, q, k, v, and the `softscope.attention` options that compute the output from them."""
        layer = self.layer
        q, k = layer.normalise(layer.split(layer.w_q(query)), layer.q_gain), layer.split(layer.w_k(key))
        k, v = layer.normalise(k, layer.k_gain), layer.split(layer.w_v(value))
        if layer.log_temperature is not None:
            q = q * (-layer.log_temperature).exp()[:, None, None]
        if layer.length_gain is not None:
            from softscope.nn import lengths

            counts = lengths.seen_keys(None, causal=False, n=q.shape[-2], m=k.shape[-2], device=q.device)
            q = lengths.by_length(q, layer.length_gain, layer.options.scalable, counts)
        options = {
            "scale": layer.factor,
            "softcap": layer.options.softcap,
            "sink": None if layer.sink is None else layer.sink.detach(),
            "alpha": layer.options.alpha,
        }
        return softscope.attention(q, k, v, **options), q, k, v, options
