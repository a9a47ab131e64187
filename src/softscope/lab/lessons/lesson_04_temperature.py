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
            zh="知道采样、校准、蒸馏里温度各管什么",
            en="know what temperature does in sampling, calibration and distillation",
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

    温度 $T$ 就是上一课增益的倒数：$k = 1/T$。冷则尖锐，热则平缓。拖动温度，同时看熵。
    """,
            en=r"""
    ## One knob

    $$s_i = \frac{e^{x_i/T}}{\sum_j e^{x_j/T}}$$

    The temperature $T$ is the reciprocal of the last lesson's gain: $k = 1/T$. Cold means sharp, hot means flat. Drag the temperature and watch the entropy.
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
def _(figures, mo, np, page, ss, t):
    # F3-8
    def softmax_with_temperature(x, temperature):
        return ss.softmax(np.asarray(x) / temperature)

    _x = [1.0, 2.0, 3.0]
    _rows = [
        (f"{T:g}", figures(softmax_with_temperature(_x, T), 4), ss.partition(_x, temperature=T).entropy.item())
        for T in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="同一行分数 `[1, 2, 3]`，六个温度：",
                    en="The same row of scores, `[1, 2, 3]`, at six temperatures:",
                )
            ),
            page.table(["T", t(zh="权重", en="weights"), t(zh="熵（奈特）", en="entropy (nats)")], _rows),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="**练习**：对 `[1, 2, 3, 4, 5]`，五个相差悬殊的温度各给出什么权重？先猜，再看图。最大值并列时又会怎样？",
            en="**Exercise**: what weights do five very different temperatures give for `[1, 2, 3, 4, 5]`? Guess first, then look. And what happens when two scores tie for the maximum?",
        )
    )
    return


@app.cell
def _(chart, figures, mo, np, page, ss, t):
    # F3-15
    _x, _tied = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 3.0, 3.0]
    _rows = [
        (f"{T:g}", figures(ss.softmax(_x, temperature=T)), figures(ss.softmax(_tied, temperature=T)))
        for T in (0.01, 0.1, 1.0, 10.0, 100.0)
    ]
    _curve = [
        {"T": float(T), "s": float(s), "x": f"x = {x:g}"}
        for T in np.logspace(-2, 2, 60)
        for x, s in zip(_x, ss.softmax(_x, temperature=float(T)), strict=True)
    ]
    mo.vstack(
        [
            page.table(["T", "[1, 2, 3, 4, 5]", "[1, 3, 3]"], _rows),
            page.draw(
                chart.curves(
                    _curve,
                    chart.Axis("T", "T", log=True),
                    chart.Axis("s", t(zh="权重", en="weight"), domain=(0.0, 1.0)),
                    ("x", ""),
                    points=False,
                )
            ),
            mo.md(
                t(
                    zh="冷到极点，最大的独得一切；最大值并列时，它们**平分**，所以极限不总是 one-hot。",
                    en="In the cold limit, the largest takes everything; if several tie for the largest, they **share equally**, so the limit is not always one-hot.",
                )
            ),
        ]
    )
    return


@app.cell
def _(page, practice):
    answer = practice.editor(page, 2)
    practice.shown(page, 2, answer)
    return (answer,)


@app.cell
def _(answer, page, practice):
    practice.graded(page, 2, answer)
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 反过来问：想要多尖锐，温度该是多少？\n\n熵随温度单调上升，所以每个达得到的目标都对应唯一的温度。",
            en="## The inverse question: which temperature gives the sharpness you want?\n\nEntropy rises monotonically with temperature, so every target within reach has exactly one temperature.",
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
    ## 它用在哪里

    | 场合 | 常见的选择 | 为什么 |
    |:--|:--|:--|
    | 翻译、摘要 | 不改动，或更冷 | 模型自己的分布；要稳就调冷 |
    | 创意写作 | 热一些 | 更多样 |
    | 写代码 | 冷 | 只试一次时更可靠；试许多次时反而要热一些（见下） |
    | 蒸馏 | 热 | 让学生看到老师在错误答案之间的偏好 |

    这些温度是习惯，不是定律。“对齐也要用高温度”这一说法，我们没有找到依据。其中能测的，下面测一测。
    """,
            en="""
    ## Where it is used

    | where | usual choice | why |
    |:--|:--|:--|
    | translation, summaries | unchanged, or colder | the model's own distribution; colder for steadier output |
    | creative writing | warmer | more variety |
    | writing code | cold | more reliable with a single try; with many tries, warmer is better (see below) |
    | distillation | hot | the student sees which wrong answers the teacher prefers |

    These temperatures are habits, not laws. We have found no source for the claim that alignment needs a high temperature. Below we measure what can be measured.
    """,
        )
    )
    return


@app.cell
def _(page):
    page.measured("temperature", "sampler", "soft_targets")
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 校准：让置信度说真话\n\n下面这个模型的分数乘过一个倍数：倍数大于一，它过于自信；小于一，它不够自信。滑块决定倍数，`fit_temperature` 根据标签把温度找回来。",
            en="## Calibration: making confidence tell the truth\n\nThis model's scores have been multiplied by a factor: above one, it is overconfident; below one, underconfident. The slider sets the factor, and `fit_temperature` recovers the temperature from the labels.",
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
            (t(zh="校准误差 ECE", en="calibration error ECE"), float(_found.ece_before), float(_found.ece_after)),
        ],
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="T 就是增益的倒数：冷则尖，热则平。",
            en="T is the reciprocal of the gain: cold means sharp, hot means flat.",
        ),
        t(
            zh="熵随 T 单调上升，所以想要多尖锐，都能反求温度。",
            en="Entropy rises monotonically with T, so you can find the temperature for any sharpness you want.",
        ),
        t(
            zh="只试一次，温度低些好；试许多次，温度高些好。",
            en="A low temperature is better for a single try, a higher one for many tries.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
