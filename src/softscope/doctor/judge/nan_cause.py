"""Where a NaN in attention came from, as far as the readings of its site show it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.history_view import Head
from softscope.doctor.judge.thresholds import HALF_LARGEST

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import HistoryView

ELSEWHERE = Text(zh="这里的读数还是有限的，来源在别处", en="the readings here are finite, so it comes from elsewhere")
LOGITS = Text(
    zh="q、k、v 都是有限的，所以它出在分数或掩码上", en="q, k and v are finite, so it arose in the logits or the mask"
)
UNKNOWN = Text(zh="读数看不出来源", en="the readings do not show where it came from")


def nan_cause(view: HistoryView, site: int) -> tuple[Text, dict[str, float]]:
    """The cause in words, and its figures."""
    raw = _largest_product(view, site)
    if raw > HALF_LARGEST.value:
        most = f"{HALF_LARGEST.value:.0f}"
        told = Text(
            zh=f"原因：softmax 之前的 q·k 达到 {raw:.0f}，超过 float16 的最大值 {most}",
            en=f"the cause: before the softmax q·k reaches {raw:.0f}, above the float16 maximum of {most}",
        )
        return told, {"raw_logit": raw}
    last = {name: _last(view, name, site) for name in ("sharpness", "q_norm", "k_norm", "v_norm")}
    if np.isfinite(last.pop("sharpness")).any():
        return ELSEWHERE, {}
    known = {name: values for name, values in last.items() if _taken(view, name)}
    lost = [name[0] for name, values in known.items() if not np.isfinite(values).all()]
    if lost:
        told = Text(
            zh=f"softmax 之前就坏了：{'、'.join(lost)} 里有 NaN 或无穷，来自这一层的权重或输入",
            en=f"it was there before the softmax: {', '.join(lost)} has NaN or infinite entries, from this layer's "
            f"weights or its input",
        )
        return told, {}
    return (LOGITS if known else UNKNOWN), {}


def _largest_product(view: HistoryView, site: int) -> float:
    """The largest q·k before it is scaled, if it was computed in float16; otherwise 0."""
    here = view.history.sites[site]
    if here.dtype.removeprefix("torch.") != "float16" or not here.scale or math.isnan(here.scale):
        return 0.0
    tops = np.concatenate([view.curve("max_logit", Head(site, j))[1] for j in range(here.heads)])
    tops = tops[np.isfinite(tops)]
    return float(tops.max()) / abs(here.scale) if len(tops) else 0.0


def _last(view: HistoryView, name: str, site: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([view.series(name, Head(site, j))[-1] for j in range(view.history.sites[site].heads)])


def _taken(view: HistoryView, name: str) -> bool:
    return name in view.history.snapshots[-1].readings
