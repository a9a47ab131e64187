"""SS018: the projections of q, k or v do not train while others do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement, Severity
from softscope.doctor.judge.thresholds import TWICE
from softscope.doctor.listen.trained_codes import ALONE, NO_GRADIENT, NO_OPTIMIZER, READINGS, WITH_ALL

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView

WHY: dict[float, Text] = {
    ALONE: Text(
        zh="requires_grad 是 False，而同一模块的其他参数在训练",
        en="requires_grad is False, while other parameters of the module train",
    ),
    WITH_ALL: Text(
        zh="不训练，整个模块都这样，或由适配器代替", en="not trained, as the whole module, or an adapter trains instead"
    ),
    NO_GRADIENT: Text(
        zh="收不到梯度，尽管梯度过得了 softmax", en="no gradient arrives, although one passes the softmax"
    ),
    NO_OPTIMIZER: Text(zh="不在任何优化器里", en="in no optimizer"),
}


def _judge(view: HistoryView, site: Head) -> Judgement:
    wanted = int(TWICE.value)
    codes: dict[float, list[str]] = {}
    seen = 0
    for role, name in READINGS.items():
        found = view.of_site(name, site.site, wanted + 1)
        seen += len(found) > 0
        last = found[-wanted:]
        if (
            len(last) == wanted
            and (last == last[0, 0]).all()
            and float(last[0, 0]) in WHY
            and _counts(view, site, last[0, 0], role, found)
        ):
            codes.setdefault(float(last[0, 0]), []).append(role)
    if not seen:
        return Absent(
            "not-applicable",
            Text(
                zh="没有看到优化器的步，或不知道 q、k、v 的权重在哪里",
                en="no step of an optimizer was seen, or it is not known where the weights of q, k and v are",
            ),
        )
    if not codes:
        return None
    told = [(", ".join(f"W_{role.upper()}" for role in roles), WHY[code]) for code, roles in sorted(codes.items())]
    severity: Severity | None = "informative" if set(codes) == {WITH_ALL} else None
    return Fired(
        Text(
            zh="；".join(f"{names}：{why.zh}" for names, why in told),
            en="; ".join(f"{names}: {why.en}" for names, why in told),
        ),
        {READINGS[role]: code for code, roles in codes.items() for role in roles},
        severity,
    )


def _counts(view: HistoryView, site: Head, code: float, role: str, found: np.ndarray) -> bool:
    """Whether the code says something: no gradient is no surprise where none passes the softmax or arrives at all."""
    if code == NO_OPTIMIZER:
        return len(found) > int(TWICE.value) and bool((found == code).all())  # another optimizer may step more rarely
    if code != NO_GRADIENT:
        return True
    if any(not view.of_site(name, site.site).any() for name in ("q_norm", "k_norm")):
        return False  # what is multiplied by zero gets no gradient: SS019 tells
    cut = view.of_site("cut", site.site)
    arrives = view.of_site("demand" if role == "v" else "supply", site.site)
    return bool(len(arrives)) and bool(np.nanmax(arrives) > 0.0) and not (len(cut) and np.nanmax(cut) > 0.0)


CHECK = Check(
    code="SS018",
    title=Text(zh="q、k、v 的权重不训练", en="Weights of q, k or v do not train"),
    severity="finding",
    asks=Text(
        zh="其他参数在训练时，W_Q、W_K、W_V 也在训练吗？",
        en="While other parameters train, do W_Q, W_K and W_V train, too?",
    ),
    thresholds=(TWICE,),
    remedy=Text(
        zh="把它们交给优化器，打开 requires_grad，找 detach。LoRA 和整个模块一起冻结是有意的，只作说明",
        en="hand them to the optimizer, set requires_grad, look for detach. LoRA and a module that is frozen as a "
        "whole are meant, and only noted",
    ),
    judge=_judge,
    of_sites=True,
)
