"""probe: the door to the doctor, which is opened when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope._arguments.checks import whole_number

if TYPE_CHECKING:
    from softscope.doctor.scope import Scope


def probe(model: Any, *, every: int | None = None, max_rows: int | None = 32, seed: int = 0) -> Scope:
    """Read the attention of a PyTorch model while it trains or runs, with no change to it.

    Arguments:
        model: any `torch.nn.Module` whose forward passes are to be read; compiled, the compiled one.
        every: read every so many steps. By default the first 10, then more and more sparsely: every 10th to the
            100th, every 25th to the 1000th, every 50th after it.
        max_rows: at most so many query rows of each sequence and head are read, at their true positions; None: all.
        seed: decides which rows; the random state of PyTorch and Python is not touched.

    Use it around a training loop or around inference. A probed run computes bit for bit what a bare one does, and
    everything is taken off again at the end, also after an error. What could not be read is listed, with the reason.
    Until the backward pass of a sampled step, keys and values of each call stay in memory (they do anyway, unless
    activations are recomputed) and the chosen rows of the queries, or of weights that were written down.
    A compiled model runs its sampled steps without the compiler, so that these agree within rounding, not in bits.

    Steps are found by themselves: an optimizer's step ends one, however many passes it took; without a backward pass
    each forward pass is one. `scope.step(loss=…)` says it explicitly.

    >>> import softscope as ss
    >>> from softscope import tasks
    >>> model = tasks.RecallModel(d=16, vocabulary=4)
    >>> with ss.probe(model) as scope:
    ...     _ = tasks.train(model, lambda g: tasks.recall_batch(8, pairs=4, generator=g), steps=3)
    >>> history = scope.history()
    >>> history.sites[0].name, history.sites[0].kind, len(history.snapshots)
    ('attention', 'sdpa', 3)
    >>> history.series("transmission").shape           # (snapshots, sites, heads)
    (3, 1, 1)
    """
    if every is not None:
        whole_number(every, "every", 1)
    if max_rows is not None:
        whole_number(max_rows, "max_rows", 1)
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ImportError("softscope.probe needs PyTorch: pip install 'softscope[torch]'") from error
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, but got {type(model).__name__}; pass the model itself")
    from softscope.doctor.scope import Scope

    return Scope(model, every=every, max_rows=max_rows, seed=whole_number(seed, "seed"))
