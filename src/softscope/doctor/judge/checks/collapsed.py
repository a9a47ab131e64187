"""SS019: a layer's heads are all the same, all zero, or have queries or keys on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement
from softscope.doctor.judge.thresholds import ON_ONE_LINE, TWICE

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView

FEWEST = 4  # components of a head: vectors of fewer lie close to each other by chance
ZERO = {"q_norm": "q", "k_norm": "k", "v_norm": "v"}
TIED = ("q_norm", "k_norm", "q_alike", "k_alike")


def _judge(view: HistoryView, site: Head) -> Judgement:
    wanted, here = int(TWICE.value), view.site(site)
    norms = {name: view.of_site(name, site.site, wanted) for name in (*ZERO, "q_alike", "k_alike")}
    if len(norms["q_norm"]) < wanted:
        return Absent(
            "not-applicable", Text(zh=f"q 和 k 的读数不到 {wanted} 次", en=f"fewer than {wanted} readings of q and k")
        )
    for name, what in ZERO.items():
        if len(norms[name]) == wanted and not norms[name].any():
            return Fired(
                Text(zh=f"每个头的 {what} 都是 0", en=f"{what} is 0 in every head"),
                {name: 0.0},
                None if view.has_loss else "informative",  # a fresh model may start with zeros
            )
    if here.heads > 1 and all(len(norms[name]) == wanted and _equal(norms[name]) for name in TIED):
        return Fired(
            Text(
                zh=f"{here.heads} 个头的读数逐位相同：它们是同一个头",
                en=f"the readings of its {here.heads} heads are the same to the bit: they are one head",
            ),
            {"heads": float(here.heads)},
        )
    for name, what in (("q_alike", "q"), ("k_alike", "k")):
        found = norms[name]
        if here.head_size >= FEWEST and len(found) == wanted and float(np.nanmin(found)) > ON_ONE_LINE.value:
            least = float(np.nanmin(found))
            return Fired(
                Text(
                    zh=f"每个头里，不同 token 的 {what} 都在一条直线上（|cos| 的均值至少 {least:.3f}）",
                    en=f"in every head, the {what} of different tokens lie on one line (a mean |cos| of at least "
                    f"{least:.3f})",
                ),
                {name: least},
                None if site.site else "tip",  # the first layer reads the inputs, which may lie on a line themselves
            )
    return None


def _equal(values: np.ndarray) -> bool:
    return not np.isnan(values).any() and bool((values == values[:, :1]).all())


CHECK = Check(
    code="SS019",
    title=Text(zh="头退化了", en="Collapsed heads"),
    severity="finding",
    asks=Text(
        zh="一层的头是不是都一样、都是 0，或者 q、k 都在一条直线上？",
        en="Are a layer's heads all the same, all zero, or have they q or k on one line?",
    ),
    thresholds=(ON_ONE_LINE, TWICE),
    remedy=Text(
        zh="检查初始化和加载：W_Q、W_K、W_V 是否为 0、秩为 1，或被各头共用；键和查询是否被换掉或覆盖",
        en="check initialisation and loading: are W_Q, W_K or W_V zero, of rank one, or shared by all heads? Are "
        "queries or keys overwritten?",
    ),
    judge=_judge,
    of_sites=True,
)
