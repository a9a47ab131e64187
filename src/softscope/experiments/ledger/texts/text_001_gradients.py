"""Text 001, part 4, first half: training needs gradients, and softmax has them."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, cited, claim, generator
from softscope.experiments.ledger.texts import recall, scores
from softscope.experiments.ledger.texts.jacobians import TOLERANCE, autograd_against_formula
from softscope.experiments.recall import LEARNED
from softscope.testing import Report, check_simplex_map

SPREADS = (2.0, 8.0, 22.6)  # standard deviations of the scores; 8 and 22.6 are unscaled ones at d = 64 and d = 512
KEYS = (10, 1_000)


@functools.cache
def softmax_report() -> Report:
    """What the contract battery finds about our softmax."""
    return check_simplex_map(ss.softmax)


class _Kept(NamedTuple):
    """What is left of the gradient as scores spread out, for the two claims that praise it."""

    under: dict[Text, bool]  # by spread and number of keys: at least half of what scores of standard deviation 1 leave
    measured: Text
    why: Text
    only_if: Text


def _kept() -> _Kept:
    base = {keys: scores.jacobian_norms(1.0, keys).mean for keys in KEYS}
    found = {(std, keys): scores.jacobian_norms(std, keys) for keys in KEYS for std in SPREADS}
    shown = {
        keys: ", ".join([f"1: {base[keys]:.3f}", *(f"{std:g}: {found[std, keys]:.3f}" for std in SPREADS)])
        for keys in KEYS
    }
    few, many = KEYS
    wide, widest = (scores.reverses_above(std) for std in SPREADS[1:])
    left = [found[std, few].mean / base[few] for std in SPREADS[1:]]
    return _Kept(
        {
            Text(
                zh=f"分数的标准差 {std:g}，{keys} 个键", en=f"scores of standard deviation {std:g}, {keys} keys"
            ): x.above(0.5 * base[keys])
            for (std, keys), x in found.items()
        },
        Text(
            zh=f"按分数的标准差列出平均 ‖J‖：{few} 个键 {shown[few]}；{many} 个键 {shown[many]}",
            en=f"mean ‖J‖ by standard deviation of the scores: with {few} keys {shown[few]}; with {many} keys {shown[many]}",
        ),
        Text(
            zh=f"键少时，分数拉得越开，权重越接近 one-hot，s(1 − s) 就越小：{few} 个键、标准差 8 和 22.6 时，梯度只剩标准差为 1 时的 {left[0]:.0%} 和 {left[1]:.0%}。键多时，最高的两个分数常常接近，梯度还在；标准差为 1 的权重反而摊得太薄。",
            en=f"With few keys, the further the scores spread, the closer to one-hot the weights, and the smaller s(1 − s): with {few} keys and a standard deviation of 8 or 22.6, {left[0]:.0%} or {left[1]:.0%} of the gradient at 1 is left. With many keys, the two highest scores are often close, which leaves gradient, while weights from scores of standard deviation 1 are spread thin.",
        ),
        Text(
            zh=f"分数的标准差不大（至多约 2），或者键很多（标准差 8 时多于约 {wide} 个，22.6 时多于约 {widest} 个，梯度比标准差为 1 时还大）",
            en=f"the scores have a small standard deviation (up to about 2), or there are many keys (above about {wide} at 8 and {widest} at 22.6, the gradient is even larger than at 1)",
        ),
    )


@claim(
    "S1-17",
    says=Text(
        zh="训练必须计算损失对注意力权重的梯度",
        en="Training must compute the gradient of the loss with respect to the attention weights",
    ),
    quote="训练必须计算梯度：",
    where="Part 4, L114-118",
    slow=True,
)
def _s1_17() -> Outcome:
    whole, cut = "softmax", "softmax, no gradient"
    found, measured = recall.compared((whole, cut))
    return Outcome.of(
        {
            Text(zh="有它就学得会", en="with it, the model learns"): found[whole].learned,
            Text(zh="没有它就学不会", en="without it, the model does not learn"): found[cut].best < LEARNED,
        },
        measured=measured,
        because={
            "holds": Text(
                zh=f"W_Q 和 W_K 只通过权重影响损失：没有这个梯度，它们停在初始值，模型不知道该看哪里。W_V 和读出层照样在学，但准确率最高只到 {found[cut].best:.2f}。",
                en=f"W_Q and W_K act on the loss only through the weights: without this gradient they stay as they were drawn, and the model does not know where to look. W_V and the readout still learn, but accuracy reaches {found[cut].best:.2f} at best.",
            )
        },
    )


@claim(
    "S1-18",
    says=Text(zh="softmax 连续且可微", en="Softmax is continuous and differentiable"),
    quote="可微函数",
    where="Part 4, L122-123",
    experiment="normalisers",
)
def _s1_18() -> Outcome:
    report = softmax_report()
    steepest = max(float(np.linalg.norm(ss.jacobian(ss.softmax([gap, 0.0])), 2)) for gap in np.linspace(-5.0, 5.0, 101))
    return Outcome.of(
        {
            Text(zh="连续", en="continuous"): report["continuity"].status == "held",
            Text(zh="可微", en="differentiable"): report["smooth"].status == "held",
        },
        measured=Text(
            zh=f"契约测试没有发现跳跃或折点；‖J‖₂ 最大 {steepest:.2f}",
            en=f"the contract battery finds neither jumps nor kinks; largest ‖J‖₂ {steepest:.2f}",
        ),
        because={
            "holds": Text(
                zh=f"指数无限次可微，总和又不为 0，所以商也无限次可微；权重的变动不超过 logit 变动的 {steepest:.1f} 倍。",
                en=f"Exponentials have derivatives of every order and their sum is not 0, so the quotient has them, too; the weights move by at most {steepest:.1f} times the change in the logits.",
            )
        },
    )


@claim(
    "S1-19",
    says=Text(zh="softmax 有稳定的梯度公式", en="Softmax has a stable gradient formula"),
    quote="有稳定的梯度公式",
    where="Part 4, L124",
    experiment="saturation",
)
def _s1_19() -> Outcome:
    kept = _kept()
    exact = autograd_against_formula().everywhere
    rows = np.concatenate([std * generator("S1-19").standard_normal((500, 10)) for std in SPREADS])
    steepest = float(np.linalg.norm(ss.jacobian(ss.softmax(rows)), 2, axis=(-2, -1)).max())
    return Outcome.of(
        {
            Text(zh="公式 diag(s) − s sᵀ 正确", en="the formula diag(s) − s sᵀ is right"): exact < TOLERANCE,
            Text(zh="梯度从不爆炸", en="the gradient never explodes"): steepest < 0.5 + TOLERANCE,
        },
        under=kept.under,
        measured=Text(
            zh=f"{kept.measured.zh}；公式误差 {exact:.1g}；‖J‖₂ 最大 {steepest:.2f}",
            en=f"{kept.measured.en}; error of the formula {exact:.1g}; largest ‖J‖₂ {steepest:.2f}",
        ),
        because={
            "only-if": Text(
                zh=f"公式处处正确，梯度从不爆炸，但会消失。{kept.why.zh}",
                en=f"The formula is right everywhere and the gradient never explodes, but it can vanish. {kept.why.en}",
            )
        },
        only_if=kept.only_if,
    )


@claim(
    "S1-20",
    says=Text(zh="softmax 广泛用于神经网络的训练", en="Softmax is widely used in training neural networks"),
    quote="广泛使用于神经网络训练",
    where="Part 4, L125",
)
def _s1_20() -> Outcome:
    return cited(
        source="Goodfellow, Bengio, Courville 2016, Deep Learning, §6.2.2.3; Vaswani et al. 2017, arXiv 1706.03762",
        supports=True,
        because=Text(
            zh="这是关于实践的陈述：分类的输出层和注意力都用它。",
            en="A statement about practice: the output layers of classifiers use it, and so does attention.",
        ),
    )


@claim(
    "S1-28",
    says=Text(zh="softmax 对梯度友好", en="Softmax is gradient-friendly"),
    quote="Softmax 恰好是梯度友好型函数。",
    where="Part 4, L135-136",
    experiment="saturation",
)
def _s1_28() -> Outcome:
    kept = _kept()
    return Outcome.of(under=kept.under, measured=kept.measured, because={"only-if": kept.why}, only_if=kept.only_if)
