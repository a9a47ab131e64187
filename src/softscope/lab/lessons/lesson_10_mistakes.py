"""Lesson 10: find the mistake."""

import marimo

app = marimo.App(width="medium", app_title="softscope 10")


@app.cell
def _():
    import marimo as mo

    from softscope._text import said
    from softscope.lab import puzzles
    from softscope.lab.page import Page

    return Page, mo, puzzles, said


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("mistakes", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(
            zh="判断一句话是对、是错，还是只在某些条件下成立",
            en="judge whether a statement holds, fails, or holds only under a condition",
        ),
        t(zh="用测量而不是权威来下结论", en="draw conclusions from measurements, not from authority"),
        t(zh="说出流传的错误错在哪里", en="say what is wrong with widely repeated errors"),
    )
    return


@app.cell
def _(mo, puzzles, t):
    _count = len(puzzles.CHOSEN)
    mo.md(
        t(
            zh=f"## 规则\n\n下面 {_count} 句话来自讲解 softmax 与注意力的几篇文章。有的对，有的错，有的要加条件。先判断，再看**当场**测得的结果。",
            en=f"## The rules\n\nThese {_count} statements come from several articles that explain softmax and attention. Some hold, some fail, some need a condition. Judge first, then see the result, measured **live**.",
        )
    )
    return


@app.cell
def _(mo, puzzles, t):
    VERDICTS = {
        t(zh="成立", en="holds"): "holds",
        t(zh="有条件地成立", en="holds only if …"): "only-if",
        t(zh="不成立", en="fails"): "fails",
    }
    which = mo.ui.slider(1, len(puzzles.CHOSEN), 1, value=1, label=t(zh="第几题", en="puzzle"), show_value=True)
    answers = mo.ui.array([mo.ui.radio(VERDICTS, inline=True) for _ in puzzles.CHOSEN])
    which
    return VERDICTS, answers, which


@app.cell
def _(answers, mo, page, puzzles, said, t, which):
    _name = puzzles.CHOSEN[which.value - 1]
    claim = puzzles.claim(_name)
    mo.vstack(
        [
            mo.md(
                f"### {which.value} / {len(puzzles.CHOSEN)}\n\n> {said(claim.says, page.lang)}\n\n“{claim.quote}”\n\n<small>{_name} · {t(zh='出处：', en='from: ')}{claim.text}, {claim.where}</small>"
            ),
            answers[which.value - 1],
        ]
    )
    return (claim,)


@app.cell
def _(VERDICTS, answers, claim, mo, page, puzzles, said, t, which):
    _given = answers.value[which.value - 1]
    _shown = mo.md("")
    if _given:
        _outcome = puzzles.puzzle(claim.id).outcome
        _right = _given == _outcome.verdict
        _verdict = next(name for name, key in VERDICTS.items() if key == _outcome.verdict)
        _cases = "\n".join(f"- {'✓' if case.held else '✗'} {said(case.label, page.lang)}" for case in _outcome.cases)
        _condition = (
            f"{t(zh='条件：', en='Condition: ')}{said(_outcome.only_if, page.lang)}\n\n"
            if _outcome.only_if and _outcome.verdict == "only-if"
            else ""
        )
        _truth = (
            f"\n\n**{t(zh='正确说法：', en='True is: ')}**{said(_outcome.instead, page.lang)}"
            if _outcome.instead and _outcome.verdict == "fails"
            else ""
        )
        _found = {
            "measured": t(zh="测得：", en="Measured: "),
            "derived": t(zh="推导：", en="Derived: "),
            "quoted": t(zh="引用：", en="Quoted: "),
        }[_outcome.evidence]
        _more = (
            f"\n\n{t(zh='更多：', en='More: ')}`softscope experiment {claim.experiment}`" if claim.experiment else ""
        )
        _shown = mo.callout(
            mo.md(
                f"**{t(zh='判断正确：', en='You are right: ') if _right else t(zh='再想想：', en='Not quite: ')}{_verdict}**\n\n"
                f"{_found}{said(_outcome.measured, page.lang)}\n\n{_condition}{said(_outcome.because, page.lang)}{_truth}\n\n{_cases}{_more}"
            ),
            kind="success" if _right else "warn",
        )
    _shown
    return


@app.cell
def _(answers, mo, puzzles, t):
    _given = [(name, answer) for name, answer in zip(puzzles.CHOSEN, answers.value, strict=True) if answer]
    _right = sum(puzzles.puzzle(name).outcome.verdict == answer for name, answer in _given)
    mo.md(
        t(
            zh=f"答了 {len(_given)} 题，判断正确 {_right} 题。",
            en=f"Answered: {len(_given)}. Correct: {_right}.",
        )
    )
    return


@app.cell
def _(mo, page, puzzles, said, t):
    _rows = "\n".join(f"- {said(one, page.lang)}" for one in puzzles.contradictions())
    mo.accordion(
        {
            t(zh="文章之间互相矛盾之处", en="Where the articles contradict each other"): mo.md(_rows),
            t(zh="全部说法", en="All the statements"): mo.md(
                t(
                    zh="在终端里：`softscope claims`，或用 `softscope claims --format html` 得到双语网页。",
                    en="In a terminal: `softscope claims`, or `softscope claims --format html` for a bilingual page.",
                )
            ),
        }
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(zh="“显而易见”的说法也值得算一遍。", en="Even “obvious” statements are worth computing once."),
        t(
            zh="很多错误是漏了条件：对什么成立，什么时候成立。",
            en="Many errors are a missing condition: what is it true of, and when?",
        ),
        t(zh="读到一个数字，问：哪条命令能重现它？", en="When you read a number, ask which command reproduces it."),
    )
    return


if __name__ == "__main__":
    app.run()
