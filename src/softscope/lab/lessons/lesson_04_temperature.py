"""Lesson 4: temperature and its uses."""

import marimo

app = marimo.App(width="medium", app_title="softscope 4")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.experiments import chart
    from softscope.lab import practice
    from softscope.lab.page import Page, figure, figures, measured
    from softscope.lab.widgets import SoftmaxWidget

    return Page, SoftmaxWidget, chart, figure, figures, measured, mo, np, practice, ss


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("temperature", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(
            zh="说出温度趋于零、等于一、趋于无穷时发生什么",
            en="say what happens when the temperature tends to zero, equals one, or tends to infinity",
        ),
        t(
            zh="由想要的熵或最大权重反求温度",
            en="find the temperature that gives the entropy or largest weight you want",
        ),
        t(
            zh="说出温度在采样、校准和蒸馏里各起什么作用",
            en="say what temperature does in sampling, calibration and distillation",
        ),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh=r"""
    ## 一个旋钮

    $$s_i = \frac{e^{x_i/T}}{\sum_j e^{x_j/T}}$$

    把所有分数除以一个正数 $T$，再做 softmax。$T$ 叫做**温度**，它是上一课增益 $k$ 的倒数：$k = 1/T$。温度低，权重尖锐；温度高，权重平坦。拖动温度的滑块，看权重怎样变化，熵怎样随之升降。
    """,
            en=r"""
    ## One knob

    $$s_i = \frac{e^{x_i/T}}{\sum_j e^{x_j/T}}$$

    Divide all scores by a positive number $T$, then take the softmax. $T$ is called the **temperature**, and it is the reciprocal of the last lesson's gain $k$: $k = 1/T$. A low temperature gives sharp weights, a high temperature flat ones. Drag the temperature slider and watch the weights change, and the entropy with them.
    """,
        )
    )
    return


@app.cell
def _(SoftmaxWidget, mo, page):
    picture = mo.ui.anywidget(SoftmaxWidget(logits=[1.0, 2.0, 3.0], lang=page.lang))
    picture
    return


@app.cell
def _(chart, figures, mo, np, page, ss, t):
    # F3-15
    _x, _tied, _temperatures = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 3.0, 3.0], (0.01, 0.1, 1.0, 10.0, 100.0)
    _rows = [
        (f"{T:g}", figures(ss.softmax(_x, temperature=T)), figures(ss.softmax(_tied, temperature=T)))
        for T in _temperatures
    ]
    _curve = [
        {"T": float(T), "s": float(s), "x": f"x = {x:g}"}
        for T in np.logspace(-2, 2, 60)
        for x, s in zip(_x, ss.softmax(_x, temperature=float(T)), strict=True)
    ]
    _given = ", ".join(f"{T:g}" for T in _temperatures)
    _answer = mo.vstack(
        [
            page.draw(
                chart.curves(
                    _curve,
                    chart.Axis("T", t(zh="温度 T", en="temperature T"), log=True),
                    chart.Axis("s", t(zh="权重", en="weight"), domain=(0.0, 1.0)),
                    ("x", ""),
                    points=False,
                )
            ),
            page.table(["T", "[1, 2, 3, 4, 5]", "[1, 3, 3]"], _rows),
            mo.md(
                t(
                    zh="温度趋于零时，最大的分数独得全部权重。如果有几个分数并列最大，它们就**平分**，所以极限不一定是 one-hot。温度趋于无穷时，所有权重都相等。",
                    en="As the temperature tends to zero, the largest score takes all the weight. If several scores tie for the largest, they **share equally**, so the limit is not always one-hot. As the temperature tends to infinity, all weights become equal.",
                )
            ),
        ]
    )
    mo.vstack(
        [
            mo.md(
                t(
                    zh=f"**先猜一猜。** 分数是 `[1, 2, 3, 4, 5]`，温度依次是 {_given}，权重会是什么样？如果分数是 `[1, 3, 3]`，有两个并列最大，又会怎样？想好了再打开答案。",
                    en=f"**Guess first.** The scores are `[1, 2, 3, 4, 5]`, and the temperatures are {_given}. What do the weights look like? And what happens for `[1, 3, 3]`, where two scores tie for the largest? Open the answer once you have made up your mind.",
                )
            ),
            page.details(_answer, title=t(zh="看答案", en="Show the answer")),
        ]
    )
    return


@app.cell
def _(page, practice):
    answer = practice.editor(page, "temperature")
    practice.shown(page, "temperature", answer)
    return (answer,)


@app.cell
def _(answer, page, practice):
    practice.graded(page, "temperature", answer)
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 六个温度\n\n做完练习，可以对照下面的函数：softmax 本身不变，只是先把分数除以温度。",
            en="## Six temperatures\n\nWhen you have done the exercise, compare your answer with this function: softmax itself stays as it is, only the scores are first divided by the temperature.",
        )
    )
    return


@app.cell
def _(mo, np, ss):
    def softmax_with_temperature(x, temperature):
        return ss.softmax(np.asarray(x) / temperature)

    mo.show_code()
    return (softmax_with_temperature,)


@app.cell
def _(figures, mo, page, softmax_with_temperature, ss, t):
    # F3-8
    _x = [1.0, 2.0, 3.0]
    _rows = [
        (f"{T:g}", figures(softmax_with_temperature(_x, T), 4), ss.partition(_x, temperature=T).entropy.item())
        for T in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
    ]
    mo.vstack(
        [
            mo.md(t(zh="同一行分数 `[1, 2, 3]`：", en="The same row of scores, `[1, 2, 3]`:")),
            page.table(["T", t(zh="权重", en="weights"), t(zh="熵（奈特）", en="entropy (nats)")], _rows),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 反过来：想要某种尖锐程度，温度该取多少？\n\n温度越高，熵越大，最大权重越小。两者都单调变化，所以每个能达到的目标都对应唯一的温度，库可以替你求出来。",
            en="## The other way round: which temperature gives the sharpness you want?\n\nThe higher the temperature, the larger the entropy and the smaller the largest weight. Neither ever turns back, so every target within reach has exactly one temperature, and the library can find it for you.",
        )
    )
    return


@app.cell
def _(mo, t):
    wanted = mo.ui.slider(
        0.35, 0.99, 0.01, value=0.9, label=t(zh="想要的最大权重", en="largest weight you want"), show_value=True
    )
    wanted
    return (wanted,)


@app.cell
def _(figure, figures, mo, ss, t, wanted):
    _x = [1.0, 2.0, 3.0]
    _T = float(ss.temperature_for(_x, peak=wanted.value).item())
    _s = ss.softmax(_x, temperature=_T)
    mo.md(
        t(
            zh=f"`ss.temperature_for([1, 2, 3], peak={wanted.value})` = **{figure(_T, 4)}**，此时权重为 {figures(_s)}。",
            en=f"`ss.temperature_for([1, 2, 3], peak={wanted.value})` = **{figure(_T, 4)}**, which gives the weights {figures(_s)}.",
        )
    )
    return


@app.cell
def _(mo, t):
    # F3-9
    mo.md(
        t(
            zh="""
    ## 温度用在哪里

    语言模型每写一个词，都先给所有的词打分，做 softmax，再按权重随机抽一个，这叫**采样**。常见的选择：

    | 场合 | 常见的温度 | 为什么 |
    |:--|:--|:--|
    | 翻译、摘要 | 不改，或低一些 | 温度低，结果更稳定 |
    | 创意写作 | 高一些 | 结果更多样 |
    | 写代码 | 低 | 只试一次时更可靠；可以试许多次时，反而要高一些（见下图） |
    | 蒸馏 | 高 | 学生模型能看到教师模型在错误答案之间的偏好 |

    这些是习惯，不是定律。有人说“对齐也要用高温度”，我们没有找到依据。能测的，我们测一测。下图里，一个玩具模型对每道题有许多候选答案；试一次、十次或五十次，至少对一次的比例（叫做 pass@k）怎样随温度变化？
    """,
            en="""
    ## Where temperature is used

    To write the next word, a language model scores every word, takes the softmax, and then draws one word at random according to the weights. This is called **sampling**. Usual choices:

    | where | usual temperature | why |
    |:--|:--|:--|
    | translation, summaries | unchanged, or lower | a low temperature gives steadier output |
    | creative writing | higher | more variety |
    | writing code | low | more reliable with a single try; with many tries, higher is better (see the chart) |
    | distillation | high | the student model sees which wrong answers its teacher prefers |

    These are habits, not laws. Some say that alignment needs a high temperature; we have found no source for that. What can be measured, we measure. In the chart, a toy model has many candidate answers to each problem. How does the share of problems solved at least once (called pass@k) depend on the temperature, for one, ten and fifty tries?
    """,
        )
    )
    return


@app.cell
def _(chart, measured, mo, page, t):
    _rows = [
        {"T": float(row["T"]), "share": row[f"pass_{tries}"].value, "tries": f"pass@{tries}"}
        for tries in (1, 10, 50)
        for row in measured("temperature")["sampler"].records()
    ]
    mo.vstack(
        [
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("T", t(zh="温度 T", en="temperature T"), log=True),
                    chart.Axis("share", t(zh="做对的比例", en="share of problems solved"), domain=(0.0, 1.0)),
                    ("tries", ""),
                )
            ),
            page.details(page.measured("temperature", "sampler", "soft_targets")),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 校准：让置信度说真话\n\n模型说“有九成把握”，就应该十次里对九次左右。这样的模型叫做**校准**好的。下面这个模型原本是校准好的，但我们把它的分数都乘以一个倍数：倍数大于一，它过于自信；小于一，它信心不足。\n\n`fit_temperature` 需要两样东西：模型的分数，以及每一行的正确答案（标签）。它找出使标签的**负对数似然** $-\\ln s_{\\text{对}}$ 平均最小的温度。拖动倍数，看找到的温度是不是恰好抵消它。",
            en="## Calibration: making confidence tell the truth\n\nIf a model says that it is ninety percent sure, it should be right about nine times out of ten. Such a model is **well calibrated**. The model below was well calibrated, but we have multiplied its scores by a factor: above one, it is overconfident; below one, underconfident.\n\n`fit_temperature` needs two things: the model's scores, and the right answer (the label) of every row. It finds the temperature with the smallest mean **negative log-likelihood** $-\\ln s_{\\text{right}}$ of the labels. Drag the factor and see whether the temperature it finds just undoes it.",
        )
    )
    return


@app.cell
def _(mo, t):
    boast = mo.ui.slider(0.5, 5.0, 0.1, value=3.0, label=t(zh="倍数", en="factor"), show_value=True)
    boast
    return (boast,)


@app.cell
def _(boast, np, page, ss, t):
    _rng = np.random.default_rng(2)
    _true = _rng.normal(0.0, 1.5, (4000, 5))
    _labels = ss.sample(_true, rng=_rng)
    _found = ss.fit_temperature(boast.value * _true, _labels)
    page.table(
        ["", t(zh="校准前", en="before"), t(zh="校准后", en="after")],
        [
            (t(zh="温度", en="temperature"), 1.0, float(_found.temperature)),
            (
                t(zh="负对数似然（奈特）", en="negative log-likelihood (nats)"),
                float(_found.nll_before),
                float(_found.nll_after),
            ),
            (
                t(
                    zh="校准误差：置信度与正确率平均差多少",
                    en="calibration error: mean distance of confidence and accuracy",
                ),
                float(_found.ece_before),
                float(_found.ece_after),
            ),
        ],
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="温度 T 是增益 k 的倒数：温度低则尖锐，温度高则平坦。",
            en="The temperature T is the reciprocal of the gain k: low is sharp, high is flat.",
        ),
        t(
            zh="温度越高，熵越大，所以每个能达到的熵都对应唯一的温度。",
            en="The higher the temperature, the larger the entropy, so every entropy within reach has exactly one temperature.",
        ),
        t(
            zh="采样时，只试一次用低温更好，试许多次用高一些的温度更好。",
            en="In sampling, a low temperature is better for a single try, and a higher one for many tries.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
