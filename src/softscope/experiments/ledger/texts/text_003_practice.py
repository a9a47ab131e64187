"""Text 003: how temperature is used in practice, and other statements about practice."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, cited, claim, estimate, generator, off_by, opinion, paper
from softscope.experiments.ledger.texts.figures import by

_VENDOR = (
    "DeepSeek API docs, “The Temperature Parameter”, platform.deepseek.com/api-docs/quick_start/parameter_settings"
)
_CODEX = "Chen et al. 2021, arXiv 2107.03374"
# What Hinton et al. distilled MNIST with: 20; with 30 units per layer 2.5 to 4 were best, with 300 or more, above 8.
_DISTILLED_AT = (2.5, 4.0, 8.0, 20.0)
_HINTON = "Hinton, Vinyals and Dean 2015, arXiv 1503.02531, sections 2 and 3"
_PROBLEMS, _CANDIDATES = 4000, 50


@functools.cache
def _problems() -> Any:
    """Logits of a toy model for 4000 problems with 50 candidate answers each.

    The model is calibrated at T = 1: candidate i is right with the probability softmax(logits)_i it is given.
    """
    return 3.0 * generator("toy problems").standard_normal((_PROBLEMS, _CANDIDATES))


@functools.cache
def _passes(temperature: float, k: int) -> Any:
    """The chance that one of k samples at this temperature is right: exact, one number per problem."""
    right, drawn = ss.softmax(_problems()), ss.softmax(_problems(), temperature=temperature)
    return (right * -np.expm1(k * np.log1p(-np.minimum(drawn, 1.0 - 1e-16)))).sum(-1)


@functools.cache
def _entropy(temperature: float) -> Estimate:
    return estimate(ss.partition(_problems(), temperature=temperature).entropy)


@functools.cache
def _distinct(temperature: float) -> Estimate:
    """How many different answers come up in 20 draws."""
    rng = generator(f"distinct {temperature}")
    draws = np.stack([ss.sample(_problems(), temperature=temperature, rng=rng) for _ in range(20)])
    ordered = np.sort(draws, axis=0)
    return estimate(1 + (np.diff(ordered, axis=0) != 0).sum(0))


@claim(
    "S3-32",
    says=Text(zh="翻译和摘要用 T = 1.0", en="Translation and summarisation use T = 1.0"),
    quote="Translation/SummaryT=1.0Standard output",
    where="4.4 table, L237/L242",
    experiment="temperature",
)
def _s3_32() -> Outcome:
    return cited(
        source=f"{_VENDOR}; {paper.NAME}",
        supports=False,
        because=Text(
            zh="没有这样的惯例：有厂商建议翻译用 1.3；Transformer 论文翻译时用束搜索，根本不采样。",
            en="There is no such convention: one vendor recommends 1.3 for translation, and the Transformer paper translates with "
            "beam search, without sampling at all.",
        ),
    )


@claim(
    "S3-33",
    says=Text(zh="创意写作用 T = 1.2–1.5，更多样", en="Creative writing uses T = 1.2–1.5, which is more diverse"),
    quote="Creative writingT=1.2~1.5More diverse",
    where="4.4 table, L238/L243",
    experiment="temperature",
)
def _s3_33() -> Outcome:
    found = {T: _distinct(T) for T in (1.0, 1.2, 1.5)}
    return cited(
        source=f"{_VENDOR}: 1.5; Anthropic API docs, “Create a Message”, temperature: 0 to 1",
        supports=True,
        measured=Text(
            zh=f"20 次采样里不同答案的个数：{by(found, '.2f', 'T')}（{_PROBLEMS} 题，{_CANDIDATES} 个候选）",
            en=f"different answers among 20 draws: {by(found, '.2f', 'T')} ({_PROBLEMS} problems, {_CANDIDATES} candidates)",
        ),
        because=Text(
            zh="更多样可以测到：T > 1 使分布更平坦。写得好不好这里测不了，用多少是各家的惯例：DeepSeek 建议 1.5，Anthropic 的接口最高只到 1.0。",
            en="More diverse can be measured: T > 1 flattens the distribution. Whether the writing is better cannot be measured here, "
            "and vendors differ: DeepSeek recommends 1.5, while Anthropic's interface ends at 1.0.",
        ),
    )


def _gain(temperature: float, k: int) -> Estimate:
    """How much more often one of k samples is right than at T = 1, problem by problem."""
    return estimate(_passes(temperature, k) - _passes(1.0, k))


@functools.cache
def _flip(temperature: float) -> int:
    """The smallest number of samples at which T = 1 does better."""
    return next((k for k in range(1, 101) if _gain(temperature, k).mean < 0.0), 0)


@claim(
    "S3-34",
    says=Text(zh="代码生成用 T = 0.2–0.5，更确定", en="Code generation uses T = 0.2–0.5, which is more deterministic"),
    quote="Code generationT=0.2~0.5More deterministic",
    where="4.4 table, L239/L244",
    experiment="temperature",
)
def _s3_34() -> Outcome:
    low, tries = (0.2, 0.5), (1, 2, 10, 100)
    gains = {k: [_gain(T, k) for T in low] for k in tries}
    shown = "; ".join(f"k = {k}: {', '.join(f'{x.mean:+.3f}' for x in row)}" for k, row in gains.items())
    flips = [_flip(T) for T in low]
    return Outcome.of(
        {Text(zh="更确定", en="more deterministic"): all(_entropy(T).below(_entropy(1.0).mean) for T in low)},
        under={
            Text(zh=f"抽 {k} 次：比 T = 1 好", en=f"{k} drawn: better than T = 1"): all(x.above(0.0) for x in row)
            for k, row in gains.items()
        },
        measured=Text(
            zh=f"抽 k 个答案，至少一个对的概率比 T = 1 时高多少（T = 0.2, 0.5）：{shown}；从 k = {flips[0]}, {flips[1]} 起反而更低（{_PROBLEMS} 题）",
            en=f"k answers drawn, chance that one is right, compared with T = 1 (T = 0.2, 0.5): {shown}; it is lower from "
            f"k = {flips[0]}, {flips[1]} on ({_PROBLEMS} problems)",
        ),
        because={
            "only-if": Text(
                zh=f"低温下多半抽到概率最大的答案，只抽一次时最好；抽很多次时总抽到同一个，多样才有用（{_CODEX} 也是如此：抽 1 次用 0.2，抽 100 次用 0.8）。",
                en=f"Low temperatures mostly draw the favourite, which is best for a single try; many tries would draw it again and again, "
                f"and diversity is what helps (as in {_CODEX}: 0.2 for 1 sample, 0.8 for 100).",
            )
        },
        only_if=Text(
            zh=f"只抽很少几次（这里是少于 {min(flips)} 次）",
            en=f"very few answers are drawn (here fewer than {min(flips)})",
        ),
        instead=Text(
            zh="T = 0.2–0.5 更确定；代码只生成一次时用低温，生成很多次再挑选时用高一些的温度",
            en="T = 0.2–0.5 is more deterministic; for code, use it for a single try, and a higher temperature for many",
        ),
    )


@functools.cache
def _student_errors(temperature: float) -> np.ndarray:
    """How far students end from their teacher, in nats on new rows, when taught with soft targets at this temperature."""
    from softscope.experiments.temperature import CLASSES, FEATURES, STUDENT_ROWS, taught

    rng, errors = generator("students"), []
    for _ in range(20):
        teacher = rng.standard_normal((FEATURES, CLASSES))
        x, unseen = rng.standard_normal((STUDENT_ROWS, FEATURES)), rng.standard_normal((1000, FEATURES))
        student = taught(x, x @ teacher, temperature)
        errors.append(float(ss.distillation_loss(unseen @ student, unseen @ teacher, temperature=1.0)))
    return np.array(errors)


@claim(
    "S3-35",
    says=Text(zh="蒸馏用 T > 1，软化分布", en="Distillation uses T > 1, which softens the distribution"),
    quote="Distillation/AlignmentT>1.0Soften distribution",
    where="4.4 table, L240/L245",
    experiment="temperature",
)
def _s3_35() -> Outcome:
    others = {
        T: estimate(1.0 - ss.softmax(_problems(), temperature=T).max(-1)) for T in (1.0, *_DISTILLED_AT)
    }  # the weight of all but the favourite
    errors = {T: estimate(_student_errors(T)) for T in others}
    closer = [estimate(_student_errors(1.0) - _student_errors(T)) for T in _DISTILLED_AT]
    return Outcome.of(
        {
            Text(zh="论文蒸馏用的温度大于 1", en="the paper distils above 1"): min(_DISTILLED_AT) > 1.0,
            Text(zh="其他类别的权重变大", en="the other classes get more weight"): all(
                others[T].above(others[1.0].mean) for T in _DISTILLED_AT
            ),
            Text(
                zh="这样教出的学生比 T = 1 时更像教师", en="students so taught come closer to the teacher than at T = 1"
            ): all(x.above(0.0) for x in closer),
        },
        measured=Text(
            zh=f"首选之外的权重 {by(others, '.2f', 'T')}；学生与教师的 KL（nat）{by(errors, '.1g', 'T')}",
            en=f"weight outside the favourite {by(others, '.2f', 'T')}; KL from teacher to student in nats {by(errors, '.1g', 'T')}",
        ),
        because={
            "holds": Text(
                zh="T = 1 时不太可能的类别几乎没有权重，学生学不到教师对它们的看法；T > 1 使这些权重显现出来，同样的数据教得更多。",
                en="At T = 1 the unlikely classes have almost no weight, and a student does not learn what the teacher thinks of them; "
                "T > 1 brings those weights out, so the same rows teach more.",
            )
        },
        evidence="quoted",
        source=_HINTON,
    )


@claim(
    "S3-36",
    says=Text(zh="对齐用 T > 1", en="Alignment uses T > 1"),
    quote="Distillation/AlignmentT>1.0Soften distribution",
    where="4.4 table, L240/L245",
    experiment="temperature",
)
def _s3_36() -> Outcome:
    return cited(
        source="Touvron et al. 2023 (Llama 2), arXiv 2307.09288, section 3.2.3 and figure 8",
        supports=True,
        because=Text(
            zh="该文对齐时让模型抽 10 到 100 个答案再挑最好的，1.2–1.3 效果最好，因为答案更多样；但每个阶段都要重新调整。",
            en="That paper aligns by drawing 10 to 100 answers and keeping the best; 1.2–1.3 works best there, since the answers differ "
            "more. It has to be readjusted at every stage, though.",
        ),
    )


@claim(
    "S3-50",
    says=Text(zh="log-softmax 常用于计算损失", en="Log-softmax is often used in losses"),
    quote="often used in loss",
    where="4.6, L347",
)
def _s3_50() -> Outcome:
    import torch

    rng = generator("S3-50")
    logits, labels = torch.from_numpy(rng.standard_normal((50, 7))), torch.from_numpy(rng.integers(0, 7, 50))
    f = torch.nn.functional
    off = off_by(f.cross_entropy(logits, labels), f.nll_loss(f.log_softmax(logits, dim=-1), labels))
    return cited(
        source="PyTorch docs, torch.nn.CrossEntropyLoss: LogSoftmax followed by NLLLoss",
        supports=True,
        measured=Text(
            zh=f"PyTorch 的交叉熵与用 log-softmax 算出的损失相差 {off:.1g}",
            en=f"PyTorch's cross-entropy differs from the loss computed with log-softmax by {off:.1g}",
        ),
        because=Text(
            zh="多常用无从测量，但最常用的损失交叉熵，PyTorch 正是用 log-softmax 来定义的。",
            en="How often cannot be measured, but PyTorch defines the most common loss, cross-entropy, through log-softmax.",
        ),
    )


@claim(
    "S3-59",
    says=Text(zh="学完本章约需 4–6 小时", en="The chapter takes 4–6 hours"),
    quote="预计学时 | Duration: 4~6 小时",
    where="Header, L8",
)
def _s3_59() -> Outcome:
    return opinion(Text(zh="估计的学时，因人而异。", en="An estimate of study time; it varies from reader to reader."))
