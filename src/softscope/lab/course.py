"""The lessons in order: what each teaches and roughly how long it takes."""

from __future__ import annotations

import pathlib
from typing import NamedTuple

from softscope._text import Text

FOLDER = pathlib.Path(__file__).parent / "lessons"


class Lesson(NamedTuple):
    """One lesson: its name in URLs, its number, its minutes, its title and what it teaches."""

    name: str
    number: int
    minutes: int
    title: Text
    teaches: Text

    @property
    def notebook(self) -> pathlib.Path:
        """Return the path of its marimo notebook."""
        return FOLDER / f"lesson_{self.number:02d}_{self.name}.py"


_LESSONS = (
    (
        "probabilities",
        15,
        Text(zh="从分数到概率", en="From numbers to probabilities"),
        Text(
            zh="任意几个数怎样变成一组权重：先取指数，再除以总和；为什么不直接除以总和。",
            en="How any numbers become a set of weights: take exponentials, then divide by their sum; and why not just "
            "divide by the sum.",
        ),
    ),
    (
        "overflow",
        15,
        Text(zh="溢出与平移", en="Overflow and the shift"),
        Text(
            zh="照公式直接写的 softmax 在哪里失效，为什么先减去最大值就没事，而且结果不变。",
            en="Where softmax coded straight from the formula breaks, and why subtracting the maximum first fixes it "
            "without changing the result.",
        ),
    ),
    (
        "sharpness",
        20,
        Text(zh="尖锐：比值的 k 次方", en="Sharpness: ratios to the power k"),
        Text(
            zh="硬最大与软最大；把分数乘以 k，权重之比就变成 k 次方；差距大时趋近 one-hot。",
            en="Hard and soft maximum; a gain k raises every ratio of weights to the power k; large gaps approach "
            "one-hot.",
        ),
    ),
    (
        "temperature",
        20,
        Text(zh="温度和它的用处", en="Temperature and its uses"),
        Text(
            zh="一个旋钮，从 one-hot 到均匀；怎样反求温度；采样、校准和蒸馏里的温度。",
            en="One knob from one-hot to uniform; finding the temperature you need; sampling, calibration, "
            "distillation.",
        ),
    ),
    (
        "gradient",
        30,
        Text(zh="梯度：斜坡与悬崖", en="The gradient: slope and cliff"),
        Text(
            zh="s(1−s)、雅可比矩阵和它的一步步推导；什么时候梯度消失，交叉熵又改变了什么。",
            en="s(1−s), the Jacobian and its derivation step by step; when the gradient vanishes, and what "
            "cross-entropy changes.",
        ),
    ),
    (
        "scaling",
        30,
        Text(zh="为什么除以 √d", en="Why divide by √d"),
        Text(
            zh="点积的方差随 d 增长；这对权重、熵和梯度有什么影响；除以 √d 之后又怎样。",
            en="The variance of a dot product grows with d; what that does to weights, entropy and gradients; and what "
            "happens after dividing by √d.",
        ),
    ),
    (
        "attention",
        25,
        Text(zh="一步一步看注意力", en="Attention step by step"),
        Text(
            zh="QKᵀ → 缩放 → 权重 → 输出，每个矩阵都看得到；三种打分函数并排；掩码。",
            en="QKᵀ → scaled → weights → output with every matrix in view; three score functions side by side; masks.",
        ),
    ),
    (
        "rivals",
        25,
        Text(zh="为什么是 softmax", en="Why softmax"),
        Text(
            zh="五条性质和 softmax 的对手：线性归一化、ReLU、sigmoid、sparsemax、entmax；log-softmax。",
            en="Five properties and softmax's rivals: linear normalisation, ReLU, sigmoid, sparsemax, entmax; and "
            "log-softmax.",
        ),
    ),
    (
        "patient",
        25,
        Text(zh="病人：会查找的模型", en="The patient: a model that looks things up"),
        Text(
            zh="在网页里训练一个小模型，缩放与不缩放；看传导率和优势，再试一种疗法。",
            en="Train a small model in the page, scaled and unscaled; watch transmission and advantage; try a remedy.",
        ),
    ),
    (
        "mistakes",
        20,
        Text(zh="找出错误", en="Find the mistake"),
        Text(
            zh="关于 softmax 的流传说法里，哪些是错的？先判断，再看测量结果。",
            en="Which of the things people say about softmax are wrong? Judge first, then see the measurement.",
        ),
    ),
)

LESSONS: tuple[Lesson, ...] = tuple(
    Lesson(name, number, minutes, title, teaches)
    for number, (name, minutes, title, teaches) in enumerate(_LESSONS, start=1)
)


def lesson(name: str) -> Lesson:
    """Return the lesson with this name.

    >>> lesson("overflow").number
    2
    """
    for one in LESSONS:
        if one.name == name:
            return one
    raise ValueError(f"name must be one of {', '.join(one.name for one in LESSONS)}, but got {name!r}")


def after(name: str) -> Lesson | None:
    """Return the next lesson; None after the last.

    >>> after("probabilities").name, after("mistakes")
    ('overflow', None)
    """
    number = lesson(name).number
    return LESSONS[number] if number < len(LESSONS) else None
