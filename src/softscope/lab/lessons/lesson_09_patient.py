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
            zh="训练一个会“查找”的小模型，看它是学会还是卡住",
            en="train a small model to look things up, and see whether it learns or gets stuck",
        ),
        t(
            zh="读懂传导率和优势：是学会了才尖锐，还是没学会就卡住",
            en="read transmission and advantage: is it sharp because it has learned, or stuck before it could learn?",
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

    任务：给模型看若干“键—值”对，再问其中一个键，要它答出对应的值。值每次都重新抽取，背下来没有用，只能**去看**。模型只有一层注意力。

    训练时有“医生”在旁边看：`softscope.probe(model)`，换成你自己的模型也一样。它的两个读数：

    - **传导率**：损失对权重的要求，有多少穿过 softmax 传到了 q 和 k。接近零的行就**被阻断**了。
    - **优势**：就损失而言，它读的那些键是不是比随便一个键更好？在零附近：看得毫无道理。明显大于零：看对了。

    尖锐本身不是病。学会了的头本来就该是 one-hot：被阻断，但优势大。**被阻断又没有优势**的头，医生才怀疑；再试一试它值多少（让它均匀，让它柔和，看损失怎么变），才说它挨饿。

    每个序列出现一组键。如果总共就只有这些键，一次查询总是遇到同样的键、同样的分数；如果键是从更多的键里抽出来的，看错的那个键有时不出现。这对不缩放的模型差别很大，自己试试。
    """,
            en=r"""
    ## The patient

    The task: the model is shown some key–value pairs, then given one of the keys, and must answer with its value. The values are drawn anew each time, so memorising is no use: the model has to **look**. It has just one layer of attention.

    While it trains, the doctor watches: `softscope.probe(model)`, which works just as well on your own model. Two of its readings:

    - **transmission**: how much of what the loss asks of the weights gets through the softmax to q and k. Rows where it is close to zero are **blocked**.
    - **advantage**: are the keys it reads better for the loss than a key picked at random? Around zero: it looks without reason. Clearly above zero: it looks at the right ones.

    Sharpness itself is not an illness. A head that has learned should be one-hot: blocked, but with a large advantage. A head that is **blocked with no advantage** makes the doctor suspicious. Then it tries what the head is worth (made uniform, made softer: how does the loss change?) before it says that the head is starving.

    Each sequence shows a set of keys. If there are only those in all, a query always meets the same keys and the same scores; if they are drawn from more, the key that it wrongly reads is sometimes absent. For an unscaled model this makes a great difference: try it.
    """,
        )
    )
    return


@app.cell
def _(mo, page, patient, t):
    _names = {patient.REMEDIES[key].of(page.lang): key for key in patient.REMEDIES if key != "none"}
    remedy = mo.ui.dropdown(_names, value=patient.REMEDIES["unit"].of(page.lang), label=t(zh="疗法", en="remedy"))
    width = mo.ui.dropdown({"16": 16, "64": 64, "256": 256}, value="256", label="d")
    keys = mo.ui.dropdown({str(n): n for n in patient.KEYS}, value="16", label=t(zh="键的总数", en="keys in all"))
    steps = mo.ui.slider(20, 320, 20, value=80, label=t(zh="步数", en="steps"), show_value=True)
    begin = mo.ui.run_button(label=t(zh="训练三个模型", en="train three models"))
    mo.vstack([mo.hstack([width, keys, remedy], justify="start", wrap=True), steps, begin])
    return begin, keys, remedy, steps, width


@app.cell
def _(begin, keys, mo, page, patient, remedy, steps, t, width):
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
                    t(zh="被阻断的行", en="blocked rows"),
                    t(zh="传导率（中位数）", en="transmission (median)"),
                    t(zh="优势", en="advantage"),
                ]
                mo.output.replace(page.table(heads, rows))

            return show

        for _key in cases:
            runs[_key] = patient.treat(
                _key,
                d=width.value,
                keys=keys.value,
                steps=steps.value,
                every=max(1, steps.value // 20),
                watch=_watch(_key),
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

    _result = mo.md(t(zh="按下按钮开始，几秒钟就好。", en="Press the button to start. It takes a few seconds."))
    if runs:
        _heads = [
            t(zh="模型", en="model"),
            t(zh="答对", en="correct answers"),
            t(zh="被阻断的行", en="blocked rows"),
            t(zh="传导率（中位数）", en="transmission (median)"),
            t(zh="优势", en="advantage"),
            t(zh="医生的判断", en="the doctor's verdict"),
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
                zh=f"**医生说**：{_word(_sick.diagnosis.verdict)}\n\n**处方**：{_word(_paper.what)}。{_word(_paper.why)}。\n\n**预期**：{_word(_paper.expect)}。",
                en=f"**The doctor says**: {_word(_sick.diagnosis.verdict)}\n\n**Prescription**: {_word(_paper.what)}; {_word(_paper.why)}.\n\n**What to expect**: {_word(_paper.expect)}.",
            )
        _best = max(runs, key=lambda key: runs[key].accuracy)
        _result = mo.vstack(
            [
                page.table(_heads, _rows),
                mo.hstack(
                    [
                        _panel(
                            lambda run: list(enumerate(run.answers)),
                            t(zh="答对的比例", en="share of correct answers"),
                            (0.0, 1.0),
                        ),
                        _panel(_read("blocked"), t(zh="被阻断的行的比例", en="share of blocked rows"), (0.0, 1.0)),
                        _panel(_read("transmission"), t(zh="传导率（中位数）", en="transmission (median)")),
                        _panel(_read("advantage"), t(zh="优势", en="advantage")),
                    ],
                    justify="start",
                    wrap=True,
                ),
                mo.md(
                    t(
                        zh=f"答对最多的是“{cases[_best]}”，{figure(100 * runs[_best].accuracy, 0)}%。看被阻断的行的比例是**什么时候**上升的：学会之后，还是一开始？",
                        en=f"Most correct answers: “{cases[_best]}”, {figure(100 * runs[_best].accuracy, 0)}%. Look at **when** the share of blocked rows rises: after learning, or right from the start?",
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
            zh="## 试一试\n\n- 换成较小的 d：不缩放还会卡住吗？\n- 换几种疗法：哪些和 1/√d 一样好？软上限能救吗？有没有比不治还差的？\n- 步数加到最多：卡住的模型会自己恢复吗？\n- 键的总数换成更多，步数仍最多：不缩放的模型还卡住吗？医生怎么说？从多少个键起就不卡住了？这里每种只训练一次；在转折点附近，换一个种子结果就不同，下面的表用了五个种子。",
            en="## Try this\n\n- A smaller d: does the unscaled model still get stuck?\n- Other remedies: which are as good as 1/√d? Can a soft cap save it? Is any remedy worse than none?\n- As many steps as the slider allows: does the stuck model recover by itself?\n- More keys in all, and as many steps: is the unscaled model still stuck, and what does the doctor say? From how many keys on is it free? Here each model trains once; near the flip another seed gives another answer, so the tables below use five.",
        )
    )
    return


@app.cell
def _(mo, page, t):
    mo.accordion(
        {
            t(
                zh="所有疗法和键的总数一次比完（现场训练，五个种子，约一分钟）",
                en="All remedies and numbers of keys compared at once (trained live, five seeds, about a minute)",
            ): mo.lazy(lambda: page.measured("learning", "remedies", "keys"), show_loading_indicator=True)
        }
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(zh="尖锐不等于有病：看优势。", en="Sharp does not mean sick: look at the advantage."),
        t(
            zh="不缩放的宽模型一开始就有许多行被阻断，q 和 k 几乎学不动，v 还在学。它卡不卡住要看任务：总是同样的那些键，被阻断在错误的键上的行就一直挨饿；从多得多的键里抽取，错误的键有时不出现，就只是学得晚。",
            en="Many rows of a wide unscaled model are blocked from the start: q and k hardly learn; v still does. Whether it gets stuck depends on the task: if the keys are always the same, rows that are blocked on a wrong key starve for good; if they are drawn from many more, the wrong key is sometimes absent, and the model only learns late.",
        ),
        t(
            zh="疗法要看结果：缩放、温度、归一化、小初始化各有道理。",
            en="Judge remedies by their results: scaling, temperature, normalisation and small initialisation each have their reason.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
