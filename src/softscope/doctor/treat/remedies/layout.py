"""Finds which rows of which linear maps give q and k of each head, by comparing their output with observed q and k.

Names say nothing about the order of heads inside a packed projection; the numbers do. Only the first token is compared:
rotary positions leave it as it is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from softscope.doctor.listen import functions, module_paths, patches
from softscope.doctor.treat.remedies.linear_maps import linear_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softscope.doctor.listen.observed_call import ObservedCall

FEWEST = 4  # numbers to compare; fewer may agree by chance
CLOSE = 1e-4  # how far from 1 a cosine may be; half-precision projections are rounded once


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where a site's q and k come from: rows `start`, `start + step`, … of a linear map, for each head.

    Attributes:
        q: Path of the linear map that gives q.
        k: Path of the one that gives k; often the same.
        size: Components of a head.
        q_rows: The first row of each query head.
        k_rows: The first row of each key head.
        step: Distance between the rows of a head.

    >>> Layout("0.qkv", "0.qkv", 4, (0, 4), (8, 12)).step
    1
    """

    q: str
    k: str
    size: int
    q_rows: tuple[int, ...]
    k_rows: tuple[int, ...]
    step: int = 1

    def __repr__(self) -> str:
        """Python that builds it, as the code of a prescription needs."""
        step = "" if self.step == 1 else f", step={self.step}"
        return f"remedies.Layout({self.q!r}, {self.k!r}, {self.size}, {self.q_rows}, {self.k_rows}{step})"


class _Finder:
    """Listens to attention calls and compares each with the linear maps that ran shortly before it."""

    def __init__(self, model: nn.Module, found: dict[str, Layout]) -> None:
        self.thread, self.paths, self.model, self.found = threading.get_ident(), module_paths.paths(model), model, found
        self.outputs: dict[str, Tensor] = {}
        self.handles: list[Any] = []
        for path, module in model.named_modules():
            if linear_map(module) is not None and not path.endswith(".base_layer"):
                self.handles.append(module.register_forward_hook(self._keep(path)))

    def _keep(self, path: str) -> _Keep:
        def keep(_: nn.Module, __: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.ndim >= 2:
                self.outputs.pop(path, None)  # the latest last
                self.outputs[path] = output.detach()

        return keep

    def hear(self, observed: ObservedCall) -> None:
        """Receive one call."""
        place = module_paths.innermost(self.paths)
        if place is None or observed.q is None or observed.k is None:
            return
        site = module_paths.site_name(place, observed.below, self.model)
        if site in self.found:
            return
        with torch.no_grad():
            q = self._match(observed.q)
            k = None if q is None else self._match(observed.k)
        if q is not None and k is not None and q[2] == k[2]:
            self.found[site] = Layout(q[0], k[0], observed.q.shape[-1], q[1], k[1], q[2])

    def _match(self, x: Tensor) -> tuple[str, tuple[int, ...], int] | None:
        """Path, first rows and step for q or k, (B, heads, n, d)."""
        for path, output in reversed(self.outputs.items()):
            first = _first_token(output, x)
            if first is None:
                continue
            for step in dict.fromkeys((1, x.shape[1], 3 * x.shape[1], 3)):
                rows = _rows(first, x[:, :, 0], step)
                if rows is not None:
                    return path, rows, step
        return None

    def trouble(self, error: Exception) -> None:
        """A call that cannot be read has no layout."""

    def stop(self) -> None:
        """Take the hooks off."""
        patches.stop(self)
        for handle in self.handles:
            handle.remove()
        self.outputs.clear()


class _Keep(Protocol):
    def __call__(self, _: nn.Module, __: Any, output: Any) -> None: ...


@contextlib.contextmanager
def layouts(model: nn.Module) -> Iterator[dict[str, Layout]]:
    """Find where q and k of each site come from, for everything the model computes inside the `with`.

    Pass the result as `layout` to `temperature(way="weights")`, `qk_clip` or `reinitialise` for modules that are not
    known by name. A site is missing if its q or k is not what a linear map gives (up to a factor, such as 1/√d), for
    example because it is normalised in between.

    Args:
        model: any module the probe can read.

    >>> import torch
    >>> from softscope import tasks
    >>> from softscope.doctor import remedies
    >>> model = tasks.RecallModel(d=8, vocabulary=4, heads=2)
    >>> with remedies.layouts(model) as layout:
    ...     _ = model(*tasks.recall_batch(3, pairs=4, generator=torch.Generator().manual_seed(0)).inputs)
    >>> layout
    {'attention': remedies.Layout('attention.w_q', 'attention.w_k', 4, (0, 4), (0, 4))}
    """
    found: dict[str, Layout] = {}
    finder = _Finder(model, found)
    patches.listen(finder, functions.all_patches(model))
    try:
        yield found
    finally:
        finder.stop()


def _first_token(output: Tensor, x: Tensor) -> Tensor | None:
    """The projection of the first token of each entry, (B, features), if the shapes allow for it."""
    batch, _, n, _ = x.shape
    if output.ndim == 3 and output.shape[:2] == (batch, n):
        return output[:, 0]
    if output.ndim == 3 and output.shape[:2] == (n, batch):
        return output[0]
    flat = output.reshape(-1, output.shape[-1])
    return flat.reshape(batch, n, -1)[:, 0] if flat.shape[0] == batch * n else None


def _rows(features: Tensor, heads: Tensor, step: int) -> tuple[int, ...] | None:
    """The first row of each head whose components, (B, heads, d), are a multiple of the features, (B, F)."""
    size = heads.shape[-1]
    span = (size - 1) * step + 1
    if features.shape[-1] < span or features.shape[0] * size < FEWEST:
        return None
    windows = features.double().unfold(-1, span, 1)[..., ::step]  # (B, starts, d)
    found = []
    for head in heads.double().unbind(1):
        # One multiple for all entries: another for each would be a norm, and no factor on weights.
        dots = torch.einsum("bsd,bd->s", windows, head)
        norms = windows.square().sum(dim=(0, 2)).sqrt() * head.square().sum().sqrt()
        cosine = dots / norms.clamp_min(1e-300)
        best = int(cosine.argmax())
        if not float(cosine[best]) > 1.0 - CLOSE:
            return None
        found.append(best)
    once = tuple(dict.fromkeys(found))  # a model may repeat its key heads, one for each query head
    return once if found == [start for start in once for _ in range(len(found) // len(once))] else None
