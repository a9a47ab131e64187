"""Text 001, part 4, first half: training needs gradients, and softmax has them."""

from __future__ import annotations

import functools

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, cited, claim
from softscope.experiments.ledger.texts.jacobians import TOLERANCE, autograd_against_formula
from softscope.experiments.ledger.texts.scores import jacobian_norms
from softscope.testing import Report, check_simplex_map

SPREADS = (1.0, 8.0, 22.6)  # standard deviations of the scores: scaled, and unscaled at d = 64 and d = 512


@functools.cache
def softmax_report() -> Report:
    """What the contract battery finds about our softmax."""
    return check_simplex_map(ss.softmax)


def _norms() -> tuple[list[str], list[bool]]:
    """‖J‖ at each spread as text, and whether it keeps over half of its value at a spread of 1."""
    found = [jacobian_norms(std) for std in SPREADS]
    keeps = [True, *(x.above(0.5 * found[0].mean) for x in found[1:])]
    return [f"{std:g}: {x:.3f}" for std, x in zip(SPREADS, found, strict=True)], keeps


@claim(
    "S1-17",
    says=Text(
        zh="训练必须计算损失对注意力权重的梯度",
        en="Training must compute the gradient of the loss with respect to the attention weights",
    ),
    where="Part 4, L116-118",
    experiment="gradients",
)
def _s1_17() -> Outcome:
    import torch

    from softscope.tasks import RecallModel, recall_batch

    model = RecallModel(d=32, vocabulary=8)
    batch = recall_batch(16, pairs=8, generator=torch.Generator().manual_seed(0))
    layer, keys, values, query = model.attention, *batch.inputs
    q, k = layer.w_q(model.key_table(query)), layer.w_k(model.key_table(keys))
    weights = ss.softmax(q @ k.mT * layer.factor).detach()  # as if its gradient were not computed
    logits = model.readout(layer.w_o(weights @ layer.w_v(model.value_table(values))))
    ss.cross_entropy(logits.flatten(0, -2), batch.target.flatten()).backward()
    norms = {
        name: 0.0 if w.weight.grad is None else float(w.weight.grad.norm())
        for name, w in (("W_Q", layer.w_q), ("W_K", layer.w_k), ("W_V", layer.w_v))
    }
    shown = ", ".join(f"{name} {x:.3g}" for name, x in norms.items())
    return Outcome.of(
        under={Text(zh=f"训练 {name} 需要它", en=f"training {name} needs it"): x == 0.0 for name, x in norms.items()},
        measured=Text(zh=f"不计算它时的梯度范数：{shown}", en=f"gradient norms without it: {shown}"),
        because={
            "only-if": Text(
                zh="没有它，W_Q 和 W_K 得不到梯度；W_V 不需要它。",
                en="Without it, W_Q and W_K get no gradient; W_V does not need it.",
            )
        },
        only_if=Text(zh="要训练的是 Q 和 K", en="you are training Q and K"),
    )


@claim(
    "S1-18",
    says=Text(zh="softmax 连续且可微", en="Softmax is continuous and differentiable"),
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
            zh=f"契约测试的两项都通过；‖J‖₂ 最大 {steepest:.2f}",
            en=f"both tests of the contract battery pass; largest ‖J‖₂ {steepest:.2f}",
        ),
        because={
            "holds": Text(
                zh=f"它无限次可微，权重的变动不超过 logit 变动的 {steepest:.1f} 倍。",
                en=f"It is infinitely differentiable, and the weights move by at most {steepest:.1f} times the change in the logits.",
            )
        },
    )


@claim(
    "S1-19",
    says=Text(zh="softmax 有稳定的梯度公式", en="Softmax has a stable gradient formula"),
    where="Part 4, L124",
    experiment="saturation",
)
def _s1_19() -> Outcome:
    shown, keeps = _norms()
    exact = autograd_against_formula().everywhere
    return Outcome.of(
        under={
            Text(
                zh="公式 diag(s) − s sᵀ 成立，且从不爆炸", en="the formula diag(s) − s sᵀ is right and never explodes"
            ): exact < TOLERANCE,
            Text(
                zh="分数的标准差为 8 时仍有一半以上的梯度",
                en="with scores of standard deviation 8, over half of the gradient is left",
            ): keeps[1],
        },
        measured=Text(
            zh=f"10 项，按分数的标准差列出平均 ‖J‖：{'；'.join(shown)}；公式误差 {exact:.1g}",
            en=f"10 entries, mean ‖J‖ by standard deviation of the scores: {'; '.join(shown)}; error of the formula {exact:.1g}",
        ),
        because={
            "only-if": Text(
                zh="公式总是对的，但分数的标准差变大时梯度本身会消失。",
                en="The formula is always right, but the gradient itself vanishes as the scores spread out.",
            )
        },
        only_if=Text(
            zh="“稳定”指公式，或者分数的标准差保持在 1 左右",
            en="“stable” means the formula, or the scores keep a standard deviation of about 1",
        ),
    )


@claim(
    "S1-20",
    says=Text(zh="softmax 广泛用于神经网络的训练", en="Softmax is widely used in training neural networks"),
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
    where="Part 4, L135-136",
    experiment="saturation",
)
def _s1_28() -> Outcome:
    shown, keeps = _norms()
    left = [jacobian_norms(std).mean / jacobian_norms(1.0).mean for std in SPREADS[1:]]
    return Outcome.of(
        under={
            Text(zh=f"分数的标准差 {std:g}", en=f"scores with standard deviation {std:g}"): kept
            for std, kept in zip(SPREADS, keeps, strict=True)
        },
        measured=Text(
            zh=f"10 项，按分数的标准差列出平均 ‖J‖：{'；'.join(shown)}（n = {jacobian_norms(1.0).n}）",
            en=f"10 entries, mean ‖J‖ by standard deviation of the scores: {'; '.join(shown)} (n = {jacobian_norms(1.0).n})",
        ),
        because={
            "only-if": Text(
                zh=f"标准差 8 和 22.6 对应 d = 64 和 512 时不缩放的分数：梯度只剩标准差为 1 时的 {left[0]:.0%} 和 {left[1]:.0%}。",
                en=f"8 and 22.6 are the standard deviations of unscaled scores at d = 64 and 512: the gradient keeps only {left[0]:.0%} and {left[1]:.0%} of its size at standard deviation 1.",
            )
        },
        only_if=Text(zh="分数的标准差保持在 1 左右", en="the scores keep a standard deviation of about 1"),
    )
