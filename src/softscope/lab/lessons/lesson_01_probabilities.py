"""Lesson 1: from numbers to probabilities."""

import marimo

app = marimo.App(width="medium", app_title="softscope 1")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.experiments import chart
    from softscope.lab.page import Page, figure, figures
    from softscope.lab.widgets import StepsWidget

    return Page, StepsWidget, chart, figure, figures, mo, np, ss


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
            zh="用一幅图画出 softmax 的两步：取指数，再除以总和",
            en="draw the two steps of softmax: take exponentials, then divide by their sum",
        ),
        t(
            zh="说明它保证了什么：每个权重非负，总和为 1",
            en="state what it guarantees: no weight is negative, and the weights sum to one",
        ),
        t(
            zh="解释为什么用指数函数，而不是别的函数",
            en="explain why it is the exponential and no other function",
        ),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh=r"""
    ## 问题

    模型给几个选项打了分，记作 $x_1, x_2, \dots, x_n$。**分数**可以是任何实数：正的、负的、零。我们想要的却是**权重** $s_1, s_2, \dots, s_n$：每个都不小于零，加起来正好是一。怎样从分数得到权重？

    softmax 分两步回答：

    $$s_i = \frac{e^{x_i}}{e^{x_1} + e^{x_2} + \dots + e^{x_n}}$$

    第一步，取指数：$e^{x}$（$e \approx 2.718$）总是正数，分数每加一，它就变成原来的 $e$ 倍。第二步，每个数都除以总和，总和就变成了一。

    拖动下面的圆点，看这两步。
    """,
            en=r"""
    ## The question

    A model has scored a few options; call the scores $x_1, x_2, \dots, x_n$. A **score** (many books say *logit*) can be any real number: positive, negative or zero. But what we want are **weights** $s_1, s_2, \dots, s_n$: none below zero, and all of them adding up to exactly one. How do we get weights from scores?

    Softmax answers in two steps:

    $$s_i = \frac{e^{x_i}}{e^{x_1} + e^{x_2} + \dots + e^{x_n}}$$

    Step one, take exponentials: $e^{x}$ (with $e \approx 2.718$) is always positive, and it grows by a factor of $e$ whenever the score grows by one. Step two, divide each by their sum, so that the new sum is one.

    Drag the dots below and watch the two steps.
    """,
        )
    )
    return


@app.cell
def _(StepsWidget, mo, page):
    picture = mo.ui.anywidget(StepsWidget(logits=[0.0, 1.0, 2.0], lang=page.lang))
    picture
    return (picture,)


@app.cell
def _(figure, figures, mo, picture, ss, t):
    # F3-4
    _x = picture.value["logits"]
    _s = ss.softmax(_x)
    mo.md(
        t(
            zh=f"库算出同样的权重：`ss.softmax({figures(_x, 2)})` = {figures(_s)}，总和 {figure(_s.sum())}。\n\n按一下“全部加 1”：第一步的柱子一起变高，第二步的长条却**一动不动**。起作用的只有分数之间的**差**。",
            en=f"The library computes the same weights: `ss.softmax({figures(_x, 2)})` = {figures(_s)}, with sum {figure(_s.sum())}.\n\nPress “add 1 to all”: the bars of step one all grow, but the long bar of step two **does not move**. Only the **differences** between scores matter.",
        )
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh=r"""
    ## 为什么偏偏是指数？

    换一个函数 $f$ 代替 $e^x$ 行不行？两个权重之比是 $f(x)/f(y)$。如果只有差起作用，那么给 $x$ 和 $y$ 加上同一个数 $c$，这个比就不能变：

    $$\frac{f(x+c)}{f(y+c)} = \frac{f(x)}{f(y)} \quad \text{对所有的 } x, y, c$$

    取 $y = 0$，并记 $g(x) = f(x)/f(0)$，就得到 $g(x + c) = g(x)\,g(c)$：**加法变成乘法**。连续的函数里，只有指数函数 $g(x) = a^x$ 做得到。所以 $f$ 只能是 $e^{kx}$ 的倍数，其中 $k = \ln a$，取 $k = 1$ 就是 softmax。（$k$ 起什么作用，是第三课的内容。）

    下图画出几种函数的比值怎样随 $c$ 变化。只有指数函数是水平线。
    """,
            en=r"""
    ## Why the exponential, of all functions?

    Could another function $f$ take the place of $e^x$? The ratio of two weights is $f(x)/f(y)$. If only differences may count, then adding the same number $c$ to both $x$ and $y$ must leave this ratio alone:

    $$\frac{f(x+c)}{f(y+c)} = \frac{f(x)}{f(y)} \quad \text{for all } x, y, c$$

    Set $y = 0$ and write $g(x) = f(x)/f(0)$. This gives $g(x + c) = g(x)\,g(c)$: **adding becomes multiplying**. Among continuous functions, only the exponentials $g(x) = a^x$ do that. So $f$ has to be a multiple of $e^{kx}$ with $k = \ln a$, and $k = 1$ is softmax. (Lesson three shows what $k$ does.)

    The chart shows how the ratio changes with $c$ for a few functions. Only the exponentials give a level line.
    """,
        )
    )
    return


@app.cell
def _(chart, mo, np, page, t):
    _functions = {
        "eˣ": np.exp,
        "2ˣ": np.exp2,
        "x²": np.square,
        "log(1 + eˣ)": lambda x: np.log1p(np.exp(x)),
    }
    _x, _y = 2.0, 1.0
    _rows = [
        {"c": float(c), "ratio": float(f(_x + c) / f(_y + c)), "f": f"f(x) = {name}"}
        for name, f in _functions.items()
        for c in np.linspace(0.0, 4.0, 41)
    ]
    mo.vstack(
        [
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("c", t(zh="给 x 和 y 都加上的数 c", en="c, added to both x and y")),
                    chart.Axis("ratio", f"f({_x:g} + c) / f({_y:g} + c)", domain=(1.0, 4.0)),
                    ("f", ""),
                    points=False,
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 为什么不省掉第一步，直接除以总和？\n\n改变下面的三个分数，把两种做法放在一起比较。符号 Σ 表示求和。",
            en="## Why not skip step one and just divide by the sum?\n\nChange the three scores below and compare the two methods. The sign Σ means “the sum of”.",
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
                    zh="直接除以总和，一个选项分到多少，取决于它的分数离**零**有多远。先取指数，则取决于它离**其他分数**有多远。再把一个分数拖到零以下：`x / Σx` 会给出负数，总和为负时连大小顺序都会颠倒；softmax 不会。",
                    en="If you just divide by the sum, what an option gets depends on how far its score is from **zero**. If you take exponentials first, it depends on how far the score is from **the other scores**. Now drag a score below zero: `x / Σx` gives negative numbers, and when the sum is negative it even reverses the order. Softmax does neither.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, np, page, ss, t):
    # F1-2
    _x = np.random.default_rng(0).normal(0.0, 5.0, (20_000, 8))
    _e, _s = np.exp(_x), ss.softmax(_x)
    _tiny = np.exp(np.array([-800.0, -801.0]))
    _checks = [
        ("exp(x) ≥ 0", (_e >= 0).all(-1), t(zh="最小的 exp(x)", en="smallest exp(x)"), _e.min()),
        ("Σ exp(x) > 0", _e.sum(-1) > 0, t(zh="最小的总和", en="smallest sum"), _e.sum(-1).min()),
        ("0 ≤ s ≤ 1", ((_s >= 0) & (_s <= 1)).all(-1), t(zh="最小的权重", en="smallest weight"), _s.min()),
        (
            "Σ s = 1",
            abs(_s.sum(-1) - 1) < 1e-12,
            t(zh="最大的舍入误差", en="largest rounding error"),
            abs(_s.sum(-1) - 1).max(),
        ),
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## softmax 保证什么？\n\n指数总是正的，所以每个权重都不小于零；除以总和之后，总和为 1。我们随机抽取许多行分数，逐行检查：",
                    en="## What does softmax guarantee?\n\nExponentials are positive, so no weight is below zero; and after dividing by the sum, the sum is one. We draw many random rows of scores and check every row:",
                )
            ),
            page.table(
                [t(zh="性质", en="property"), t(zh="成立的行", en="rows where it holds"), t(zh="共", en="out of")],
                [(name, f"{int(holds.sum()):,}", f"{len(_x):,}") for name, holds, _, _ in _checks],
            ),
            page.details(
                page.table(
                    [t(zh="性质", en="property"), t(zh="量", en="quantity"), t(zh="测得", en="measured")],
                    [(name, what, f"{value:.1e}") for name, _, what, value in _checks],
                ),
                mo.md(
                    t(
                        zh=f"在计算机里有一个例外：`exp([-800, -801])` 得到 {_tiny.tolist()}，总和不再大于零。下一课讲怎样避免。",
                        en=f"On a computer there is one exception: `exp([-800, -801])` gives {_tiny.tolist()}, and the sum is no longer above zero. The next lesson shows how to avoid this.",
                    )
                ),
            ),
        ]
    )
    return


@app.cell
def _(chart, figures, mo, np, page, ss, t):
    # F1-6
    _x = [*np.log([0.1, 0.7, 0.2]), -20.0]
    _s = ss.softmax(_x)
    _words = t(zh="我 爱 喝 茶", en="I love green tea").split()
    _shares = t(zh="，", en=", ").join(f"{word} {100 * share:.2g}%" for word, share in zip(_words, _s, strict=True))
    _rows = [{"word": word, "percent": 100 * float(share)} for word, share in zip(_words, _s, strict=True)]
    mo.vstack(
        [
            mo.md(
                t(
                    zh=f"## 把权重读成百分比\n\n注意力（第七课）里的权重说的是：看每个词看多少。假设四个词的分数是 {figures(_x, 2)}，那么：",
                    en=f"## Reading weights as percentages\n\nIn attention (lesson seven), the weights say how much to look at each word. If four words have the scores {figures(_x, 2)}, then:",
                )
            ),
            page.draw(
                chart.bars(
                    _rows,
                    ("word", ""),
                    chart.Axis("percent", t(zh="权重（百分比）", en="weight in percent")),
                    digits=".0f",
                )
            ),
            mo.md(
                t(
                    zh=f"也就是：{_shares}。最后一个词的权重小到看不见，但不是零：按公式，softmax 给出的权重永远大于零。（第八课的 sparsemax 可以给出恰好的零。）",
                    en=f"That is: {_shares}. The last word's weight is too small to see, but it is not zero: by its formula, softmax gives every option a weight above zero. (Sparsemax, in lesson eight, can give exactly zero.)",
                )
            ),
        ]
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="softmax 有两步：先取指数，再除以总和。权重都不小于零，总和为 1。",
            en="Softmax has two steps: take exponentials, then divide by their sum. No weight is below zero, and the weights sum to one.",
        ),
        t(
            zh="只有差起作用：给所有分数加同一个数，权重不变。正是这个要求决定了必须用指数函数。",
            en="Only differences matter: adding the same number to every score changes no weight. This demand alone forces the exponential.",
        ),
        t(
            zh="省掉第一步、直接除以总和，遇到负数就会出错。",
            en="Skipping step one and just dividing by the sum goes wrong as soon as a score is negative.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
