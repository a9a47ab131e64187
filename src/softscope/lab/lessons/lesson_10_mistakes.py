"""Lesson 10: find the mistake."""

import marimo

app = marimo.App(width="medium", app_title="softscope 10")


@app.cell
def _():
    import html

    import marimo as mo

    import softscope as ss
    from softscope._text import said
    from softscope.lab import puzzles
    from softscope.lab.page import Page, figures

    return Page, figures, html, mo, puzzles, said, ss


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
        t(zh="用测量下结论，而不是看谁说的", en="draw conclusions from measurements, not from who said it"),
        t(zh="说出流传很广的说法错在哪里", en="say what is wrong with statements that are often repeated"),
    )
    return


@app.cell
def _(mo, puzzles, t):
    _count = len(puzzles.CHOSEN)
    mo.md(
        t(
            zh=f"## 规则\n\n下面 {_count} 句话来自几篇讲解 softmax 与注意力的文章。有的成立，有的不成立，有的要加条件才成立。你先判断，然后这里**当场**测量给你看。",
            en=f"## The rules\n\nThese {_count} statements come from several articles that explain softmax and attention. Some hold, some fail, and some hold only under a condition. You judge first; then we measure, **live**.",
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
def _(answers, html, mo, page, puzzles, said, t, which):
    _name = puzzles.CHOSEN[which.value - 1]
    claim = puzzles.claim(_name)
    _quote = f"“{html.escape(claim.quote)}” · " if claim.quote and (page.lang == "zh" or claim.quote.isascii()) else ""
    mo.vstack(
        [
            mo.md(f"### {which.value} / {len(puzzles.CHOSEN)}\n\n> {said(claim.says, page.lang)}"),
            mo.Html(
                f'<p class="lab-meta">{_quote}{t(zh="出处：", en="from: ")}{claim.text}, {claim.where} ({_name})</p>'
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
        _parts = [
            f"**{t(zh='判断正确：', en='You are right: ') if _right else t(zh='再想想：', en='Not quite: ')}{_verdict}**"
        ]
        if _outcome.verdict == "fails" and _outcome.instead:
            _parts.append(f"**{t(zh='实际上：', en='What is true:')}** {said(_outcome.instead, page.lang)}")
        if _outcome.verdict == "only-if" and _outcome.only_if:
            _parts.append(f"**{t(zh='条件：', en='It holds only if')}** {said(_outcome.only_if, page.lang)}")
        _parts.append(said(_outcome.because, page.lang))
        # Where it fails, the true sentence says it all: a cross before a denial would be a double negative.
        _tried = [case for case in _outcome.cases if case.kind == "input" and _outcome.verdict != "fails"]
        if _tried:
            _parts.append(t(zh="逐个试过：", en="Tried one by one:"))
            _parts.append("\n".join(f"- {'✓' if case.held else '✗'} {said(case.label, page.lang)}" for case in _tried))
        _found = {
            "measured": t(zh="测得：", en="Measured: "),
            "derived": t(zh="推导：", en="Derived: "),
            "quoted": t(zh="引用：", en="Quoted: "),
        }[_outcome.evidence]
        _details = [mo.md(f"{_found}{said(_outcome.measured, page.lang)}")]
        if claim.experiment:
            _details.append(mo.md(f"{t(zh='更多：', en='More: ')}`softscope experiment {claim.experiment}`"))
        _shown = mo.vstack(
            [
                mo.callout(mo.md("\n\n".join(_parts)), kind="success" if _right else "warn"),
                page.details(*_details, title=t(zh="测量的数字", en="The measured numbers")),
            ]
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
def _(figures, mo, page, ss, t):
    _sharp = [ss.softmax([k * x for x in (1.0, 0.5, 0.0, -0.5)]) for k in (1.0, 8.0)]
    mo.vstack(
        [
            mo.md(
                t(
                    zh=r"""
    ## 两个证明，其中一个有漏洞

    文章里有两个证明。第一个有中文草稿和英文版，第二个只有中文；这里按页面的语言写出来。

    **证明一：乘以 $k$，权重更尖锐。** 只有两个分数时，权重之比是
    $$a = \frac{s_1}{s_2} = e^{x_1 - x_2}.$$
    把两个分数都乘以 $k$，比值就变成
    $$a' = e^{k(x_1 - x_2)} = a^k.$$
    “所以 $k > 1$ 时 $a' > a$，结果更接近 one-hot。”

    先找找漏洞，再往下看。""",
                    en=r"""
    ## Two proofs, one with a gap

    The articles contain two proofs. The first exists as a Chinese draft and in English, the second in Chinese only; here both are in the language of the page.

    **Proof one: multiplying by $k$ sharpens the weights.** For two scores, the ratio of the weights is
    $$a = \frac{s_1}{s_2} = e^{x_1 - x_2}.$$
    Multiply both scores by $k$, and the ratio becomes
    $$a' = e^{k(x_1 - x_2)} = a^k.$$
    “So for $k > 1$ we have $a' > a$, and the result is closer to one-hot.”

    Look for the gap before you read on.""",
                )
            ),
            page.details(
                mo.md(
                    t(
                        zh=r"$a^k > a$ 只在 $a > 1$ 时成立。$a < 1$ 时比值反而变**小**，但那是第二个权重领先，结果同样更接近 one-hot；$a = 1$ 时两个权重相等，乘以多少都不变。",
                        en=r"$a^k > a$ holds only for $a > 1$. For $a < 1$ the ratio gets **smaller**; but then the second weight leads, so the result is closer to one-hot all the same. For $a = 1$ the weights are equal, and no $k$ changes that.",
                    )
                ),
                title=t(zh="漏洞在这里", en="Here is the gap"),
            ),
            mo.md(
                t(
                    zh=r"""
    **证明二：越接近 one-hot，梯度越小。** 先取对数再求导，因为 $\log s_i = x_i - \log\sum_l e^{x_l}$ 的导数很简单：
    $$\frac{\partial \log s_i}{\partial x_j} = \delta_{ij} - s_j,$$
    其中 $i = j$ 时 $\delta_{ij} = 1$，否则为 $0$。又因为 $\partial \log s_i = \partial s_i / s_i$，两边乘以 $s_i$：
    $$J_{ij} = \frac{\partial s_i}{\partial x_j} = s_i(\delta_{ij} - s_j).$$
    这是一个 $n \times n$ 的矩阵，$n$ 是分数的个数。对角线上是 $s_i(1 - s_i)$，其余是 $-s_i s_j$。如果一个权重接近一，其余接近零，那么每一项都接近零。四个分数时：""",
                    en=r"""
    **Proof two: the closer to one-hot, the smaller the gradient.** Take the logarithm before differentiating, because $\log s_i = x_i - \log\sum_l e^{x_l}$ has a simple derivative:
    $$\frac{\partial \log s_i}{\partial x_j} = \delta_{ij} - s_j,$$
    where $\delta_{ij} = 1$ if $i = j$, and $0$ otherwise. Since $\partial \log s_i = \partial s_i / s_i$, multiply both sides by $s_i$:
    $$J_{ij} = \frac{\partial s_i}{\partial x_j} = s_i(\delta_{ij} - s_j).$$
    This is an $n \times n$ matrix, where $n$ is the number of scores. Its diagonal holds $s_i(1 - s_i)$, the rest $-s_i s_j$. If one weight is close to one and the others close to zero, then every entry is close to zero. With four scores:""",
                )
            ),
            page.side_by_side(
                *(page.matrix(f"J, s = {figures(s, 2)}", ss.jacobian(s), top=0.25) for s in _sharp),
            ),
        ]
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
        t(zh="“显然”的说法，也值得动手算一遍。", en="Even an “obvious” statement is worth computing once."),
        t(
            zh="许多错误只是漏了条件：它对什么成立，什么时候成立？",
            en="Many errors are only a missing condition: what does it hold for, and when?",
        ),
        t(zh="读到一个数字，问：哪条命令能重现它？", en="When you read a number, ask which command reproduces it."),
    )
    return


if __name__ == "__main__":
    app.run()
