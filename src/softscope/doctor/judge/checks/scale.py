"""SS005: q·k is multiplied by something other than 1/√d: a finding if it hurts, a note if it does not yet."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks.base import Absent, Check, Fired, Judgement, Severity, unseen
from softscope.doctor.judge.history_view import Head
from softscope.doctor.judge.thresholds import ENOUGH_STEPS, FROZEN_SITE, MANY, SCALE, UNIFORM, freezing

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import HistoryView


def _judge(view: HistoryView, site: Head) -> Judgement:
    here = view.site(site)
    if not here.head_size or math.isnan(here.scale):
        return Absent(
            "not-applicable",
            Text(
                zh="这里看不到缩放：模型自己调用 softmax",
                en="the scale is not visible here: the model calls softmax itself",
            ),
        )
    times = here.scale * math.sqrt(here.head_size)
    if 1.0 / SCALE.value <= times <= SCALE.value:
        return None
    heads = [Head(site.site, j) for j in range(here.heads)]
    told = f"scale {here.scale:.4g} ≠ 1/√{here.head_size} = {1 / math.sqrt(here.head_size):.4g}"
    values = {"scale": here.scale, "times": times}
    if times < 1.0:
        return _too_small(view, heads, told, values)
    if not too_large(view, site.site):
        return None
    severity: Severity | None = "tip"  # only a trial shows harm: unscaled heads may have learned all the same
    if view.has_loss:
        tried = {head: view.trials.get((here.name, head.head)) for head in heads}
        better = [head for head, trial in tried.items() if trial is not None and trial.better_softer]
        sick = [head for head in heads if view.states[head].state == "starving" or head in better]
        hurt = [head for head in heads if view.states[head].state in ("suspected", "unjudged")]
        hurt = [head for head in hurt if view.states[head].blocked > MANY.value]
        reason = (
            f"{len(hurt)}/{len(heads)} 个头有很多行被阻断，没有试出结果",
            f"{len(hurt)} of {len(heads)} heads have many blocked rows; no trial has decided them",
        )
        if sick:
            hurt, severity = sick, None
            reason = (
                f"{len(sick)}/{len(heads)} 个头试过：变柔和，损失就下降，或就能学习",
                f"a trial showed that softer, {len(sick)} of {len(heads)} heads lower the loss or can learn",
            )
    else:
        spreads = [(head, view.value("logit_spread", head), view.value("count", head)) for head in heads]
        if all(spread is None for _, spread, _ in spreads):
            return unseen("logit_spread")
        hurt = [head for head, spread, n in spreads if spread and spread > FROZEN_SITE.value * freezing(n or 2.0)]
        hurt = hurt if 2 * len(hurt) >= len(heads) else []
        reason = (
            f"{len(hurt)}/{len(heads)} 个头的分数相差太大，几个键就占去全部权重",
            f"{len(hurt)} of {len(heads)} heads have logits so far apart that a few keys hold all the weight",
        )
    if not hurt:
        return _noted(view, told, values)
    return Fired(Text(zh=f"{told}，而且 {reason[0]}", en=f"{told}, and {reason[1]}"), values, severity)


def _noted(view: HistoryView, told: str, values: dict[str, float]) -> Judgement:
    """A note, unless the model's configuration sets this scale: then it is meant."""
    meant = view.history.facts.get("scale_meant")
    if isinstance(meant, float) and math.isclose(meant, values["scale"], rel_tol=1e-3):
        return None
    return Fired(
        Text(zh=f"{told}；还看不出害处", en=f"{told}; the readings show no harm so far"), values, "informative"
    )


def too_large(view: HistoryView, site: int) -> bool:
    """Whether q·k is multiplied by much more than 1/√d, and nothing before that has made up for it.

    Whisper scales q itself and passes 1, T5 has the scale in its initialisation: so it is the first logits that count,
    scale·|q|·|k|/√d for random directions.
    """
    here = view.history.sites[site]
    if not here.head_size or math.isnan(here.scale):
        return False
    root = math.sqrt(here.head_size)
    if here.scale * root <= SCALE.value:
        return False
    heads = [Head(site, j) for j in range(here.heads)]
    norms = [(view.curve("q_norm", head)[1], view.curve("k_norm", head)[1]) for head in heads]
    first = [here.scale * q[0] * k[0] / root for q, k in norms if len(q) and len(k)]
    return not first or statistics.median(first) > SCALE.value


def _too_small(view: HistoryView, heads: list[Head], told: str, values: dict[str, float]) -> Judgement:
    """Judge a scale that is too small: it makes heads uniform, and only a long training can show that they stay so."""
    steps = view.steps
    flat = [view.value("sharpness", head) for head in heads]
    if any(x is None or x > UNIFORM.value for x in flat) or steps[-1] - steps[0] < ENOUGH_STEPS.value:
        return _noted(view, told, values)
    return Fired(
        Text(
            zh=f"{told}，训练了 {steps[-1]} 步，所有的头仍然均匀",
            en=f"{told}, and after {steps[-1]} steps all heads are still uniform",
        ),
        values,
    )


CHECK = Check(
    code="SS005",
    title=Text(zh="缩放缺失或不对", en="Missing or wrong scale"),
    severity="finding",
    asks=Text(
        zh="q·k 有没有乘以 1/√d？没有的话，读数是否因此变坏？",
        en="Is q·k multiplied by 1/√d? If not, do the readings show harm?",
    ),
    thresholds=(SCALE, MANY, FROZEN_SITE),
    remedy=Text(
        zh="乘以 1/√d。像 T5 那样把 1/√d 并入初始化没有问题：读数健康就不报",
        en="multiply by 1/√d. Folding 1/√d into the initialisation, as T5 does, is fine: a layer with healthy "
        "readings is not reported",
    ),
    judge=_judge,
    of_sites=True,
)
