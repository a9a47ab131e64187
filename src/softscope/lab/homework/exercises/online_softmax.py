"""Homework 5: log Σ exp in one pass, over parts that merge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.lab.homework.exactness import EXACT
from softscope.lab.homework.exercise import Exercise
from softscope.lab.homework.inputs import drawn, large, rows
from softscope.lab.homework.rule import Arguments, Rule
from softscope.lab.homework.trial import Numbers, Trial, UnfitError, as_number, told
from softscope.testing.wording import show

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST_STATE = 4


def _parts(rng: np.random.Generator) -> Iterator[Arguments]:
    """Yield two parts of a row, with the larger logit first, last, in both, or far away."""
    for a, b in (
        ([0.0], [1.0]),
        ([1.0], [0.0]),
        ([0.0], [0.0]),
        ([1.0, 2.0], [3.0]),
        ([0.0], [1000.0]),
        ([1000.0], [0.0, 1001.0]),
    ):
        yield np.array(a), np.array(b)
    for n, m in ((1, 2), (3, 2), (5, 8)):
        yield drawn(rng, n), drawn(rng, m)


def _nothing(rng: np.random.Generator) -> Iterator[Arguments]:
    yield np.array([]), np.array([0.0, 1.0])
    yield np.array([2.0]), np.array([])
    yield np.array([-np.inf]), np.array([1.0])
    yield drawn(rng, 3), np.array([-np.inf, -np.inf])
    yield np.array([]), np.array([])
    yield np.array([-np.inf]), np.array([-np.inf])
    yield np.array([]), np.array([-np.inf])


def _empty(_: np.random.Generator) -> Iterator[Arguments]:
    yield (np.array([]),)
    yield (np.array([-np.inf]),)
    yield (np.array([-np.inf, -np.inf]),)


def _long(rng: np.random.Generator) -> Iterator[Arguments]:
    yield (drawn(rng, 5),)
    yield (drawn(rng, 50),)


def _count(state: Any) -> int:
    """Count the numbers in a state; any other type in it, such as a string, could hide all the logits."""
    if isinstance(state, np.ndarray) and state.dtype.kind in "fiu":
        return int(state.size)
    if isinstance(state, list | tuple):
        return sum(1 if type(part) in (int, float) else _count(part) for part in state)
    raise UnfitError(Text(zh=f"其中有 {told(state)}", en=f"there is {told(state)}"))


def _small(trial: Trial, x: Numbers) -> Text | None:
    return _too_much(trial.value("state_of", x), x.size)


def _stays_small(trial: Trial, x: Numbers) -> Text | None:
    """Merge four parts pairwise."""
    state = trial.value("state_of", x)
    for _ in range(2):
        state = trial.value("merge", state, state)
    return _too_much(state, 4 * x.size)


def _too_much(state: Any, n: int) -> Text | None:
    if not isinstance(state, list | tuple | np.ndarray):
        return Text(zh=f"得到的是 {told(state)}", en=f"got {told(state)}")
    held = _count(state)
    if held <= _LARGEST_STATE:
        return None
    return Text(zh=f"{n} 个分数的状态有 {held} 个数", en=f"the state of {n} logits holds {held} numbers")


def _off(got: float, x: Numbers) -> Text | None:
    want = float(ss.logsumexp(x))
    if got == want or (math.isfinite(want) and abs(got - want) <= EXACT * max(1.0, abs(want))):
        return None
    return Text(zh=f"得到 {show(got)}，应当是 {show(want)}", en=f"got {show(got)} instead of {show(want)}")


def _whole(trial: Trial, x: Numbers) -> Text | None:
    return _off(trial.number("lse", trial.value("state_of", x)), x)


def _alone(trial: Trial, a: Numbers, b: Numbers) -> Text | None:
    """Merge states in a process that has never seen the logits."""
    one, other = trial.value("state_of", a), trial.value("state_of", b)
    return _off(as_number(trial.elsewhere("lse", trial.elsewhere("merge", one, other))), np.concatenate([a, b]))


def _merged(trial: Trial, a: Numbers, b: Numbers) -> Text | None:
    one, other = trial.value("state_of", a), trial.value("state_of", b)
    return _off(trial.number("lse", trial.value("merge", one, other)), np.concatenate([a, b]))


def _regrouped(trial: Trial, a: Numbers, b: Numbers) -> Text | None:
    """Check that (a + b) + a and a + (b + a) agree: they are the same row."""
    one, other = trial.value("state_of", a), trial.value("state_of", b)
    left = trial.number("lse", trial.value("merge", trial.value("merge", one, other), one))
    right = trial.number("lse", trial.value("merge", one, trial.value("merge", other, one)))
    want = float(ss.logsumexp(np.concatenate([a, b, a])))
    for came in (left, right):
        if not np.isfinite(came) and np.isfinite(want):  # inf or NaN cannot be compared with anything
            return Text(
                zh=f"a、b、a 合起来得到 {show(came)}，应当是 {show(want)}",
                en=f"a, b and a give {show(came)} instead of {show(want)}",
            )
    if left == right or abs(left - right) <= EXACT * max(1.0, abs(want)):
        return None
    return Text(
        zh=f"两种次序得到 {show(left)} 和 {show(right)}", en=f"the two orders give {show(left)} and {show(right)}"
    )


EXERCISE = Exercise(
    id="online-softmax",
    title=Text(zh="在线 softmax：一遍扫描，可以合并", en="Online softmax: one pass, mergeable"),
    task=Text(
        zh="注意力的一行可能长得放不下，所以要一段一段地读，每段只看一遍。请写三个函数：\n\n"
        f"state_of(x)：一段分数（一维数组）的状态，最多 {_LARGEST_STATE} 个数，不能把分数都存下来；\n"
        "merge(a, b)：两段的状态合成整行的状态；\n"
        "lse(state)：这一行的 log Σ e^x，softmax 的分母就是它的指数。\n\n"
        "状态是数的元组。一段可以是空的，也可以全是 -inf；分数可以很大。",
        en="An attention row can be too long to hold at once, so it is read part by part, each part once. Write three functions:\n\n"
        f"state_of(x): the state of a part (a one-dimensional array of logits), at most {_LARGEST_STATE} numbers; it may not store all the logits;\n"
        "merge(a, b): combine the states of two parts into the state of the whole row;\n"
        "lse(state): log Σ e^x of the row; its exponential is softmax's denominator.\n\n"
        "A state is a tuple of numbers. A part may be empty, or all -inf; logits may be very large.",
    ),
    functions=("state_of(x)", "merge(a, b)", "lse(state)"),
    starter=Text(
        zh="import numpy as np\n\n\ndef state_of(x):\n    # 哪几个数就够了？\n    return (0.0, 0.0)\n\n\n"
        "def merge(a, b):\n    return a\n\n\ndef lse(state):\n    return 0.0\n",
        en="import numpy as np\n\n\ndef state_of(x):\n    # which few numbers are enough?\n    return (0.0, 0.0)\n\n\n"
        "def merge(a, b):\n    return a\n\n\ndef lse(state):\n    return 0.0\n",
    ),
    checks=(
        Rule(
            "small",
            Text(
                zh=f"状态应当是最多 {_LARGEST_STATE} 个数的元组",
                en=f"A state must be a tuple of at most {_LARGEST_STATE} numbers",
            ),
            ("x",),
            _long,
            _small,
        ),
        Rule(
            "whole",
            Text(zh="一段的 lse 应当是 log Σ e^x", en="The lse of one part must be log Σ e^x"),
            ("x",),
            rows,
            _whole,
        ),
        Rule(
            "overflow",
            Text(zh="分数很大时 lse 也应当准确", en="The lse must be exact for large logits too"),
            ("x",),
            large,
            _whole,
        ),
        Rule(
            "merge",
            Text(zh="合并后的 lse 应当是整行的", en="The lse after a merge must be that of the whole row"),
            ("a", "b"),
            _parts,
            _merged,
        ),
        Rule(
            "growth",
            Text(
                zh=f"合并后的状态也应当是最多 {_LARGEST_STATE} 个数的元组",
                en=f"After merging, a state must still be a tuple of at most {_LARGEST_STATE} numbers",
            ),
            ("x",),
            _long,
            _stays_small,
        ),
        Rule(
            "identity",
            Text(
                zh="合并空的或全为 -inf 的一段，应当什么也不改变",
                en="Merging a part that is empty, or all -inf, must change nothing",
            ),
            ("a", "b"),
            _nothing,
            _merged,
        ),
        Rule(
            "nothing",
            Text(
                zh="什么都没有时，Σ e^x 是 0，lse 应当是 -inf",
                en="Of nothing, Σ e^x is 0, so the lse must be -inf",
            ),
            ("x",),
            _empty,
            _whole,
        ),
        Rule(
            "alone",
            Text(
                zh="状态应当自足：换一个没见过这些分数的进程来合并，结果也一样",
                en="A state must stand alone: merged by a process that has never seen the logits, it must give the same",
            ),
            ("a", "b"),
            _parts,
            _alone,
        ),
        Rule(
            "grouping",
            Text(zh="怎样分组合并，结果都应当一样", en="The result must be the same however the parts are grouped"),
            ("a", "b"),
            _parts,
            _regrouped,
        ),
    ),
    hints=(
        Text(
            zh="两个数就够：到目前为止的最大值 m，和 z = Σ e^(x − m)。",
            en="Two numbers are enough: the maximum m so far, and z = Σ e^(x − m).",
        ),
        Text(
            zh="两段的 z 以各自的 m 为基准，不能直接相加：先换到共同的最大值 m，即乘以 e^(m_a − m)。",
            en="The two z are relative to different maxima and cannot simply be added: bring both to the common maximum m first, "
            "by a factor e^(m_a − m).",
        ),
        Text(
            zh="空的一段：m = −inf，z = 0。−inf − (−inf) 是 NaN，所以这种情况要先单独处理。",
            en="An empty part has m = −inf and z = 0. −inf − (−inf) is NaN, so handle that case first.",
        ),
    ),
    notice=Text(
        zh="merge 有结合律、有单位元，所以一行可以任意切开：切给显卡上的小块、几个线程或几台机器，最后合起来都一样。"
        "FlashAttention 就是这样做的；softscope 的 partition 在同一遍里还带上熵和方差。",
        en="merge is associative and has an identity, so a row may be cut anywhere: into tiles on a GPU, across threads or "
        "machines, and the merged result is the same. FlashAttention works this way; softscope's partition carries entropy and "
        "variance along in the same pass.",
    ),
    minutes=25,
)
