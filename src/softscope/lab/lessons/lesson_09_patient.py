"""Lesson 9: the patient, a model that looks things up."""

import marimo

app = marimo.App(width="medium", app_title="softscope 9")


@app.cell
def _():
    import marimo as mo

    from softscope.doctor.judge.states import NAMES
    from softscope.experiments import chart
    from softscope.lab import patient
    from softscope.lab.page import Page
    from softscope.lab.reads import reads

    return NAMES, Page, chart, mo, patient, reads


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
            zh="训练一个会“查找”的小模型，看着它学会，或者卡住",
            en="train a small model to look things up, and watch it learn or get stuck",
        ),
        t(
            zh="用传导率和优势分辨：它尖锐，是因为学会了，还是还没学会就卡住了",
            en="tell by transmission and advantage whether it is sharp because it has learned, or got stuck before",
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

    任务：给模型看 $16$ 对“键—值”，再问其中一个键，要它答出对应的值。值每次都重新抽取，背下来没有用，模型只能**去看**那个键。它只有一层注意力，所以我们能直接看到它在读哪个键。

    训练时有“医生”在旁边看：`softscope.probe(model)`，你自己的模型也可以这样看。它有两个主要读数：

    - **传导率**：损失对权重提出的要求，有多少穿过 softmax 传到了 q 和 k。传导率接近零的行叫作**被阻断**。
    - **优势**：它读的键，对降低损失来说，是不是比随便挑一个键更好？接近零，说明看得没有道理；明显大于零，说明看对了。

    尖锐本身不是病。学会了的模型本来就该只看一个键：它的行被阻断，但优势很大。如果**被阻断又没有优势**，医生就起疑，接着做试验：让权重变均匀、变柔和，看损失怎样变。试验也说明这些权重没有用，医生才说它在**挨饿**。

    键的总数也有影响。如果总共只有序列里的这些键，一个问题总是遇到同样的键、同样的分数；如果键是从更多的键里抽出来的，模型错看的那个键有时不出现，它就有机会改正。
    """,
            en=r"""
    ## The patient

    The task: the model is shown $16$ pairs of key and value, then asked for one of the keys, and must answer with its value. The values are drawn anew each time, so memorising is no use: the model has to **look** at that key. It has just one layer of attention, so we can see directly which key it reads.

    While it trains, the doctor watches: `softscope.probe(model)`, which works on your own models too. Its two main readings:

    - **transmission**: how much of what the loss asks of the weights gets through the softmax to q and k. Rows where it is close to zero are **blocked**.
    - **advantage**: are the keys it reads better for the loss than a key picked at random? Around zero, it looks without reason; clearly above zero, it looks at the right ones.

    Being sharp is not an illness. A model that has learned should look at one key only: its rows are blocked, but its advantage is large. If it is **blocked without an advantage**, the doctor becomes suspicious and tries: how does the loss change if the weights are made uniform, or softer? Only if that shows that the weights are of no use does it say that the model is **starving**.

    The number of keys matters as well. If there are only those in the sequence, a question always meets the same keys and the same scores. If they are drawn from more, the key that the model wrongly reads is sometimes absent, and it gets a chance to correct itself.
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
def _(mo):
    kept, keep = mo.state([])
    return keep, kept


@app.cell
def _(begin, keep, keys, mo, page, patient, reads, remedy, steps, t, width):
    cases = {
        "scaled": t(zh="缩放 1/√d", en="scaled by 1/√d"),
        "none": t(zh="不缩放", en="unscaled"),
        remedy.value: f"{t(zh='不缩放', en='unscaled')} + {patient.REMEDIES[remedy.value].of(page.lang)}",
    }
    runs = {}
    if begin.value:
        _seen = {}

        def _watch(key):
            def show(reading, looks):
                _seen[key] = looks
                said = t(
                    zh=f"正在训练“{cases[key]}”：第 {reading.step} 步，共 {steps.value} 步，损失 {reading.loss:.2f} 奈特。",
                    en=f"Training “{cases[key]}”: step {reading.step} of {steps.value}, loss {reading.loss:.2f} nats.",
                )
                mo.output.replace(
                    mo.vstack([mo.md(said), reads({cases[name]: seen for name, seen in _seen.items()}, page.lang)])
                )

            return show

        for _key in cases:
            runs[_key] = patient.treat(
                _key,
                d=width.value,
                keys=keys.value,
                steps=steps.value,
                every=max(1, steps.value // 10),
                watch=_watch(_key),
            )
        mo.output.clear()
        _settings = (width.value, keys.value, steps.value)
        keep(lambda past: [*past, (_settings, {cases[key]: runs[key] for key in cases})])
    return cases, runs


@app.cell
def _(NAMES, cases, chart, mo, page, patient, reads, runs, t):
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
        _verdicts = page.table(
            [
                t(zh="模型", en="model"),
                t(zh="答对", en="correct answers"),
                t(zh="被阻断的行", en="blocked rows"),
                t(zh="优势", en="advantage"),
                t(zh="医生的判断", en="the doctor's verdict"),
            ],
            [
                (
                    name,
                    f"{100 * runs[key].accuracy:.0f}%",
                    f"{100 * _state(runs[key]).blocked:.0f}%",
                    f"{_state(runs[key]).advantage:.2f}",
                    _word(NAMES[_state(runs[key]).state]),
                )
                for key, name in cases.items()
            ],
        )
        _errors = page.table(
            [
                t(zh="模型", en="model"),
                t(zh="优势 ± 标准误", en="advantage ± standard error"),
                t(zh="传导率（中位数）", en="transmission (median)"),
            ],
            [
                (
                    name,
                    f"{_state(runs[key]).advantage:.2f} ± {_state(runs[key]).error:.2f}",
                    _state(runs[key]).transmission,
                )
                for key, name in cases.items()
            ],
        )
        _sick = next((run for run in runs.values() if run.diagnosis.prescriptions), None)
        _said = ""
        if _sick is not None:
            _paper = _sick.diagnosis.prescriptions[0]
            _said = t(
                zh=f"**医生说**：{_word(_sick.diagnosis.verdict)}\n\n**处方**：{_word(_paper.what)}。{_word(_paper.why)}。\n\n**预期**：{_word(_paper.expect)}。",
                en=f"**The doctor says**: {_word(_sick.diagnosis.verdict)}\n\n**Prescription**: {_word(_paper.what)}; {_word(_paper.why)}.\n\n**What to expect**: {_word(_paper.expect)}.",
            )
        _best = patient.best(runs)
        _names = t(zh="、", en=" and ").join(t(zh=f"“{cases[key]}”", en=f"“{cases[key]}”") for key in _best)
        _share = f"{100 * runs[_best[0]].accuracy:.0f}%"
        _result = mo.vstack(
            [
                mo.md(
                    t(
                        zh="### 每个模型读哪个键\n\n一行是问的键，一列是训练到的一步；格子里的数是它最看重的键，颜色越深权重越大。绿色：读的正是问的那个键。橙色：读错了。卡住的行一直是橙色。",
                        en="### Which key each model reads\n\nA row is the key that was asked for, a column a step of training. The number in a cell is the key that gets the most weight, and the deeper the colour, the more weight. Green: the key it was asked for. Orange: a wrong one. A row that is stuck stays orange.",
                    )
                ),
                reads({name: runs[key].looks for key, name in cases.items()}, page.lang),
                mo.md(
                    t(
                        zh=f"答对最多：{_names}，{_share}。",
                        en=f"Most correct answers: {_names}, with {_share}.",
                    )
                ),
                _verdicts,
                mo.md(_said),
                _panel(
                    lambda run: list(enumerate(run.answers)),
                    t(zh="答对的比例", en="share of correct answers"),
                    (0.0, 1.0),
                ),
                _panel(_read("blocked"), t(zh="被阻断的行的比例", en="share of blocked rows"), (0.0, 1.0)),
                mo.md(
                    t(
                        zh="看被阻断的行是**什么时候**多起来的：学会之后，还是一开始？",
                        en="Look at **when** the blocked rows become many: after learning, or right from the start?",
                    )
                ),
                page.details(
                    _panel(_read("transmission"), t(zh="传导率（中位数）", en="transmission (median)")),
                    _panel(_read("advantage"), t(zh="优势", en="advantage")),
                    _errors,
                ),
            ]
        )
    _result
    return


@app.cell
def _(NAMES, kept, mo, page, t):
    _past = kept()
    _rows = [
        (
            place,
            d,
            total,
            count,
            name,
            f"{100 * run.accuracy:.0f}%",
            NAMES[next(iter(run.diagnosis.view.states.values())).state].of(page.lang),
        )
        for place, ((d, total, count), models) in reversed(list(enumerate(_past, 1)))
        for name, run in models.items()
    ]
    _heads = [
        t(zh="第几次", en="run"),
        "d",
        t(zh="键的总数", en="keys in all"),
        t(zh="步数", en="steps"),
        t(zh="模型", en="model"),
        t(zh="答对", en="correct answers"),
        t(zh="医生的判断", en="the doctor's verdict"),
    ]
    _shown = mo.md("")
    if _past:
        _shown = mo.vstack(
            [
                mo.md(
                    t(
                        zh="### 到现在为止的训练\n\n每次训练都留在这里，最新的在最上面；改一个设置再训练，就可以比较。",
                        en="### All runs so far\n\nEvery run stays here, the latest on top. Change one setting, train again, and compare.",
                    )
                ),
                page.table(_heads, _rows),
            ]
        )
    _shown
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
            zh="疗法好不好，看结果：缩放、温度、归一化、小初始化各有道理。",
            en="Judge a remedy by its result: scaling, temperature, normalisation and small initialisation each have their reason.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
