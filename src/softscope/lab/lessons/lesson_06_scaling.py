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
    from softscope.lab.quantiles import bands
    from softscope.lab.widgets import ScalingWidget

    return Page, ScalingWidget, bands, chart, figure, figures, math, measured, mo, np, paper, practice, slopes, ss


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
        t(zh="说明它对权重、熵和梯度有什么影响", en="explain what it does to weights, entropy and gradients"),
        t(zh="说清除以 √d 解决了什么，没有解决什么", en="say what dividing by √d fixes, and what it does not"),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 先玩一玩\n\n在注意力里，一个词发出一个 **query** $q$（它在找什么），每个词提供一个 **键** $k$（它有什么）。两者的点积 $q\\cdot k = q_1k_1 + \\dots + q_dk_d$ 就是分数，$d$ 是向量的维度，也就是分量的个数。\n\n这里的 $q$ 和 $k$ 是随机的，每个分量均值为零、方差为一。向右拖动 $d$：\n\n- 橙色是不缩放的分数。$d$ 越大，分数散得越开，横轴也跟着变宽，权重越来越尖锐。\n- 绿色是除以 $\\sqrt d$ 的分数。它们几乎总在正负三之间，权重保持平缓。",
            en="## Play first\n\nIn attention, a token sends out a **query** $q$ (what it is looking for), and every token offers a **key** $k$ (what it has). Their dot product $q\\cdot k = q_1k_1 + \\dots + q_dk_d$ is the score; $d$, the dimension, is the number of components.\n\nHere $q$ and $k$ are random; every component has mean zero and variance one. Drag $d$ to the right:\n\n- Orange: the scores as they are. The larger $d$, the further they spread (the axis widens with them), and the sharper the weights.\n- Green: the scores divided by $\\sqrt d$. They almost always stay within plus or minus three, and the weights stay gentle.",
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
    mo.md(
        t(
            zh=r"""
    ## 为什么是 d

    记 $\mathbb E$ 为平均值，$\mathrm{Var}$ 为方差。设所有分量 $q_i$、$k_i$ 相互独立，均值为零，方差为一。于是

    $$\mathbb E[q\cdot k] = \sum_i \mathbb E[q_i]\,\mathbb E[k_i] = 0$$

    $$\mathrm{Var}(q_i k_i) = \mathbb E[q_i^2]\,\mathbb E[k_i^2] - 0 = 1$$

    $q\cdot k$ 是 $d$ 个这样的乘积之和。各项独立，所以方差可以相加：$\mathrm{Var}(q\cdot k) = \sum_{i=1}^{d} 1 = d$。标准差是方差的平方根，即 $\sqrt d$；把分数除以它，方差就回到一。
    """,
            en=r"""
    ## Why d

    Write $\mathbb E$ for the mean and $\mathrm{Var}$ for the variance. Let all components $q_i$ and $k_i$ be independent, with mean zero and variance one. Then

    $$\mathbb E[q\cdot k] = \sum_i \mathbb E[q_i]\,\mathbb E[k_i] = 0$$

    $$\mathrm{Var}(q_i k_i) = \mathbb E[q_i^2]\,\mathbb E[k_i^2] - 0 = 1$$

    $q\cdot k$ is the sum of $d$ such products. They are independent, so their variances add: $\mathrm{Var}(q\cdot k) = \sum_{i=1}^{d} 1 = d$. The standard deviation is the square root of the variance, $\sqrt d$; divide the scores by it, and the variance is back to one.
    """,
        )
    )
    return


@app.cell
def _(mo, t):
    resample = mo.ui.button(label=t(zh="重新抽样", en="draw new samples"), value=0, on_click=lambda value: value + 1)
    resample
    return (resample,)


@app.cell
def _(chart, mo, np, page, resample, t):
    resample.value  # each press draws anew, and so does each visit
    _seed = np.random.SeedSequence().entropy % 10**6
    _rng = np.random.default_rng(_seed)
    _plain, _scaled = t(zh="q·k 的方差", en="variance of q·k"), t(zh="q·k/√d 的方差", en="variance of q·k/√d")
    sampled = []
    for _d in (1, 4, 16, 64, 256, 512):
        _products = np.einsum("nd,nd->n", _rng.standard_normal((5_000, _d)), _rng.standard_normal((5_000, _d)))
        sampled.append((_d, float(_products.mean()), float(_products.var()), float((_products / np.sqrt(_d)).var())))
    _points = [
        {"d": row[0], "variance": value, "name": name}
        for row in sampled
        for name, value in ((_plain, row[2]), (_scaled, row[3]))
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh=f"刚刚采样验证（随机种子 {_seed}，每个 $d$ 抽了 `5000` 对）：不缩放时方差跟着 $d$ 走，缩放后停在一附近。",
                    en=f"Checked by sampling, just now (random seed {_seed}, `5000` pairs for each $d$): unscaled, the variance follows $d$; scaled, it stays close to one.",
                )
            ),
            page.draw(
                chart.curves(
                    _points,
                    chart.Axis("d", "d", log=True, values=tuple(row[0] for row in sampled)),
                    chart.Axis("variance", t(zh="方差", en="variance"), log=True),
                    ("name", ""),
                )
            ),
            page.details(page.table(["d", t(zh="q·k 的均值", en="mean of q·k"), _plain, _scaled], sampled)),
        ]
    )
    return (sampled,)


@app.cell
def _(chart, measured, mo, page, t):
    _breaks = measured("variance", samples=8000)["breaks"].records()
    mo.vstack(
        [
            mo.md(
                t(
                    zh="**假设不成立时**，方差就不是 $d$。每次去掉一个假设，看方差是 $d$ 的多少倍（$d = 64$）：",
                    en="**If an assumption fails**, the variance is not $d$. Drop one at a time; how many times $d$ is the variance ($d = 64$)?",
                )
            ),
            page.draw(
                chart.bars(
                    [{"name": r["case"].of(page.lang), "ratio": r["ratio"]} for r in _breaks],
                    ("name", ""),
                    chart.Axis("ratio", t(zh="方差 / d", en="variance / d")),
                )
            ),
            page.details(page.measured("variance", "breaks", notes=False, samples=8000)),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 一个例子，两条路\n\n取一个 query 对几个键的分数，走两条路：一条不缩放，一条除以 $\\sqrt d$。$s$ 是 softmax 给出的权重；上一课说过，$\\sum s(1-s)$ 接近零，梯度就几乎传不过去。",
            en="## One example, two paths\n\nTake the scores of one query for some keys and follow two paths: unscaled, and divided by $\\sqrt d$. $s$ is the weight that softmax gives; as the last lesson showed, when $\\sum s(1-s)$ is close to zero, hardly any gradient gets through.",
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
            page.details(page.table(["", "x", "exp(x)", "softmax(x)", "s(1−s)"], _table)),
            mo.md(
                t(
                    zh=f"这里 √{_d} = {math.sqrt(_d):.3f}。缩放之后，最大的权重仍可能很大：除以 √d 让梯度**传得过去**，并不保证权重平坦。",
                    en=f"Here √{_d} = {math.sqrt(_d):.3f}. After scaling, the largest weight may still be large: dividing by √d lets gradients **flow**; it does not guarantee flat weights.",
                )
            ),
        ]
    )
    return


@app.cell
def _(chart, measured, mo, np, page, t):
    _ten = [r for r in measured("entropy")["sharpness"].records() if r["keys"] == 10]
    _names = list(dict.fromkeys(r["scale"] for r in _ten))
    _at = {(r["scale"], r["d"]): r["entropy"].value for r in _ten}
    _flattest = np.log(10)
    mo.vstack(
        [
            mo.md(
                t(
                    zh=f"## 熵\n\n熵 $H = -\\sum p\\ln p$ 衡量权重 $p$ 有多平坦，单位是**奈特**（因为用的是自然对数）。权重是 one-hot 时 $H = 0$；$n$ 个权重相等时 $H = \\ln n$，这是最大值，十个键时是 {_flattest:.2f} 奈特。不缩放时，$d$ 越大熵越低，最后几乎只看一个键；缩放后，熵几乎不随 $d$ 变化。",
                    en=f"## Entropy\n\nEntropy, $H = -\\sum p\\ln p$, measures how flat the weights $p$ are, in **nats** (because the logarithm is the natural one). One-hot weights have $H = 0$; $n$ equal weights have $H = \\ln n$, the maximum: for ten keys, {_flattest:.2f} nats. Unscaled, the entropy falls as $d$ grows, until each query sees hardly more than one key. Scaled, it barely depends on $d$.",
                )
            ),
            page.draw(
                chart.curves(
                    [{"d": r["d"], "entropy": r["entropy"].value, "name": r["scale"].of(page.lang)} for r in _ten],
                    chart.Axis("d", "d", log=True),
                    chart.Axis("entropy", t(zh="熵（奈特）", en="entropy (nats)")),
                    ("name", ""),
                )
            ),
            page.table(
                [t(zh="熵（奈特），十个键", en="entropy (nats), ten keys"), *(f"d = {d}" for d in (16, 64, 256))],
                [(name, *(_at[name, d] for d in (16, 64, 256))) for name in _names],
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    again = mo.ui.button(label=t(zh="再抽一次", en="draw again"), value=0, on_click=lambda value: value + 1)
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 最大的权重\n\n许多文章里有这样一段脚本：随机生成形状为 `(1, 10, d)` 的 Q 和 K（各十个向量），打印整张权重表里最大的一个，保留四位小数。每按一次按钮就重新抽取：",
                    en="## The largest weight\n\nMany articles include this script: draw random Q and K of shape `(1, 10, d)`, ten vectors each, and print the largest weight in the whole table to four decimals. Every press draws them anew:",
                )
            ),
            again,
        ]
    )
    return (again,)


@app.cell
def _(again, np, page, ss, t):
    again.value  # each press draws anew, and so does each visit
    _rng = np.random.default_rng()
    largest = []
    for _d in (16, 64, 256):
        _q, _k = _rng.standard_normal((2, 1, 10, _d))
        _scores = _q @ _k.transpose(0, 2, 1)
        largest.append((_d, float(ss.softmax(_scores).max()), float(ss.softmax(_scores / np.sqrt(_d)).max())))
    page.table(
        ["d", t(zh="最大权重，不缩放", en="largest weight, unscaled"), t(zh="缩放", en="scaled")],
        [(d, f"{plain:.4f}", f"{scaled:.4f}") for d, plain, scaled in largest],
    )
    return (largest,)


@app.cell
def _(bands, measured, mo, page, t):
    _norms = [r for r in measured("gradients")["norms"].records() if r["place"].en == "Q"]
    _names = list(dict.fromkeys(r["scale"] for r in _norms))
    _last = {name: max((r for r in _norms if r["scale"] == name), key=lambda r: r["d"]) for name in _names}
    _plain, _scaled = (_last[name] for name in _names)
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 梯度\n\n$L$ 是损失，$\\|\\partial L/\\partial Q\\|$ 是它对一个 query 的梯度有多大（范数，即长度）。梯度大，这个 query 就学得动。下图把许多行按梯度大小排队：线是**中位数**，一半的行在它之下；色带从最小的一成到最大的一成；虚线是**均值**。",
                    en="## Gradients\n\n$L$ is the loss, and $\\|\\partial L/\\partial Q\\|$ is the size (the norm, or length) of its gradient at one query. If it is large, the query can learn. The picture ranks many rows by it: the line is the **median**, with half of the rows below it; the band reaches from the smallest tenth to the largest tenth; the dashed line is the **mean**.",
                )
            ),
            page.draw(
                bands(
                    [
                        {"d": r["d"], "name": r["scale"].of(page.lang), "mean": r["mean"].value}
                        | {key: r[key] for key in ("low", "median", "high")}
                        for r in _norms
                    ],
                    title=t(zh="‖∂L/∂Q‖，每个 query", en="‖∂L/∂Q‖, per query"),
                )
            ),
            mo.md(
                t(
                    zh=f"常有人说：不缩放时它按 $1/d$ 下降。图上不是这样。均值在**上升**，因为输出处的随机梯度本身随 $d$ 变长。下降的是中位数：$d = {_plain['d']}$ 时只剩 {_plain['median']:.2g}，而缩放后是 {_scaled['median']:.2g}。少数几行的梯度很大，撑起了均值；多数行在**挨饿**，几乎收不到梯度。",
                    en=f"It is often said that without scaling it falls like $1/d$. The picture shows otherwise. The mean **rises**, because the random gradient at the output itself grows with $d$. What falls is the median: at $d = {_plain['d']}$ only {_plain['median']:.2g} is left, against {_scaled['median']:.2g} with scaling. A few rows with large gradients hold up the mean; most rows are **starving**: they get hardly any gradient.",
                )
            ),
            page.details(page.measured("gradients", "exponents")),
        ]
    )
    return


@app.cell
def _(measured, mo, page, t):
    _norms = measured("gradients")["norms"].records()
    _d = max(r["d"] for r in _norms)
    _blocked = {r["scale"]: r["blocked"].value for r in measured("gradients")["blocked"].records() if r["d"] == _d}
    _lanes = ""
    for _scale, _kind in zip(_blocked, ("bad", "good"), strict=True):
        _middle = {r["place"].en: r["median"] for r in _norms if r["scale"] == _scale and r["d"] == _d}
        _chains = [
            [
                f"<b>{_scale.of(page.lang)}</b><br>{t(zh='损失 → 输出', en='loss → output')}",
                f"softmax<br>{t(zh='被阻断的行', en='blocked rows')} {_blocked[_scale]:.0%}",
                f"{t(zh='分数', en='scores')}<br>{_middle['logits']:.2g}",
                f"Q, K<br>{_middle['Q']:.2g}, {_middle['K']:.2g}",
            ],
            [f"{t(zh='损失 → 输出', en='loss → output')}", f"V<br>{_middle['V']:.2g}"],
        ]
        for _chain in _chains:
            _boxes = "<i>→</i>".join(f"<span>{box}</span>" for box in _chain)
            _lanes += f'<div class="lab-lane {_kind}">{_boxes}</div>'
    mo.vstack(
        [
            mo.md(
                t(
                    zh=f"### 谁在挨饿？\n\n反向传播从损失出发，在输出处分成两路。去 Q 和 K 的一路要穿过 softmax；去 V 的一路不用，因为输出就是权重乘以 V。softmax 几乎不传梯度的行，叫作**被阻断**的行。方框里是 $d = {_d}$ 时梯度范数的中位数：",
                    en=f"### Who is starving?\n\nBackpropagation starts at the loss and forks at the output. The path to Q and K has to pass through the softmax; the path to V does not, because the output is just weights times V. A row whose softmax passes on hardly any gradient is called **blocked**. The boxes show median gradient norms at $d = {_d}$:",
                )
            ),
            mo.Html(f'<div class="lab-lanes lab-chain">{_lanes}</div>'),
            mo.md(
                t(
                    zh="所以挨饿的是 Q 和 K：模型改不了“看哪里”。V 照常学习，模型还能改“看到了什么”。",
                    en="So it is Q and K that starve: the model cannot change where it looks. V goes on learning: the model can still change what it sees there.",
                )
            ),
        ]
    )
    return


@app.cell
def _(chart, math, measured, mo, page, t):
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
                    zh="## 它真的是 N(0, 1) 吗？\n\n$N(0, 1)$ 是均值为零、方差为一的正态分布。缩放后的分数方差也是一，形状却取决于 $d$：$d$ 小时中间更尖、尾部更长，$d$ 大时才接近正态分布。",
                    en="## Is it really N(0, 1)?\n\n$N(0, 1)$ is the normal distribution with mean zero and variance one. A scaled score has that variance too, but its shape depends on $d$: for small $d$ the middle is sharper and the tails are longer; only for large $d$ is it close to normal.",
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
    _rng = np.random.default_rng(3)
    _q, _k = _rng.standard_normal((2, 64, 64))
    _scores = _q @ _k.T
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 维度实验\n\n64 个 query 和 64 个键，$d = 64$。分数落在什么范围？先猜，再看答案，然后在练习里自己算一遍。",
                    en="## The dimension experiment\n\n64 queries and 64 keys, with $d = 64$. What range do the scores cover? Guess first, look at the answer, then compute it yourself in the exercise.",
                )
            ),
            page.details(
                page.table(
                    [
                        "",
                        t(zh="最小", en="smallest"),
                        t(zh="最大", en="largest"),
                        t(zh="标准差", en="standard deviation"),
                    ],
                    [
                        ("Q Kᵀ", _scores.min(), _scores.max(), _scores.std()),
                        ("Q Kᵀ / √64", _scores.min() / 8, _scores.max() / 8, _scores.std() / 8),
                    ],
                ),
                title=t(zh="猜好了，看答案", en="I have guessed: show the answer"),
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
    _rows = "\n".join(f"| {d} | {bleu} | {ppl} |" for d, (ppl, bleu) in paper.TABLE_3_ROWS_B.items())
    mo.md(
        t(
            zh=f"## 论文里怎么说\n\n提出这种注意力的论文《Attention Is All You Need》在第 {paper.FOOTNOTE_PAGE} 页的脚注 {paper.FOOTNOTE_NUMBER} 里说明了方差，假设与上面相同：\n\n> {paper.FOOTNOTE}\n\n（论文把 $d$ 写成 $d_k$。）表三的 (B) 组常被引用来证明缩放有用，可是它只改变 $d_k$，**每一行都缩放了**，没有不缩放的对照：\n\n| $d_k$ | BLEU | 困惑度 |\n|:--|:--|:--|\n{_rows}\n\n这张表说明 $d_k$ 太小会降低质量，却说明不了缩放的作用。",
            en=f"## What the paper says\n\nThe variance is explained in footnote {paper.FOOTNOTE_NUMBER} on page {paper.FOOTNOTE_PAGE} of *Attention Is All You Need*, under the same assumptions as above:\n\n> {paper.FOOTNOTE}\n\n(The paper writes $d_k$ for our $d$.) Rows (B) of its Table 3 are often quoted as evidence for scaling. But they only vary $d_k$; **every one of them is scaled**, and there is no unscaled run to compare with:\n\n| $d_k$ | BLEU | perplexity |\n|:--|:--|:--|\n{_rows}\n\nThe rows show that too small a $d_k$ hurts quality. They say nothing about what scaling does.",
        )
    )
    return


@app.cell
def _(chart, measured, mo, page, t):
    _batch = measured("initialisation")["batch"].records()
    _rows = [
        {"name": f"{r['components'].of(page.lang)}{t(zh='：', en=': ')}{how}", "spread": r[key].value}
        for r in _batch
        for key, how in (("root", "/√d"), ("standard", "(x−μ)/σ"))
    ]
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 像批归一化吗？\n\n批归一化**测量**均值 $\\mu$ 和标准差 $\\sigma$，再算 $(x-\\mu)/\\sigma$。$\\sqrt d$ 却是一个**常数**：只有假设成立时，它才等于标准差。下图是处理之后分数的标准差；q、k 的分量不再是方差一、均值零时，除以 $\\sqrt d$ 就不够了，要靠 LayerNorm 等别的办法。",
                    en="## Is it like batch normalisation?\n\nBatch normalisation **measures** a mean $\\mu$ and a standard deviation $\\sigma$, and computes $(x-\\mu)/\\sigma$. $\\sqrt d$ is a **constant**: it equals the standard deviation only if the assumptions hold. The picture shows the standard deviation of the scores after each of the two. Once the components of q and k no longer have variance one and mean zero, dividing by $\\sqrt d$ is not enough, and something else, such as LayerNorm, has to help.",
                )
            ),
            page.draw(
                chart.bars(
                    _rows,
                    ("name", t(zh="q、k 的分量", en="components of q and k")),
                    chart.Axis("spread", t(zh="分数的标准差", en="standard deviation of the scores")),
                )
            ),
            page.details(page.measured("initialisation", "batch")),
        ]
    )
    return


@app.cell
def _(mo, page, t):
    mo.vstack(
        [
            mo.md(
                t(
                    zh=f"## 接下来可以看\n\n- **softmax 的梯度**：为什么尖锐的行传不过梯度？见[第五课](/lesson/gradient/?lang={page.lang})。\n- **温度**：√d 就是一个温度，见[第四课](/lesson/temperature/?lang={page.lang})。\n- **点积与加性打分，哪个快？** 见[下一课：注意力](/lesson/attention/?lang={page.lang})。\n- **LayerNorm 与初始化（Xavier、Kaiming）**：训练开始时，分数的大小由权重矩阵怎样初始化、输入有没有经过 LayerNorm 决定，见下面的细节；`softscope experiment initialisation` 里有全部测量。",
                    en=f"## Where to go next\n\n- **The gradient of softmax**: why does a sharp row pass on no gradient? See [lesson five](/lesson/gradient/?lang={page.lang}).\n- **Temperature**: √d is a temperature; see [lesson four](/lesson/temperature/?lang={page.lang}).\n- **Dot product or additive scores: which is faster?** See [the next lesson, on attention](/lesson/attention/?lang={page.lang}).\n- **LayerNorm and initialisation (Xavier, Kaiming)**: at the start of training, the size of the scores depends on how the weight matrices are initialised and on whether the inputs went through LayerNorm, as the details below show; `softscope experiment initialisation` has all the measurements.",
                )
            ),
            page.details(page.measured("initialisation", "widest", notes=False)),
        ]
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
            zh="不缩放时，d 越大，权重越尖锐：熵下降，多数行的 Q 和 K 挨饿。",
            en="Without scaling, a larger d means sharper weights: the entropy falls, and in most rows Q and K starve.",
        ),
        t(
            zh="不要只看均值，还要看中位数：少数几行就能左右均值。",
            en="Look at the median, not only the mean: a few rows can distort the mean.",
        ),
        t(
            zh="√d 只抵消 d 的影响；输入或权重变大，它管不了。",
            en="√d makes up for d only, not for inputs or weights that grow.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
