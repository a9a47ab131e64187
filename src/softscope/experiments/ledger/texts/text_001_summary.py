"""Text 001, the summary: five reasons, and whether softmax alone meets them."""

from __future__ import annotations

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, opinion, times
from softscope.experiments.ledger.texts.rivals import MAPS, REASONS, reasons_missed


@claim(
    "S1-37",
    says=Text(zh="文中列出了选择 softmax 的五个核心原因", en="The text lists five core reasons to choose softmax"),
    where="Summary, L191-209",
    experiment="normalisers",
)
def _s1_37() -> Outcome:
    before = {p for reason, properties in REASONS.items() if reason != "a distribution" for p in properties}
    implied = set(REASONS["a distribution"]) <= before
    return Outcome.of(
        {Text(zh="数一数", en="count them"): len(REASONS) == 5},
        measured=Text(
            zh=f"列出 {len(REASONS)} 个，其中 {len(REASONS) - implied} 个独立",
            en=f"{len(REASONS)} listed, {len(REASONS) - implied} of them independent",
        ),
        because={
            "holds": Text(
                zh="五个都在；只是“概率解释”就是“非负”加“和为 1”，前面已经列过。",
                en="All five are there, but “read as probabilities” is just “non-negative” plus “sums to 1”, both listed before.",
            )
        },
    )


@claim(
    "S1-38",
    says=Text(zh="没有其他函数能同时满足这五个要求", en="No other function meets all five requirements"),
    where="Summary, L211",
    experiment="normalisers",
)
def _s1_38() -> Outcome:
    missed = {name: reasons_missed(name) for name in MAPS}
    rivals = ("entmax 1.5", "(eˣ + e²ˣ)/Σ")
    shown = ", ".join(f"{name} {len(REASONS) - len(found)}/{len(REASONS)}" for name, found in missed.items())
    return Outcome.of(
        {Text(zh=f"{name} 至少有一条不满足", en=f"{name} misses at least one"): bool(missed[name]) for name in rivals},
        measured=Text(zh=f"契约测试中满足的要求：{shown}", en=f"requirements met in the contract battery: {shown}"),
        because={
            "fails": Text(
                zh=f"{rivals[0]} 和 {rivals[1]} 全部满足；文中列出的三个对手以及 sparsemax（有折点）则不满足。",
                en=f"{rivals[0]} and {rivals[1]} meet them all; the text's three rivals do not, nor does sparsemax, which has kinks.",
            )
        },
    )


@claim(
    "S1-39",
    says=Text(zh="softmax 是最高效的方案", en="Softmax is the most efficient choice"),
    where="Summary, L215",
    experiment="cost",
)
def _s1_39() -> Outcome:
    x = generator("S1-39").random((1024, 1024))

    def softmax() -> object:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    ratio = times(softmax, lambda: x / x.sum(-1, keepdims=True))
    return Outcome.of(
        {Text(zh="不比除以总和慢", en="no slower than dividing by the sum"): ratio < 1.25},
        measured=Text(
            zh=f"1024×1024，NumPy：耗时是除以总和的 {ratio:.1f} 倍（7 次中取最快）",
            en=f"1024×1024, NumPy: takes {ratio:.1f} times as long as dividing by the sum (best of 7)",
        ),
        because={
            "fails": Text(
                zh="除以总和只是 softmax 的最后一步；之前还要求最大值、做减法、取指数。",
                en="Dividing by the sum is only softmax's last step; a maximum, a subtraction and an exponential come first.",
            )
        },
    )


@claim(
    "S1-40",
    says=Text(zh="softmax 是最佳、最稳定、最有效的选择", en="Softmax is the best, most stable, most effective choice"),
    where="Summary, L215",
)
def _s1_40() -> Outcome:
    return opinion(
        Text(zh="没有说在什么任务上、按什么标准比较。", en="It does not say on which task, or by which measure.")
    )
