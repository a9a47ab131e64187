"""Lesson 5: the gradient, slope and cliff."""

import marimo

app = marimo.App(width="medium", app_title="softscope 5")


@app.cell
def _():
    import altair as alt
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.experiments import chart
    from softscope.lab import practice
    from softscope.lab.page import Page, figure, figures, measured
    from softscope.lab.widgets import JacobianWidget

    return JacobianWidget, Page, alt, chart, figure, figures, measured, mo, np, practice, ss


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("gradient", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(
            zh="解释斜坡怎样变成悬崖，为什么平地上没有梯度",
            en="explain how a slope becomes a cliff, and why there is no gradient on flat ground",
        ),
        t(
            zh="推导雅可比矩阵 $\\partial s_i/\\partial x_j = s_i(\\delta_{ij}-s_j)$",
            en="derive the Jacobian $\\partial s_i/\\partial x_j = s_i(\\delta_{ij}-s_j)$",
        ),
        t(
            zh="说出饱和什么时候有害，交叉熵为什么不受影响",
            en="say when saturation is harmful, and why cross-entropy is not affected",
        ),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 轻轻推一下\n\n有三行分数，把每行的第一个数轻轻推一下。哪几行平缓，哪几行尖锐？推的力度由你定。",
            en="## A gentle push\n\nHere are three rows of scores. Push the first number of each row a little. Which rows are smooth, and which are sharp? You choose how hard to push.",
        )
    )
    return


@app.cell
def _(mo, t):
    push = mo.ui.slider(
        0.0,
        60.0,
        0.1,
        value=0.1,
        label=t(zh="给第一个数加上", en="add to the first number"),
        show_value=True,
        full_width=True,
    )
    push
    return (push,)


@app.cell
def _(figures, mo, page, push, ss, t):
    # F0-1
    _rows = []
    for _x in ([2.0, 2.5], [200.0, 250.0], [200.0, 200.5]):
        _before, _after = ss.softmax(_x), ss.softmax([_x[0] + push.value, _x[1]])
        _rows.append(
            (
                str(_x),
                figures(_before),
                figures(_after),
                float(abs(_after[0] - _before[0])),
                float(ss.partition(_x).jacobian_trace) / 2,
            )
        )
    mo.vstack(
        [
            page.table(
                [
                    t(zh="分数", en="scores"),
                    t(zh="推之前", en="before"),
                    t(zh="推之后", en="after"),
                    t(zh="变动", en="change"),
                    "s(1−s)",
                ],
                _rows,
            ),
            mo.md(
                t(
                    zh="第三行的数值也很大，却一点也不尖锐：使 softmax 变尖的是**差距**，不是数值本身。第二行要推过整段差距才会翻转。",
                    en="The numbers in the third row are just as large, yet it is not sharp at all: what sharpens softmax is the **gap**, not the size. The second row flips only when you push it across the whole gap.",
                )
            ),
        ]
    )
    return


@app.cell
def _(chart, mo, np, page, ss, t):
    # F0-2
    _rows = [
        {"x": float(x), "s": float(ss.softmax([k * x, 0.0])[0]), "k": f"k = {k:g}"}
        for k in (1.0, 4.0, 50.0)
        for x in np.linspace(-3, 3, 121)
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 从斜坡到悬崖\n\n同一条曲线 $s = \\mathrm{softmax}(kx, 0)$，增益越来越大：斜坡变成一堵墙和一个平屋顶。墙上的斜率其实很**大**（与 $k$ 成正比），可随机取一点，几乎总落在平的地方。",
                    en="## From slope to cliff\n\nThe same curve, $s = \\mathrm{softmax}(kx, 0)$, with a growing gain: the ramp becomes a wall with a flat roof. On the wall the slope is in fact **large** (proportional to $k$), but a random point almost always lands on the flat part.",
                )
            ),
            page.draw(
                chart.curves(
                    _rows, chart.Axis("x", "x"), chart.Axis("s", "s", domain=(0.0, 1.0)), ("k", ""), points=False
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    place = mo.ui.slider(0.0, 1.0, 0.01, value=0.5, label="s", show_value=True)
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 抛物线 s(1−s)\n\n一个权重对自己的分数的导数只由它自己决定：$\\partial s_i/\\partial x_i = s_i(1-s_i)$。",
                    en="## The parabola s(1−s)\n\nThe derivative of a weight with respect to its own score depends on that weight alone: $\\partial s_i/\\partial x_i = s_i(1-s_i)$.",
                )
            ),
            place,
        ]
    )
    return (place,)


@app.cell
def _(alt, chart, figure, mo, np, page, place, t):
    # F0-4 F0-5
    _curve = [{"s": float(s), "slope": float(s * (1 - s)), "name": "s(1−s)"} for s in np.linspace(0, 1, 81)]
    _here = place.value * (1 - place.value)
    _marks = [{"s": s, "slope": s * (1 - s)} for s in (0.0, 0.5, 1.0)] + [{"s": place.value, "slope": _here}]
    _dots = (
        alt.Chart(chart.data(_marks))
        .mark_point(filled=True, size=90, color="#d55e00", opacity=1)
        .encode(x="s:Q", y="slope:Q")
    )
    _case = (
        t(zh="在中间：斜率大，学得动。", en="In the middle: the slope is large, and learning makes progress.")
        if 0.1 <= place.value <= 0.9
        else t(
            zh="接近一：已经独占，再推也推不动。",
            en="Near one: it already has everything, and a push no longer moves it.",
        )
        if place.value > 0.9
        else t(
            zh="接近零：压在谷底，推一下几乎不动——哪怕它才是正确答案。",
            en="Near zero: stuck at the bottom, it hardly moves when pushed, even if it is the right answer.",
        )
    )
    mo.vstack(
        [
            page.draw(
                alt.layer(
                    chart.curves(
                        _curve, chart.Axis("s", "s"), chart.Axis("slope", "s(1−s)"), ("name", ""), points=False
                    ),
                    _dots,
                )
            ),
            mo.md(
                t(
                    zh=f"s = {place.value} 处，s(1−s) = **{figure(_here, 4)}**。{_case}",
                    en=f"At s = {place.value}, s(1−s) = **{figure(_here, 4)}**. {_case}",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    # F0-3 F4-5
    mo.md(
        t(
            zh="## 雅可比矩阵：所有的导数\n\n推一个分数，**每个**权重都动：自己涨，别人让。对角线上是 $s_i(1-s_i)$，其余是 $-s_i s_j$；每一列的和为零，因为权重的总和总是一；每一行的和也为零，因为给所有分数加上同一个数什么也不改变。把增益 $k$ 往右拖，看整个矩阵褪色。",
            en="## The Jacobian: all the derivatives\n\nPush one score and **every** weight moves: its own grows, the others give way. The diagonal holds $s_i(1-s_i)$, the rest $-s_i s_j$. Each column sums to zero because the weights always sum to one; each row sums to zero too, because adding the same number to all scores changes nothing. Drag the gain $k$ to the right and watch the whole matrix fade.",
        )
    )
    return


@app.cell
def _(JacobianWidget, mo, page):
    matrix = mo.ui.anywidget(JacobianWidget(logits=[1.0, 0.5, 0.0, -0.5], lang=page.lang))
    matrix
    return (matrix,)


@app.cell
def _(matrix, mo, np, ss, t):
    _x = matrix.value["gain"] * np.array(matrix.value["logits"])
    _J = ss.jacobian(ss.softmax(_x))
    _step = 1e-6
    _numeric = np.stack(
        [(ss.softmax(_x + _step * e) - ss.softmax(_x - _step * e)) / (2 * _step) for e in np.eye(len(_x))], axis=1
    )
    mo.md(
        t(
            zh=f"库算出的 `ss.jacobian` 与数值差分最多相差 {np.abs(_J - _numeric).max():.0e}；各行之和最多偏离零 {np.abs(_J.sum(-1)).max():.0e}。公式对任意 n×n 都一样。",
            en=f"`ss.jacobian` differs from a finite difference by at most {np.abs(_J - _numeric).max():.0e}; the row sums differ from zero by at most {np.abs(_J.sum(-1)).max():.0e}. The formula is the same for any n×n.",
        )
    )
    return


@app.cell
def _(checked_steps, mo, t):
    # F4-4
    mo.accordion(
        {
            t(zh="推导，一步一步", en="The derivation, step by step"): mo.md(
                t(
                    zh=r"""
    **一、** 先取对数再求导，因为 $\log s_i$ 的导数简单：$\dfrac{\partial s_i}{\partial x_j} = s_i\,\dfrac{\partial \log s_i}{\partial x_j}$

    **二、** 对数把商变成差：$\log s_i = x_i - \log\sum_l e^{x_l}$

    **三、** 第一项：$\dfrac{\partial x_i}{\partial x_j} = \delta_{ij}$，即 $i=j$ 时为一，否则为零

    **四、** 第二项用链式法则：$\dfrac{\partial}{\partial x_j}\log\sum_l e^{x_l} = \dfrac{e^{x_j}}{\sum_l e^{x_l}} = s_j$（注意是 $s_j$：求和指标 $l$ 求完导就消失了）

    **五、** 合起来：$\dfrac{\partial s_i}{\partial x_j} = s_i(\delta_{ij} - s_j)$，即 $J = \mathrm{diag}(s) - s s^{\mathsf T}$
    """,
                    en=r"""
    **One.** Take the logarithm before differentiating, because $\log s_i$ has a simple derivative: $\dfrac{\partial s_i}{\partial x_j} = s_i\,\dfrac{\partial \log s_i}{\partial x_j}$

    **Two.** The logarithm turns the quotient into a difference: $\log s_i = x_i - \log\sum_l e^{x_l}$

    **Three.** The first term: $\dfrac{\partial x_i}{\partial x_j} = \delta_{ij}$, one if $i=j$ and zero otherwise

    **Four.** The second term, by the chain rule: $\dfrac{\partial}{\partial x_j}\log\sum_l e^{x_l} = \dfrac{e^{x_j}}{\sum_l e^{x_l}} = s_j$ (note that it is $s_j$: the summation index $l$ disappears on differentiating)

    **Five.** Put together: $\dfrac{\partial s_i}{\partial x_j} = s_i(\delta_{ij} - s_j)$, or $J = \mathrm{diag}(s) - s s^{\mathsf T}$
    """,
                )
            ),
            t(zh="每一步都用符号检验过", en="Every step, checked symbolically"): mo.lazy(checked_steps),
        }
    )
    return


@app.cell
def _(page):
    def checked_steps():
        return page.measured("saturation", "derivation", notes=False)

    return (checked_steps,)


@app.cell
def _(chart, mo, np, page, ss, t):
    # F4-6 F2-4
    _gaps = np.linspace(0, 20, 41)
    _rows = [
        {"gap": float(g), "norm": float(np.linalg.norm(ss.jacobian(ss.softmax([g, 0.0, 0.0, 0.0])))), "name": "‖J‖"}
        for g in _gaps
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 越接近 one-hot，越没有梯度\n\n一个分数领先其余三个，领先多少由横轴给出；纵轴是雅可比矩阵的范数（对数坐标）。它按指数下降，但永远不恰好为零。",
                    en="## The closer to one-hot, the less gradient\n\nOne score leads three others by the gap on the horizontal axis; the vertical axis is the norm of the Jacobian, on a logarithmic scale. It falls exponentially but is never exactly zero.",
                )
            ),
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("gap", t(zh="差距", en="gap")),
                    chart.Axis("norm", "‖J‖", log=True, form="~e"),
                    ("name", ""),
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
            zh=r"""
    ## 交叉熵改变了什么

    “softmax 饱和，模型就学不动”——要看后面接的是什么。损失是 $-\log s_{\text{对}}$ 时，对数的导数 $1/s$ 正好消掉前面的 $s$：

    $$\frac{\partial}{\partial x_j}\bigl(-\log s_y\bigr) = s_j - \delta_{jy}$$

    错得越自信，梯度越**大**。可在注意力**内部**没有这个对数，饱和就真的会挡住梯度。
    """,
            en=r"""
    ## What cross-entropy changes

    “Once softmax saturates, the model cannot learn”: that depends on what comes after it. With the loss $-\log s_{\text{right}}$, the logarithm's derivative $1/s$ cancels the $s$ in front:

    $$\frac{\partial}{\partial x_j}\bigl(-\log s_y\bigr) = s_j - \delta_{jy}$$

    The more confidently wrong the model is, the **larger** the gradient. But **inside** attention there is no such logarithm, and there saturation really does block the gradient.
    """,
        )
    )
    return


@app.cell
def _(mo, t):
    margin = mo.ui.slider(
        -20.0,
        20.0,
        0.5,
        value=-10.0,
        label=t(zh="正确答案领先多少", en="lead of the right answer"),
        show_value=True,
        full_width=True,
    )
    margin
    return (margin,)


@app.cell
def _(margin, np, page, ss, t):
    _x = np.array([margin.value, 0.0])
    _s = ss.softmax(_x)
    _J = ss.jacobian(_s)
    _cross = _s - np.array([1.0, 0.0])
    _square = _J @ (2 * (_s - np.array([1.0, 0.0])))
    page.table(
        ["", t(zh="对第一个分数的导数", en="derivative with respect to the first score")],
        [
            ("s(1−s)", float(_J[0, 0])),
            (t(zh="交叉熵 −log s", en="cross-entropy −log s"), float(_cross[0])),
            (t(zh="平方误差 Σ(s − 目标)²", en="squared error Σ(s − target)²"), float(_square[0])),
        ],
    )
    return


@app.cell
def _(mo, page, t):
    # F0-6
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 谁会挨饿：Q、K 还是 V？\n\n在注意力里，梯度从输出往回走。到 Q 和 K 的路要穿过 softmax 的导数；到 V 的路**不**经过它。所以“Q、K、V 都收不到信号”是错的：挨饿的是 Q 和 K，V 照常学习。实测：",
                    en="## Who starves: Q, K or V?\n\nIn attention, the gradient flows back from the output. Its path to Q and K goes through the derivative of softmax; its path to V does **not**. So “Q, K and V get no signal” is wrong: Q and K starve, while V keeps learning. Measured:",
                )
            ),
            page.measured("gradients", "blocked"),
        ]
    )
    return


@app.cell
def _(page, practice):
    answer = practice.editor(page, 6)
    practice.shown(page, 6, answer)
    return (answer,)


@app.cell
def _(answer, page, practice):
    practice.graded(page, 6, answer)
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="$J = \\mathrm{diag}(s) - s s^{\\mathsf T}$；对角线是 s(1−s)。",
            en="$J = \\mathrm{diag}(s) - s s^{\\mathsf T}$; its diagonal is s(1−s).",
        ),
        t(zh="接近 one-hot 时 J 按指数变小，但不为零。", en="Near one-hot, J is exponentially small but never zero."),
        t(
            zh="交叉熵把 s 消掉，所以输出层不怕饱和；注意力内部怕。",
            en="Cross-entropy cancels the s, so saturation does not hurt an output layer; inside attention it does.",
        ),
        t(zh="饱和时挨饿的是 Q 和 K，不是 V。", en="Under saturation, it is Q and K that starve, not V."),
    )
    return


if __name__ == "__main__":
    app.run()
