"""Text 002, part V and the other claims that rest on the paper, compared with what the paper says."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator, opinion, paper
from softscope.experiments.ledger.texts import random_attention as drawn

# The quotation as the text prints it, in LaTeX.
_QUOTED = (
    r"To illustrate why the dot products get large, assume that the components of $q$ and $k$ are independent random "
    r"variables with mean 0 and variance 1. Then their dot product, $q \cdot k = \sum_{i=1}^{d_k} q_i k_i$, has mean "
    r"0 and variance $d_k$."
)


def _bleu() -> dict[int, float]:
    return {d: bleu for d, (_, bleu) in paper.TABLE_3_ROWS_B.items()}


def _rows(lang: str) -> str:
    """Table 3 (B) on one line."""
    name = "困惑度" if lang == "zh" else "perplexity"
    return ", ".join(f"d_k = {d}: BLEU {b} / {name} {p}" for d, (p, b) in paper.TABLE_3_ROWS_B.items())


@claim(
    "S2-02",
    says=Text(
        zh="论文的缩放是为了数值稳定和梯度优化",
        en="The paper scales for numerical stability and for better gradients",
    ),
    where="L10",
    experiment="saturation",
)
def _s2_02() -> Outcome:
    # The numerical half: is an unscaled softmax inaccurate? Compare it with the same rows in extended precision.
    rng = generator("S2-02")
    d = 512
    scores = rng.standard_normal((200, d)) @ rng.standard_normal((d, 10))
    off = drawn.error_of_weights(scores)
    trace = float(np.median(ss.partition(scores).jacobian_trace))
    scaled = float(np.median(ss.partition(scores / math.sqrt(d)).jacobian_trace))
    return Outcome.of(
        under={
            Text(zh="梯度：缩放前的 Σs(1−s) 小得多", en="gradient: Σs(1−s) is far smaller before scaling"): trace
            < 0.1 * scaled,
            Text(zh="数值：缩放前的权重算不准", en="numerics: the weights are inaccurate before scaling"): off > 1e-12,
        },
        measured=Text(
            zh=f"d = {d}：Σs(1−s) 的中位数 {trace:.1e}，缩放后 {scaled:.2f}；缩放前权重的误差 {off:.1g}",
            en=f"d = {d}: median Σs(1−s) {trace:.1e}, scaled {scaled:.2f}; error of the unscaled weights {off:.1g}",
        ),
        because={
            "only-if": Text(
                zh="论文第 3.2.1 节只提到 softmax 的梯度会变得极小；减去最大值之后，不缩放的权重也算得准。",
                en="Section 3.2.1 of the paper mentions only the softmax's extremely small gradients; once the maximum is subtracted, "
                "unscaled weights are accurate too.",
            )
        },
        only_if=Text(
            zh="“数值稳定”指的是不饱和，而不是不溢出",
            en="“numerical stability” means no saturation, rather than no overflow",
        ),
    )


@claim(
    "S2-27",
    says=Text(zh="论文在第 4 页的脚注里解释了缩放", en="The paper explains the scaling in a footnote on page 4"),
    where="V, L133",
)
def _s2_27() -> Outcome:
    return Outcome.of(
        {Text(zh="页码", en="page"): paper.FOOTNOTE_PAGE == 4},
        measured=Text(
            zh=f"{paper.NAME}：脚注 {paper.FOOTNOTE_NUMBER}，第 {paper.FOOTNOTE_PAGE} 页",
            en=f"{paper.NAME}: footnote {paper.FOOTNOTE_NUMBER}, page {paper.FOOTNOTE_PAGE}",
        ),
        because={
            "holds": Text(zh="脚注说明点积为什么会变大。", en="The footnote explains why dot products get large.")
        },
    )


def _bare(quotation: str) -> str:
    """A quotation without what differs between LaTeX and plain text: spaces, markup, the limits of the sum."""
    plain = quotation.replace(r"\sum_{i=1}^{d_k}", "Σ").replace(r"\cdot", "·")
    return re.sub(r"[\s$]", "", plain)


@claim(
    "S2-28",
    says=Text(zh="引用的脚注文字与论文一致", en="The quoted footnote matches the paper"),
    where="V, L135",
)
def _s2_28() -> Outcome:
    same = _bare(_QUOTED) == _bare(paper.FOOTNOTE)
    return Outcome.of(
        {Text(zh="逐字比较", en="word for word"): same and paper.FOOTNOTE_QUOTED_VERBATIM},
        measured=Text(zh=f"比较了 {len(_bare(_QUOTED))} 个字符", en=f"{len(_bare(_QUOTED))} characters compared"),
        because={
            "holds": Text(
                zh="除去空格、$ 和求和号的上下限，与论文的文字完全相同。",
                en="Apart from spaces, $ and the limits of the sum, the wording is exactly the paper's.",
            )
        },
    )


@claim(
    "S2-29",
    says=Text(
        zh="论文表 3 的 (B) 行：不缩放时 d_k 从 64 降到 32，BLEU 上升",
        en="Table 3 (B) of the paper: without scaling, BLEU rises when d_k goes from 64 to 32",
    ),
    where="V, L137-138",
    experiment="learning",
)
def _s2_29() -> Outcome:
    bleu = _bleu()
    return Outcome.of(
        {
            Text(zh="有不缩放的实验", en="there is an unscaled run"): paper.TABLE_3_UNSCALED_ROWS > 0,
            "64 → 32": bleu[32] > bleu[64],
        },
        measured=Text(zh=_rows("zh"), en=_rows("en")),
        because={
            "fails": Text(
                zh=f"表 3 有 {paper.TABLE_3_UNSCALED_ROWS} 行不缩放；(B) 行都缩放，且 BLEU 从 {bleu[64]} 降到 {bleu[32]}。",
                en=f"Table 3 has {paper.TABLE_3_UNSCALED_ROWS} unscaled rows; rows (B) are all scaled, and BLEU falls from "
                f"{bleu[64]} to {bleu[32]}.",
            )
        },
    )


def _falls() -> bool:
    """Whether every step to a smaller d_k worsens both BLEU and perplexity."""
    steps = [paper.TABLE_3_ROWS_B[d] for d in sorted(paper.TABLE_3_ROWS_B, reverse=True)]
    return all(p < q and a > b for (p, a), (q, b) in itertools.pairwise(steps))


@claim(
    "S2-30",
    says=Text(
        zh="论文表 3 的 (B) 行：缩放时性能不随 d_k 变化",
        en="Table 3 (B): with scaling, performance is stable as d_k changes",
    ),
    where="V, L139",
    experiment="learning",
)
def _s2_30() -> Outcome:
    bleu = _bleu()
    return Outcome.of(
        {"64 → 32 → 16": not _falls()},
        measured=Text(zh=_rows("zh"), en=_rows("en")),
        because={
            "fails": Text(
                zh=f"每次减小 d_k 都变差，BLEU 共降 {bleu[64] - bleu[16]:.1f}；论文自己的结论是：减小 d_k 损害质量。",
                en=f"Every reduction of d_k makes it worse, by {bleu[64] - bleu[16]:.1f} BLEU in all; the paper itself concludes "
                f"that reducing d_k hurts quality.",
            )
        },
    )


@claim(
    "S2-31",
    says=Text(zh="这组实验证明了缩放对大维度的重要性", en="These rows prove that scaling matters in large dimensions"),
    where="V, L141",
    experiment="learning",
)
def _s2_31() -> Outcome:
    return Outcome.of(
        {Text(zh="表中有可比的不缩放实验", en="an unscaled run to compare with"): paper.TABLE_3_UNSCALED_ROWS > 0},
        measured=Text(
            zh=f"表 3 中不缩放的行数：{paper.TABLE_3_UNSCALED_ROWS}",
            en=f"unscaled rows in Table 3: {paper.TABLE_3_UNSCALED_ROWS}",
        ),
        because={
            "fails": Text(
                zh="没有不缩放的实验，就无从比较；结论本身要靠别的实验（见 S2-24）。",
                en="Without an unscaled run there is nothing to compare with; the conclusion needs another experiment (see S2-24).",
            )
        },
    )


@claim(
    "S2-37",
    says=Text(
        zh="论文的实验显示：d_k 小时点积与加性相当，d_k 大时点积变差",
        en="The paper's experiments show the dot product on a par with additive attention at small d_k and worse at large d_k",
    ),
    where="VI, L158",
    experiment="scores",
)
def _s2_37() -> Outcome:
    return Outcome.of(
        under={
            Text(
                zh="论文这样说（第 3.2.1 节）", en="the paper says so (section 3.2.1)"
            ): paper.SAYS_ADDITIVE_WINS_AT_LARGE_D,
            Text(zh="是论文自己的实验", en="from its own experiments"): paper.TABLE_3_UNSCALED_ROWS > 0,
        },
        measured=Text(
            zh=f"第 3.2.1 节；引用 {paper.ADDITIVE_SOURCE}；论文自己不缩放的实验：{paper.TABLE_3_UNSCALED_ROWS} 个",
            en=f"section 3.2.1; cites {paper.ADDITIVE_SOURCE}; its own unscaled runs: {paper.TABLE_3_UNSCALED_ROWS}",
        ),
        because={
            "only-if": Text(
                zh="论文引用的是别人的结果，自己没有做这个比较。",
                en="The paper cites someone else's result; it did not make the comparison itself.",
            )
        },
        only_if=Text(zh="“论文的实验”指论文引用的实验", en="“the paper's experiments” means the ones it cites"),
    )


@claim(
    "S2-59",
    says=Text(zh="缩放使模型性能不受 d_k 影响", en="Scaling makes a model's performance independent of d_k"),
    where="Summary 3, L256",
    experiment="learning",
)
def _s2_59() -> Outcome:
    return Outcome.of(
        {Text(zh="论文表 3 的 (B) 行", en="Table 3 (B) of the paper"): not _falls()},
        measured=Text(zh=_rows("zh"), en=_rows("en")),
        because={
            "fails": Text(
                zh="缩放使分数的分布不随 d_k 变化，但不能使质量不变：(B) 行都缩放，质量仍然下降。",
                en="Scaling makes the score distribution independent of d_k, not the quality: rows (B) are all scaled and "
                "still get worse.",
            )
        },
    )


@claim(
    "S2-63",
    says=Text(
        zh="缩放因子是 Transformer 成功的关键之一",
        en="The scaling factor is one of the keys to the Transformer's success",
    ),
    where="Philosophy, L266",
)
def _s2_63() -> Outcome:
    return opinion(Text(zh="对历史的评价，无法测量。", en="A judgement about history; it cannot be measured."))
