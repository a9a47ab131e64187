"""What a prescription says for each cause, in both languages; the treatment is added by `plan`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.treat.evidence import CITED, FAILS, REVIVES
from softscope.doctor.treat.prescriptions import Prescription
from softscope.doctor.treat.treatment import REST

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.treat.treatment import RemedyName, Treatment

    Heads = tuple[Head, ...]

FREED = Text(
    zh="被阻断的行降到 10% 以下，传导率中位数回到 0.1 以上",
    en="fewer than 10% blocked rows, and a median transmission above 0.1",
)
SOFTER = Text(
    zh=f"给这些头的分数一个固定温度，把最大分数降到 {REST:g} 左右",
    en=f"give these heads' logits a fixed temperature that brings the largest down to about {REST:g}",
)
# What to do, by the remedy that a trial chose.
DO: dict[RemedyName, Text] = {
    "temperature": Text(zh="给这些头的分数一个固定温度", en="give these heads' logits a fixed temperature"),
    "qk-clip": Text(zh="缩小这些头的 W_Q、W_K（QK-clip）", en="shrink W_Q and W_K of these heads (QK-clip)"),
    "reinitialise": Text(
        zh="重新抽取这些头的 W_Q、W_K，接着训练", en="draw W_Q and W_K of these heads anew and train on"
    ),
    "unit-qk-norm": Text(
        zh="把这些层的 q、k 归一化到单位长，接着训练", en="normalise q and k of these layers to unit norm and train on"
    ),
    "mask": Text(zh="给这些层正确的掩码", en="give these layers the right mask"),
    "unfreeze": Text(zh="让这些层的 W_Q、W_K、W_V 训练", en="let W_Q, W_K and W_V of these layers train"),
}


def scale(view: HistoryView, heads: Heads) -> Prescription:
    """1/√d is missing or wrong."""
    sites = [view.history.sites[i] for i in dict.fromkeys(head.site for head in heads)]
    sizes = " ".join(sorted({f"{1 / math.sqrt(site.head_size):.4g}" for site in sites if site.head_size}))
    return Prescription(
        remedy="scale",
        heads=heads,
        what=Text(
            zh=f"把 q·k 乘以 1/√d（这里是 {sizes}）；要保留已有的权重，就用固定温度，把最大分数降到 {REST:g} 左右",
            en=f"multiply q·k by 1/√d ({sizes} here); to keep the existing weights, use a fixed temperature that "
            f"brings the largest logit down to about {REST:g}",
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
        advice=Text(zh="下次从头训练时乘上 1/√d", en="when you train from scratch, scale by 1/√d"),
    )


def starving(heads: Heads) -> Prescription:
    """The scale is right, and yet the head is frozen."""
    return Prescription(
        remedy="temperature",
        heads=heads,
        what=SOFTER,
        why=Text(
            zh="分数相差太大，softmax 已经冻结；缩放没有错，所以问题出在权重",
            en="the logits are too far apart and the softmax is frozen; the scale is right, so the cause is the "
            "weights",
        ),
        expect=FREED,
        evidence=REVIVES,
        does_not=FAILS,
        advice=Text(
            zh="从头训练时，用单位长的 QK 归一化、更小的初始化或更低的学习率",
            en="when you train from scratch, use unit QK-norm, a smaller initialisation or a lower learning rate",
        ),
    )


def outlier(heads: Heads) -> Prescription:
    """The head stands out among its siblings."""
    return Prescription(
        remedy="repair",
        heads=heads,
        what=Text(
            zh="先查这些头的 W_Q、W_K 从哪里来（加载、合并、量化）；没有出错就把分数降下来",
            en="first check where these heads' W_Q and W_K come from (loading, merging, quantising); if nothing "
            "went wrong there, bring their logits down",
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
            zh="由定义：只动这些头，其他头逐位不变",
            en="by definition: only these heads are touched, the others stay the same to the bit",
        ),
    )


def growing(heads: Heads) -> Prescription:
    """Logits are large or grow, and the head is not starving."""
    return Prescription(
        remedy="qk-norm",
        heads=heads,
        what=Text(
            zh="训练途中：用 QK-clip（τ = 100），或把学习率降到三分之一",
            en="mid-run, use QK-clip (τ = 100) or cut the learning rate to a third",
        ),
        why=Text(
            zh="q、k 的长度不断增长，没有什么限制它们", en="the norms of q and k keep growing, and nothing limits them"
        ),
        expect=Text(zh="最大分数稳定在 100 以下", en="the largest logit levels off below 100"),
        evidence=Text(
            zh=f"{CITED.zh}：Wortsman 等 2023（QK 归一化），Kimi K2（QK-clip）",
            en=f"{CITED.en}: Wortsman et al. 2023 (QK-norm), Kimi K2 (QK-clip)",
        ),
        advice=Text(zh="从头训练时，用 QK 归一化", en="when you train from scratch, use QK-norm"),
    )


def collapse(heads: Heads) -> Prescription:
    """The entropy fell at once."""
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


def half(heads: Heads) -> Prescription:
    """Logits near the end of the number format."""
    return Prescription(
        remedy="dtype",
        heads=heads,
        what=Text(zh="先缩放 q 再相乘，或改用 bfloat16", en="scale q before the product, or use bfloat16"),
        why=Text(zh="分数超出了所用精度的范围", en="the logits exceed the range of the dtype"),
        expect=Text(zh="没有 inf 和 NaN；最大分数不变", en="no inf or NaN; the largest logit does not change"),
        evidence=Text(zh="由数的格式决定", en="follows from the number format"),
    )


def unreached(heads: Heads) -> Prescription:
    """The loss does not depend on the head."""
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


ADVISED: dict[str, Callable[[Heads], Prescription]] = {"SS006": collapse, "SS008": half, "SS009": unreached}


def short(treatment: Treatment) -> Text:
    """A candidate in a few words, with its dose."""
    if treatment.remedy in ("mask", "unfreeze"):
        return DO[treatment.remedy]
    doses = [dose for some in treatment.heads.values() for dose in some.values()]
    low, high = f"{min(doses):.3g}", f"{max(doses):.3g}"
    between = low if low == high else f"{low}–{high}"
    if treatment.remedy == "temperature":
        return Text(zh=f"温度 {between}", en=f"temperature {between}")
    if treatment.remedy == "qk-clip":
        bounds = " ".join(sorted({f"{tau:.3g}" for tau in treatment.tau.values()}))
        return Text(zh=f"QK-clip 到 {bounds}", en=f"QK-clip to {bounds}")
    if treatment.remedy == "reinitialise":
        return Text(zh="重新抽取 W_Q、W_K", en="W_Q and W_K drawn anew")
    return Text(zh="单位长的 QK 归一化", en="unit QK-norm")
