"""Every threshold of the doctor in one place: its value, its reason and its source."""

from __future__ import annotations

import dataclasses
import math

from softscope._text import Text

OURS = "softscope: measured on the built-in patients and on small and trained models"


@dataclasses.dataclass(frozen=True)
class Threshold:
    """A number that decides something, with its reason and source."""

    value: float
    reason: Text
    source: str = OURS


MANY = Threshold(
    0.10,
    Text(
        zh="被阻断的行超过 10% 才算多：训练好的 135M 参数模型里，270 个头中只有 3–4 个超过，都停在 sink 上；"
        "MiniLM 和 rxnmapper 的 168 个头中有 6 个连续三次超过，都按位置读取；健康的小语言模型是 0%",
        en="more than 10% blocked rows is many: in a trained 135M model only 3–4 of 270 heads exceed it, "
        "all resting on a sink; in MiniLM and rxnmapper 6 of 168 heads exceed it three times in a row, all "
        "reading by position; in a healthy small language model 0% of the rows are blocked",
    ),
)
IN_A_ROW = Threshold(
    3,
    Text(
        zh="连续三次读数都如此才算：排除单个批次的偶然",
        en="three readings in a row, so that a chance result in one batch does not count",
    ),
)
RIGHT = Threshold(
    0.5,
    Text(
        zh="优势减去两倍标准误差不低于 0.5 才算读对：收敛的检索头是 3.0，三成标签随机时是 1.3 ± 0.3，卡住的头在 "
        "−0.6 到 0.6 之间",
        en="a head reads right if its advantage minus two standard errors is at least 0.5: a converged recall "
        "head has 3.0, or 1.3 ± 0.3 with 30% random labels; stuck heads have −0.6 to 0.6",
    ),
)
ENOUGH_ROWS = Threshold(
    20,
    Text(
        zh="至少读到 20 个被阻断的行才下判断，不够就看更早的读数：只有五行时，一行不在 sink 上，份额就从 1 变成 0.8",
        en="a state needs at least 20 blocked rows, from older readings if the last ones have fewer: with five rows, "
        "one off the sink changes its share from 1 to 0.8",
    ),
)
TRIED = Threshold(
    2.0,
    Text(
        zh="试验里损失的变化要超过两倍标准误差才算数（份数少时更多，按 t 分布）。只看读数不够：九个用高学习率学会的小"
        "语言模型里，有 12 个头的读数可疑，试过都有用",
        en="in a trial the loss must change by more than two standard errors, more if the batch has few parts "
        "(Student's t). Readings are not enough: in nine small language models that learned at a high rate, 12 heads "
        "had suspicious readings, and a trial showed all of them to be useful",
    ),
)
ASKED = 12  # the most readings to use while the error leaves the answer open
ERRORS = 2.0  # standard errors by which an advantage must exceed RIGHT
SATISFIED = Threshold(
    0.01,
    Text(
        zh="demand 跌到自身最大值的 1% 以下：损失几乎不再取决于它读什么，优势只要大于 0（超出误差）就算读对。检"
        "索学到损失为 0 之后，优势会从 2.3 降到 0.7",
        en="demand is below 1% of its maximum: the loss hardly depends on what the head reads any more, so an "
        "advantage above 0 by more than its error is enough. Once recall is learned to a loss of 0, the "
        "advantage falls from 2.3 to 0.7",
    ),
)
SINK = Threshold(
    0.9,
    Text(
        zh="一列占被阻断行权重的 0.9 以上：训练好的模型里停歇的头都在 0.95 以上，被弄坏的头是 0.22–0.78",
        en="one column holds at least 0.9 of the blocked rows' weight: resting heads in a trained model have "
        "0.95 or more, spoiled heads 0.22–0.78",
    ),
)
OFFSET = Threshold(
    0.9,
    Text(
        zh="一个固定的相对位置（如前一个 token）占被阻断行权重的 0.9 以上：MiniLM 和 rxnmapper 里这样的头是 "
        "0.92–1.0，其他头把 q 放大 30 倍后最多 0.85",
        en="one offset, such as the previous token, holds at least 0.9 of the blocked rows' weight: such heads "
        "in MiniLM and rxnmapper have 0.92–1.0; other heads, with q multiplied by 30, have at most 0.85",
    ),
)
LOGIT_HIGH = Threshold(
    100.0,
    Text(zh="QK-clip 从最大分数 100 起开始裁剪", en="QK-clip steps in at a maximum logit of 100"),
    "Kimi K2 (MuonClip), 2025: τ = 100",
)
LOGIT_UNSTABLE = Threshold(
    1000.0,
    Text(
        zh="超过 1000，训练不稳定；超过 10⁴，训练全部发散",
        en="above 1000 training is unstable; above 10⁴ every run diverged",
    ),
    "Wortsman et al. 2023, Small-scale proxies for large-scale Transformer training instabilities",
)
GROWTH_READINGS = Threshold(
    8,
    Text(
        zh="至少八次读数才能判断趋势：前后两半各四次",
        en="a trend needs at least eight readings, four in each half",
    ),
)
STEADY = Threshold(
    0.75,
    Text(
        zh="没有平台：后半段和最后三分之一的增长速度都不低于前半段的四分之三。问题主要在不停地增长，不在数值高低",
        en="no plateau: the second half and the last third both grow at three quarters of the first half's rate "
        "or faster. The problem is endless growth more than the level",
    ),
    "Su Jianlin on MuonClip, 2025; Wortsman et al. 2023",
)
OUTLIER = Threshold(
    6.0,
    Text(
        zh="|q|·|k| 是同层各头中位数的 6 倍。两个训练好的模型（MiniLM、rxnmapper，168 个头）里只有一个头超过（"
        "10 倍）；把任意一个头的 q 放大 30 倍，这个头至少是 8.3 倍",
        en="|q|·|k| is 6 times the median of the layer's heads. In two trained models (MiniLM, rxnmapper: 168 "
        "heads) only one head exceeds it (10 times); any head whose q is multiplied by 30 reaches at least "
        "8.3 times",
    ),
)
REACH = Threshold(
    50.0,
    Text(
        zh="并且 scale·|q|·|k| 超过 50：那 168 个头最多到 38，q 放大 30 倍的头至少到 68",
        en="and scale·|q|·|k| exceeds 50: those 168 heads reach at most 38, a head whose q is multiplied by 30 "
        "at least 68",
    ),
    "softscope, as above; 50 is also Gemma 2's soft cap",
)
SIBLINGS = 4  # heads of a site that need the reading: among three, one outlier moves the median too far
SCALE = Threshold(
    1.5,
    Text(
        zh="缩放与 1/√d 相差 1.5 倍以内，都是同一种选择的变体",
        en="a scale within a factor of 1.5 of 1/√d is a variant of the same choice",
    ),
    "Vaswani et al. 2017, Attention Is All You Need, 3.2.1",
)
FROZEN_SITE = Threshold(
    2.0,
    Text(
        zh="没有损失时：一层里至少半数的头，分数的标准差超过冻结点 √(2·log n) 的 2 倍。健康的层，这个比值的中位"
        "数最多是：MiniLM 0.8、rxnmapper 1.1、小语言模型 0.4、学会的检索 1.2、学会的抄写 1.3；没有 1/√d 的层，"
        "d = 64 时是 2.5–2.9，d = 256 时在 4.5 以上。尖锐度分不开两者：学会抄写的层中位数是 0.92，没有 1/√d、"
        "d = 256 的层从 0.77 起",
        en="without a loss: in at least half of a layer's heads the logits have a standard deviation more than "
        "twice the freezing point √(2·log n). In healthy layers the median ratio is at most 0.8 in MiniLM, "
        "1.1 in rxnmapper, 0.4 in small language models, 1.2 in learned recall and 1.3 in learned copying; "
        "without 1/√d it is 2.5–2.9 at d = 64 and at least 4.5 at d = 256. Sharpness cannot tell them apart: "
        "a layer that has learned to copy has a median of 0.92, while layers without 1/√d at d = 256 start "
        "at 0.77",
    ),
)
COLLAPSE = Threshold(
    0.5,
    Text(
        zh="归一化的熵在三次读数内下降量程的一半，降到 0.1 以下。只看高低说明不了问题：健康的 BERT 里有 0.05 奈特的头",
        en="within three readings the normalised entropy falls by half its range, to below 0.1. The level alone "
        "says nothing: a healthy BERT has heads at 0.05 nats",
    ),
    "Zhai et al. 2023, Stabilizing Transformer Training by Preventing Attention Entropy Collapse",
)
COLLAPSED = 0.1  # of the normalised entropy
UNIFORM = Threshold(
    0.01,
    Text(
        zh="训练的后半段里尖锐度从未超过 0.01：与均匀读取没有区别。六种新模型的头是 0.00004 到 0.3，那不算曾经尖锐",
        en="in the second half of the training sharpness never exceeds 0.01: no different from reading all keys "
        "equally. Heads of six kinds of fresh models have 0.00004 to 0.3, which does not count as having been sharp",
    ),
)
ENOUGH_STEPS = Threshold(
    500,
    Text(
        zh="至少训练 500 步：新模型的头本来就是均匀的",
        en="at least 500 training steps: heads in a fresh model are uniform to begin with",
    ),
)
HALF_LARGEST = Threshold(
    65504.0,
    Text(zh="float16 的最大有限值", en="the largest finite float16 number"),
    "IEEE 754 binary16",
)
HALF_NEAR = 0.25  # of the limit: doubling both q and k reaches it
LSE_LOWEST = Threshold(
    -math.log(3.4028234663852886e38),
    Text(
        zh="低于它，反向传播里的 exp(−lse) 超出 float32：cuDNN 带掩码的反向传播会给出 NaN 的 dQ",
        en="below this, exp(−lse) overflows float32 in the backward pass: cuDNN's backward pass with a mask "
        "then returns a NaN dQ",
    ),
    "TRL #7181",
)
NOTHING = Threshold(
    1e-6,
    Text(
        zh="传导率中位数低于百万分之一：至少半数的行，梯度比 float32 的舍入误差还小",
        en="a median transmission below one millionth: in at least half of the rows the gradient is smaller "
        "than float32 rounding error",
    ),
)
FEW_KEYS = Threshold(
    256,
    Text(
        zh="不到 256 个键时，把分数写进内存花费不大",
        en="with fewer than 256 keys, materialising the logits costs little",
    ),
)
ALIGNED = Threshold(
    4.0,
    Text(
        zh="|cos| 的均值是随机方向 √(2/πd) 的 4 倍：MiniLM 和 rxnmapper 的 168 个头最多 3.6 倍",
        en="a mean |cos| 4 times that of random directions, √(2/πd): the 168 heads of MiniLM and rxnmapper "
        "reach at most 3.6 times",
    ),
)


EXACT = Threshold(
    0.0,
    Text(
        zh="掩码藏起来的键，权重正好是 0：没有出错的模型里从未见过别的数，泄漏的模型里是 0.02 到 1",
        en="keys that a mask hides have a weight of exactly 0: no model without a fault shows anything else; models "
        "with a leak have 0.02 to 1",
    ),
)
MOST_ROWS = Threshold(
    0.9,
    Text(
        zh="九成以上的行如此才是问题。少于九成，可能是有意的前缀（前缀语言模型、图像 token 互相可见），只作说明",
        en="a finding needs nine rows in ten. With fewer it may be a prefix that is meant to see itself (prefix "
        "language models, image tokens), and is only noted",
    ),
)
TWICE = Threshold(
    2,
    Text(
        zh="连续两次读数：这些不是随机的，但一次可能碰上别的分支或没有更新的步",
        en="two readings in a row: nothing here is left to chance, but a single step may take another branch or skip "
        "its update",
    ),
)
ON_ONE_LINE = Threshold(
    0.99,
    Text(
        zh="一层的每个头里，不同 token 的 q（或 k，减去均值）之间 |cos| 的均值超过 0.99，几乎都在一条直线上。"
        "见健康模型的表",
        en="in every head of a layer, the q of different tokens (or the k, their mean taken off) have a mean |cos| "
        "above 0.99, so they all but lie on one line. The table of healthy models shows theirs",
    ),
)
ZEROS = Threshold(
    0.01,
    Text(
        zh="百分之一以上的分数正好是 0 而 q·k 不是：舍入几百万次才有一次，softmax 之前的 dropout 则有它的比率那么多",
        en="more than one logit in a hundred is exactly 0 where q·k is not: rounding does that once in millions, a "
        "dropout before the softmax as often as its rate says",
    ),
)
SAME_KEYS = Threshold(
    0.05,
    Text(
        zh="第一层里，同一序列中相同的 token，超过 5% 的对有相同的键（相差不到长度的万分之一）：有位置时没有一对相同",
        en="in the first layer, more than 5% of the pairs of equal tokens in a sequence have equal keys (within 1e-4 "
        "of their length): with positions, no pair has",
    ),
)


def freezing(n: float) -> float:
    """The spread of n logits above which a few of them hold all the weight: √(2·log n).

    This is the freezing point of the random energy model (Derrida 1981), for independent normal logits.

    >>> round(freezing(16), 2), round(freezing(512), 2)
    (2.35, 3.53)
    """
    return math.sqrt(2.0 * math.log(max(n, 2.0)))


NOT_A_NUMBER = Threshold(
    1,
    Text(
        zh="最后一次读数就够：NaN 不会自己消失", en="the last reading alone is enough: NaN does not go away by itself"
    ),
    "IEEE 754",
)
