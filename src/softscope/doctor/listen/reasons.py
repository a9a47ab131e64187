"""Why a module was not read: a code and its values; the display turns them into a sentence in either language."""

from __future__ import annotations

import dataclasses

from softscope._text import Text, same

SILENT = "silent"
NO_PASS = "no_pass"
PARTS = "parts"
NO_GRADIENT = "no_gradient"
HEADS = "heads"
CHANGED = "changed"
ADDITIVE = "additive"
NESTED = "nested"
MASK = "mask"
BIAS = "bias"
FAILED = "failed"
HINT = "hint"
FOLDED = "folded"
NO_PRODUCT = "no_product"
NOT_MULTIPLIED = "not_multiplied"
OTHER_AXIS = "other_axis"
SCORE = "score"
PACKED = "packed"
RANK = "rank"
SOME_RANK = "some_rank"
SHARDS = "shards"
DTENSOR = "dtensor"
TOLD = "told"  # in the caller's own words

SENTENCES: dict[str, Text] = {
    SILENT: Text(
        zh="从名字看是注意力，却没有看到它的调用",
        en="its name says attention, but no call was seen in it",
    ),
    NO_PASS: Text(
        zh="没有看到模型的前向传播；如果只调用它的一部分，请把那一部分交给探针；如果由编译过的代码调用，请交编译后的模块",
        en="no forward pass of the model was seen; if only a part of it is called, pass that part to the probe; if it "
        "is called inside compiled code, pass the compiled module",
    ),
    PARTS: Text(
        zh="只看到它的子模块被调用，其中没有注意力；它自己的代码没有经过 model(…)，所以没有读；请通过 model(…) 调用它",
        en="only submodules of it were called, and none computes attention; its own code is not read unless it is "
        "called as model(…)",
    ),
    NO_GRADIENT: Text(
        zh="没有读到它的梯度：模型先不带梯度计算这一段，反向传播时再重算，而重算的那一遍不读；检查点请用 "
        "use_reentrant=False",
        en="its gradient: the model computes this part without one and again in the backward pass, where it is "
        "not read; checkpoint with use_reentrant=False",
    ),
    HEADS: Text(zh="它在一次传播里有 {} 个头，另一次有 {} 个", en="it had {} heads in one pass and {} in another"),
    CHANGED: Text(
        zh="反向传播之前，它的 key 或 value 被就地修改了",
        en="its keys or values were changed in place before the backward pass",
    ),
    ADDITIVE: Text(zh="加性注意力没有 q·k 可读", en="additive attention has no q·k to read"),
    NESTED: Text(zh="不读嵌套张量", en="nested tensors are not read"),
    MASK: Text(zh="不读 {} 类型的掩码；请用 sdpa 或 eager", en="a mask of type {} is not read; use sdpa or eager"),
    BIAS: Text(
        zh="不读内核里的位置偏置；请用 sdpa 或 eager",
        en="a position bias inside a kernel is not read; use sdpa or eager",
    ),
    HINT: Text(
        zh="给探针的 heads={} 与它的形状不符：除 query 和 key 以外的轴是 {}",
        en="heads={} was given, which does not fit its shape: the axes besides its keys are {}",
    ),
    FOLDED: Text(
        zh="看不出 {} 里哪些是批次、哪些是头，而模块说有 {} 个头；请给 softscope.probe 传 heads=",
        en="its first axis, {}, may hold batch and heads, of which the module says it has {}; pass heads= to "
        "softscope.probe",
    ),
    NO_PRODUCT: Text(
        zh="它把 softmax 的权重（形状 {}）乘进了 value，但没有看到产生这些权重的 q·k",
        en="it multiplies the weights of a softmax, of shape {}, into values, but no product of q and k was seen to "
        "make them",
    ),
    NOT_MULTIPLIED: Text(
        zh="它对 q·k 做了 softmax（形状 {}），但没有看到权重乘进 value",
        en="it takes a softmax of q·k, of shape {}, but the weights were not seen to be multiplied into values",
    ),
    OTHER_AXIS: Text(
        zh="它的权重（形状 {}）在一个轴上和为 1，却沿另一个轴求和：这不是对 key 的注意力",
        en="its weights, of shape {}, sum to 1 over one axis but are summed over another: no attention over keys",
    ),
    SCORE: Text(
        zh="读不懂它的 score_mod：既不是加上一项，也不是软上限",
        en="its score_mod is not understood: it neither adds something nor caps",
    ),
    PACKED: Text(
        zh="不读首尾相接的序列（cu_seqlens）",
        en="sequences packed end to end (cu_seqlens) are not read",
    ),
    RANK: Text(
        zh="张量并行：这里编号从 0 起的头是全部 {} 个头中的第 {}；其他进程上的头没有读",
        en="tensor parallel: of {} heads, those counted from 0 here are {}; the others are on other ranks and not read",
    ),
    SOME_RANK: Text(
        zh="模块说有 {} 个头，这个进程只算了 {} 个：看不出是哪几个",
        en="the module says it has {} heads, and this process computes {}: which of them they are cannot be seen",
    ),
    DTENSOR: Text(
        zh="不读 DTensor；请让投影给出本地张量（use_local_output=True）",
        en="DTensors are not read; let the projections give local tensors (use_local_output=True)",
    ),
    SHARDS: Text(
        zh="它的 key 分在 {} 个 rank 上；请在每个 rank 上用 softscope.probe(model, group=…) 读它",
        en="its keys are shared out among {} ranks; read it on each of them with softscope.probe(model, group=…)",
    ),
    FAILED: Text(zh="读它时出错：{}", en="reading it failed: {}"),
    TOLD: same("{}"),
}


@dataclasses.dataclass(frozen=True)
class Reason:
    """One of the codes above, with the values to fill into its sentence.

    >>> Reason(HEADS, ("4", "8")).text.zh
    '它在一次传播里有 4 个头，另一次有 8 个'
    """

    code: str
    values: tuple[str, ...] = ()

    @property
    def text(self) -> Text:
        """The sentence."""
        return SENTENCES[self.code].format(*self.values)

    def __str__(self) -> str:
        return self.text.en
