"""Lesson 3: sharpness, ratios to the power k."""

import marimo

app = marimo.App(width="medium", app_title="softscope 3")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.experiments import chart
    from softscope.lab.page import Page, figure, figures
    from softscope.lab.widgets import SoftmaxWidget

    return Page, SoftmaxWidget, chart, figure, figures, mo, np, ss


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
            zh="区分硬最大和软最大，说出后者保留了什么",
            en="tell the hard and the soft maximum apart, and say what the soft one keeps",
        ),
        t(
            zh="用比值的 k 次方解释放大分数的效果",
            en="explain the effect of a gain k: ratios are raised to the power k",
        ),
        t(zh="判断一行分数离 one-hot 还有多远", en="judge how far a row of scores is from one-hot"),
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
                    zh="## 硬与软\n\n硬最大只说**谁**最大。软最大还说**大多少**，而且分数一动它就跟着动：学习正需要这一点。",
                    en="## Hard and soft\n\nThe hard maximum says only **which** score is largest. The soft one also says **by how much**, and it moves whenever a score moves: that is exactly what learning needs.",
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
                    zh=f"分数的差还能从权重里读回来：$\\ln(s_3/s_2)$ = {np.log(_soft[2] / _soft[1]):.3f}。",
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
    ## 两个分数，一个比值

    两项的 softmax 只由一个比值决定：

    $$a = \frac{s_1}{s_2} = e^{x_1 - x_2}, \qquad s_1 = \frac{a}{1 + a}$$

    把两个分数都乘以 $k$，比值变成 $a' = e^{k(x_1-x_2)} = a^k$。拖动滑块，看 $a$ 大于一、等于一、小于一三种情况。
    """,
            en=r"""
    ## Two scores, one ratio

    A two-entry softmax is fixed by one ratio:

    $$a = \frac{s_1}{s_2} = e^{x_1 - x_2}, \qquad s_1 = \frac{a}{1 + a}$$

    Multiply both scores by $k$ and the ratio becomes $a' = e^{k(x_1-x_2)} = a^k$. Move the sliders and look at the three cases: $a$ greater than one, equal to one, less than one.
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
                    chart.Axis("k", "k"),
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
            zh="有的文章写道：“$a>0$ 且 $k>1$ 时 $a^k>a$”。这只在 $a>1$ 时成立。正确的说法是：只要 $a \\neq 1$，$k$ 越大，权重离 one-hot 越近。",
            en="Some texts say “for $a>0$ and $k>1$, $a^k>a$”. That holds only for $a>1$. The correct statement: whenever $a \\neq 1$, a larger $k$ brings the weights closer to one-hot.",
        )
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 差距越大越极端\n\n下面几行分数，差距一行比一行大。除了最大的占多少，也看看还**剩**多少：按公式它不会是零（表里写 `0` 的，是小到浮点数表示不了），并且有一个上界 $(n-1)\\,e^{-\\text{差距}}$。",
            en="## The larger the gaps, the more extreme\n\nThe rows of scores below have larger and larger gaps. Look at how much the largest takes, and at how much is **left**: by the formula the rest is never zero (where the table says `0`, it is too small for a float), and it has an upper bound, $(n-1)\\,e^{-\\text{gap}}$.",
        )
    )
    return


@app.cell
def _(page):
    # F3-7
    page.measured("extremes", "cases", notes=False)
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="自己试试：按两次“全部乘 2”，看权重怎样变尖，熵怎样下降。",
            en="Try it yourself: press “times 2” twice and watch the weights sharpen and the entropy fall.",
        )
    )
    return


@app.cell
def _(SoftmaxWidget, mo, page):
    picture = mo.ui.anywidget(SoftmaxWidget(logits=[0.2, 0.5, 0.9, 0.4], lang=page.lang))
    picture
    return


@app.cell
def _(mo, page, t):
    # F4-3
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## k = 1/√d：两句话都对，说的是两件事\n\n注意力把分数除以 $\\sqrt d$，也就是取 $k = 1/\\sqrt d$。于是有人说“d 越小，越接近 one-hot”。分数**固定**时是这样。可真正的分数 $q\\cdot k$ 自己也随 $d$ 变大，两者相消：",
                    en="## k = 1/√d: two true statements about two different things\n\nAttention divides its scores by $\\sqrt d$, that is, $k = 1/\\sqrt d$. So some people say “the smaller d, the closer to one-hot”. With the scores **held fixed**, that is true. But real scores $q\\cdot k$ themselves grow with $d$, and the two effects cancel:",
                )
            ),
            page.measured("extremes", "dimension", notes=False),
        ]
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="软最大保留了“谁最大”和“大多少”，而且处处有斜率。",
            en="The soft maximum keeps which score is largest and by how much, and it has a slope everywhere.",
        ),
        t(zh="分数乘以 k，权重之比变成 k 次方。", en="A gain k raises every ratio of weights to the power k."),
        t(
            zh="差距大时权重接近 one-hot，但剩下的那一点从不为零。",
            en="Large gaps bring the weights close to one-hot, but what is left is never zero.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
