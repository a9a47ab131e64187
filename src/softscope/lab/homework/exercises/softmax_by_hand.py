"""Homework 1: a stable softmax by hand."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.lab.homework.contract import contract
from softscope.lab.homework.exactness import SINGLE
from softscope.lab.homework.exercise import Exercise
from softscope.lab.homework.inputs import hard, rows
from softscope.lab.homework.rule import Rule
from softscope.lab.homework.trial import Numbers, Trial
from softscope.testing.wording import show


def _ratio(trial: Trial, x: Numbers) -> Text | None:
    w = trial.array("softmax", x, shape=x.shape)
    low, high = int(np.argmin(x)), int(np.argmax(x))
    gap = float(x[high] - x[low])
    if abs(float(w[high]) - float(w[low]) * np.exp(gap)) <= SINGLE:  # no weight is above 1
        return None
    return Text(
        zh=f"分数 {show(x[high])} 和 {show(x[low])} 的权重是 {show(w[high])} 和 {show(w[low])}",
        en=f"the logits {show(x[high])} and {show(x[low])} get {show(w[high])} and {show(w[low])}",
    )


def _exact(trial: Trial, x: Numbers) -> Text | None:
    return trial.off(ss.softmax(x), "softmax", x)


EXERCISE = Exercise(
    id="softmax",
    title=Text(zh="手写稳定的 softmax", en="A stable softmax by hand"),
    task=Text(
        zh="写一个函数 softmax(x)：x 是一维 NumPy 数组，里面是任意的分数；返回同样长度的权重。每个权重与 e 的“分数”次方成正比，"
        "所有权重加起来是 1。\n\n"
        "分数可能很大，也可能是 -inf（权重恰好为 0）。可以用 np.exp、np.max、np.sum；"
        "现成的 softmax（SciPy、PyTorch、softscope）在这里用不了。",
        en="Write a function softmax(x): x is a one-dimensional NumPy array of arbitrary logits; return as many weights. Each "
        "weight is proportional to e to the power of its logit, and the weights sum to 1.\n\n"
        "Logits may be very large, and they may be -inf (weight exactly 0). You may use np.exp, np.max and np.sum; "
        "a ready-made softmax (SciPy, PyTorch, softscope) is not available here.",
    ),
    functions=("softmax(x)",),
    starter=Text(
        zh="import numpy as np\n\n\ndef softmax(x):\n    # 第一步：e 的 x 次方。第二步：除以总和。\n"
        "    # 想一想：x 里有 1000 时会怎样？\n    return x\n",
        en="import numpy as np\n\n\ndef softmax(x):\n    # Step one: e to the power of x. Step two: divide by the sum.\n"
        "    # Think: what happens if x contains 1000?\n    return x\n",
    ),
    checks=(
        contract("softmax", largest=1e5),  # beyond that, exp(x − lse(x)), which is right, has lost too many digits
        Rule(
            "ratio",
            Text(
                zh="两个权重之比应当是 e 的“分数之差”次方",
                en="The ratio of two weights must be e to the power of the difference of their logits",
            ),
            ("x",),
            rows,
            _ratio,
        ),
        Rule(
            "exact",
            Text(
                zh="分数很大或者很多时，权重也应当准确",
                en="The weights must be right for large logits and for long rows too",
            ),
            ("x",),
            hard,
            _exact,
        ),
    ),
    hints=(
        Text(
            zh="先照定义写：指数，然后除以指数的总和。用几个小的数试试。",
            en="Write the definition first: exponentials, then divide by their sum. Try it on a few small numbers.",
        ),
        Text(
            zh="e 的 1000 次方超出了浮点数的范围。给所有分数加上同一个数，权重会变吗？",
            en="e to the power of 1000 is beyond what a float can hold. Do the weights change if you add the same number to "
            "all logits?",
        ),
        Text(
            zh="不变。所以可以先减去最大的分数：指数里最大的就是 0。用 x - np.max(x)；写成 x -= np.max(x) 会改动别人给你的数组，这里没关系，平时要小心。",
            en="They do not. So subtract the largest logit first: then the largest exponent is 0. Use x - np.max(x); x -= np.max(x) "
            "would change the caller's array, which does no harm here but often does elsewhere.",
        ),
    ),
    notice=Text(
        zh="减去最大值没有改变任何权重，只改变了中间结果的大小：这就是 softmax 的平移不变性，PyTorch 和 SciPy 也这样写。"
        "最大的分数贡献 e 的 0 次方，所以总和至少是 1，既不会溢出，也不会除以 0。",
        en="Subtracting the maximum changed no weight, only the size of intermediate results: this is the shift invariance of "
        "softmax, and PyTorch and SciPy do it this way too. The largest logit contributes e to the power of 0, so the sum is at "
        "least 1: nothing overflows, and nothing is divided by 0.",
    ),
)
