"""Homework 6: why not divide the scores by their sum?"""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.lab.homework.quiz import Choice, Question, Quiz
from softscope.testing.wording import show

_MIXED = np.array([3.0, -1.0, -1.5])
_BELOW = np.array([-1.0, -3.0])
_CANCELS = np.array([2.0, -2.0])
_POSITIVE = np.array([1.0, 2.0, 3.0])


def _linear(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(x / x.sum())


def _negative() -> bool:
    return bool((_linear(_MIXED) < 0.0).any()) and abs(float(_linear(_MIXED).sum()) - 1.0) < 1e-12


def _turned() -> bool:
    return int(np.argmax(_linear(_BELOW))) != int(np.argmax(_BELOW))


def _undefined() -> bool:
    return not np.isfinite(_linear(_CANCELS)).any() and bool(np.isfinite(ss.softmax(_CANCELS)).all())


def _flat() -> bool:
    same = np.allclose(_linear(10.0 * _POSITIVE), _linear(_POSITIVE))
    moves = not np.allclose(_linear(_POSITIVE + 10.0), _linear(_POSITIVE))
    sharper = ss.softmax(10.0 * _POSITIVE).max() > ss.softmax(_POSITIVE).max()
    return bool(same and moves and sharper and np.allclose(ss.softmax(_POSITIVE + 10.0), ss.softmax(_POSITIVE)))


_NEGATIVE = Question(
    asks=Text(
        zh=f"把分数 {show(_MIXED)} 直接除以总和，会怎样？",
        en=f"Divide the scores {show(_MIXED)} directly by their sum. What happens?",
    ),
    choices=(
        Choice(
            Text(zh="没有问题：总和是 1。", en="No problem: they sum to 1."),
            Text(
                zh="总和确实是 1，但这还不够：看看每一个数的符号。",
                en="They do sum to 1, but that is not enough: look at each sign.",
            ),
        ),
        Choice(
            Text(zh="总和不再是 1。", en="They no longer sum to 1."),
            Text(
                zh="除以总和之后，总和总是 1（只要它不是 0）。问题在别处。",
                en="After dividing by the sum they always sum to 1, unless the sum is 0. The problem lies elsewhere.",
            ),
        ),
        Choice(
            Text(zh="有的权重是负的，有的大于 1。", en="Some weights are negative, and one is above 1."),
            Text(
                zh="对：份额不会是负的，也不会比整体大。",
                en="Right: a share is never negative, and never larger than the whole.",
            ),
            right=True,
        ),
    ),
    proof=_negative,
)
_TURNED = Question(
    asks=Text(
        zh=f"分数全是负的，例如 {show(_BELOW)}。除以总和之后，谁的权重最大？",
        en=f"All scores are negative, such as {show(_BELOW)}. After dividing by the sum, which one has the largest weight?",
    ),
    choices=(
        Choice(
            Text(zh="最小的分数。", en="The smallest score."),
            Text(
                zh="对：负数除以负的总和，次序颠倒了。",
                en="Right: dividing negative numbers by a negative sum reverses their order.",
            ),
            right=True,
        ),
        Choice(
            Text(zh="最大的分数。", en="The largest score."),
            Text(
                zh="总和是负的；除以一个负数会怎样改变次序？",
                en="The sum is negative; what does dividing by a negative number do to the order?",
            ),
        ),
        Choice(
            Text(zh="两个一样。", en="Both are the same."),
            Text(
                zh="两个分数不同，除以同一个数之后仍然不同。",
                en="The scores differ, and they still do after division by the same number.",
            ),
        ),
    ),
    proof=_turned,
)
_UNDEFINED = Question(
    asks=Text(zh=f"分数 {show(_CANCELS)} 呢？", en=f"And the scores {show(_CANCELS)}?"),
    choices=(
        Choice(
            Text(zh="两个权重都是 0。", en="Both weights are 0."),
            Text(zh="结果不是 0：看看分母是多少。", en="The result is not 0: look at the denominator."),
        ),
        Choice(
            Text(
                zh="总和是 0，权重没有定义；附近的分数会得到任意大的权重。",
                en="The sum is 0, so the weights are undefined; nearby scores get arbitrarily large weights.",
            ),
            Text(
                zh="对：softmax 的分母是正数之和，永远不会是 0。",
                en="Right: softmax divides by a sum of positive numbers, which is never 0.",
            ),
            right=True,
        ),
        Choice(
            Text(zh="得到均匀的权重。", en="The weights are uniform."),
            Text(
                zh="权重要靠除法得到，而这个分母除不出任何权重。",
                en="Weights come from the division, and this denominator gives none.",
            ),
        ),
    ),
    proof=_undefined,
)
_FLAT = Question(
    asks=Text(
        zh=f"就算分数全是正的，例如 {show(_POSITIVE)}，两种做法还有什么不同？",
        en=f"Even if all scores are positive, such as {show(_POSITIVE)}, how do the two methods still differ?",
    ),
    choices=(
        Choice(
            Text(zh="没有不同。", en="They do not."),
            Text(
                zh="把分数都乘以 10，或者都加上 10，再比较两种权重。",
                en="Multiply all scores by 10, or add 10 to all, and compare the two sets of weights again.",
            ),
        ),
        Choice(
            Text(zh="除以总和会溢出，softmax 不会。", en="Dividing by the sum overflows, softmax does not."),
            Text(
                zh="恰恰相反，会溢出的是指数，所以 softmax 才要先减去最大值。",
                en="The other way round: it is exp that overflows, which is why softmax subtracts the maximum.",
            ),
        ),
        Choice(
            Text(
                zh="除以总和对放大没有反应，对平移却有反应；softmax 正好相反。",
                en="Dividing by the sum ignores a gain but responds to a shift; softmax does exactly the opposite.",
            ),
            Text(
                zh="对：所以温度和 √d 对除以总和毫无作用。",
                en="Right: so temperature and √d have no effect on dividing by the sum.",
            ),
            right=True,
        ),
    ),
    proof=_flat,
)

EXERCISE = Quiz(
    id="dividing-by-the-sum",
    title=Text(zh="思考：为什么不直接除以总和？", en="Think about it: why not just divide by the sum?"),
    task=Text(
        zh="softmax 先取指数，再除以总和。为什么不省掉指数，直接用 分数 / 总和？每题选一个答案；选错了会告诉你为什么。",
        en="Softmax takes exponentials, then divides by the sum. Why not skip the exponentials and use scores / sum? "
        "Choose one answer to each question; if it is wrong, you will see why.",
    ),
    questions=(_NEGATIVE, _TURNED, _UNDEFINED, _FLAT),
    hints=(
        Text(
            zh="拿出纸笔，把每一题的例子真的除一遍。",
            en="Take pencil and paper, and actually do the division for each question's example.",
        ),
        Text(
            zh="或者让程序来除：softscope explain --map linear -- 3 -1 -1.5",
            en="Or let the program divide: softscope explain --map linear -- 3 -1 -1.5",
        ),
    ),
    notice=Text(
        zh="指数做了三件事：把任何数变成正数，保持次序，把差变成比。所以权重非负、分母不为 0、平移不改变结果，"
        "而放大会使权重更尖锐。",
        en="The exponential does three things: it makes any number positive, keeps the order, and turns differences into "
        "ratios. So weights are never negative, the denominator is never 0, a shift changes nothing, and a gain sharpens the "
        "weights.",
    ),
)
