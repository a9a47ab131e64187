"""Lesson 9: the patient, a model that looks things up."""

import marimo

app = marimo.App(width="medium", app_title="softscope 9")


@app.cell
def _():
    import marimo as mo

    from softscope.doctor.judge.states import NAMES
    from softscope.experiments import chart
    from softscope.lab import patient
    from softscope.lab.page import Page, figure

    return NAMES, Page, chart, figure, mo, patient


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("patient", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(
            zh="训练一个会“查找”的小模型，看它学会或者卡住",
            en="train a small model to look things up, and see it learn or get stuck",
        ),
        t(
            zh="读懂传导率和优势：是学会了才尖锐，还是还没学就卡死",
            en="read transmission and advantage: sharp because it has learned, or stuck before it could",
        ),
        t(zh="给卡住的模型试一种疗法，并判断有没有用", en="try a remedy on a stuck model, and judge whether it helped"),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh=r"""
    ## 病人

    任务：给模型看若干对“键—值”，再问其中一个键，要它答出值。每次的值都重新抽，背不下来，只能**去看**。模型只有一层注意力。

    训练时有“医生”在旁边看：`softscope.probe(model)`，换成你自己的模型也一样。它的两个读数：

    - **传导率**：损失对权重的要求，有多少穿过 softmax 传到了 q 和 k。接近零的行就**被阻断**了。
    - **优势**：它读的那些键，对损失来说是不是比随便一个键更好？在零附近：看得毫无道理。明显大于零：看对了。

    尖锐本身不是病。学会了的头就该是 one-hot：被阻断，但优势大。**被阻断而又没有优势**，才是挨饿。
    """,
            en=r"""
    ## The patient

    The task: shown some pairs of key and value, then asked one of the keys, answer its value. Values are drawn anew each time, so there is nothing to learn by heart: the model has to **look**. It has one layer of attention.

    While it trains, the doctor watches it: `softscope.probe(model)`, which works with models of your own just as well. Two of its readings:

    - **transmission**: how much of what the loss wants of the weights gets through the softmax to q and k. Rows where it is next to nothing are **blocked**.
    - **advantage**: are the keys it reads better for the loss than any key at random? Around zero: it looks without reason. Clearly above: it looks at the right ones.

    Sharpness is no illness. A head that has learned ought to be one-hot: blocked, with a large advantage. **Blocked without advantage** is starving.
    """,
        )
    )
    return


@app.cell
def _(mo, page, patient, t):
    _names = {patient.REMEDIES[key].of(page.lang): key for key in patient.REMEDIES if key != "none"}
    remedy = mo.ui.dropdown(_names, value=patient.REMEDIES["unit"].of(page.lang), label=t(zh="疗法", en="remedy"))
    width = mo.ui.dropdown({"16": 16, "64": 64, "256": 256}, value="256", label="d")
    steps = mo.ui.slider(20, 160, 20, value=80, label=t(zh="步数", en="steps"), show_value=True)
    begin = mo.ui.run_button(label=t(zh="训练三个模型", en="train three models"))
    mo.vstack([mo.hstack([width, remedy], justify="start", wrap=True), steps, begin])
    return begin, remedy, steps, width


@app.cell
def _(begin, mo, page, patient, remedy, steps, t, width):
    cases = {
        "scaled": t(zh="缩放 1/√d", en="scaled by 1/√d"),
        "none": t(zh="不缩放", en="unscaled"),
        remedy.value: f"{t(zh='不缩放', en='unscaled')} + {patient.REMEDIES[remedy.value].of(page.lang)}",
    }
    runs = {}
    if begin.value:
        _latest = dict.fromkeys(cases)

        def _watch(key):
            def show(reading):
                _latest[key] = reading
                rows = [
                    (name, "…", "", "", "", "")
                    if _latest[key] is None
                    else (
                        name,
                        f"{_latest[key].step} / {steps.value}",
                        _latest[key].loss,
                        f"{100 * _latest[key].blocked:.0f}%",
                        _latest[key].transmission,
                        f"{_latest[key].advantage:.2f}",
                    )
                    for key, name in cases.items()
                ]
                heads = [
                    t(zh="模型", en="model"),
                    t(zh="步", en="step"),
                    t(zh="损失", en="loss"),
                    t(zh="被阻断的行", en="rows blocked"),
                    t(zh="传导率（中位数）", en="transmission (median)"),
                    t(zh="优势", en="advantage"),
                ]
                mo.output.replace(page.table(heads, rows))

            return show

        for _key in cases:
            runs[_key] = patient.treat(
                _key, d=width.value, steps=steps.value, every=max(1, steps.value // 20), watch=_watch(_key)
            )
        mo.output.clear()
    return cases, runs


@app.cell
def _(NAMES, cases, chart, figure, mo, page, runs, t):
    def _panel(points, title, domain=None):
        rows = [
            {"step": step, "value": value, "name": name}
            for key, name in cases.items()
            for step, value in points(runs[key])
        ]
        drawing = chart.curves(
            rows,
            chart.Axis("step", t(zh="步", en="step")),
            chart.Axis("value", title, domain=domain),
            ("name", ""),
            points=False,
            width=280,
            height=180,
        )
        return page.draw(drawing)

    def _read(name):
        return lambda run: [(reading.step, getattr(reading, name)) for reading in run.readings]

    def _word(text):
        return text.of(page.lang)

    def _state(run):
        return next(iter(run.diagnosis.view.states.values()))

    _result = mo.md(t(zh="按下按钮开始。几秒钟就好。", en="Press the button. It takes a few seconds."))
    if runs:
        _heads = [
            t(zh="模型", en="model"),
            t(zh="答对", en="right answers"),
            t(zh="被阻断的行", en="rows blocked"),
            t(zh="传导率（中位数）", en="transmission (median)"),
            t(zh="优势", en="advantage"),
            t(zh="医生的判断", en="the doctor's judgement"),
        ]
        _rows = [
            (
                name,
                f"{100 * runs[key].accuracy:.0f}%",
                f"{100 * _state(runs[key]).blocked:.0f}%",
                _state(runs[key]).transmission,
                f"{_state(runs[key]).advantage:.2f} ± {_state(runs[key]).error:.2f}",
                _word(NAMES[_state(runs[key]).state]),
            )
            for key, name in cases.items()
        ]
        _sick = next((run for run in runs.values() if run.diagnosis.prescriptions), None)
        _said = ""
        if _sick is not None:
            _paper = _sick.diagnosis.prescriptions[0]
            _said = t(
                zh=f"**医生说**：{_word(_sick.diagnosis.verdict)}\n\n**处方**：{_word(_paper.what)}。{_word(_paper.why)}。\n\n**该看到**：{_word(_paper.expect)}。",
                en=f"**The doctor says**: {_word(_sick.diagnosis.verdict)}\n\n**Prescription**: {_word(_paper.what)}; {_word(_paper.why)}.\n\n**To expect**: {_word(_paper.expect)}.",
            )
        _best = max(runs, key=lambda key: runs[key].accuracy)
        _result = mo.vstack(
            [
                page.table(_heads, _rows),
                mo.hstack(
                    [
                        _panel(
                            lambda run: list(enumerate(run.answers)),
                            t(zh="答对的份额", en="share of right answers"),
                            (0.0, 1.0),
                        ),
                        _panel(_read("blocked"), t(zh="被阻断的行的份额", en="share of rows blocked"), (0.0, 1.0)),
                        _panel(_read("transmission"), t(zh="传导率（中位数）", en="transmission (median)")),
                        _panel(_read("advantage"), t(zh="优势", en="advantage")),
                    ],
                    justify="start",
                    wrap=True,
                ),
                mo.md(
                    t(
                        zh=f"答对最多的是“{cases[_best]}”，{figure(100 * runs[_best].accuracy, 0)}%。看被阻断的份额是**什么时候**上升的：学会之后，还是一开始？",
                        en=f"Most answers right: “{cases[_best]}”, {figure(100 * runs[_best].accuracy, 0)}%. Look at **when** the share of blocked rows rises: after learning, or from the start?",
                    )
                ),
                mo.md(_said),
            ]
        )
    _result
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 试一试\n\n- 换成较小的 d：不缩放还会卡住吗？\n- 换几种疗法：哪些和 1/√d 一样好？软上限能救吗？有没有哪种比不治还差？\n- 步数加倍：卡住的模型会自己出来吗？",
            en="## Try\n\n- a smaller d: does the unscaled model still get stuck?\n- other remedies: which are as good as 1/√d? Does a soft cap save it? Do any make it worse than none?\n- twice as many steps: does the stuck model get out by itself?",
        )
    )
    return


@app.cell
def _(mo, page, t):
    mo.accordion(
        {
            t(
                zh="所有疗法一次比完（现场训练，约十几秒）",
                en="All remedies at once (trained now, ten seconds or more)",
            ): mo.lazy(lambda: page.measured("learning", "remedies"), show_loading_indicator=True)
        }
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(zh="尖锐不等于有病：看优势。", en="Sharp is not sick: look at the advantage."),
        t(
            zh="不缩放的宽模型一开始就被阻断，q 和 k 学不动，v 还在学。",
            en="A wide unscaled model is blocked from the start: q and k cannot learn, v still does.",
        ),
        t(
            zh="疗法要看结果：缩放、温度、归一化、小初始化各有道理。",
            en="Judge remedies by their result: scale, temperature, normalisation and a small start each have their reason.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
