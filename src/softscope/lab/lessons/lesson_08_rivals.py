"""Lesson 8: why softmax, and its rivals."""

import marimo

app = marimo.App(width="medium", app_title="softscope 8")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.experiments import chart
    from softscope.lab import practice, rivals
    from softscope.lab.page import Page, figures
    from softscope.lab.triangle import triangle

    return Page, chart, figures, mo, np, practice, rivals, ss, triangle


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("rivals", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(zh="用五条性质比较 softmax 和它的对手", en="compare softmax with its rivals on five properties"),
        t(
            zh="说出线性归一化、ReLU、sigmoid 在什么情况下会出错",
            en="say when linear normalisation, ReLU and sigmoid go wrong",
        ),
        t(
            zh="知道 log-softmax、sparsemax、entmax 各有什么用",
            en="know what log-softmax, sparsemax and entmax are for",
        ),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 同样的分数，不同的做法\n\nsoftmax 不是把分数变成权重的唯一办法。输入几个分数，用逗号或空格隔开，负数也可以，看每种做法给出什么权重。橙色是正的权重，蓝色是负的。\n\n- **x/Σx**：直接除以总和（Σ 表示求和）。\n- **ReLU/Σ**：先把负数变成零，再除以总和。\n- **sigmoid**：每个分数各算各的 $1/(1+e^{-x})$。\n- **hardmax**：全部权重给最大的那个。\n- **sparsemax** 和 **entmax**：softmax 的亲戚，会给出恰好为零的权重。",
            en="## The same scores, different maps\n\nSoftmax is not the only way to turn scores into weights. Type some scores, separated by commas or spaces; negative ones are fine too. See which weights each map gives: orange is positive, blue is negative.\n\n- **x/Σx**: divide by the sum (Σ means sum).\n- **ReLU/Σ**: turn negative numbers into zero first, then divide by the sum.\n- **sigmoid**: $1/(1+e^{-x})$ of each score by itself.\n- **hardmax**: all the weight to the largest.\n- **sparsemax** and **entmax**: relatives of softmax that give weights of exactly zero.",
        )
    )
    return


@app.cell
def _(mo, rivals, t):
    typed = mo.ui.text(", ".join(map(str, rivals.EXAMPLE)), label=t(zh="分数", en="scores"))
    typed
    return (typed,)


@app.cell
def _(figures, mo, np, rivals, t, typed):
    _numbers, _others = rivals.read(typed.value)
    scores = np.array(_numbers[: rivals.MOST] or rivals.EXAMPLE)
    _unread, _shown = " ".join(_others), figures(scores, 2)
    _why = ""
    if not _numbers:
        _why = t(
            zh=f"没有读到任何数，下面改用例子 {_shown}。",
            en=f"Found no numbers; showing the example {_shown} instead.",
        )
    elif _others:
        _why = t(zh=f"无法识别 {_unread}；下面用的是 {_shown}。", en=f"Could not read {_unread}; showing {_shown}.")
    elif len(_numbers) > rivals.MOST:
        _why = t(
            zh=f"数太多；下面只用前 {rivals.MOST} 个，{_shown}。",
            en=f"Too many numbers; showing the first {rivals.MOST}, {_shown}.",
        )
    # Plain text: what was typed may contain Markdown syntax.
    mo.callout(_why, kind="warn") if _why else None
    return (scores,)


@app.cell
def _(figures, mo, np, page, rivals, scores, t):
    _weights = {name: made(scores) for name, made in rivals.maps(page.lang).items()}
    _named = [f"{x:g}" for x in scores]
    mo.vstack(
        [
            page.side_by_side(
                page.matrix(
                    t(zh="做法 ╲ 分数", en="map ╲ score"), list(_weights.values()), rows=list(_weights), columns=_named
                )
            ),
            page.details(
                page.table(
                    [
                        t(zh="做法", en="map"),
                        t(zh="权重", en="weights"),
                        t(zh="总和", en="sum"),
                        t(zh="恰好为零", en="exact zeros"),
                        t(zh="都不小于零", en="none negative"),
                    ],
                    [
                        (name, figures(w), f"{w.sum():.4g}", int((w == 0).sum()), bool((np.asarray(w) >= 0).all()))
                        for name, w in _weights.items()
                    ],
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, page, rivals, t):
    _five = rivals.five(page.lang)
    mo.md(
        t(
            zh=f"## 五条性质，逐条测\n\n人们常说 softmax 有五条好性质：{_five}。\n\n- “突出大的”：分数更大，权重不会更小；把分数放大，权重就全部移向最大的那个。\n- “可微”：权重随分数变化时，没有跳跃，也没有折点。\n- “是概率分布”：不论什么分数都有答案，而且非负、和为一。\n\n我们再多问两条：是不是**处处有斜率**（平的地方没有梯度，学不动）？是不是**平移不变**（给所有分数加上同一个数，权重不变）？\n\n每种做法都接受同样的检查；✗ 表示找到了一行分数，这条性质在那里不成立。",
            en=f"## Five properties, each measured\n\nSoftmax is often praised for five properties: {_five}.\n\n- “Stands out”: a larger score never gets a smaller weight, and amplifying the scores moves all the weight to the largest.\n- “Differentiable”: as the scores change, the weights make no jump and have no kink.\n- “A distribution”: there is an answer for any scores, it is never negative, and it sums to one.\n\nWe ask two more. Is it **never flat** (where it is flat there is no gradient, and nothing can be learned)? And does a **shift** change nothing (the same number added to every score)?\n\nEvery map goes through the same checks; ✗ means that a row of scores was found where the property fails.",
        )
    )
    return


@app.cell
def _(mo, page, rivals, t):
    _rows = rivals.marks(page.lang)
    mo.vstack(
        [
            page.table([t(zh="做法", en="map"), *rivals.heads(page.lang)], _rows),
            mo.md(
                t(
                    zh="有两点要注意。\n\n第一，entmax 也有常说的五条，所以“没有别的函数能同时满足”不对。它缺的是“处处有斜率”：一旦有一个权重到了一，entmax 和 sparsemax 就变平了；softmax 的权重按公式永远到不了一。\n\n第二，hardmax 和 sparsemax 都不可微，但原因不同：hardmax 会跳，其余地方都是平的；sparsemax 只是有折点。",
                    en="Two things to notice.\n\nFirst, entmax has the usual five as well, so “no other function satisfies all five” is wrong. What it lacks is “never flat”: once a weight has reached one, entmax and sparsemax go flat; by its formula, a softmax weight never gets there.\n\nSecond, hardmax and sparsemax are both not differentiable, but for different reasons: hardmax jumps and is flat everywhere else; sparsemax merely has kinks.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    shift = mo.ui.slider(
        -4.0, 4.0, 0.1, value=0.0, label=t(zh="给每个分数加上", en="add to every score"), show_value=True
    )
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 思考题：scores / sum(scores) 有什么问题？\n\n从 `[1, 2, 3]` 出发向左拖。先是出现负的份额；总和经过零时，除法没有答案；再向左，**最大的分数反而得到最小的份额**。",
                    en="## Think about it: what is wrong with scores / sum(scores)?\n\nStart from `[1, 2, 3]` and drag to the left. First, shares turn negative; where the sum passes zero, the division has no answer; and further left, **the largest score gets the smallest share**.",
                )
            ),
            shift,
        ]
    )
    return (shift,)


@app.cell
def _(mo, np, page, shift, ss, t):
    _x = np.array([1.0, 2.0, 3.0]) + shift.value
    _total = float(_x.sum())
    _linear = _x / _total if abs(_total) > 1e-9 else np.full(3, np.nan)
    mo.vstack(
        [
            page.table(["", "x₁", "x₂", "x₃"], [("x", *_x), ("x / Σx", *_linear), ("softmax", *ss.softmax(_x))]),
            mo.md(
                t(zh="总和为零：没有答案。", en="The sum is zero: there is no answer.")
                if not np.isfinite(_linear).all()
                else t(zh="顺序颠倒了！", en="The order is reversed!")
                if _total < 0
                else t(zh="出现了负的份额。", en="There are negative shares.")
                if (_linear < 0).any()
                else t(
                    zh="目前一切正常，但份额已经在随平移变化。",
                    en="Fine so far, but the shares already change with the shift.",
                )
            ),
        ]
    )
    return


@app.cell
def _(page, practice):
    answer_4 = practice.editor(page, "dividing-by-the-sum")
    practice.shown(page, "dividing-by-the-sum", answer_4)
    return (answer_4,)


@app.cell
def _(answer_4, page, practice):
    practice.graded(page, "dividing-by-the-sum", answer_4)
    return


@app.cell
def _(mo, t):
    second = mo.ui.slider(-1.0, 1.0, 0.05, value=-0.3, label="α₂", show_value=True)
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 权重可以是负的吗？\n\n注意力的输出是 $O = \\alpha_1 v_1 + \\alpha_2 v_2 + \\alpha_3 v_3$，其中 $\\alpha_i$ 是权重，$v_i$ 是第 $i$ 个词的值。负的 $\\alpha_2$ 意味着**减去**第二个词的内容。图中三个角是三个值，圆点是输出；拖动 $\\alpha_2$，看它什么时候跑出三角形。",
                    en="## Can a weight be negative?\n\nThe output of attention is $O = \\alpha_1 v_1 + \\alpha_2 v_2 + \\alpha_3 v_3$, where $\\alpha_i$ is a weight and $v_i$ the value of token $i$. A negative $\\alpha_2$ means **subtracting** what the second token holds. In the picture, the corners are the three values and the dot is the output; drag $\\alpha_2$ and see when it leaves the triangle.",
                )
            ),
            second,
        ]
    )
    return (second,)


@app.cell
def _(figures, mo, np, page, second, t, triangle):
    _v = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    _alpha = np.array([(1 - second.value) / 2, second.value, (1 - second.value) / 2])
    _out = _alpha @ _v
    _inside = bool((_alpha >= 0).all())
    _where = (
        t(
            zh="没有负的权重，输出落在三角形里（这叫凸组合）。",
            en="No weight is negative, and the output lies in the triangle (a convex combination).",
        )
        if _inside
        else t(
            zh="有一个权重是负的，输出跑到了三角形外面。",
            en="One weight is negative, and the output has left the triangle.",
        )
    )
    mo.vstack(
        [
            page.draw(triangle(_v, _out)),
            mo.md(
                t(
                    zh=f"权重 {figures(_alpha, 2)}，输出 {figures(_out, 2)}。{_where}不许为负是一种选择，并非必然：有的模型特意允许相减（例如差分注意力），而且值本身也可以有负的分量。",
                    en=f"Weights {figures(_alpha, 2)}, output {figures(_out, 2)}. {_where} Forbidding negative weights is a choice, not a law: some models subtract on purpose (differential attention, for example), and values may have negative components anyway.",
                )
            ),
        ]
    )
    return


@app.cell
def _(chart, mo, np, page, rivals, t):
    _grid = np.linspace(-3, 3, 121)
    _rows = [
        {"x": float(x), "s": float(_map(np.array([x, 0.0]))[0]), "name": name}
        for name, _map in rivals.maps(page.lang).items()
        if name in rivals.simplex(page.lang)
        for x in _grid
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 稀疏的亲戚：sparsemax 与 entmax\n\n取两个分数，画出第一个权重怎样随两者之差变化。softmax 永远到不了零；sparsemax 是一条折线，早早就给出恰好为零的权重；entmax 介于两者之间，平滑地到达零。",
                    en="## The sparse relatives: sparsemax and entmax\n\nTake two scores, and draw the first weight against their difference. Softmax never reaches zero; sparsemax is a line with kinks and soon gives weights of exactly zero; entmax lies between the two and reaches zero smoothly.",
                )
            ),
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("x", "x₁ − x₂"),
                    chart.Axis("s", t(zh="第一个权重", en="first weight"), domain=(0.0, 1.0)),
                    ("name", ""),
                    points=False,
                )
            ),
        ]
    )
    return


@app.cell
def _(figures, mo, np, page, ss, t):
    _rows = ([1.0, 2.0, 3.0], [0.0, -1000.0], [1000.0, 0.0])
    with np.errstate(all="ignore"):
        _made = {
            "log(softmax(x))": [np.log(ss.softmax(x)) for x in _rows],
            "x − log Σ exp(x)": [np.array(x) - np.log(np.exp(x).sum()) for x in _rows],
            "log_softmax(x)": [ss.log_softmax(x) for x in _rows],
        }
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## log-softmax：直接算对数\n\n训练用的损失需要 $\\log s$。有两条看起来可行的路，都会在某些分数上失败：\n\n- 先算 $s$ 再取对数：太小的权重已经变成零，对数就是 $-\\infty$。\n- 照公式算 $x_i - \\log\\sum_j e^{x_j}$：分数很大时，指数溢出成 `inf`。\n\n`log_softmax` 在三行上都给出正确的数。它是怎样做到的？第二课已经有了答案的一半；另一半留给下面的练习。",
                    en="## log-softmax: compute the logarithm directly\n\nLosses for training need $\\log s$. Two ways look fine, and each fails for some scores:\n\n- Compute $s$ first, then its logarithm: a weight that is too small has already become zero, and its logarithm is $-\\infty$.\n- Compute $x_i - \\log\\sum_j e^{x_j}$ as it stands: for large scores, the exponential overflows to `inf`.\n\n`log_softmax` gives the right numbers in all three rows. How? Lesson two holds half of the answer; the other half is the exercise below.",
                )
            ),
            page.table(
                ["", *(f"x = {[round(value) for value in x]}" for x in _rows)],
                [(name, *(figures(w) for w in made)) for name, made in _made.items()],
            ),
        ]
    )
    return


@app.cell
def _(page, practice):
    answer_5 = practice.editor(page, "log-softmax")
    practice.shown(page, "log-softmax", answer_5)
    return (answer_5,)


@app.cell
def _(answer_5, page, practice):
    practice.graded(page, "log-softmax", answer_5)
    return


@app.cell
def _(page, practice):
    answer = practice.editor(page, "sparsemax")
    practice.shown(page, "sparsemax", answer)
    return (answer,)


@app.cell
def _(answer, page, practice):
    practice.graded(page, "sparsemax", answer)
    return


@app.cell
def _(mo, page, t):
    mo.accordion(
        {
            t(
                zh="它们都能训练吗？（现场训练，约十秒）",
                en="Can they all be trained? (trained live, about ten seconds)",
            ): mo.lazy(lambda: page.measured("normalisers"), show_loading_indicator=True)
        }
    )
    return


@app.cell
def _(page, rivals, t):
    _five = rivals.five(page.lang)
    page.foot(
        t(
            zh=f"softmax 的五条性质：{_five}。",
            en=f"The five properties of softmax: {_five}.",
        ),
        t(
            zh="entmax 也有这五条，只是有一个权重到了一就变平。softmax 好用，但不是唯一的选择。",
            en="Entmax has all five too, though it goes flat once a weight has reached one. Softmax is a good choice, not the only one.",
        ),
        t(
            zh="线性归一化遇到负数会出错，ReLU 可能把所有分数变成零，sigmoid 的权重之和不是一。",
            en="Linear normalisation goes wrong with negative numbers, ReLU may turn every score into zero, and the weights of sigmoid do not sum to one.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
