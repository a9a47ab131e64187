"""Homework 7: log-softmax."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.lab.homework.exactness import SINGLE
from softscope.lab.homework.exercise import Exercise
from softscope.lab.homework.inputs import hard, large, rows
from softscope.lab.homework.rule import Rule
from softscope.lab.homework.trial import Numbers, Trial
from softscope.testing.wording import show


def _call(trial: Trial, x: Numbers) -> Numbers:
    return trial.array("log_softmax", x, shape=x.shape)


def _finite(trial: Trial, x: Numbers) -> Text | None:
    got = _call(trial, x)
    return None if np.isfinite(got).all() else Text(zh=f"得到 {show(got)}", en=f"got {show(got)}")


def _total(trial: Trial, x: Numbers) -> Text | None:
    with np.errstate(over="ignore"):
        total = float(np.exp(_call(trial, x)).sum())
    return None if abs(total - 1.0) <= SINGLE else Text(zh=f"总和是 {show(total)}", en=f"their sum is {show(total)}")


def _differences(trial: Trial, x: Numbers) -> Text | None:
    got = _call(trial, x)
    off = np.abs((got - got[0]) - (x - x[0]))
    if (off <= SINGLE * np.maximum(1.0, np.abs(x - x[0]))).all():
        return None
    i = int(np.argmax(off))
    return Text(
        zh=f"分数 {show(x[0])} 和 {show(x[i])} 得到 {show(got[0])} 和 {show(got[i])}",
        en=f"the logits {show(x[0])} and {show(x[i])} get {show(got[0])} and {show(got[i])}",
    )


def _exact(trial: Trial, x: Numbers) -> Text | None:
    return trial.off(ss.log_softmax(x), "log_softmax", x)


EXERCISE = Exercise(
    id="log-softmax",
    title=Text(zh="log-softmax", en="Log-softmax"),
    task=Text(
        zh="写一个函数 log_softmax(x)：返回权重的自然对数，x 是一维数组。\n\n"
        "先 softmax 再取对数，在权重下溢为 0 时会得到 -inf，而真正的答案是有限的。请写一个没有这个问题的版本。"
        "现成的 softmax 和 log-softmax 在这里用不了。",
        en="Write a function log_softmax(x): return the natural logarithm of the weights; x is a one-dimensional array.\n\n"
        "Computing softmax first and then its logarithm gives -inf where a weight underflows to 0, although the true answer "
        "is finite. Write a version without this flaw. Ready-made softmax and log-softmax are not available here.",
    ),
    functions=("log_softmax(x)",),
    starter=Text(
        zh="import numpy as np\n\n\ndef log_softmax(x):\n    # log(e^x / 总和) 可以拆成两项\n    return x\n",
        en="import numpy as np\n\n\ndef log_softmax(x):\n    # log(e^x / sum) splits into two terms\n    return x\n",
    ),
    checks=(
        Rule(
            "finite",
            Text(zh="有限的分数应当得到有限的结果", en="Finite logits must give finite results"),
            ("x",),
            large,
            _finite,
        ),
        Rule(
            "sums_to_one",
            Text(
                zh="结果的指数应当是权重，总和为 1", en="The exponentials of the result must be weights that sum to 1"
            ),
            ("x",),
            rows,
            _total,
        ),
        Rule(
            "differences",
            Text(zh="两个结果之差应当等于分数之差", en="Two results must differ by as much as their logits do"),
            ("x",),
            rows,
            _differences,
        ),
        Rule(
            "exact",
            Text(
                zh="分数很大、很小或者很多时，结果也应当准确",
                en="The result must be exact for large and small logits, and for long rows too",
            ),
            ("x",),
            hard,
            _exact,
        ),
    ),
    hints=(
        Text(
            zh="商的对数是对数之差：log(e^x / s) = x − log s。",
            en="The logarithm of a quotient is a difference: log(e^x / s) = x − log s.",
        ),
        Text(
            zh="s 也会溢出，它的对数就成了 inf。先减去最大值，想想它在 log s 里去了哪里。",
            en="s overflows as well, and its logarithm is then inf. Subtract the maximum first, and see where it goes in log s.",
        ),
        Text(
            zh="令 y = x − max(x)，结果就是 y − log(Σ e^y)：最大值在两项里抵消了。",
            en="With y = x − max(x), the result is y − log(Σ e^y): the maximum cancels between the two terms.",
        ),
    ),
    notice=Text(
        zh="自始至终没有对 0 取过对数：Σ e^y 至少是 1。交叉熵就是目标类别的 −log-softmax，所以训练时用的是它，"
        "而不是 softmax 的对数。",
        en="You never take the logarithm of 0: Σ e^y is at least 1. Cross-entropy is minus the log-softmax of the target "
        "class, so this is what training uses, not the logarithm of softmax.",
    ),
)
