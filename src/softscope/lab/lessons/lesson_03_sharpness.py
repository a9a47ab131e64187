"""Lesson 3: sharpness, ratios to the power k."""

import marimo

app = marimo.App(width="medium", app_title="softscope 3")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.experiments import chart
    from softscope.lab.page import Page, figure, figures, measured
    from softscope.lab.widgets import SoftmaxWidget

    return Page, SoftmaxWidget, chart, figure, figures, measured, mo, np, ss


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("sharpness", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(
            zh="区分硬最大和软最大，说出软最大多告诉了我们什么",
            en="tell the hard and the soft maximum apart, and say what more the soft one tells us",
        ),
        t(
            zh="解释把所有分数乘以 k 的效果：权重之比变成原来的 k 次方",
            en="explain what multiplying all scores by k does: it raises every ratio of weights to the power k",
        ),
        t(
            zh="判断一行权重离 one-hot（一个是一，其余是零）还有多远",
            en="judge how far a row of weights is from one-hot (one weight is one, the others are zero)",
        ),
    )
    return


@app.cell
def _(figures, mo, np, page, ss, t):
    # F3-1
    _x = np.array([1.0, 2.0, 3.0])
    _hard, _soft = np.eye(3)[_x.argmax()], ss.softmax(_x)
    _step = 1e-3
    _hard_moves = np.eye(3)[(_x + _step * np.eye(3)[2]).argmax()] - _hard
    _soft_moves = ss.softmax(_x + _step * np.eye(3)[2]) - _soft
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 硬与软\n\n**硬最大**把一给最大的分数，把零给其余的：这样的一行叫 **one-hot**。它只说**哪个**分数最大。softmax 是**软最大**，还说最大的分数领先**多少**。而且分数稍有变化，软最大就跟着变化；模型要靠调整分数来学习，正需要这一点。",
                    en="## Hard and soft\n\nThe **hard maximum** gives one to the largest score and zero to the others: such a row is called **one-hot**. It says only **which** score is largest. Softmax is a **soft maximum** and also says **by how much**. And when a score changes a little, so does the soft maximum; a model learns by adjusting its scores, so this is exactly what it needs.",
                )
            ),
            page.table(
                [
                    "",
                    t(zh="权重", en="weights"),
                    t(
                        zh="最大的分数略微增加时，权重的变化",
                        en="change in the weights when the largest score grows a little",
                    ),
                ],
                [
                    (t(zh="硬最大", en="hard"), figures(_hard, 0), figures(_hard_moves, 0)),
                    (t(zh="软最大", en="soft"), figures(_soft), figures(_soft_moves, 6)),
                ],
            ),
            mo.md(
                t(
                    zh=f"从权重还能读回分数的差：$\\ln(s_3/s_2)$ = {np.log(_soft[2] / _soft[1]):.3f}。",
                    en=f"The difference between two scores can be read back from their weights: $\\ln(s_3/s_2)$ = {np.log(_soft[2] / _soft[1]):.3f}.",
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
    ## 增益：把所有分数乘以 k

    只有两个分数时，softmax 由一个数决定，就是两个权重之比 $a$：

    $$a = \frac{s_1}{s_2} = e^{x_1 - x_2}, \qquad s_1 = \frac{a}{1 + a}$$

    现在把两个分数都乘以同一个正数 $k$。我们把 $k$ 叫做**增益**。新的比 $a'$ 是原来的 $k$ 次方：

    $$a' = e^{k(x_1-x_2)} = a^k$$

    拖动滑块，看看 $a$ 大于一、等于一、小于一这三种情况。
    """,
            en=r"""
    ## The gain: multiplying all scores by k

    With only two scores, softmax is determined by one number, the ratio $a$ of the two weights:

    $$a = \frac{s_1}{s_2} = e^{x_1 - x_2}, \qquad s_1 = \frac{a}{1 + a}$$

    Now multiply both scores by the same positive number $k$. We call $k$ the **gain**. The new ratio $a'$ is the old one to the power $k$:

    $$a' = e^{k(x_1-x_2)} = a^k$$

    Move the sliders and look at the three cases: $a$ greater than one, equal to one, less than one.
    """,
        )
    )
    return


@app.cell
def _(mo, t):
    difference = mo.ui.slider(-3.0, 3.0, 0.1, value=-0.7, label="x₁ − x₂", show_value=True)
    gain = mo.ui.slider(0.1, 5.0, 0.1, value=2.0, label=t(zh="增益 k", en="gain k"), show_value=True)
    mo.hstack([difference, gain], justify="start", wrap=True)
    return difference, gain


@app.cell
def _(chart, difference, figure, gain, mo, np, page, ss, t):
    # F4-1 F4-2
    _a = float(np.exp(difference.value))
    _k = gain.value
    _s = ss.softmax([_k * difference.value, 0.0])
    _measured, _predicted = float(_s[0] / _s[1]), _a**_k
    _grid = np.linspace(0.1, 5.0, 50)
    _rows = [
        {"k": float(k), "s": float(ss.softmax([k * x, 0.0])[0]), "a": f"a = {np.exp(x):.2f}"}
        for x in sorted({difference.value, 1.0, 0.0, -1.0})
        for k in _grid
    ]
    _case = (
        t(zh="a 大于一：k 越大 a′ 越大", en="a is greater than one: a′ grows with k")
        if _a > 1
        else t(
            zh="a 小于一：k 越大 a′ 越**小**，但权重同样更接近 one-hot",
            en="a is less than one: a′ **falls** as k grows, but the weights still get closer to one-hot",
        )
        if _a < 1
        else t(
            zh="a 等于一：k 什么也不改变，两个权重总是各占一半",
            en="a equals one: k changes nothing, and both weights stay at one half",
        )
    )
    mo.vstack(
        [
            mo.md(
                t(
                    zh=f"a = {figure(_a)}，k = {figure(_k, 1)}：测得 a′ = {figure(_measured, 4)}，公式 $a^k$ = {figure(_predicted, 4)}，权重 {figure(_s[0])} 与 {figure(_s[1])}。{_case}。",
                    en=f"a = {figure(_a)}, k = {figure(_k, 1)}: measured a′ = {figure(_measured, 4)}, formula $a^k$ = {figure(_predicted, 4)}, weights {figure(_s[0])} and {figure(_s[1])}. {_case}.",
                )
            ),
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("k", t(zh="增益 k", en="gain k")),
                    chart.Axis("s", t(zh="第一个权重", en="first weight"), domain=(0.0, 1.0)),
                    ("a", ""),
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
            zh="有的文章写道：“只要 $a>0$ 且 $k>1$，就有 $a^k>a$。”其实这只在 $a>1$ 时成立。正确的说法是：只要 $a \\neq 1$，增益 $k$ 越大，权重越接近 one-hot。",
            en="Some texts say “for any $a>0$ and $k>1$, we have $a^k>a$”. In fact this holds only for $a>1$. The correct statement is: whenever $a \\neq 1$, a larger gain $k$ brings the weights closer to one-hot.",
        )
    )
    return


@app.cell
def _(chart, mo, np, page, ss, t):
    # F3-7
    _n = 3
    _rows = []
    for _gap in np.linspace(0.0, 20.0, 41):
        _s = ss.softmax([float(_gap), *[0.0] * (_n - 1)])
        _rows += [
            {
                "gap": float(_gap),
                "rest": float(_s[1:].sum()),
                "name": t(zh="其余权重之和", en="sum of the other weights"),
            },
            {"gap": float(_gap), "rest": (_n - 1) * float(np.exp(-_gap)), "name": t(zh="上界", en="upper bound")},
        ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 差距越大，权重越极端\n\n最大的分数领先第二名多少，叫做**差距**。差距越大，最大权重越接近一。那么其余的权重一共还**剩**多少？有 $n$ 个分数时，最多剩下 $(n-1)\\,e^{-\\text{差距}}$。注意纵轴是对数坐标：剩下的按指数减少，但按公式永远不会恰好是零。",
                    en="## The larger the gap, the more extreme the weights\n\nThe **gap** is how far the largest score is ahead of the second largest. The larger the gap, the closer the largest weight is to one. How much is then **left** for all the others together? With $n$ scores, at most $(n-1)\\,e^{-\\text{gap}}$. Note the logarithmic scale: what is left falls exponentially, but by the formula it is never exactly zero.",
                )
            ),
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("gap", t(zh="差距", en="gap")),
                    chart.Axis("rest", t(zh="其余权重之和", en="sum of the other weights"), log=True, form="~e"),
                    ("name", ""),
                    points=False,
                )
            ),
            page.details(
                mo.md(
                    t(
                        zh="表里写 `0` 的地方，是数值小到浮点数表示不了。",
                        en="Where the table says `0`, the number is too small for a float.",
                    )
                ),
                page.measured("extremes", "cases", notes=False),
                title=t(zh="细节：差距一行比一行大的分数", en="Details: rows of scores with larger and larger gaps"),
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="自己试试：按几次“全部乘 2”，看权重怎样变尖，熵怎样下降。**熵** $H = -\\sum_i s_i \\ln s_i$ 衡量权重有多平坦：全部给一个选项时是零，平均分给 $n$ 个选项时是 $\\ln n$。它的单位叫**奈特**。**有效支撑数** $e^H$ 则把它换算成“相当于平均分给几个选项”。温度 T 是下一课的内容，s(1−s) 是第五课的内容。",
            en="Try it yourself: press “times 2” a few times and watch the weights sharpen and the entropy fall. The **entropy** $H = -\\sum_i s_i \\ln s_i$ measures how flat the weights are: it is zero when one option has everything, and $\\ln n$ when $n$ options share equally. Its unit is called the **nat**. The **effective support** $e^H$ turns it into a count: how many options, sharing equally, would have this entropy. The temperature T belongs to the next lesson, and s(1−s) to lesson five.",
        )
    )
    return


@app.cell
def _(SoftmaxWidget, mo, page):
    picture = mo.ui.anywidget(SoftmaxWidget(logits=[0.2, 0.5, 0.9, 0.4], lang=page.lang))
    picture
    return


@app.cell
def _(chart, measured, mo, page, t):
    # F4-3
    _names = {
        "fixed": t(zh="固定的分数", en="fixed scores"),
        "random": t(zh="随机的 q 和 k 的点积", en="dot products of random q and k"),
    }
    _rows = [
        {"d": float(row["d"]), "peak": row[key].value, "name": name}
        for key, name in _names.items()
        for row in measured("extremes")["dimension"].records()
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 注意力里的增益：1/√d\n\n注意力（第七课）的分数是两个 $d$ 维向量的点积 $q\\cdot k$，并且要除以 $\\sqrt d$，也就是取增益 $1/\\sqrt d$。于是有人说：“d 越小，权重越接近 one-hot。”分数**固定**不变时，这句话对。可是真正的分数 $q\\cdot k$ 自己也随 $d$ 变大，两种作用互相抵消：",
                    en="## The gain in attention: 1/√d\n\nIn attention (lesson seven), a score is the dot product $q\\cdot k$ of two vectors with $d$ components, divided by $\\sqrt d$. That is a gain of $1/\\sqrt d$. So some people say: “the smaller d, the closer the weights are to one-hot.” If the scores stay **fixed**, that is true. But real scores $q\\cdot k$ grow with $d$ themselves, and the two effects cancel:",
                )
            ),
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("d", "d", log=True),
                    chart.Axis("peak", t(zh="最大权重，平均", en="largest weight, mean"), domain=(0.0, 1.0)),
                    ("name", ""),
                )
            ),
            page.details(page.measured("extremes", "dimension", notes=False)),
        ]
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="软最大说出哪个分数最大，也说出领先多少；分数稍有变化，它就跟着变化。",
            en="The soft maximum says which score is largest and by how much, and it changes whenever a score does.",
        ),
        t(
            zh="增益 k 把所有分数乘以 k，权重之比就变成原来的 k 次方。",
            en="A gain k multiplies all scores by k, and so raises every ratio of weights to the power k.",
        ),
        t(
            zh="差距大时，权重接近 one-hot；其余的权重按指数减少，但不会恰好是零。",
            en="With a large gap, the weights are close to one-hot; the others fall exponentially but are never exactly zero.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
