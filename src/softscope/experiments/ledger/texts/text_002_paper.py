"""Text 002, part V and the other claims that rest on the paper, compared with what the paper says."""

from __future__ import annotations

import re

from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, opinion, paper
from softscope.experiments.ledger.texts import random_attention as drawn

# The quotation as the text prints it, in LaTeX.
_QUOTED = (
    r"To illustrate why the dot products get large, assume that the components of $q$ and $k$ are independent random "
    r"variables with mean 0 and variance 1. Then their dot product, $q \cdot k = \sum_{i=1}^{d_k} q_i k_i$, has mean "
    r"0 and variance $d_k$."
)


_ALIKE = 0.2  # BLEU; the paper prints one decimal


def _bleu() -> dict[int, float]:
    return {d: bleu for d, (_, bleu) in paper.TABLE_3_ROWS_B.items()}


def _rows(lang: str) -> str:
    """Table 3 (B) on one line."""
    name = "困惑度" if lang == "zh" else "perplexity"
    return ", ".join(f"d_k = {d}: BLEU {b} / {name} {p}" for d, (p, b) in paper.TABLE_3_ROWS_B.items())


@claim(
    "S2-02",
    says=Text(
        zh="论文的缩放涉及数值稳定性和梯度优化",
        en="The paper's scaling is about numerical stability and about gradients",
    ),
    quote="这是 Transformer 论文中的一个精妙设计，涉及到数值稳定性和梯度优化",
    where="L10",
    experiment="gradients",
)
def _s2_02() -> Outcome:
    d = 512
    trace, scaled = drawn.plain(d).median_trace, drawn.scaled(d).median_trace
    off, coarse = drawn.error_of_weights(d), drawn.error_of_weights(d, "bfloat16")
    return Outcome.of(
        {
            Text(zh="梯度：缩放前的 Σs(1−s) 小得多", en="gradient: Σs(1−s) is far smaller before scaling"): trace
            < 0.1 * scaled,
            Text(
                zh="数值：缩放前，float32 的权重误差超过 0.001",
                en="numerics: before scaling, float32 weights are off by over 0.001",
            ): off > 1e-3,
        },
        measured=Text(
            zh=f"d = {d}：Σs(1−s) 的中位数 {trace:.1e}，缩放后 {scaled:.2f}；不缩放时权重的误差，float32 {off:.1g}，bfloat16 {coarse:.1g}",
            en=f"d = {d}: median Σs(1−s) {trace:.1e}, scaled {scaled:.2f}; error of unscaled weights, float32 {off:.1g}, "
            f"bfloat16 {coarse:.1g}",
        ),
        because={
            "fails": Text(
                zh="梯度的一半对，论文第 3.2.1 节也只提到梯度极小。softmax 先减去最大值，所以不缩放的权重也不溢出、也算得准：饱和不是数值误差。",
                en="The half about gradients is right, and section 3.2.1 of the paper speaks only of extremely small gradients. Softmax "
                "subtracts the maximum first, so unscaled weights neither overflow nor lose accuracy: saturation is no "
                "numerical error.",
            )
        },
        instead=Text(
            zh="论文的缩放是为了梯度：不缩放时 softmax 饱和，权重虽然算得准，梯度却过不去",
            en="The paper's scaling is about gradients: unscaled, softmax saturates; its weights are accurate, but gradients do not get through",
        ),
    )


@claim(
    "S2-27",
    says=Text(
        zh="所引的论文原文在第 4 页的脚注里", en="The quoted explanation stands in a footnote on page 4 of the paper"
    ),
    quote="论文原文（第 4 页脚注）：",
    where="V, L133",
    experiment="lanes",
)
def _s2_27() -> Outcome:
    return Outcome.of(
        {Text(zh="页码", en="page"): paper.FOOTNOTE_PAGE == 4},
        measured=Text(
            zh=f"{paper.NAME}：脚注 {paper.FOOTNOTE_NUMBER}，第 {paper.FOOTNOTE_PAGE} 页",
            en=f"{paper.NAME}: footnote {paper.FOOTNOTE_NUMBER}, page {paper.FOOTNOTE_PAGE}",
        ),
        because={
            "holds": Text(
                zh="脚注就在那一页，说明点积为什么会变大：独立的项越多，方差越大。",
                en="The footnote is on that page and says why dot products get large: the more independent terms, the larger the variance.",
            )
        },
        evidence="quoted",
        source=f"{paper.NAME}, p. {paper.FOOTNOTE_PAGE}",
    )


def _bare(quotation: str) -> str:
    """A quotation without what differs between LaTeX and plain text: spaces, markup, the limits of the sum."""
    plain = quotation.replace(r"\sum_{i=1}^{d_k}", "Σ").replace(r"\cdot", "·")
    return re.sub(r"[\s$]", "", plain)


@claim(
    "S2-28",
    says=Text(zh="引用的脚注文字与论文一致", en="The quoted footnote matches the paper"),
    quote="To illustrate why the dot products get large, assume that the components of",
    where="V, L135",
    experiment="lanes",
)
def _s2_28() -> Outcome:
    same = _bare(_QUOTED) == _bare(paper.FOOTNOTE)
    return Outcome.of(
        {Text(zh="逐字比较", en="word for word"): same},
        measured=Text(zh=f"比较了 {len(_bare(_QUOTED))} 个字符", en=f"{len(_bare(_QUOTED))} characters compared"),
        because={
            "holds": Text(
                zh="除去空格、$ 和求和号的上下限，与论文的文字完全相同。",
                en="Apart from spaces, $ and the limits of the sum, the wording is exactly the paper's.",
            )
        },
        evidence="quoted",
        source=f"{paper.NAME}, p. {paper.FOOTNOTE_PAGE}",
    )


@claim(
    "S2-29",
    says=Text(
        zh="论文表 3 的 (B) 行：不缩放时 d_k 从 64 降到 32，BLEU 上升",
        en="Table 3 (B) of the paper: without scaling, BLEU rises when d_k goes from 64 to 32",
    ),
    quote="不缩放：当 $d_k$ 从 64 降到 32 时，BLEU 提升",
    where="V, L137-138",
    experiment="lanes",
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
        instead=Text(
            zh=f"论文表 3 的 (B) 行都缩放；d_k 从 64 降到 32 时，BLEU 从 {bleu[64]} 降到 {bleu[32]}",
            en=f"Rows (B) of the paper's Table 3 are all scaled; BLEU falls from {bleu[64]} to {bleu[32]} when d_k goes from 64 to 32",
        ),
        evidence="quoted",
        source=f"{paper.NAME}, Table 3 (B)",
    )


def _stable() -> bool:
    """Whether BLEU stays within 0.2 as d_k changes; the paper's rows differ in the first decimal."""
    bleu = _bleu().values()
    return max(bleu) - min(bleu) <= _ALIKE + 1e-9


@claim(
    "S2-30",
    says=Text(
        zh="论文表 3 的 (B) 行：缩放时性能不随 d_k 变化",
        en="Table 3 (B): with scaling, performance is stable as d_k changes",
    ),
    quote="缩放：$d_k$ 变化时性能稳定",
    where="V, L139",
    experiment="lanes",
)
def _s2_30() -> Outcome:
    bleu = _bleu()
    return Outcome.of(
        {
            Text(
                zh=f"64 → 32 → 16：BLEU 相差不超过 {_ALIKE}", en=f"64 → 32 → 16: BLEU within {_ALIKE} of each other"
            ): _stable()
        },
        measured=Text(zh=_rows("zh"), en=_rows("en")),
        because={
            "fails": Text(
                zh=f"每次减小 d_k 都变差，BLEU 共降 {bleu[64] - bleu[16]:.1f}；论文自己的结论是：减小 d_k 损害质量。",
                en=f"Every reduction of d_k makes it worse, by {bleu[64] - bleu[16]:.1f} BLEU in all; the paper itself concludes "
                f"that reducing d_k hurts quality.",
            )
        },
        instead=Text(
            zh=f"论文表 3 的 (B) 行：缩放时，d_k 从 64 减小到 16，BLEU 仍然从 {bleu[64]} 降到 {bleu[16]}",
            en=f"Table 3 (B): even with scaling, BLEU falls from {bleu[64]} to {bleu[16]} as d_k goes from 64 to 16",
        ),
        evidence="quoted",
        source=f"{paper.NAME}, Table 3 (B)",
    )


@claim(
    "S2-31",
    says=Text(zh="这组实验证明了缩放对大维度的重要性", en="These rows prove that scaling matters in large dimensions"),
    quote="这证明了缩放因子对大维度的重要性。",
    where="V, L141",
    experiment="lanes",
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
                zh="没有不缩放的实验，就无从比较：表 3 的每一行都缩放。缩放何时要紧，见 S2-24 的实验。",
                en="Without an unscaled run there is nothing to compare with: every row of Table 3 is scaled. When scaling matters, the "
                "experiment of S2-24 shows.",
            )
        },
        instead=Text(
            zh="论文表 3 没有不缩放的实验，对缩放什么也证明不了；(B) 行说明的是：减小 d_k 损害质量",
            en="Table 3 has no unscaled run and proves nothing about scaling; rows (B) show that reducing d_k hurts quality",
        ),
        evidence="quoted",
        source=f"{paper.NAME}, Table 3",
    )


@claim(
    "S2-37",
    says=Text(
        zh="论文的实验显示：d_k 小时点积与加性相当，d_k 大时点积变差",
        en="The paper's experiments show the dot product on a par with additive attention at small d_k and worse at large d_k",
    ),
    quote="论文实验显示：小 $d_k$ 时性能与 Additive 相当，大 $d_k$ 时性能下降",
    where="VI, L158",
)
def _s2_37() -> Outcome:
    return Outcome.of(
        {
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
            "fails": Text(
                zh="论文在第 3.2.1 节这样说，但引用的是别人的实验；它自己没有训练过不缩放的模型，也没有比较过加性注意力。",
                en="The paper says so in section 3.2.1, but cites someone else's experiment; it trained no unscaled model itself, and "
                "compared none with additive attention.",
            )
        },
        instead=Text(
            zh=f"论文引用 {paper.ADDITIVE_SOURCE} 说：d_k 小时点积与加性相当，d_k 大时不缩放的点积不如加性",
            en=f"The paper says, citing {paper.ADDITIVE_SOURCE}, that the two are on a par at small d_k and that the unscaled dot "
            f"product is worse at large d_k",
        ),
        evidence="quoted",
        source=f"{paper.NAME}, section 3.2.1",
    )


@claim(
    "S2-59",
    says=Text(zh="缩放使模型性能不受 d_k 影响", en="Scaling makes a model's performance independent of d_k"),
    quote="维度无关性：使模型性能不受 $d_k$ 影响",
    where="Summary 3, L256",
    experiment="lanes",
)
def _s2_59() -> Outcome:
    return Outcome.of(
        {
            Text(
                zh=f"论文表 3 的 (B) 行：BLEU 相差不超过 {_ALIKE}",
                en=f"Table 3 (B) of the paper: BLEU within {_ALIKE} of each other",
            ): _stable()
        },
        measured=Text(zh=_rows("zh"), en=_rows("en")),
        because={
            "fails": Text(
                zh="缩放使分数的分散程度不随 d_k 变化，但 d_k 越小，q 和 k 能区分的东西越少：(B) 行都缩放，质量仍然下降。",
                en="Scaling makes the spread of the scores independent of d_k, but with fewer dimensions q and k can tell fewer things "
                "apart: rows (B) are all scaled and still get worse.",
            )
        },
        instead=Text(
            zh="缩放使分数的分散程度不受 d_k 影响；模型的质量仍随 d_k 变化",
            en="Scaling makes the spread of the scores independent of d_k; a model's quality still depends on d_k",
        ),
        evidence="quoted",
        source=f"{paper.NAME}, Table 3 (B)",
    )


@claim(
    "S2-63",
    says=Text(
        zh="缩放因子是 Transformer 成功的关键之一",
        en="The scaling factor is one of the keys to the Transformer's success",
    ),
    quote="优雅地解决了高维空间的数值问题，这是其成功的关键之一。",
    where="Philosophy, L266",
)
def _s2_63() -> Outcome:
    return opinion(Text(zh="对历史的评价，无法测量。", en="A judgement about history; it cannot be measured."))
