"""Text 001, the summary: five reasons, and whether softmax alone meets them."""

from __future__ import annotations

import functools
import math
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import NoiseError, Outcome, claim, generator, opinion
from softscope.experiments.ledger.texts import rivals
from softscope.experiments.properties import DISTRIBUTION, FIVE, kept

if TYPE_CHECKING:
    from collections.abc import Callable


@claim(
    "S1-37",
    says=Text(
        zh="选择 softmax 有五个核心原因，它同时满足这五条",
        en="There are five core reasons to choose softmax, and it meets all five at once",
    ),
    quote="为什么选 Softmax？（最核心的五个原因）",
    where="Summary, L191-209",
    experiment="normalisers",
)
def _s1_37() -> Outcome:
    marks = rivals.marks("softmax")
    before = {check for reason in FIVE if reason is not DISTRIBUTION for check in reason.checks}
    own = len(FIVE) - (set(DISTRIBUTION.checks) <= before)
    return Outcome.of(
        {reason.name: marks[reason].held for reason in FIVE},
        measured=Text(
            zh=f"契约测试中，softmax 满足 {len(FIVE)} 条中的 {kept(marks)} 条；其中 {own} 条互相独立",
            en=f"in the contract battery, softmax meets {kept(marks)} of {len(FIVE)}; {own} of them are independent",
        ),
        because={
            "holds": Text(
                zh="五条都满足：指数非负、可微，让大的突出；除以总和，权重加起来就是 1。不过第五条“概率解释”就是“非负”加“和为 1”，前面已经列过；第四条里的“梯度稳定”见 S1-19。",
                en="It meets all five: exp is non-negative and differentiable and makes the largest stand out; divided by their sum, the weights add up to 1. But the fifth, “read as probabilities”, is just “non-negative” plus “sums to 1”, both listed before; for the “stable gradient” in the fourth, see S1-19.",
            )
        },
    )


@claim(
    "S1-38",
    says=Text(zh="没有其他函数能同时满足这五个要求", en="No other function meets all five requirements"),
    quote="没有其他函数能同时满足这些要求。",
    where="Summary, L211",
    experiment="normalisers",
)
def _s1_38() -> Outcome:
    found = {name: kept(rivals.marks(name)) for name in rivals.MAPS}
    others = ("entmax 1.5", "(eˣ + e²ˣ)/Σ")
    shown = ", ".join(f"{name} {count}/{len(FIVE)}" for name, count in found.items())
    return Outcome.of(
        {
            Text(zh=f"{name} 至少有一条不满足", en=f"{name} misses at least one"): found[name] < len(FIVE)
            for name in others
        },
        measured=Text(zh=f"契约测试中满足的要求：{shown}", en=f"requirements met in the contract battery: {shown}"),
        because={
            "fails": Text(
                zh=f"任何光滑、为正、递增并且增长够快的函数，除以总和都行：{others[1]} 就是一例；{others[0]} 用另一种办法做到。文中列出的三个对手以及 sparsemax（有折点）确实不满足。",
                en=f"Any smooth, positive, rising function that grows fast enough will do, divided by its sum: {others[1]} is one; {others[0]} gets there in another way. The text's three rivals do miss some, and so does sparsemax, which has kinks.",
            )
        },
        instead=Text(
            zh=f"softmax 不是唯一的：{others[0]} 和 {others[1]} 也满足这五个要求",
            en=f"Softmax is not the only one: {others[0]} and {others[1]} meet all five, too",
        ),
    )


@functools.cache
def _times_slower(rounds: int = 15) -> dict[str, list[float]]:
    """How many times the processor time of plainer weights softmax takes, in each of several rounds."""
    x = generator("S1-39").random((1024, 1024))
    out = np.empty_like(x)  # made once: fresh memory would cost more than the arithmetic, and not always the same

    def softmax() -> None:
        np.exp(np.subtract(x, x.max(-1, keepdims=True), out=out), out=out)
        np.divide(out, out.sum(-1, keepdims=True), out=out)

    plainer: dict[str, Callable[[], object]] = {
        "x/Σx": lambda: np.divide(x, x.sum(-1, keepdims=True), out=out),
        "x/n": lambda: np.divide(x, x.shape[-1], out=out),
    }

    def seconds(run: Callable[[], object]) -> float:
        best = math.inf
        for _ in range(3):
            start = time.thread_time()
            run()
            best = min(best, time.thread_time() - start)
        return best

    return {name: [seconds(softmax) / seconds(run) for _ in range(rounds)] for name, run in plainer.items()}


@claim(
    "S1-39",
    says=Text(zh="softmax 是最高效的方案", en="Softmax is the most efficient choice"),
    quote="是目前最稳定、最高效、最有效的方案",
    where="Summary, L215",
)
def _s1_39() -> Outcome:
    edge, found = 1.25, _times_slower()
    # The middle half of the rounds: on a busy machine single ones are far off.
    quartiles = {name: statistics.quantiles(ratios, method="inclusive") for name, ratios in found.items()}
    for low, _, high in quartiles.values():
        if low <= edge <= high:
            raise NoiseError(f"{low:.2f} and {high:.2f} lie on both sides of {edge}; time it while less is running")
    shown = ", ".join(f"{name} {middle:.1f} ({low:.1f}–{high:.1f})" for name, (low, middle, high) in quartiles.items())
    return Outcome.of(
        {
            Text(zh=f"不比 {name} 慢", en=f"no slower than {name}"): high < edge
            for name, (_, _, high) in quartiles.items()
        },
        measured=Text(
            zh=f"1024×1024，NumPy，处理器时间是下列做法的几倍（{len(found['x/n'])} 轮的中位数，括号内是居中的一半）：{shown}",
            en=f"1024×1024, NumPy, how many times the processor time of others (median and middle half of {len(found['x/n'])} rounds): {shown}",
        ),
        because={
            "fails": Text(
                zh="除以总和只是 softmax 的最后一步，之前还要找最大值、做减法、取指数；而 x/n 连总和都不用算，也学得会查找（S1-01）。",
                en="Dividing by the sum is only softmax's last step; a maximum, a subtraction and an exponential come first. And x/n does not even need a sum, yet learns to look things up, too (S1-01).",
            )
        },
        instead=Text(
            zh="softmax 不是最省时间的：x/Σx 和 x/n 都更快",
            en="Softmax is not the cheapest: x/Σx and x/n both take less time",
        ),
    )


@claim(
    "S1-40",
    says=Text(zh="softmax 是最佳、最稳定、最有效的选择", en="Softmax is the best, most stable, most effective choice"),
    quote="Softmax 是注意力机制的最佳选择",
    where="Summary, L215",
)
def _s1_40() -> Outcome:
    return opinion(
        Text(zh="没有说在什么任务上、按什么标准比较。", en="It does not say on which task, or by which measure.")
    )
