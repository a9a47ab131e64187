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
            zh="解释斜坡怎样变成悬崖，为什么平坦的地方几乎没有梯度",
            en="explain how a slope becomes a cliff, and why there is hardly any gradient on flat ground",
        ),
        t(
            zh="推导雅可比矩阵 $\\partial s_i/\\partial x_j = s_i(\\delta_{ij}-s_j)$",
            en="derive the Jacobian $\\partial s_i/\\partial x_j = s_i(\\delta_{ij}-s_j)$",
        ),
        t(
            zh="说出饱和（权重接近 one-hot）什么时候有害，交叉熵为什么不怕它",
            en="say when saturation (weights close to one-hot) is harmful, and why cross-entropy does not suffer from it",
        ),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 轻轻推一下\n\n模型靠梯度学习：把一个分数稍微改变一点，权重会改变多少？改变得多，就学得动；几乎不变，就学不动。下面有三行分数，把每行的第一个分数推一下，推多少由你决定。哪一行跟着动，哪一行不动？",
            en="## A gentle push\n\nA model learns from gradients: if a score changes a little, how much do the weights change? If they change a lot, learning makes progress; if they hardly change, it is stuck. Here are three rows of scores. Push the first score of each row; you choose how far. Which rows move, and which do not?",
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
                    zh="第二行几乎不动，要推过整段差距才会翻转。第三行的数值同样很大，却和第一行一样容易推动：让 softmax 变得尖锐的是**差距**，不是数值的大小。最后一列 s(1−s) 是第一个权重的斜率，下面就讲它。",
                    en="The second row hardly moves, and flips only when you push it across the whole gap. The numbers in the third row are just as large, yet it moves as easily as the first: what makes softmax sharp is the **gap**, not the size of the numbers. The last column, s(1−s), is the slope of the first weight; we come to it now.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    steepness = mo.ui.slider(
        steps=[1, 2, 4, 8, 16, 32, 64], value=4, label=t(zh="增益 k", en="gain k"), show_value=True, full_width=True
    )
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 从斜坡到悬崖\n\n有两个分数 $kx$ 和零，其中 $k$ 是第三课的增益。画出第一个权重 $s$ 怎样随 $x$ 变化。增大 $k$，斜坡就变成悬崖：一堵墙，墙外是平地。",
                    en="## From slope to cliff\n\nTake two scores, $kx$ and zero, where $k$ is the gain of lesson three, and draw the first weight $s$ against $x$. Raise $k$ and the slope becomes a cliff: a wall with flat ground on either side.",
                )
            ),
            steepness,
        ]
    )
    return (steepness,)


@app.cell
def _(chart, figure, mo, np, page, ss, steepness, t):
    # F0-2
    _k, _grid = float(steepness.value), np.linspace(-3, 3, 241)
    _rows = [
        {"x": float(x), "s": float(ss.softmax([k * x, 0.0])[0]), "k": f"k = {k:g}"}
        for k in sorted({1.0, _k})
        for x in _grid
    ]
    _slope = np.array([_k * float(np.prod(ss.softmax([_k * x, 0.0]))) for x in _grid])
    _flat = float((_slope < 0.01).mean())
    _lesson = (
        t(
            zh="斜率没有消失，而是集中到了墙上；可是随便取一点，多半落在平地上，那里几乎没有梯度。",
            en="The slope has not vanished, it has gathered on the wall; but a point picked at random most likely lies on flat ground, where there is hardly any gradient.",
        )
        if _flat > 0.5
        else t(zh="这还是斜坡，再增大 k 试试。", en="This is still a slope; raise k further.")
    )
    mo.vstack(
        [
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("x", "x"),
                    chart.Axis("s", t(zh="第一个权重 s", en="first weight s"), domain=(0.0, 1.0)),
                    ("k", ""),
                    points=False,
                )
            ),
            mo.md(
                t(
                    zh=f"增益 k = {_k:g} 时，墙上最陡处的斜率是 **{figure(float(_slope.max()), 2)}**（正好是 $k/4$），图中平地（斜率不到百分之一）占 **{_flat:.0%}**。{_lesson}",
                    en=f"At gain k = {_k:g}, the steepest slope, on the wall, is **{figure(float(_slope.max()), 2)}** (exactly $k/4$), and **{_flat:.0%}** of the picture is flat ground, with a slope below one hundredth. {_lesson}",
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
                    zh="## 抛物线 s(1−s)\n\n把第 $i$ 个分数 $x_i$ 改变一点，它自己的权重 $s_i$ 改变多少？这个导数只由权重 $s_i$ 自己决定：$\\partial s_i/\\partial x_i = s_i(1-s_i)$。拖动滑块，沿着抛物线走一遍。",
                    en="## The parabola s(1−s)\n\nIf the score $x_i$ changes a little, how much does its own weight $s_i$ change? This derivative depends on nothing but the weight $s_i$: $\\partial s_i/\\partial x_i = s_i(1-s_i)$. Move the slider and walk along the parabola.",
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
            zh="接近一：它已经占有几乎全部权重，再推也不动。",
            en="Near one: it already has nearly all the weight, and a push no longer moves it.",
        )
        if place.value > 0.9
        else t(
            zh="接近零：推一下几乎不动，哪怕它才是正确答案。",
            en="Near zero: it hardly moves when pushed, even if it is the right answer.",
        )
    )
    mo.vstack(
        [
            page.draw(
                alt.layer(
                    chart.curves(
                        _curve,
                        chart.Axis("s", t(zh="权重 s", en="weight s")),
                        chart.Axis("slope", "s(1−s)"),
                        ("name", ""),
                        points=False,
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
    size = mo.ui.slider(2, 6, 1, value=4, label=t(zh="分数的个数 n", en="number of scores n"), show_value=True)
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 雅可比矩阵：所有的导数\n\n改变一个分数，**每个**权重都会动：它自己的权重增加，其他的减少。把所有的导数 $\\partial s_i/\\partial x_j$ 排成表，就是**雅可比矩阵** $J$，它有 $n \\times n$ 个格子：第 $i$ 行是权重 $s_i$，第 $j$ 列是分数 $x_j$。对角线上是 $s_i(1-s_i)$，其余的格子里是 $-s_i s_j$。\n\n每一列加起来是零，因为权重的总和总是一；每一行加起来也是零，因为给所有分数加上同一个数，什么也不改变。把增益 $k$ 往右拖，看整个矩阵褪色。",
                    en="## The Jacobian: all the derivatives\n\nChange one score and **every** weight moves: its own grows, the others shrink. The $n \\times n$ table of all derivatives $\\partial s_i/\\partial x_j$ is the **Jacobian** $J$: row $i$ belongs to the weight $s_i$, column $j$ to the score $x_j$. On the diagonal stands $s_i(1-s_i)$, everywhere else $-s_i s_j$.\n\nEach column sums to zero because the weights always sum to one; each row sums to zero because adding the same number to all scores changes nothing. Drag the gain $k$ to the right and watch the whole matrix fade.",
                )
            ),
            size,
        ]
    )
    return (size,)


@app.cell
def _(JacobianWidget, mo, np, page, size):
    # F0-3 F4-5
    _scores = np.linspace(1.0, 1.0 - 0.5 * (size.value - 1), size.value).tolist()
    matrix = mo.ui.anywidget(JacobianWidget(logits=_scores, lang=page.lang))
    matrix
    return (matrix,)


@app.cell
def _(matrix, mo, np, page, ss, t):
    _x = matrix.value["gain"] * np.array(matrix.value["logits"])
    _J = ss.jacobian(ss.softmax(_x))
    _step = 1e-6
    _numeric = np.stack(
        [(ss.softmax(_x + _step * e) - ss.softmax(_x - _step * e)) / (2 * _step) for e in np.eye(len(_x))], axis=1
    )
    page.details(
        mo.md(
            t(
                zh=f"库函数 `ss.jacobian` 与数值差分最多相差 {np.abs(_J - _numeric).max():.0e}；各行之和离零最多 {np.abs(_J.sum(-1)).max():.0e}，各列之和离零最多 {np.abs(_J.sum(0)).max():.0e}。",
                en=f"`ss.jacobian` differs from a finite difference by at most {np.abs(_J - _numeric).max():.0e}; the row sums are at most {np.abs(_J.sum(-1)).max():.0e} away from zero, the column sums at most {np.abs(_J.sum(0)).max():.0e}.",
            )
        ),
    )
    return


@app.cell
def _(mo, t):
    # F4-4
    mo.md(
        t(
            zh=r"""
    ## 推导，一步一步

    下面推导任意 $n$ 个分数的 $\partial s_i/\partial x_j$。诀窍是先取对数。

    **一、** $\log s_i$ 的导数是 $\dfrac{1}{s_i}\dfrac{\partial s_i}{\partial x_j}$，所以 $\dfrac{\partial s_i}{\partial x_j} = s_i\,\dfrac{\partial \log s_i}{\partial x_j}$。

    **二、** 对数把商变成差：$\log s_i = x_i - \log\sum_l e^{x_l}$。

    **三、** 第一项的导数：$\dfrac{\partial x_i}{\partial x_j} = \delta_{ij}$。符号 $\delta_{ij}$ 在 $i=j$ 时等于一，否则等于零。

    **四、** 第二项用链式法则：$\dfrac{\partial}{\partial x_j}\log\sum_l e^{x_l} = \dfrac{e^{x_j}}{\sum_l e^{x_l}} = s_j$。求和的各项里只有 $l = j$ 那一项含有 $x_j$，所以得到 $s_j$。

    **五、** 合起来：$\dfrac{\partial s_i}{\partial x_j} = s_i(\delta_{ij} - s_j)$。写成矩阵就是 $J = \mathrm{diag}(s) - s s^{\mathsf T}$，其中 $\mathrm{diag}(s)$ 的对角线上是各个权重，别处是零。
    """,
            en=r"""
    ## The derivation, step by step

    We derive $\partial s_i/\partial x_j$ for any number $n$ of scores. The trick is to take the logarithm first.

    **One.** The derivative of $\log s_i$ is $\dfrac{1}{s_i}\dfrac{\partial s_i}{\partial x_j}$, so $\dfrac{\partial s_i}{\partial x_j} = s_i\,\dfrac{\partial \log s_i}{\partial x_j}$.

    **Two.** The logarithm turns the quotient into a difference: $\log s_i = x_i - \log\sum_l e^{x_l}$.

    **Three.** The derivative of the first term: $\dfrac{\partial x_i}{\partial x_j} = \delta_{ij}$. The symbol $\delta_{ij}$ is one if $i=j$, and zero otherwise.

    **Four.** The second term, by the chain rule: $\dfrac{\partial}{\partial x_j}\log\sum_l e^{x_l} = \dfrac{e^{x_j}}{\sum_l e^{x_l}} = s_j$. Of all the terms in the sum, only the one with $l = j$ contains $x_j$, which is why we get $s_j$.

    **Five.** Put together: $\dfrac{\partial s_i}{\partial x_j} = s_i(\delta_{ij} - s_j)$. As a matrix, $J = \mathrm{diag}(s) - s s^{\mathsf T}$, where $\mathrm{diag}(s)$ has the weights on its diagonal and zeros elsewhere.
    """,
        )
    )
    return


@app.cell
def _(mo, page, t):
    page.details(
        mo.lazy(lambda: page.measured("saturation", "derivation", notes=False)),
        title=t(zh="用计算机代数检验每一步", en="Every step, checked by computer algebra"),
    )
    return


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
                    zh="## 越接近 one-hot，梯度越小\n\n权重接近 one-hot，叫做**饱和**。设一个分数领先其余三个，横轴是它领先的差距。纵轴是雅可比矩阵的**范数** $\\|J\\|$，也就是所有格子的平方和的平方根，用对数坐标。它按指数下降，但永远不会恰好是零。",
                    en="## The closer to one-hot, the smaller the gradient\n\nWeights close to one-hot are called **saturated**. Let one score lead three others by the gap on the horizontal axis. The vertical axis is the **norm** $\\|J\\|$ of the Jacobian, the square root of the sum of all its squared entries, on a logarithmic scale. It falls exponentially but is never exactly zero.",
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

    有人说：“softmax 一饱和，模型就学不动。”这要看 softmax 后面接的是什么。分类模型的最后一层通常接**交叉熵**：设正确答案是第 $y$ 个，损失就是 $-\log s_y$。对它求导时，对数带来的 $1/s_y$ 正好消去雅可比矩阵里的 $s_y$：

    $$\frac{\partial}{\partial x_j}\bigl(-\log s_y\bigr) = s_j - \delta_{jy}$$

    所以模型错得越自信，梯度越**大**。如果损失是权重的平方误差，就没有这种抵消，错得很自信时反而几乎没有梯度。拖动滑块，沿着横轴走一遍。
    """,
            en=r"""
    ## What cross-entropy changes

    Some say: “once softmax is saturated, the model cannot learn.” That depends on what comes after the softmax. The last layer of a classifier usually ends in a **cross-entropy**: if the right answer is number $y$, the loss is $-\log s_y$. When we differentiate it, the $1/s_y$ from the logarithm cancels the $s_y$ in the Jacobian:

    $$\frac{\partial}{\partial x_j}\bigl(-\log s_y\bigr) = s_j - \delta_{jy}$$

    So the more confidently wrong the model is, the **larger** the gradient. With a squared error on the weights, nothing cancels, and a confidently wrong model gets hardly any gradient. Move the slider and walk along the horizontal axis.
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
def _(alt, chart, margin, mo, np, page, ss, t):
    def _pulls(lead):
        s = ss.softmax([lead, 0.0])
        J, off = ss.jacobian(s), s - np.array([1.0, 0.0])
        return {
            t(zh="交叉熵 −log s", en="cross-entropy −log s"): float(abs(off[0])),
            t(zh="平方误差 Σ(s − 目标)²", en="squared error Σ(s − target)²"): float(abs((J @ (2 * off))[0])),
            "s(1−s)": float(J[0, 0]),
        }

    _rows = [
        {"lead": float(lead), "pull": pull, "name": name}
        for lead in np.linspace(-20.0, 20.0, 161)
        for name, pull in _pulls(float(lead)).items()
    ]
    _here = alt.Chart(chart.data([{"lead": margin.value}])).mark_rule(strokeDash=[4, 3]).encode(x="lead:Q")
    mo.vstack(
        [
            page.draw(
                alt.layer(
                    chart.curves(
                        _rows,
                        chart.Axis("lead", t(zh="正确答案领先多少", en="lead of the right answer")),
                        chart.Axis("pull", t(zh="导数的大小", en="size of the derivative"), domain=(0.0, 1.0)),
                        ("name", ""),
                        points=False,
                    ),
                    _here,
                )
            ),
            page.table(
                [
                    "",
                    t(
                        zh="对正确答案的分数求导，导数的大小",
                        en="size of the derivative with respect to the right score",
                    ),
                ],
                _pulls(margin.value).items(),
            ),
        ]
    )
    return


@app.cell
def _(chart, measured, mo, page, t):
    # F0-6
    _steps = [
        (
            "bad",
            t(zh="损失", en="loss"),
            t(zh="输出 O", en="output O"),
            t(zh="权重 s", en="weights s"),
            t(zh="softmax 的导数 J：饱和时接近零", en="softmax's derivative J: nearly zero when saturated"),
            t(zh="分数 x", en="scores x"),
            t(zh="Q 和 K：挨饿", en="Q and K: starving"),
        ),
        ("good", t(zh="损失", en="loss"), t(zh="输出 O", en="output O"), t(zh="V：照常学习", en="V: keeps learning")),
    ]
    _lanes = "".join(
        f'<div class="lab-lane {kind}">' + "<i>→</i>".join(f"<span>{box}</span>" for box in boxes) + "</div>"
        for kind, *boxes in _steps
    )
    _rows = [
        {"d": float(row["d"]), "share": row["blocked"].value, "scale": row["scale"].of(page.lang)}
        for row in measured("gradients")["blocked"].records()
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 谁会挨饿：Q、K 还是 V？\n\n注意力（第七课）**内部**也有一个 softmax，它后面没有对数，所以饱和真的会挡住梯度。注意力用查询和键（矩阵 Q 和 K）算出分数，softmax 把分数变成权重，再用权重对值（矩阵 V）求平均，得到输出 O。梯度从损失往回走：",
                    en="## Who starves: Q, K or V?\n\n**Inside** attention (lesson seven) there is a softmax too, but no logarithm after it, so there saturation really does hold the gradient back. Attention computes scores from queries and keys (the matrices Q and K), turns them into weights by softmax, and averages the values (the matrix V) with these weights, which gives the output O. The gradient travels backwards from the loss:",
                )
            ),
            mo.Html(f'<div class="lab-lanes">{_lanes}</div>'),
            mo.md(
                t(
                    zh="到 Q 和 K 的路要穿过 softmax 的导数，到 V 的路**不**经过它。所以“Q、K、V 都收不到信号”这句话不对：**挨饿**的是 Q 和 K，V 照常学习。如果一行的权重太接近 one-hot，梯度几乎过不去，我们就说这一行**被阻断**。下图测量被阻断的行占多少。横轴 $d$ 是查询和键的维数：不除以 $\\sqrt d$，$d$ 越大，分数越大，也就越饱和（第六课）。",
                    en="The way to Q and K leads through softmax's derivative, the way to V does **not**. So “Q, K and V get no signal” is wrong: it is Q and K that **starve**, while V keeps learning. If a row's weights are so close to one-hot that hardly any gradient gets through, we call the row **blocked**. The chart measures the share of blocked rows. The horizontal axis is $d$, the number of components of queries and keys: without dividing by $\\sqrt d$, a larger $d$ means larger scores, and so more saturation (lesson six).",
                )
            ),
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("d", "d", log=True),
                    chart.Axis("share", t(zh="被阻断的行的比例", en="share of blocked rows"), domain=(0.0, 1.0)),
                    ("scale", ""),
                )
            ),
            page.details(page.measured("gradients", "blocked")),
        ]
    )
    return


@app.cell
def _(page, practice):
    answer = practice.editor(page, "jacobian-product")
    practice.shown(page, "jacobian-product", answer)
    return (answer,)


@app.cell
def _(answer, page, practice):
    practice.graded(page, "jacobian-product", answer)
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="$J = \\mathrm{diag}(s) - s s^{\\mathsf T}$；对角线是 s(1−s)。",
            en="$J = \\mathrm{diag}(s) - s s^{\\mathsf T}$; its diagonal is s(1−s).",
        ),
        t(
            zh="权重越接近 one-hot，J 越小：它按指数减小，但不会恰好是零。",
            en="The closer the weights are to one-hot, the smaller J is: it falls exponentially but is never exactly zero.",
        ),
        t(
            zh="交叉熵消去了 s，所以输出层不怕饱和；注意力内部没有这种抵消，所以怕饱和。",
            en="Cross-entropy cancels the s, so saturation does not hurt an output layer; inside attention nothing cancels, and it does.",
        ),
        t(
            zh="softmax 饱和时，挨饿的是 Q 和 K，不是 V。",
            en="When softmax is saturated, it is Q and K that starve, not V.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
