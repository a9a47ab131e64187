"""What to repair where attention is not what it is meant to be: a change of code, which only the user can make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks import CHECKS
from softscope.doctor.treat.evidence import REPAIRED
from softscope.doctor.treat.prescriptions import Prescription

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head

# The reading to expect afterwards. Whoever reads the wrong keys, or cannot learn, needs this before anything else.
EXPECTED: dict[str, Text] = {
    "SS014": Text(zh="没有一行看得到后面的 token", en="no row sees a later token"),
    "SS015": Text(zh="填充上的权重正好是 0", en="a weight of exactly 0 on padding"),
    "SS016": Text(zh="每个 token 都看得到它该看的键", en="every token sees the keys that it should"),
    "SS017": Text(zh="梯度到达这里，demand 大于 0", en="a gradient arrives here, with a demand above 0"),
    "SS018": Text(
        zh="W_Q、W_K、W_V 都收到梯度，都在优化器里", en="W_Q, W_K and W_V get gradients and are in an optimizer"
    ),
    "SS019": Text(
        zh="各头的读数不同，q、k、v 都不是 0", en="heads with readings of their own, and no q, k or v of zero"
    ),
    "SS020": Text(zh="权重是 softmax(scale·q·k + 掩码)", en="weights that are softmax(scale·q·k + mask)"),
    "SS021": Text(zh="相同的 token 在不同位置有不同的键", en="equal tokens with different keys at different positions"),
}


def repair(code: str, heads: tuple[Head, ...]) -> Prescription:
    """The prescription for a fault that this check has found."""
    check = CHECKS[code]
    return Prescription(
        remedy="repair",
        heads=heads,
        what=check.remedy,
        why=Text(
            zh=f"{check.title.zh}：模型算的不是它该算的，别的办法都治不了这个",
            en=f"{check.title.en[0].lower()}{check.title.en[1:]}: the model does not compute what it should, and no "
            "other remedy makes up for that",
        ),
        expect=EXPECTED[code],
        evidence=REPAIRED,
    )
