"""probe: the entry point to the doctor, which is imported only when probe is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from softscope._arguments.checks import positive, short, whole_number

if TYPE_CHECKING:
    from softscope.doctor.scope import Scope


def probe(
    model: Any,
    *,
    every: int | None = None,
    max_rows: int | None = 32,
    seed: int = 0,
    heads: int | Mapping[str, int] | None = None,
    group: Any = None,
    patience: float = 10.0,
) -> Scope:
    """Read the attention of a PyTorch model while it trains or runs, without changing the model.

    Wrap it around a training loop or around inference. A probed run computes bit for bit what an unprobed run does.
    On exit, even after an error, the probe removes everything it installed. It lists whatever it could not read,
    with the reason.

    Until the backward pass of a sampled step, the probe keeps in memory each call's queries, keys and values (they stay
    there anyway, unless activations are recomputed), or the chosen rows of materialised weights. Rows that carry no
    loss are not judged: if few of the chosen ones do, rows that do are read as well.
    Compiled code runs uncompiled in sampled steps, so those steps agree within rounding, not bit for bit.

    The probe detects steps by itself: an optimizer step ends one, however many passes it took; without a backward
    pass, each forward pass is one step. Call `scope.step(loss=…)` to mark a step explicitly.

    Args:
        model: The `torch.nn.Module` whose forward passes the probe reads. For a compiled model, pass the compiled
            module.
        every: Read every so many steps. By default, the probe reads the first 10 steps, then every 10th up to the
            100th, every 25th up to the 1000th, and every 50th after that.
        max_rows: Read at most this many query rows per sequence and head, at their true positions; None reads all.
        seed: Decides which rows are read. The random state of PyTorch and Python stays untouched.
        heads: The number of heads, for attention whose shapes do not show it, such as (batch·heads, n, m): one number,
            or numbers by module path, as in {"layers.*.attn": 8}. Within batch·heads, the batch is the outer axis.
        group: Read all ranks of this group together, as if they were one process: a `torch.distributed` process group
            or a `DeviceMesh` of one axis. Every rank of it enters the probe; snapshots come out on the first. Readings
            are merged in the background, so a snapshot comes some steps late. None reads this process alone.
        patience: With a group, how many seconds to wait for another rank before readings go on without it. Training
            never waits; only leaving the probe does, if a rank is missing then.

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
    heads = _checked(heads)
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ImportError("softscope.probe needs PyTorch: pip install 'softscope[torch]'") from error
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, but got {type(model).__name__}; pass the model itself")
    from softscope.doctor.scope import Scope

    together = None
    patience = positive(patience, "patience", "10.0 is usual")
    if group is not None:
        from softscope.doctor.ranks.together import Together

        together = Together(group, patience)
    return Scope(model, every=every, max_rows=max_rows, seed=whole_number(seed, "seed"), heads=heads, together=together)


def _checked(heads: Any) -> int | dict[str, int] | None:
    if heads is None:
        return None
    if not isinstance(heads, Mapping):
        return whole_number(heads, "heads", 1)
    for path in heads:
        if not isinstance(path, str):
            raise TypeError(
                f"heads must have module paths as keys, but got {short(path)}; write a path as in model.named_modules()"
            )
    return {path: whole_number(number, f"heads[{path!r}]", 1) for path, number in heads.items()}
