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
            zh="指出照公式直接写的 softmax 在哪里失效，以及为什么没有报错",
            en="say where a softmax coded straight from the formula fails, and why no exception is raised",
        ),
        t(zh="证明减去任何常数都不改变结果", en="prove that subtracting any constant leaves the result unchanged"),
        t(zh="自己写一个稳定的 softmax", en="write a stable softmax yourself"),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 照着公式写\n\n这是公式的直接翻译。用滑块把 `[1, 2, 3]` 整体抬高，看它什么时候坏掉。",
            en="## Straight from the formula\n\nThis is a literal translation of the formula. Use the slider to raise all of `[1, 2, 3]` together, and see when it breaks.",
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
                    (t(zh="照公式", en="formula as is"), *_cells(_naive)),
                    ("exp(x − max)", *_cells(np.exp(_x - _x.max()))),
                    (t(zh="先减最大值", en="maximum subtracted"), *_cells(_shifted)),
                ],
            ),
            mo.callout(
                mo.md(
                    t(
                        zh=f"溢出了：`exp` 给出无穷大，无穷除以无穷得到 `nan`。注意：**没有抛出异常**。NumPy 只发出一条警告，所以 `try … except` 捕获不到。减去最大值的版本仍给出 {figures(_shifted, 4)}。",
                        en=f"Overflow: `exp` gives infinity, and infinity divided by infinity is `nan`. Note that **no exception is raised**: NumPy only issues a warning, so `try … except` does not catch it. The shifted version still gives {figures(_shifted, 4)}.",
                    )
                    if _nan
                    else t(
                        zh=f"还没有 `nan`，却已经错了：每个 `exp` 都有限，但它们的**和**溢出成无穷大，有限的数除以无穷大得到零。照公式算出的权重之和是 {float(_naive.sum()):.4g}，不是一；同样**没有抛出异常**。减去最大值的版本仍给出 {figures(_shifted, 4)}。",
                        en=f"No `nan` yet, but already wrong: each `exp` is finite, while their **sum** overflows to infinity, and a finite number divided by infinity is zero. The formula's weights sum to {float(_naive.sum()):.4g}, not one; again **no exception is raised**. The shifted version still gives {figures(_shifted, 4)}.",
                    )
                    if _broken
                    else t(
                        zh=f"两种写法都给出 {figures(_shifted, 4)}。继续往右拖。",
                        en=f"Both versions give {figures(_shifted, 4)}. Keep dragging to the right.",
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
    ## Why can we subtract?

    Divide the numerator and the denominator by $e^{C}$:

    $$\frac{e^{x_i}}{\sum_j e^{x_j}} = \frac{e^{x_i}\,e^{-C}}{\sum_j e^{x_j}\,e^{-C}} = \frac{e^{x_i - C}}{\sum_j e^{x_j - C}}$$

    This holds for **every** $C$. Take $C = \max x$: no exponent is above zero, so no power is above one and nothing overflows; and the largest power is exactly one, so the sum is never zero.
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
                    en="**Measured**: add c to random rows. How much do the weights change at most?",
                )
            ),
            page.table(["c", t(zh="权重的最大变化", en="largest change in a weight")], _rows),
            mo.md(
                t(
                    zh="变化不是零，因为 `x + c` 本身就有舍入：c 越大，留给差的位数越少。",
                    en="The change is not zero because `x + c` itself is rounded: the larger c is, the fewer digits are left for the differences.",
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
                    zh="## 极限在哪里\n\n各种浮点类型的极限，当场测得：",
                    en="## Where the limits are\n\nThe limits of each floating-point type, measured just now:",
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
            zh="**分数全都很小也不行**：分数都远小于零时，`exp` 全部下溢为零，零除以零也是 `nan`。减去最大值，这一头的问题也一并解决。",
            en="**Very low scores are no better**: when all scores are far below zero, every `exp` underflows to zero, and zero divided by zero is `nan` too. Subtracting the maximum fixes this end as well.",
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
            zh="照公式直接写的 softmax，分数一大就得到全零或 nan，而且不抛异常。",
            en="Coded straight from the formula, softmax gives all zeros or nan for large scores, and raises no exception.",
        ),
        t(
            zh="减去任何常数都不改变结果；减去最大值则不会溢出。",
            en="Subtracting any constant leaves the result unchanged; subtracting the maximum prevents overflow.",
        ),
        t(
            zh="起作用的只有差：数值变大本身并不会使 softmax 更尖锐。",
            en="Only differences matter: larger values alone do not make softmax sharper.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
