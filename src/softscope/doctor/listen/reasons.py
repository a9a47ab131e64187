"""Why a module was not read: a code and its values; the display turns them into a sentence in either language."""

from __future__ import annotations

import dataclasses

from softscope._text import Text, same

SILENT = "silent"
NO_PASS = "no_pass"
NO_GRADIENT = "no_gradient"
HEADS = "heads"
CHANGED = "changed"
ADDITIVE = "additive"
NESTED = "nested"
MASK = "mask"
BIAS = "bias"
FAILED = "failed"
TOLD = "told"  # in the caller's own words

SENTENCES: dict[str, Text] = {
    SILENT: Text(
        zh="从名字看是注意力，却没有看到它的调用",
        en="its name says attention, but no call was seen in it",
    ),
    NO_PASS: Text(
        zh="没有看到模型的前向传播；如果由编译过的代码调用，请把编译后的模块交给探针",
        en="no forward pass of the model was seen; if it is called inside compiled code, pass the compiled module",
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
