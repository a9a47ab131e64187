"""Lesson 2: overflow and the shift."""

import marimo

app = marimo.App(width="medium", app_title="softscope 2")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.lab import practice
    from softscope.lab.page import Page, figures

    return Page, figures, mo, np, practice, ss


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("overflow", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(
            zh="说出照公式直接写的 softmax 在什么情况下会算错，以及为什么不报错",
            en="say when a softmax coded straight from the formula goes wrong, and why it raises no exception",
        ),
        t(zh="证明减去任何常数都不改变结果", en="prove that subtracting any constant leaves the result unchanged"),
        t(zh="自己写一个稳定的 softmax", en="write a stable softmax yourself"),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 照着公式写\n\n把上一课的公式直接写成代码，就是下面这样。用滑块给 `[1, 2, 3]` 的每个数加上同一个数 c。差没有变，所以权重不该变。看看它从什么时候开始算错。",
            en="## Straight from the formula\n\nWritten as code, the formula of the last lesson looks like this. The slider adds the same number c to each of `[1, 2, 3]`. The differences stay the same, so the weights should too. See when it goes wrong.",
        )
    )
    return


@app.cell
def _(mo, np):
    def softmax_naive(x):
        e = np.exp(x)
        return e / e.sum()

    mo.show_code()
    return (softmax_naive,)


@app.cell
def _(mo, t):
    lift = mo.ui.slider(
        0, 1200, 1, value=0, label=t(zh="给每个分数加上 c", en="add c to every score"), show_value=True, full_width=True
    )
    precision = mo.ui.dropdown(
        ["float64", "float32", "float16"], value="float64", label=t(zh="浮点类型", en="floating-point type")
    )
    mo.vstack([lift, precision])
    return lift, precision


@app.cell
def _(figures, lift, mo, np, page, precision, softmax_naive, softmax_shifted, t):
    # F3-2 F3-3 F3-5
    _x = (np.array([1.0, 2.0, 3.0]) + lift.value).astype(precision.value)
    with np.errstate(all="ignore"):
        _e, _naive = np.exp(_x), softmax_naive(_x)
    _shifted = softmax_shifted(_x)
    _nan = not np.isfinite(_naive).all()
    # In float16, some offsets keep every exp finite while only their sum overflows.
    _broken = _nan or not np.allclose(_naive, _shifted, atol=0.01)
    _cells = lambda values: [f"{float(v):.4g}" for v in values]
    mo.vstack(
        [
            page.table(
                ["", "x₁", "x₂", "x₃"],
                [
                    ("x", *_cells(_x)),
                    ("exp(x)", *_cells(_e)),
                    (t(zh="照公式算", en="straight from the formula"), *_cells(_naive)),
                    ("exp(x − max)", *_cells(np.exp(_x - _x.max()))),
                    (t(zh="先减去最大值", en="maximum subtracted first"), *_cells(_shifted)),
                ],
            ),
            mo.callout(
                mo.md(
                    t(
                        zh=f"**溢出**了：`exp(x)` 超过了这种浮点数能表示的最大数，于是变成无穷大；无穷大除以无穷大得到 `nan`（不是一个数）。注意，这里**没有抛出异常**：NumPy 只发出警告，`try … except` 捕获不到。先减去最大值，权重仍然是 {figures(_shifted, 4)}。",
                        en=f"**Overflow**: `exp(x)` is larger than the largest number this floating-point type can hold, so it becomes infinity; and infinity divided by infinity is `nan` (not a number). Note that **no exception is raised**: NumPy only warns, and `try … except` does not catch a warning. With the maximum subtracted first, the weights are still {figures(_shifted, 4)}.",
                    )
                    if _nan
                    else t(
                        zh=f"还没有 `nan`，却已经错了：每个 `exp` 都有限，但它们的**和**溢出成无穷大，有限的数除以无穷大得到零。照公式算出的权重之和是 {float(_naive.sum()):.4g}，不是一；同样**没有抛出异常**。先减去最大值，权重仍然是 {figures(_shifted, 4)}。",
                        en=f"No `nan` yet, but already wrong: each `exp` is finite, while their **sum** overflows to infinity, and a finite number divided by infinity is zero. The formula's weights sum to {float(_naive.sum()):.4g}, not one; again **no exception is raised**. With the maximum subtracted first, the weights are still {figures(_shifted, 4)}.",
                    )
                    if _broken
                    else t(
                        zh=f"两种写法都给出 {figures(_shifted, 4)}。把滑块继续往右拖。",
                        en=f"Both versions give {figures(_shifted, 4)}. Keep dragging the slider to the right.",
                    )
                ),
                kind="danger" if _broken else "success",
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    # F3-6
    mo.md(
        t(
            zh=r"""
    ## 为什么减去最大值，结果不变？

    设 $C$ 是任意一个数。把分子和分母同时乘以 $e^{-C}$：

    $$\frac{e^{x_i}}{\sum_j e^{x_j}} = \frac{e^{x_i}\,e^{-C}}{\sum_j e^{x_j}\,e^{-C}} = \frac{e^{x_i - C}}{\sum_j e^{x_j - C}}$$

    对**任何** $C$ 都成立。现在取 $C = \max x$，即最大的分数。这样每个 $x_i - C$ 都不大于零，每个 $e^{x_i - C}$ 都不大于一，所以不会溢出。而最大的分数给出 $e^0 = 1$，所以总和至少是一，也不会除以零。
    """,
            en=r"""
    ## Why does subtracting the maximum change nothing?

    Let $C$ be any number. Multiply the numerator and the denominator by $e^{-C}$:

    $$\frac{e^{x_i}}{\sum_j e^{x_j}} = \frac{e^{x_i}\,e^{-C}}{\sum_j e^{x_j}\,e^{-C}} = \frac{e^{x_i - C}}{\sum_j e^{x_j - C}}$$

    This holds for **every** $C$. Now take $C = \max x$, the largest score. Then no $x_i - C$ is above zero and no $e^{x_i - C}$ is above one, so nothing overflows. And the largest score gives $e^0 = 1$, so the sum is at least one and we never divide by zero.
    """,
        )
    )
    return


@app.cell
def _(mo, np, page, ss, t):
    _rng = np.random.default_rng(1)
    _x = _rng.normal(size=(1000, 6))
    _rows = [
        (f"{c:g}", float(np.abs(ss.softmax(_x + c) - ss.softmax(_x)).max())) for c in (-1000.0, -1.0, 1.0, 1000.0, 1e6)
    ]
    page.details(
        page.table(["c", t(zh="权重的最大变化", en="largest change in a weight")], _rows),
        mo.md(
            t(
                zh="变化不恰好是零，因为计算机算 `x + c` 时要舍入：c 越大，留给差的位数越少。",
                en="The change is not exactly zero because the computer rounds `x + c`: the larger c is, the fewer digits are left for the differences.",
            )
        ),
        title=t(
            zh="测一测：给随机的行加上 c，权重最多变多少？",
            en="Measured: add c to random rows. How much do the weights change at most?",
        ),
    )
    return


@app.cell
def _(mo, np, page, t):
    _types = [np.finfo(name) for name in ("float16", "float32", "float64")]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 极限在哪里？\n\n每种浮点类型都有一个最大的数。分数 x 超过它的自然对数，`exp(x)` 就会溢出：",
                    en="## Where are the limits?\n\nEvery floating-point type has a largest number. Once a score x exceeds the natural logarithm of that number, `exp(x)` overflows:",
                )
            ),
            page.table(
                [
                    t(zh="浮点类型", en="floating-point type"),
                    t(zh="最大的数", en="largest number"),
                    t(zh="x 的上限", en="upper limit for x"),
                ],
                [(str(one.dtype), f"{float(one.max):.2g}", float(np.log(np.float64(one.max)))) for one in _types],
            ),
            mo.md(
                t(
                    zh="**分数太小也会出错。** 如果所有分数都远小于零，每个 `exp` 都会**下溢**，也就是舍入为零；零除以零又是 `nan`。减去最大值，这个问题也一并解决。",
                    en="**Very low scores go wrong too.** If all scores are far below zero, every `exp` **underflows**, that is, it is rounded to zero; and zero divided by zero is `nan` again. Subtracting the maximum cures this as well.",
                )
            ),
            page.details(page.measured("overflow", "limits")),
        ]
    )
    return


@app.cell
def _(page, practice):
    # F3-14
    answer = practice.editor(page, "softmax")
    practice.shown(page, "softmax", answer)
    return (answer,)


@app.cell
def _(answer, page, practice):
    practice.graded(page, "softmax", answer)
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="做完练习，可以对照这个写法：只比第一个多减去一次最大值。",
            en="When you have done the exercise, compare your answer with this version: it only subtracts the maximum first.",
        )
    )
    return


@app.cell
def _(mo, np):
    def softmax_shifted(x):
        e = np.exp(x - x.max())
        return e / e.sum()

    mo.show_code()
    return (softmax_shifted,)


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="照公式直接写的 softmax，遇到很大的分数会得到零或 nan，而且不抛出异常。",
            en="Coded straight from the formula, softmax gives zeros or nan for large scores, and raises no exception.",
        ),
        t(
            zh="减去任何常数都不改变结果；减去最大值，就既不会溢出，也不会除以零。",
            en="Subtracting any constant leaves the result unchanged; subtracting the maximum prevents overflow and division by zero.",
        ),
        t(
            zh="起作用的只有差：分数一起变大，权重不变。",
            en="Only differences matter: if all scores grow together, the weights stay the same.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
