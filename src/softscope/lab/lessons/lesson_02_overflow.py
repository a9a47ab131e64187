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
            zh="指出照公式写的 softmax 在哪里失效，以及为什么没有报错",
            en="say where softmax written as its formula fails, and why nothing is raised",
        ),
        t(zh="证明减去任何常数都不改变结果", en="prove that subtracting any constant leaves the result as it is"),
        t(zh="自己写一个稳定的 softmax", en="write a stable softmax yourself"),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 照着公式写\n\n这是公式的直接翻译。用滑块把 `[1, 2, 3]` 整体抬高，看它什么时候坏掉。",
            en="## The formula as it stands\n\nThis is the formula, word for word. Lift `[1, 2, 3]` as a whole with the slider, and see when it breaks.",
        )
    )
    return


@app.cell
def _(mo, np):
    def softmax_naive(x):
        e = np.exp(x)
        return e / e.sum()

    def softmax_shifted(x):
        e = np.exp(x - x.max())
        return e / e.sum()

    mo.show_code()
    return softmax_naive, softmax_shifted


@app.cell
def _(mo, t):
    lift = mo.ui.slider(
        0, 1200, 1, value=0, label=t(zh="整体加上 c", en="add c to all"), show_value=True, full_width=True
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
    # In float16 there is a height at which every exp is finite and only their sum is not.
    _broken = _nan or not np.allclose(_naive, _shifted, atol=0.01)
    _cells = lambda values: [f"{float(v):.4g}" for v in values]
    mo.vstack(
        [
            page.table(
                ["", "x₁", "x₂", "x₃"],
                [
                    ("x", *_cells(_x)),
                    ("exp(x)", *_cells(_e)),
                    (t(zh="照公式", en="as the formula"), *_cells(_naive)),
                    ("exp(x − max)", *_cells(np.exp(_x - _x.max()))),
                    (t(zh="先减最大值", en="maximum subtracted"), *_cells(_shifted)),
                ],
            ),
            mo.callout(
                mo.md(
                    t(
                        zh=f"溢出了：`exp` 给出无穷大，无穷除以无穷得到 `nan`。注意：**没有抛出异常**。NumPy 只发一条警告，所以 `try … except` 抓不到它。减去最大值的版本仍给出 {figures(_shifted, 4)}。",
                        en=f"Overflow: `exp` gives infinity, and infinity over infinity is `nan`. Note that **nothing is raised**: NumPy warns and goes on, so `try … except` catches nothing. The shifted version still gives {figures(_shifted, 4)}.",
                    )
                    if _nan
                    else t(
                        zh=f"还没有 `nan`，却已经错了：每个 `exp` 都有限，但它们的**和**溢出成无穷大，有限的数除以无穷大得到零。照公式的权重之和是 {float(_naive.sum()):.4g}，不是一；同样**没有抛出异常**。减去最大值的版本仍给出 {figures(_shifted, 4)}。",
                        en=f"No `nan` yet, and wrong already: every `exp` is finite, but their **sum** overflows to infinity, and a finite number over infinity is zero. The formula's weights sum to {float(_naive.sum()):.4g}, not to one; again **nothing is raised**. The shifted version still gives {figures(_shifted, 4)}.",
                    )
                    if _broken
                    else t(
                        zh=f"两种写法都给出 {figures(_shifted, 4)}。继续往右拖。",
                        en=f"Both ways give {figures(_shifted, 4)}. Drag further to the right.",
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
    ## 为什么可以减？

    把分子和分母同时除以 $e^{C}$：

    $$\frac{e^{x_i}}{\sum_j e^{x_j}} = \frac{e^{x_i}\,e^{-C}}{\sum_j e^{x_j}\,e^{-C}} = \frac{e^{x_i - C}}{\sum_j e^{x_j - C}}$$

    对**任何** $C$ 都成立。取 $C = \max x$：每个指数都不大于零，$e$ 的幂都不大于一，不会溢出；而最大的那个恰好是一，总和也就不会是零。
    """,
            en=r"""
    ## Why may we subtract?

    Divide numerator and denominator by $e^{C}$:

    $$\frac{e^{x_i}}{\sum_j e^{x_j}} = \frac{e^{x_i}\,e^{-C}}{\sum_j e^{x_j}\,e^{-C}} = \frac{e^{x_i - C}}{\sum_j e^{x_j - C}}$$

    This holds for **every** $C$. Take $C = \max x$: no exponent is above zero, so no power is above one and nothing overflows; and the largest is exactly one, so the sum is never zero.
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
    mo.vstack(
        [
            mo.md(
                t(
                    zh="**测一测**：给随机的行加上 c，权重最多变了多少？",
                    en="**Measured**: add c to random rows; by how much do weights move at most?",
                )
            ),
            page.table(["c", t(zh="权重的最大变化", en="largest change of a weight")], _rows),
            mo.md(
                t(
                    zh="变化不是零，因为 `x + c` 本身先被舍入了：c 越大，留给差的位数越少。",
                    en="It is not zero because `x + c` itself is rounded first: the larger c, the fewer digits are left for the differences.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, page, t):
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 极限在哪里\n\n每种浮点类型的极限，现测的：",
                    en="## Where the limits are\n\nThe limit of each floating-point type, measured now:",
                )
            ),
            page.measured("overflow", "limits"),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="**全都很小也不行**：分数都远小于零时，`exp` 全部下溢为零，除以零也是 `nan`。减去最大值同时治好这一头。",
            en="**All small is no better**: where all scores are far below zero, every `exp` underflows to zero, and zero over zero is `nan` too. Subtracting the maximum mends this end as well.",
        )
    )
    return


@app.cell
def _(page, practice):
    # F3-14
    answer = practice.editor(page, 1)
    practice.shown(page, 1, answer)
    return (answer,)


@app.cell
def _(answer, page, practice):
    practice.graded(page, 1, answer)
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="照公式写的 softmax，分数一大就得到全零或 nan，而且没有异常。",
            en="Written as its formula, softmax gives zeros or nan on large scores, and raises nothing.",
        ),
        t(
            zh="减去任何常数都不改变结果；减最大值使一切不溢出。",
            en="Any constant may be subtracted; the maximum keeps everything in range.",
        ),
        t(
            zh="起作用的只有差，所以分数整体变大并不会使 softmax 更尖锐。",
            en="Only differences count: larger values as such do not make a softmax sharper.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
