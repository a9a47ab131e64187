"""Text 001, parts 2 and 3: weights as probabilities, and why they should not be negative."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, estimate, generator, share
from softscope.experiments.ledger.texts.recall import accuracy
from softscope.experiments.ledger.texts.text_001_amplify import TASK
from softscope.experiments.recall import LEARNED


@claim(
    "S1-10",
    says=Text(
        zh="权重必须在 [0, 1] 内、总和为 1、可以看作概率",
        en="Weights must lie in [0, 1], sum to 1 and make sense as probabilities",
    ),
    where="Part 2, L62-66",
    experiment="normalisers",
    slow=True,
)
def _s1_10() -> Outcome:
    found = {name: accuracy(name) for name in ("sigmoid", "x/n")}
    shown = ", ".join(f"{name} {a:.2f}" for name, a in found.items())
    return Outcome.of(
        {Text(zh=f"{name} 学不会", en=f"{name} does not learn"): a < LEARNED for name, a in found.items()},
        measured=Text(zh=f"{TASK.zh}：{shown}", en=f"{TASK.en}: {shown}"),
        because={
            "fails": Text(
                zh="sigmoid 的权重之和不为 1，x/n 的权重还有负数；两者都不是概率，却都学会了查找。",
                en="Sigmoid weights do not sum to 1, and some x/n weights are even negative: neither are probabilities, yet both learn to look things up.",
            )
        },
    )


@claim(
    "S1-11",
    says=Text(zh="指数不会是负数：exp(x) ≥ 0", en="An exponential is never negative: exp(x) ≥ 0"),
    where="Part 2, L71; Part 3, L105",
    experiment="overflow",
)
def _s1_11() -> Outcome:
    x = np.linspace(-1000.0, 700.0, 170_001)
    with np.errstate(under="ignore"):
        lowest = float(np.exp(x).min())
        single = float(np.exp(x[x < 80].astype(np.float32)).min())
    return Outcome.of(
        {"float64": lowest >= 0.0, "float32": single >= 0.0},
        measured=Text(
            zh=f"最小值 {lowest:g}（float64）、{single:g}（float32），x 从 −1000 到 700",
            en=f"smallest {lowest:g} (float64), {single:g} (float32), x from −1000 to 700",
        ),
        because={
            "holds": Text(
                zh="精确值总大于 0；用浮点数计算可能下溢为 0，但不会为负。",
                en="The exact value is always above 0; in floating point it can underflow to 0, but never go negative.",
            )
        },
    )


@claim(
    "S1-12",
    says=Text(zh="指数之和总大于 0", en="The sum of exponentials is always above 0"),
    where="Part 2, L72",
    experiment="overflow",
)
def _s1_12() -> Outcome:
    row = np.array([-800.0, -801.0])
    with np.errstate(under="ignore"):
        naive = float(np.exp(row).sum())
    shifted = float(np.exp(row - row.max()).sum())
    masked = float(np.exp(np.full(2, -np.inf)).sum())
    return Outcome.of(
        under={
            Text(zh="先减去最大值", en="after subtracting the maximum"): shifted > 0.0,
            Text(zh="直接计算 [−800, −801]", en="[−800, −801] directly"): naive > 0.0,
            Text(zh="整行都被掩码", en="a fully masked row"): masked > 0.0,
        },
        measured=Text(
            zh=f"减去最大值 {shifted:.3f}；直接 {naive:g}；全掩码 {masked:g}",
            en=f"maximum subtracted {shifted:.3f}; directly {naive:g}; fully masked {masked:g}",
        ),
        because={
            "only-if": Text(
                zh="在 −745 以下，float64 的指数下溢为 0，总和也是 0，再除就是 0/0。",
                en="Below −745, float64's exponential underflows to 0; then the sum is 0 too, and the division is 0/0.",
            )
        },
        only_if=Text(
            zh="先减去最大值，并且至少有一个分数不是 −∞",
            en="the maximum is subtracted first and at least one score is not −∞",
        ),
    )


@claim(
    "S1-13",
    says=Text(zh="softmax 的输出在 [0, 1] 内", en="The outputs of softmax lie in [0, 1]"),
    where="Part 2, L73",
    experiment="normalisers",
)
def _s1_13() -> Outcome:
    rng = generator("S1-13")
    rows = np.concatenate([10.0**e * rng.standard_normal((2_000, 16)) for e in (-3, 0, 3, 30)])
    ranges = {}
    for dtype in (np.float32, np.float64):
        p = ss.softmax(rows.astype(dtype))
        ranges[np.dtype(dtype).name] = (float(p.min()), float(p.max()))
    return Outcome.of(
        {name: low >= 0.0 and high <= 1.0 for name, (low, high) in ranges.items()},
        measured=Text(
            zh=f"{'；'.join(f'{name}：{low:g} 到 {high:g}' for name, (low, high) in ranges.items())}（{len(rows)} 行，分数大到 10³⁰）",
            en=f"{'; '.join(f'{name}: {low:g} to {high:g}' for name, (low, high) in ranges.items())} ({len(rows)} rows, scores up to 10³⁰)",
        ),
        because={"holds": Text(zh="每一项不小于 0，也不大于总和。", en="No entry is below 0 or above the sum.")},
    )


@claim(
    "S1-14",
    says=Text(zh="softmax 的输出之和为 1", en="The outputs of softmax sum to 1"),
    where="Part 2, L74",
    experiment="normalisers",
)
def _s1_14() -> Outcome:
    rows = 4.0 * generator("S1-14").standard_normal((20_000, 128))
    errors = {}
    for dtype in (np.float32, np.float64):
        sums = ss.softmax(rows.astype(dtype)).astype(np.float64).sum(-1)
        errors[np.dtype(dtype).name] = float(np.abs(sums - 1.0).max()), 8.0 * float(np.finfo(dtype).eps)
    return Outcome.of(
        {name: error < room for name, (error, room) in errors.items()},
        measured=Text(
            zh=f"与 1 最多相差 {'、'.join(f'{error:.1g}（{name}）' for name, (error, _) in errors.items())}；{len(rows)} 行，每行 {rows.shape[1]} 项",
            en=f"off from 1 by at most {', '.join(f'{error:.1g} ({name})' for name, (error, _) in errors.items())}; {len(rows)} rows of {rows.shape[1]} entries",
        ),
        because={
            "holds": Text(
                zh="理论上恰为 1，计算中只有舍入误差。", en="In theory exactly 1; in computation, 1 up to rounding."
            )
        },
    )


@claim(
    "S1-15",
    says=Text(
        zh="注意力权重不能是负数，语言中没有负注意力",
        en="Attention weights cannot be negative; there is no negative attention in language",
    ),
    where="Part 3, L81-100",
    experiment="normalisers",
    slow=True,
)
def _s1_15() -> Outcome:
    found = accuracy("x/n")
    negative = share(generator("S1-15").standard_normal(20_000) < 0.0)
    return Outcome.of(
        {Text(zh="带负权重学不会查找", en="with negative weights, looking things up is not learned"): found < LEARNED},
        measured=Text(
            zh=f"{TASK.zh}：x/n {found:.2f}；标准正态分数中为负的占 {negative:.2f}",
            en=f"{TASK.en}: x/n {found:.2f}; share of standard normal scores below 0 {negative:.2f}",
        ),
        because={
            "fails": Text(
                zh="直接用分数作权重也学会了；Differential Transformer（Ye 等 2024）等工作有意使用负权重。",
                en="It is learned even with the scores themselves as weights; work such as the Differential Transformer (Ye et al. 2024) uses negative weights on purpose.",
            )
        },
    )


@claim(
    "S1-16",
    says=Text(
        zh="权重非负，保证不会反向扣减信息", en="Non-negative weights guarantee that no information is subtracted"
    ),
    where="Part 3, L102-108",
    experiment="normalisers",
)
def _s1_16() -> Outcome:
    rng = generator("S1-16")
    p, v = ss.softmax(rng.standard_normal((5_000, 10))), rng.standard_normal((5_000, 10))
    kept = bool((np.sign(p * v) == np.sign(v)).all())
    smaller = estimate(np.abs((p * v).sum(-1)) / (p * np.abs(v)).sum(-1))
    cancelled = float(ss.softmax([1.0, 1.0]) @ np.array([1.0, -1.0]))
    return Outcome.of(
        under={
            Text(zh="每个 α·v 与 v 同号", en="each α·v has the same sign as v"): kept,
            Text(zh="相加时不会互相抵消", en="nothing cancels in the sum"): smaller.above(0.99),
        },
        measured=Text(
            zh=f"输出的大小平均只有各项大小之和的 {smaller:.2f}（n = {smaller.n}）；v 与 −v 各半得 {cancelled:g}",
            en=f"on average the output is only {smaller:.2f} of the total size of its terms (n = {smaller.n}); half v and half −v give {cancelled:g}",
        ),
        because={
            "only-if": Text(
                zh="值本身有正有负，即使权重为正也会相消。",
                en="The values have signs of their own and cancel even under positive weights.",
            )
        },
        only_if=Text(
            zh="说的是单独一项的符号，而不是总和", en="it is about the sign of a single term, not about the sum"
        ),
    )
