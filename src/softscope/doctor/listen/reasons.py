"""Why a module was not read, in both languages.

What was seen carries the English sentence, and so does a record; who shows it asks for both.
"""

from __future__ import annotations

import re

from softscope._text import Text, t

SILENT = t("名字说它是注意力，却没有看到它的调用", "its name says attention, but no call was seen in it")
NO_PASS = t(
    "没有看到模型的前向传播；如果它在编译过的代码里被调用，请把编译后的模块交给探针",
    "no forward pass of the model was seen; if it is called inside compiled code, pass the compiled module",
)
NO_GRADIENT = t(
    "它的梯度：模型先不带梯度算这一段，到反向传播时再算一遍，那一遍不读；检查点请用 use_reentrant=False",
    "its gradient: the model computes this part without one and again in the backward pass, where it is not read; "
    "checkpoint with use_reentrant=False",
)
HEADS = t("它在一次传播里有 {} 个头，另一次有 {} 个", "it had {} heads in one pass and {} in another")
CHANGED = t(
    "反向传播之前，它的 key 或 value 被就地改写了", "its keys or values were changed in place before the backward pass"
)
ADDITIVE = t("加性注意力没有 q·k 可读", "additive attention has no q·k to read")
NESTED = t("不读嵌套张量", "nested tensors are not read")
MASK = t("不读 {} 类型的掩码；请用 sdpa 或 eager", "a mask of type {} is not read; use sdpa or eager")
BIAS = t("不读内核里的位置偏置；请用 sdpa 或 eager", "a position bias inside a kernel is not read; use sdpa or eager")
FAILED = t("读它时出错：{}", "reading it failed: {}")

ALL = (SILENT, NO_PASS, NO_GRADIENT, HEADS, CHANGED, ADDITIVE, NESTED, MASK, BIAS, FAILED)


def in_both(why: str) -> Text:
    """The reason in both languages; a sentence that is none of ours stays as it is.

    >>> in_both("it had 4 heads in one pass and 8 in another").zh
    '它在一次传播里有 4 个头，另一次有 8 个'
    """
    for reason in ALL:
        pattern = re.escape(reason.en).replace(r"\{\}", "(.*)")
        match = re.fullmatch(pattern, why, re.DOTALL)
        if match:
            return t(reason.zh.format(*match.groups()), why)
    return t(why, why)
