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
_PROBLEMS, _CANDIDATES = 4000, 50


@functools.cache
def _problems() -> Any:
    """Logits of a toy model for 4000 problems with 50 candidate answers each.

    The model is calibrated at T = 1: candidate i is right with the probability softmax(logits)_i it is given.
    """
    return 3.0 * generator("toy problems").standard_normal((_PROBLEMS, _CANDIDATES))


@functools.cache
def _passes(temperature: float, k: int) -> Estimate:
    """The chance that one of k samples at this temperature is right: exact for each problem, averaged over problems."""
    right, drawn = ss.softmax(_problems()), ss.softmax(_problems(), temperature=temperature)
    return estimate((right * -np.expm1(k * np.log1p(-np.minimum(drawn, 1.0 - 1e-16)))).sum(-1))


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
    where="4.4 table, L237/L242",
    experiment="temperature",
)
def _s3_32() -> Outcome:
    return cited(
        source=f"{_VENDOR}; {paper.NAME}",
        supports=False,
        because=Text(
            zh="各家做法不一：有厂商建议翻译用 1.3；Transformer 论文翻译时用束搜索，根本不采样。",
            en="Practice differs: one vendor recommends 1.3 for translation, and the Transformer paper translates with beam "
            "search, without sampling at all.",
        ),
    )


@claim(
    "S3-33",
    says=Text(zh="创意写作用 T = 1.2–1.5，更多样", en="Creative writing uses T = 1.2–1.5, for more diversity"),
    where="4.4 table, L238/L243",
    experiment="temperature",
)
def _s3_33() -> Outcome:
    found = {T: _distinct(T) for T in (1.0, 1.2, 1.5)}
    return Outcome.of(
        {f"T = {T}": found[T].above(found[1.0].mean) and _entropy(T).above(_entropy(1.0).mean) for T in (1.2, 1.5)},
        measured=Text(
            zh=f"20 次采样里不同答案的个数：{by(found, '.2f', 'T')}（{_PROBLEMS} 题，{_CANDIDATES} 个候选）",
            en=f"different answers among 20 draws: {by(found, '.2f', 'T')} ({_PROBLEMS} problems, {_CANDIDATES} candidates)",
        ),
        because={
            "holds": Text(
                zh="T > 1 使分布更平坦，所以更多样；是否采用则属惯例（DeepSeek 建议 1.5）。",
                en="T > 1 flattens the distribution, hence more diversity; whether to use it is a matter of convention (DeepSeek recommends 1.5).",
            )
        },
    )


@claim(
    "S3-34",
    says=Text(zh="代码生成用 T = 0.2–0.5，更确定", en="Code generation uses T = 0.2–0.5, to be more deterministic"),
    where="4.4 table, L239/L244",
    experiment="temperature",
)
def _s3_34() -> Outcome:
    one = {T: _passes(T, 1) for T in (0.2, 0.5, 1.0)}
    many = {T: _passes(T, 100) for T in (0.2, 0.5, 1.0)}
    return Outcome.of(
        under={
            Text(zh="更确定", en="more deterministic"): all(_entropy(T).below(_entropy(1.0).mean) for T in (0.2, 0.5)),
            Text(zh="抽 1 次时更好", en="better with 1 sample"): all(one[T].above(one[1.0].mean) for T in (0.2, 0.5)),
            Text(zh="抽 100 次时更好", en="better with 100 samples"): all(
                many[T].above(many[1.0].mean) for T in (0.2, 0.5)
            ),
        },
        measured=Text(
            zh=f"抽 1 次的通过率 {by(one, '.3f', 'T')}；抽 100 次 {by(many, '.3f', 'T')}（{_PROBLEMS} 题）",
            en=f"pass rate with 1 sample {by(one, '.3f', 'T')}; with 100 samples {by(many, '.3f', 'T')} ({_PROBLEMS} problems)",
        ),
        because={
            "only-if": Text(
                zh=f"低温下多半抽到概率最大的答案；抽很多次时，多样才有用（{_CODEX} 也是如此：0.2 与 0.8）。",
                en=f"Low temperatures mostly draw the favourite; with many samples, diversity is what helps (as in {_CODEX}: 0.2 and 0.8).",
            )
        },
        only_if=Text(zh="只抽一次或很少几次", en="one sample or just a few are drawn"),
    )


@claim(
    "S3-35",
    says=Text(zh="蒸馏用 T > 1，软化分布", en="Distillation uses T > 1, which softens the distribution"),
    where="4.4 table, L240/L245",
    experiment="temperature",
)
def _s3_35() -> Outcome:
    found = {T: _entropy(T) for T in (1.0, 2.0, 4.0, 20.0)}
    return Outcome.of(
        {f"T = {T:g}": x.above(found[1.0].mean) for T, x in found.items() if T > 1.0},
        measured=Text(zh=f"平均熵（nat）{by(found, '.2f', 'T')}", en=f"mean entropy in nats {by(found, '.2f', 'T')}"),
        because={
            "holds": Text(
                zh="T > 1 使其他类别的权重显现出来；用于蒸馏见 Hinton 等（arXiv 1503.02531）。",
                en="T > 1 brings out the weights of the other classes; for its use in distillation see Hinton et al. (arXiv 1503.02531).",
            )
        },
    )


@claim(
    "S3-36",
    says=Text(zh="对齐用 T > 1", en="Alignment uses T > 1"),
    where="4.4 table, L240/L245",
    experiment="temperature",
)
def _s3_36() -> Outcome:
    return cited(
        source="Touvron et al. 2023 (Llama 2), arXiv 2307.09288, section 3.2.3 and figure 8",
        supports=True,
        because=Text(
            zh="依方法而定：该文中抽 10 到 100 个答案时 1.2–1.3 最好，而且每个阶段都要重新调整。",
            en="It depends on the method: in that paper 1.2–1.3 is best when 10 to 100 answers are drawn, and it has to be "
            "readjusted at every stage.",
        ),
    )


@claim(
    "S3-50",
    says=Text(zh="log-softmax 常用于计算损失", en="Log-softmax is often used in losses"),
    where="4.6, L347",
    experiment="overflow",
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
            zh="“常用”是惯例；最常用的损失正是由它定义的。",
            en="“Often” is a matter of convention; the most common loss is defined by it.",
        ),
    )


@claim("S3-59", says=Text(zh="学完本章约需 4–6 小时", en="The chapter takes 4–6 hours"), where="Header, L8")
def _s3_59() -> Outcome:
    return opinion(Text(zh="估计的学时，因人而异。", en="An estimate of study time; it varies from reader to reader."))
