"""Which remedy fits a finding, why, and what reading to expect. Based on measurements, including the failures."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from softscope._text import Text
from softscope.doctor.treat.evidence import CITED, FAILS, REVIVES
from softscope.doctor.treat.treatment import REST, Treatment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.doctor.judge.checks import CheckResult
    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.treat.remedies import Applied


@dataclasses.dataclass(frozen=True)
class Prescription:
    """One remedy for the heads that need it.

    >>> import softscope
    >>> from softscope import tasks
    >>> model = tasks.RecallModel(d=256, vocabulary=16, options=tasks.AttentionOptions(scale=1.0))   # 1/√d forgotten
    >>> with softscope.probe(model, every=1) as scope:
    ...     _ = tasks.train(model, lambda g: tasks.recall_batch(32, pairs=16, generator=g), steps=4)
    >>> (given,) = scope.prescribe()
    >>> given.remedy, given.apply(model).changes[0].heads
    ('scale', (0,))
    """

    remedy: str  # for programs: "scale", "qk-norm", "qk-clip", "temperature", "learning-rate", "repair", …
    heads: tuple[Head, ...]
    what: Text
    why: Text
    expect: Text
    evidence: Text
    does_not: Text | None = None
    treatment: Treatment | None = None  # the part that code can carry out

    def apply(self, model: Any) -> Applied:
        """Carry out the part that code can do; the result lists the changes, and its `undo()` reverts them.

        Args:
            model: the model that was read; changed in place.
        """
        if self.treatment is None:
            from softscope.doctor.treat.remedies import NotSupportedError

            raise NotSupportedError(f"not supported: {self.remedy} is nothing to change in the model; {self.what.en}")
        return self.treatment.apply(model)


def prescribe(view: HistoryView, outcomes: Sequence[CheckResult]) -> list[Prescription]:
    """The remedies for the findings, the most certain first; merely informative results get none."""
    found: dict[str, list[CheckResult]] = {}
    for outcome in outcomes:
        if outcome.kind == "finding":
            found.setdefault(outcome.code, []).append(outcome)
    starving = _heads(found.get("SS001", []))
    scaled = {outcome.heads[0].site: outcome for outcome in found.get("SS005", [])}
    given: list[Prescription] = []
    if scaled:
        given.append(_scale(view, scaled, starving))
    outliers = _heads(found.get("SS004", []))
    if outliers:
        given.append(_outlier(view, outliers))
    treated = set(outliers)
    growing = tuple(h for h in _heads(found.get("SS003", [])) if h.site not in scaled and h not in treated)
    if growing:
        given.append(_growing(view, growing))
    treated |= set(growing)
    left = tuple(h for h in starving if h.site not in scaled and h not in treated)
    if left:
        given.append(_starving(view, left))
    hungry = set(left)
    collapsed = tuple(h for h in _heads(found.get("SS006", [])) if h not in hungry)
    if collapsed:
        given.append(_collapse(collapsed))
    if "SS008" in found:
        given.append(_half(_heads(found["SS008"])))
    unreached = _heads([o for o in found.get("SS009", []) if o.values.get("demand") == 0.0])
    if unreached:
        given.append(_unreached(unreached))
    return given


def _heads(outcomes: Sequence[CheckResult]) -> tuple[Head, ...]:
    return tuple(head for outcome in outcomes for head in outcome.heads)


def _temperatures(view: HistoryView, heads: Sequence[Head], missing: bool) -> Treatment | None:
    """Temperatures that bring the largest logit to REST; if 1/√d is missing, at least the missing factor."""
    doses: dict[str, dict[int, float]] = {}
    for head in heads:
        site = view.site(head)
        dose = (view.value("max_logit", head) or 0.0) / REST
        if missing and site.head_size and site.scale > 0:
            dose = max(dose, site.scale * math.sqrt(site.head_size))
        if head.head is not None and dose > 1.0 and math.isfinite(dose):
            doses.setdefault(site.name, {})[head.head] = dose
    return Treatment("temperature", doses) if doses else None


def _clip(view: HistoryView, heads: Sequence[Head], tau: float | None) -> Treatment | None:
    """QK-clip to `tau`, or to the largest logit of the site's other heads."""
    tops: dict[str, dict[int, float]] = {}
    bounds: dict[str, float] = {}
    beside: dict[int, float] = {}
    clipped = set(heads)
    for other in view.heads:
        if other not in clipped:
            beside[other.site] = max(beside.get(other.site, -math.inf), view.value("max_logit", other) or -math.inf)
    for head in heads:
        top = view.value("max_logit", head)
        bound = beside.get(head.site, 0.0) if tau is None else tau
        if head.head is not None and top is not None and bound > 0:
            tops.setdefault(view.site(head).name, {})[head.head] = top
            bounds[view.site(head).name] = bound
    return Treatment("qk-clip", tops, bounds) if tops else None


def _scale(view: HistoryView, scaled: dict[int, CheckResult], starving: tuple[Head, ...]) -> Prescription:
    sites = [view.history.sites[i] for i in scaled]
    sizes = " ".join(sorted({f"{1 / math.sqrt(site.head_size):.4g}" for site in sites}))
    return Prescription(
        remedy="scale",
        heads=tuple(h for h in starving if h.site in scaled) or _heads(list(scaled.values())),
        what=Text(
            zh=f"把 q·k 乘以 1/√d（这里是 {sizes}），从头训练；在分数上用固定温度 √d 与此等价。要保留已有的权重，"
            f"温度还要更高，使最大分数降到 {REST:g}",
            en=f"multiply q·k by 1/√d ({sizes} here) and train from scratch; a fixed temperature of √d on the "
            f"logits does the same. To keep the existing weights, make the temperature high enough to bring "
            f"the largest logit down to {REST:g}",
        ),
        why=Text(
            zh="没有它，分数的标准差一开始就是 √d，softmax 从第 0 步起就几乎是 one-hot",
            en="without it, the logits start with a standard deviation of √d, and the softmax is almost one-hot "
            "from step 0",
        ),
        expect=Text(
            zh="第一次读数：被阻断的行约 0%，传导率中位数在 1 左右；学会之后行会再次被阻断，但优势大于 1",
            en="at the first reading, about 0% blocked rows and a median transmission around 1; once the head "
            "has learned, rows are blocked again, but the advantage is above 1",
        ),
        evidence=REVIVES,
        does_not=FAILS,
        treatment=_temperatures(view, [h for h in view.heads if h.site in scaled], missing=True),
    )


def _outlier(view: HistoryView, heads: tuple[Head, ...]) -> Prescription:
    return Prescription(
        remedy="repair",
        heads=heads,
        what=Text(
            zh="先查这些头的 W_Q、W_K 从哪里来（加载、合并、量化）；没有出错就把它们缩到与同层其他头相当（QK-clip）",
            en="first check where these heads' W_Q and W_K come from (loading, merging, quantising); if nothing "
            "went wrong there, shrink them to the size of the other heads in the layer (QK-clip)",
        ),
        why=Text(
            zh="同层其他头都正常，所以问题在这几个头，不在设置",
            en="the other heads in the layer are fine, so the problem is in these heads and not in the set-up",
        ),
        expect=Text(
            zh="scale·|q|·|k| 回到同层中位数的几倍之内",
            en="scale·|q|·|k| returns to within a few times the layer's median",
        ),
        evidence=Text(
            zh="由定义：QK-clip 只缩小这些头的权重，其他头逐位不变",
            en="by definition: QK-clip shrinks only these heads' weights and leaves the others unchanged to the bit",
        ),
        treatment=_clip(view, heads, None),
    )


def _growing(view: HistoryView, heads: tuple[Head, ...]) -> Prescription:
    return Prescription(
        remedy="qk-norm",
        heads=heads,
        what=Text(
            zh="从头训练：用 QK 归一化。训练途中：用 QK-clip（τ = 100），或把学习率降到三分之一",
            en="when training from scratch, use QK-norm. Mid-run, use QK-clip (τ = 100) or cut the learning "
            "rate to a third",
        ),
        why=Text(
            zh="q、k 的长度不断增长，没有什么限制它们", en="the norms of q and k keep growing, and nothing limits them"
        ),
        expect=Text(zh="最大分数稳定在 100 以下", en="the largest logit levels off below 100"),
        evidence=Text(
            zh=f"{CITED.zh}：Wortsman 等 2023（QK 归一化），Kimi K2（QK-clip）",
            en=f"{CITED.en}: Wortsman et al. 2023 (QK-norm), Kimi K2 (QK-clip)",
        ),
        treatment=_clip(view, heads, 100.0),
    )


def _starving(view: HistoryView, heads: tuple[Head, ...]) -> Prescription:
    return Prescription(
        remedy="unit-qk-norm",
        heads=heads,
        what=Text(
            zh=f"从头训练：用单位长的 QK 归一化、更小的初始化或更低的学习率；要保留已有的权重，给这些头的分数一"
            f"个固定温度，把最大分数降到 {REST:g}",
            en=f"when training from scratch, use unit QK-norm, a smaller initialisation or a lower learning "
            f"rate; to keep the existing weights, give these heads' logits a fixed temperature that brings "
            f"the largest down to {REST:g}",
        ),
        why=Text(
            zh="分数相差太大，softmax 已经冻结；缩放没有错，所以问题出在权重",
            en="the logits are too far apart and the softmax is frozen; the scale is right, so the cause is the "
            "weights",
        ),
        expect=Text(
            zh="被阻断的行降到 10% 以下，传导率中位数回到 0.1 以上；否则温度还不够高",
            en="fewer than 10% blocked rows and a median transmission above 0.1; otherwise the temperature is "
            "still too low",
        ),
        evidence=REVIVES,
        does_not=FAILS,
        treatment=_temperatures(view, heads, missing=False),
    )


def _collapse(heads: tuple[Head, ...]) -> Prescription:
    return Prescription(
        remedy="learning-rate",
        heads=heads,
        what=Text(
            zh="退回骤降之前的检查点，降低学习率或加长预热；再次骤降就用 QK 归一化从头训练",
            en="go back to a checkpoint before the fall, and lower the learning rate or lengthen the warm-up; "
            "if it falls again, train from scratch with QK-norm",
        ),
        why=Text(zh="几步之内 q、k 变化太大", en="q and k changed too much within a few steps"),
        expect=Text(zh="熵缓慢下降，优势随之上升", en="the entropy falls slowly while the advantage rises"),
        evidence=Text(zh=f"{CITED.zh}：Zhai 等 2023", en=f"{CITED.en}: Zhai et al. 2023"),
    )


def _half(heads: tuple[Head, ...]) -> Prescription:
    return Prescription(
        remedy="dtype",
        heads=heads,
        what=Text(zh="先缩放 q 再相乘，或改用 bfloat16", en="scale q before the product, or use bfloat16"),
        why=Text(zh="分数超出了所用精度的范围", en="the logits exceed the range of the dtype"),
        expect=Text(zh="没有 inf 和 NaN；最大分数不变", en="no inf or NaN; the largest logit does not change"),
        evidence=Text(zh="由数的格式决定", en="follows from the number format"),
    )


def _unreached(heads: tuple[Head, ...]) -> Prescription:
    return Prescription(
        remedy="repair",
        heads=heads,
        what=Text(
            zh="检查这些头的输出之后：detach、no_grad、没有用到的分支、乘 0 的门",
            en="check what comes after these heads' output: detach, no_grad, an unused branch, a gate of 0",
        ),
        why=Text(zh="损失对它们的输出没有导数", en="the loss has no derivative with respect to their output"),
        expect=Text(zh="demand 大于 0", en="demand above 0"),
        evidence=Text(zh="由定义", en="by definition"),
    )
