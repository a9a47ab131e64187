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
    from softscope.lab.page import Page, figure, figures

    return Page, chart, figure, figures, mo, np, practice, rivals, ss


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
        t(zh="说出线性归一化、ReLU、sigmoid 各坏在哪里", en="say where linear normalisation, ReLU and sigmoid break"),
        t(
            zh="知道 log-softmax、sparsemax、entmax 各为什么存在",
            en="know what log-softmax, sparsemax and entmax are for",
        ),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 同样的分数，不同的做法\n\n输入几个数，用逗号或空格隔开；负数也可以。",
            en="## The same scores, different maps\n\nType some numbers, separated by commas or spaces; negative ones are fine too.",
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
def _(figures, mo, page, rivals, scores, t):
    # F1-4 F3-13
    _rows = []
    for _name, _map in rivals.maps(page.lang).items():
        _w = _map(scores)
        _rows.append((_name, figures(_w), float(_w.sum()), int((_w == 0).sum()), bool((_w >= 0).all())))
    mo.vstack(
        [
            page.table(
                [
                    t(zh="做法", en="map"),
                    t(zh="权重", en="weights"),
                    t(zh="总和", en="sum"),
                    t(zh="恰好为零", en="exact zeros"),
                    t(zh="都不小于零", en="none negative"),
                ],
                _rows,
            )
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 五条性质，逐条测\n\n常说的五条是：突出大的、非负、和为一、可微、可读成概率。最后一条由非负与和为一得出；“可微”就是没有折点；我们再多问两条：有没有平的地方（那里没有梯度可学），以及是不是平移不变。表里没有手写的结论：每种做法都在随机的行上接受同样的检查，✓ 表示每一行都成立，没有答案的行算不成立。",
            en="## Five properties, each measured\n\nThe five usually named: it favours the large, nothing is negative, the sum is one, it is differentiable, and it reads as a probability. The last follows from the second and third; “differentiable” means no kinks. We ask two more questions: is it flat anywhere (where there is no gradient to learn from), and does a shift change nothing? No verdict is typed in by hand: every map goes through the same checks on random rows, ✓ means that every row passed, and a row without an answer fails.",
        )
    )
    return


@app.cell
def _(mo, page, rivals, t):
    # F1-8
    _rows = rivals.properties(page.lang)
    mo.vstack(
        [
            page.table([t(zh="做法", en="map"), *rivals.heads(page.lang)], _rows),
            mo.md(
                t(
                    zh="有两点要注意。第一，常说的五条 entmax 也都满足，所以“没有别的函数能同时满足”不对；它不满足的是我们多问的“处处有斜率”：一旦有一个权重到了一，entmax 和 sparsemax 就是平的，而按公式，softmax 的权重到不了一。第二，硬最大和 sparsemax 都不可微，但方式不同：前者有跳跃，其余处处平坦；后者有折点。",
                    en="Two things to notice. First, entmax has the usual five too, so “no other function satisfies all five” is wrong; what it fails is our extra question, “never flat”: once a weight reaches one, entmax and sparsemax are flat, whereas by its formula a softmax weight never reaches one. Second, the hard maximum and sparsemax are both non-differentiable, but in different ways: the former jumps and is flat everywhere else; the latter has kinks.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    # F3-17
    shift = mo.ui.slider(
        -4.0, 4.0, 0.1, value=0.0, label=t(zh="给每个分数加上", en="add to every score"), show_value=True
    )
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 思考题：scores / sum(scores) 有什么问题？\n\n从 `[1, 2, 3]` 出发往左拖：份额变负，总和经过零时除不了，再往左，**最大的分数得到最小的份额**。",
                    en="## Think about it: what is wrong with scores / sum(scores)?\n\nStart from `[1, 2, 3]` and drag to the left: shares turn negative, where the sum passes zero there is no answer, and further left **the largest score gets the smallest share**.",
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
                    zh="## 权重可以是负的吗？\n\n输出是 $O = \\alpha_1 v_1 + \\alpha_2 v_2 + \\alpha_3 v_3$。负的 $\\alpha_2$ 意味着**减去**第二个词的内容。",
                    en="## Can a weight be negative?\n\nThe output is $O = \\alpha_1 v_1 + \\alpha_2 v_2 + \\alpha_3 v_3$. A negative $\\alpha_2$ means **subtracting** what the second token holds.",
                )
            ),
            second,
        ]
    )
    return (second,)


@app.cell
def _(figures, mo, np, second, t):
    # F1-3
    _v = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    _alpha = np.array([(1 - second.value) / 2, second.value, (1 - second.value) / 2])
    _out = _alpha @ _v
    mo.md(
        t(
            zh=f"权重 {figures(_alpha, 2)}，$v$ = {_v.tolist()}，输出 {figures(_out, 2)}。权重非负时，输出落在各个 $v$ 之间（凸组合）。这是一种选择，并非必然：有的模型特意允许相减（例如差分注意力），而且 $v$ 自己也可以有负的分量。",
            en=f"Weights {figures(_alpha, 2)}, $v$ = {_v.tolist()}, output {figures(_out, 2)}. If no weight is negative, the output lies between the $v$ (a convex combination). That is a choice, not a law: some models subtract on purpose (differential attention, for example), and $v$ itself may have negative components.",
        )
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
                    zh="## 稀疏的亲戚：sparsemax 与 entmax\n\n两个分数，差为 x。softmax 永远到不了零；sparsemax 是一条折线，早早就给出恰好为零的权重；entmax 介于两者之间，光滑地到达零。",
                    en="## The sparse relatives: sparsemax and entmax\n\nTwo scores that differ by x. Softmax never reaches zero; sparsemax is a line with kinks and gives weights of exactly zero early on; entmax lies between the two and reaches zero smoothly.",
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
    _x = np.array([0.0, -1000.0])
    with np.errstate(divide="ignore"):
        _late = np.log(ss.softmax(_x))
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## log-softmax：先取对数\n\n损失要的是 $\\log s$。先算出 $s$ 再取对数就晚了：下溢成零的权重，对数是负无穷。直接算 $x_i - \\log\\sum e^{x_j}$ 没有这个问题。",
                    en="## log-softmax: take the logarithm first\n\nLosses need $\\log s$. Computing $s$ first and then its logarithm is too late: if a weight has underflowed to zero, its logarithm is minus infinity. Computing $x_i - \\log\\sum e^{x_j}$ directly avoids this.",
                )
            ),
            page.table(
                ["", "x = [0, -1000]", "x = [1, 2, 3]"],
                [
                    ("log(softmax(x))", str(_late.tolist()), figures(np.log(ss.softmax([1.0, 2.0, 3.0])))),
                    ("log_softmax(x)", str(ss.log_softmax(_x).tolist()), figures(ss.log_softmax([1.0, 2.0, 3.0]))),
                ],
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
def _(page, t):
    page.foot(
        t(
            zh="softmax 的五条性质：突出大的、非负、和为一、可微、可读成概率。",
            en="The five properties of softmax: favours the large, none negative, sums to one, differentiable, reads as a probability.",
        ),
        t(
            zh="entmax 也满足这五条，只是有一个权重到了一就变平；softmax 好用，但不是唯一的选择。",
            en="Entmax has all five too, though it goes flat once a weight reaches one; softmax is a good choice, not the only one.",
        ),
        t(
            zh="线性归一化怕负数，ReLU 可能全部归零，sigmoid 的和不是一。",
            en="Linear normalisation breaks on negative numbers, ReLU can zero everything, sigmoid does not sum to one.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
