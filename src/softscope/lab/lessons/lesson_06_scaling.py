"""Lesson 6: why divide by the square root of d."""

import marimo

app = marimo.App(width="medium", app_title="softscope 6")


@app.cell
def _():
    import math

    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.experiments import chart
    from softscope.experiments.ledger import paper
    from softscope.lab import practice
    from softscope.lab.page import Page, figure, figures, measured, slopes
    from softscope.lab.widgets import ScalingWidget

    return Page, ScalingWidget, chart, figure, figures, math, measured, mo, np, paper, practice, slopes, ss


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("scaling", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(
            zh="推导 $\\mathrm{Var}(q\\cdot k) = d$，并说出它需要哪些假设",
            en="derive $\\mathrm{Var}(q\\cdot k) = d$, and state what it assumes",
        ),
        t(zh="看到它对权重、熵和梯度做了什么", en="see what it does to weights, entropy and gradients"),
        t(zh="解释除以 √d 修好了什么，没修好什么", en="explain what dividing by √d fixes, and what it does not"),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 先玩一玩\n\n随机的 q 和 k，每个分量的均值为零、方差为一。把维度 $d$ 往右拖，看横轴上的数：横轴随 $\\sqrt d$ 变宽。橙色的分布总是占满横轴；绿色的（除以 $\\sqrt d$）几乎总在正负三之内，在变宽的横轴上就缩成一根针。橙色的权重越来越尖，绿色的不会。",
            en="## Play first\n\nRandom q and k, each component with mean zero and variance one. Drag the dimension $d$ to the right and look at the numbers on the axis: it widens with $\\sqrt d$. The orange distribution always fills the axis; the green one (divided by $\\sqrt d$) almost always stays within plus or minus three, so on the wider axis it shrinks to a needle. The orange weights get sharper and sharper; the green ones do not.",
        )
    )
    return


@app.cell
def _(ScalingWidget, mo, page):
    picture = mo.ui.anywidget(ScalingWidget(dimension=16, lang=page.lang))
    picture
    return


@app.cell
def _(mo, t):
    # F2-2
    mo.md(
        t(
            zh=r"""
    ## 为什么是 d

    设 $q_i$、$k_i$ 相互独立，均值为零，方差为一。则

    $$\mathbb E[q\cdot k] = \sum_i \mathbb E[q_i]\,\mathbb E[k_i] = 0$$

    $$\mathrm{Var}(q_i k_i) = \mathbb E[q_i^2]\,\mathbb E[k_i^2] - 0 = 1$$

    各项独立，方差相加：$\mathrm{Var}(q\cdot k) = \sum_{i=1}^{d} 1 = d$。标准差是 $\sqrt d$，除以它，方差回到一。
    """,
            en=r"""
    ## Why d

    Let $q_i$ and $k_i$ be independent with mean zero and variance one. Then

    $$\mathbb E[q\cdot k] = \sum_i \mathbb E[q_i]\,\mathbb E[k_i] = 0$$

    $$\mathrm{Var}(q_i k_i) = \mathbb E[q_i^2]\,\mathbb E[k_i^2] - 0 = 1$$

    The terms are independent, so their variances add: $\mathrm{Var}(q\cdot k) = \sum_{i=1}^{d} 1 = d$. The standard deviation is $\sqrt d$; divide by it and the variance is back to one.
    """,
        )
    )
    return


@app.cell
def _(mo, np, page, t):
    # F0-7 F3-12
    _rng = np.random.default_rng(0)
    _rows = []
    for _d in (1, 16, 64, 512):
        _products = np.einsum("nd,nd->n", _rng.standard_normal((5_000, _d)), _rng.standard_normal((5_000, _d)))
        _rows.append((_d, float(_products.mean()), float(_products.var()), float((_products / np.sqrt(_d)).var())))
    mo.vstack(
        [
            mo.md(t(zh="采样验证（样本刚刚抽取）：", en="Checked by sampling, just now:")),
            page.table(
                [
                    "d",
                    t(zh="q·k 的均值", en="mean of q·k"),
                    t(zh="方差", en="variance"),
                    t(zh="q·k/√d 的方差", en="variance of q·k/√d"),
                ],
                _rows,
            ),
        ]
    )
    return


@app.cell
def _(mo, page, t):
    mo.vstack(
        [
            mo.md(t(zh="**假设不成立时**，方差就不是 d：", en="**When an assumption fails**, the variance is not d:")),
            page.measured("variance", "breaks", notes=False, samples=8000),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 一个例子，两条路\n\n取一行分数，看不缩放和缩放各会走到哪里。选一个例子：",
            en="## One example, two paths\n\nTake one row of scores and see where it ends up unscaled and scaled. Choose an example:",
        )
    )
    return


@app.cell
def _(mo, t):
    EXAMPLES = {
        "[-30, 60, -10], d = 512": ([-30.0, 60.0, -10.0], 512),
        "[-24, -10, 0, 10, 24], d = 64": ([-24.0, -10.0, 0.0, 10.0, 24.0], 64),
        "[-24, -8, 0, 8, 24], d = 64": ([-24.0, -8.0, 0.0, 8.0, 24.0], 64),
        "[80, 120, 95, 110], d = 128": ([80.0, 120.0, 95.0, 110.0], 128),
    }
    example = mo.ui.dropdown(list(EXAMPLES), value="[-30, 60, -10], d = 512", label=t(zh="分数", en="scores"))
    example
    return EXAMPLES, example


@app.cell
def _(EXAMPLES, example, figure, figures, math, mo, np, page, slopes, ss, t):
    # F0-8 F0-9 F1-7 F2-3 F2-5 F2-6
    _scores, _d = EXAMPLES[example.value]
    _scores = np.array(_scores)
    _lanes, _table = "", []
    for _name, _x, _kind in (
        (t(zh="不缩放", en="unscaled"), _scores, "bad"),
        (t(zh="除以 √d", en="divided by √d"), _scores / math.sqrt(_d), "good"),
    ):
        _s, _p = ss.softmax(_x), ss.partition(_x)
        _boxes = [
            f"<b>{_name}</b><br>{t(zh='范围', en='range')} [{_x.min():.2f}, {_x.max():.2f}]",
            f"softmax<br>{t(zh='最大权重', en='largest weight')} {figure(_s.max(), 4)}",
            f"{t(zh='梯度', en='gradient')}<br>Σ s(1−s) = {figure(float(_p.jacobian_trace), 4)}",
        ]
        _lanes += (
            f'<div class="lab-lane {_kind}">' + "<i>→</i>".join(f"<span>{box}</span>" for box in _boxes) + "</div>"
        )
        _table.append(
            (
                _name,
                figures(_x, 2),
                f"{np.exp(_x.min()):.2g} … {np.exp(_x.max()):.2g}",
                figures(_s),
                figures(slopes(_s)),
            )
        )
    mo.vstack(
        [
            mo.Html(f'<div class="lab-lanes">{_lanes}</div>'),
            page.table(["", "x", "exp(x)", "softmax(x)", "s(1−s)"], _table),
            mo.md(
                t(
                    zh=f"这里 √{_d} = {math.sqrt(_d):.3f}。缩放之后最大的权重仍可能很大：除以 √d 让梯度**流得动**，并不保证权重平坦。",
                    en=f"Here √{_d} = {math.sqrt(_d):.3f}. After scaling, the largest weight may still be large: dividing by √d lets gradients **flow**; it does not guarantee flat weights.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, page, t):
    # F2-10
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 熵\n\n熵 $H = -\\sum p\\log p$ 衡量平坦的程度：one-hot 时为零，权重均匀时为 $\\ln n$。十个键，随机 q、k：",
                    en="## Entropy\n\nEntropy, $H = -\\sum p\\log p$, measures flatness: zero for one-hot, $\\ln n$ for uniform weights. Ten keys, random q and k:",
                )
            ),
            page.measured("entropy"),
        ]
    )
    return


@app.cell
def _(chart, measured, page, t):
    _rows = [
        {"d": r["d"], "entropy": r["entropy"].value, "name": r["scale"].of(page.lang)}
        for r in measured("entropy")["sharpness"].records()
        if r["keys"] == 10
    ]
    page.draw(
        chart.curves(
            _rows,
            chart.Axis("d", "d", log=True),
            chart.Axis("entropy", t(zh="熵（奈特）", en="entropy (nats)")),
            ("name", ""),
        )
    )
    return


@app.cell
def _(mo, t):
    again = mo.ui.button(label=t(zh="再抽一次", en="draw again"), value=0, on_click=lambda value: value + 1)
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 最大的权重\n\n许多文章里都有这样一段脚本：随机生成形状为 `(1, 10, d)` 的 Q 和 K，打印最大的权重。这里每次都重新抽取：",
                    en="## The largest weight\n\nMany articles include this script: draw random Q and K of shape `(1, 10, d)`, then print the largest weight. Here they are drawn anew each time:",
                )
            ),
            again,
        ]
    )
    return (again,)


@app.cell
def _(again, np, page, ss, t):
    # F2-12
    _rng = np.random.default_rng(again.value)
    _rows = []
    for _d in (16, 64, 256):
        _q, _k = _rng.standard_normal((2, 1, 10, _d))
        _scores = _q @ _k.transpose(0, 2, 1)
        _rows.append((_d, float(ss.softmax(_scores).max()), float(ss.softmax(_scores / np.sqrt(_d)).max())))
    page.table(["d", t(zh="不缩放", en="unscaled"), t(zh="缩放", en="scaled")], _rows)
    return


@app.cell
def _(mo, page, t):
    # F2-11
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 梯度\n\n常有人说：不缩放时 $\\|\\partial L/\\partial Q\\|$ 按 $1/d$ 下降。测出来不是这样：无论缩放与否，**均值**都在增长，因为输出处随机梯度的范数本身随 $d$ 增长。不缩放时，少数没饱和的行撑起均值，遮住了**中位数**的下降：多数行在挨饿。",
                    en="## Gradients\n\nIt is often said that without scaling, $\\|\\partial L/\\partial Q\\|$ falls like $1/d$. The measurement says otherwise: the **mean** grows, scaled or not, because the norm of the random gradient at the output itself grows with $d$. Without scaling, a few unsaturated rows hold up the mean and hide the falling **median**: most rows starve.",
                )
            ),
            page.measured("gradients", "exponents"),
        ]
    )
    return


@app.cell
def _(chart, math, measured, mo, page, t):
    # F2-13
    _rows = [
        {"x": x / 20, "density": math.exp(-((x / 20) ** 2) / 2) / math.sqrt(2 * math.pi), "name": "N(0, 1)"}
        for x in range(-90, 91, 3)
    ]
    _rows += [
        {"x": r["x"], "density": r["density"], "name": f"d = {r['d']}"}
        for r in measured("variance", samples=8000)["density"].records()
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 它真的是 N(0, 1) 吗？\n\n方差是一，形状却取决于 $d$：$d$ 小时中间更尖、尾部更长；$d$ 大时才接近正态。",
                    en="## Is it really N(0, 1)?\n\nThe variance is one, but the shape depends on $d$: for small $d$ the middle is sharper and the tails are longer; only for large $d$ is it close to normal.",
                )
            ),
            page.draw(
                chart.curves(
                    _rows,
                    chart.Axis("x", "q·k/√d"),
                    chart.Axis("density", t(zh="密度", en="density")),
                    ("name", ""),
                    points=False,
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, np, page, t):
    # F3-16
    _rng = np.random.default_rng(3)
    _q, _k = _rng.standard_normal((2, 64, 64))
    _scores = _q @ _k.T
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 维度实验\n\n64 个 query 和 64 个 key，$d = 64$，分数的范围：",
                    en="## The dimension experiment\n\nThe range of the scores for 64 queries and 64 keys with $d = 64$:",
                )
            ),
            page.table(
                ["", t(zh="最小", en="smallest"), t(zh="最大", en="largest"), t(zh="标准差", en="standard deviation")],
                [
                    ("Q Kᵀ", _scores.min(), _scores.max(), _scores.std()),
                    ("Q Kᵀ / √64", _scores.min() / 8, _scores.max() / 8, _scores.std() / 8),
                ],
            ),
        ]
    )
    return


@app.cell
def _(page, practice):
    answer = practice.editor(page, "dimension")
    practice.shown(page, "dimension", answer)
    return (answer,)


@app.cell
def _(answer, page, practice):
    practice.graded(page, "dimension", answer)
    return


@app.cell
def _(mo, paper, t):
    # F2-7
    _rows = "\n".join(f"| {d} | {bleu} | {ppl} |" for d, (ppl, bleu) in paper.TABLE_3_ROWS_B.items())
    mo.md(
        t(
            zh=f"## 论文里怎么说\n\n方差的说明在注意力的原论文《Attention Is All You Need》第 {paper.FOOTNOTE_PAGE} 页的脚注 {paper.FOOTNOTE_NUMBER} 里，假设与上面相同：\n\n> {paper.FOOTNOTE}\n\n常被引用的表三 (B) 组改变的是 $d_k$，**全部都缩放**，没有不缩放的对照：\n\n| $d_k$ | BLEU | 困惑度 |\n|:--|:--|:--|\n{_rows}\n\n它说明 $d_k$ 太小会降低质量，却不能用来证明缩放的作用。",
            en=f"## What the paper says\n\nThe variance is explained in footnote {paper.FOOTNOTE_NUMBER} on page {paper.FOOTNOTE_PAGE} of *Attention Is All You Need*, under the same assumptions as above:\n\n> {paper.FOOTNOTE}\n\nThe often-quoted rows (B) of its Table 3 vary $d_k$; **all of them are scaled**, and there is no unscaled run to compare with:\n\n| $d_k$ | BLEU | perplexity |\n|:--|:--|:--|\n{_rows}\n\nThey show that too small a $d_k$ hurts quality; they cannot serve as evidence for scaling.",
        )
    )
    return


@app.cell
def _(mo, page, t):
    # F2-9
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 像批归一化吗？\n\n批归一化减去测得的均值，除以测得的标准差。√d 是**常数**：只有假设成立时，它才等于标准差。换一种初始化、换一种输入，就要靠 LayerNorm 等别的手段了：",
                    en="## Is it like batch normalisation?\n\nBatch normalisation subtracts a measured mean and divides by a measured standard deviation. √d is a **constant**: it equals the standard deviation only when the assumptions hold. With a different initialisation or different inputs, you need other means, such as LayerNorm:",
                )
            ),
            page.measured("initialisation", "batch"),
        ]
    )
    return


@app.cell
def _(mo, t):
    # F2-15
    mo.md(
        t(
            zh="## 接下来可以看\n\n- softmax 的梯度：第五课\n- 温度：第四课（√d 就是一个温度）\n- 点积与加性打分的代价：下一课\n- 初始化与 LayerNorm：`softscope experiment initialisation`",
            en="## Where to go next\n\n- the gradient of softmax: lesson five\n- temperature: lesson four (√d is a temperature)\n- the cost of dot-product and additive scores: the next lesson\n- initialisation and LayerNorm: `softscope experiment initialisation`",
        )
    )
    return


@app.cell
def _(page, t):
    page.foot(
        t(
            zh="假设成立时，q·k 的方差是 d，除以 √d 后是 1。",
            en="When the assumptions hold, the variance of q·k is d, and after dividing by √d it is one.",
        ),
        t(
            zh="不缩放时，d 越大权重越尖锐：熵下降，多数行的梯度消失。",
            en="Without scaling, a larger d means sharper weights: entropy falls, and most rows lose their gradient.",
        ),
        t(
            zh="不要只看均值，还要看中位数：少数几行就能左右均值。",
            en="Look at the median, not only the mean: a few rows can distort the mean.",
        ),
        t(
            zh="√d 只管 d；输入或权重变大，它管不了。",
            en="√d takes care of d only, not of growing inputs or weights.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
