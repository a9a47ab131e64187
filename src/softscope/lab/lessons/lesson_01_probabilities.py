"""Lesson 1: from numbers to probabilities."""

import marimo

app = marimo.App(width="medium", app_title="softscope 1")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.lab.page import Page, figures
    from softscope.lab.widgets import SoftmaxWidget

    return Page, SoftmaxWidget, figures, mo, np, ss


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("probabilities", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    # F3-18
    page.head(
        t(
            zh="说出 softmax 的两步：取指数，再除以总和",
            en="name the two steps of softmax: take exponentials, then divide by their sum",
        ),
        t(
            zh="说明它保证了什么：每个权重非负，总和为 1",
            en="state what it guarantees: no weight is negative, and the weights sum to one",
        ),
        t(zh="解释为什么光除以总和还不够", en="explain why dividing by the sum alone is not enough"),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh=r"""
    ## 一个问题

    模型给几个选项打了分。分数可以是任何实数：正的、负的、零。可我们想要的是**份额**：每个都不小于零，加起来正好是一个整体。怎样从分数得到份额？

    softmax 的回答是：

    $$s_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$

    先拖一拖下面的柱子，看权重怎样跟着动。
    """,
            en=r"""
    ## The question

    A model has scored a few options. A score (a *logit*) can be any real number: positive, negative or zero. What we want is **shares**: none below zero, adding up to exactly one whole. How do we turn scores into shares?

    Softmax's answer:

    $$s_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$

    First, drag the bars below and watch the weights follow.
    """,
        )
    )
    return


@app.cell
def _(SoftmaxWidget, mo, page):
    picture = mo.ui.anywidget(SoftmaxWidget(logits=[1.0, 2.0, 3.0], lang=page.lang))
    picture
    return (picture,)


@app.cell
def _(figures, mo, picture, ss, t):
    # F3-4
    _x = picture.value["logits"]
    _T = picture.value["temperature"]
    _s = ss.softmax(_x, temperature=_T)
    _given = figures(_x, 2) if _T == 1 else f"{figures(_x, 2)}, temperature={_T:.4g}"
    mo.md(
        t(
            zh=f"库算出同样的权重：`ss.softmax({_given})` = {figures(_s)}，总和 {_s.sum():.6f}。试试“全部加 1”：权重不变，只有**差**起作用。",
            en=f"The library computes the same weights: `ss.softmax({_given})` = {figures(_s)}, with sum {_s.sum():.6f}. Try “add 1 to all”: nothing moves, because only **differences** matter.",
        )
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 为什么不直接除以总和？\n\n改改下面的三个数，逐步比较两种做法。",
            en="## Why not simply divide by the sum?\n\nChange the three numbers and compare the two methods step by step.",
        )
    )
    return


@app.cell
def _(mo):
    first = mo.ui.slider(-3.0, 3.0, 0.1, value=2.0, label="x₁", show_value=True)
    second = mo.ui.slider(-3.0, 3.0, 0.1, value=2.1, label="x₂", show_value=True)
    third = mo.ui.slider(-3.0, 3.0, 0.1, value=2.2, label="x₃", show_value=True)
    mo.hstack([first, second, third], justify="start", wrap=True)
    return first, second, third


@app.cell
def _(first, mo, np, page, second, ss, t, third):
    # F1-1
    _x = np.array([first.value, second.value, third.value])
    _total = float(_x.sum())
    _linear = _x / _total if abs(_total) > 1e-9 else np.full(3, np.nan)
    _e, _s = np.exp(_x), ss.softmax(_x)
    _spread = float(np.ptp(_linear))
    mo.vstack(
        [
            page.table(
                ["", "x₁", "x₂", "x₃", t(zh="最大 − 最小", en="largest − smallest")],
                [
                    (t(zh="分数 x", en="scores x"), *_x, float(np.ptp(_x))),
                    ("x / Σx", *_linear, _spread),
                    ("exp(x)", *_e, float(np.ptp(_e))),
                    ("softmax(x)", *_s, float(np.ptp(_s))),
                ],
            ),
            mo.md(
                t(
                    zh="除以总和时，一个数得到多少取决于它离**零**有多远；取指数之后，取决于它离**别的数**有多远。把某个数拖到负的一侧：`x / Σx` 会给出负的份额，甚至颠倒大小；softmax 不会。",
                    en="If you divide by the sum, a number's share depends on how far it is from **zero**; if you take exponentials first, it depends on how far it is from **the others**. Drag a number below zero: `x / Σx` gives negative shares, or even reverses the order. Softmax does not.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 它保证了什么？\n\n下面不是证明，而是测量：随机抽取许多行分数，逐行检查每一条性质。",
            en="## What does it guarantee?\n\nThis is a measurement, not a proof: we draw many random rows of scores and check each property on every row.",
        )
    )
    return


@app.cell
def _(mo, np, page, ss, t):
    # F1-2
    _rng = np.random.default_rng(0)
    _x = _rng.normal(0.0, 5.0, (20_000, 8))
    _s = ss.softmax(_x)
    _tiny = np.exp(np.array([-800.0, -801.0]))
    mo.vstack(
        [
            page.table(
                [
                    t(zh="性质", en="property"),
                    t(zh="检查", en="check"),
                    t(zh="成立的行", en="rows where it holds"),
                    t(zh="共", en="out of"),
                ],
                [
                    (
                        "exp(x) ≥ 0",
                        t(zh="最小的 exp(x)", en="smallest exp(x)") + f" {np.exp(_x).min():.1e}",
                        int((np.exp(_x) >= 0).all(-1).sum()),
                        len(_x),
                    ),
                    (
                        "Σ exp(x) > 0",
                        t(zh="最小的总和", en="smallest sum") + f" {np.exp(_x).sum(-1).min():.1e}",
                        int((np.exp(_x).sum(-1) > 0).sum()),
                        len(_x),
                    ),
                    (
                        "0 ≤ s ≤ 1",
                        f"{_s.min():.1e} … {_s.max():.6f}",
                        int(((_s >= 0) & (_s <= 1)).all(-1).sum()),
                        len(_x),
                    ),
                    (
                        "Σ s = 1",
                        t(zh="最大误差", en="largest error") + f" {np.abs(_s.sum(-1) - 1).max():.0e}",
                        int((np.abs(_s.sum(-1) - 1) < 1e-12).sum()),
                        len(_x),
                    ),
                ],
            ),
            mo.md(
                t(
                    zh=f"在计算机里有一个例外：`exp([-800, -801])` 得到 {_tiny.tolist()}，总和不再大于零。下一课讲怎样避免。",
                    en=f"On a computer there is one exception: `exp([-800, -801])` gives {_tiny.tolist()}, and the sum is no longer above zero. The next lesson shows how to avoid this.",
                )
            ),
        ]
    )
    return


@app.cell
def _(figures, mo, np, ss, t):
    # F1-6
    _wanted = np.array([0.1, 0.7, 0.2])
    _x = np.log(_wanted)
    _s = ss.softmax([*_x, -20.0])
    _words = ["I", "love", "green", "tea"]
    _shares = ", ".join(f"**{word}** {100 * share:.2g}%" for word, share in zip(_words, _s, strict=True))
    mo.md(
        t(
            zh=f"## 读成百分比\n\n在注意力里，这些份额说的是“看谁，看多少”。分数 {figures([*_x, -20.0], 2)} 给出：{_shares}。最后一个词的权重极小，但不是零：按公式，softmax 永远不会给出恰好为零的份额（第八课的 sparsemax 会）。",
            en=f"## Reading shares as percentages\n\nIn attention, these shares say which words to look at, and how much. The scores {figures([*_x, -20.0], 2)} give: {_shares}. The last word gets almost nothing, but not nothing: by its formula, softmax never gives a share of exactly zero (sparsemax, in lesson eight, does).",
        )
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="softmax = 取指数 + 除以总和；结果非负，总和为 1。",
            en="Softmax takes exponentials, then divides by their sum; nothing is negative, and the sum is one.",
        ),
        t(
            zh="只有差起作用：给所有分数加同一个数，权重不变。",
            en="Only differences matter: adding the same number to every score changes no weight.",
        ),
        t(
            zh="只除以总和，遇到负数会出错，也不看差距。",
            en="Dividing by the sum alone breaks on negative numbers and ignores differences.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
