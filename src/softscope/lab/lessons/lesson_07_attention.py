"""Lesson 7: attention step by step."""

import marimo

app = marimo.App(width="medium", app_title="softscope 7")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import softscope as ss
    from softscope.lab import practice
    from softscope.lab.page import Page, figure, figures
    from softscope.lab.widgets import AttentionWidget

    return AttentionWidget, Page, figure, figures, mo, np, practice, ss


@app.cell
def _(mo):
    lang = mo.query_params().get("lang")
    return (lang,)


@app.cell
def _(Page, lang):
    page = Page("attention", lang)
    t = page.t
    return page, t


@app.cell
def _(page, t):
    page.head(
        t(
            zh="从 Q、K、V 一步步算到输出，并说出每一步的形状和含义",
            en="go from Q, K and V to the output step by step, and state the shape and meaning of each",
        ),
        t(zh="比较加性、点积、缩放点积三种打分", en="compare additive, dot-product and scaled dot-product scores"),
        t(zh="用掩码规定谁能看到谁", en="use a mask to decide which token may see which"),
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh=r"""
    ## 一个公式，四步

    $$\mathrm{Attention}(Q,K,V) = \mathrm{softmax}\!\left(\frac{QK^{\mathsf T}}{\sqrt d}\right)V$$

    读一句话时，每个词都要决定从别的词那里取多少信息。每个词有三行数：Q 的一行说它**在找什么**，K 的一行说它**是什么**，V 的一行说它**带来什么**。$d$ 是一行里有几个数，$\mathsf T$ 表示转置（行列互换）。

    下面是一句真的话。数字是我们编的，好让每个词找的东西有道理；训练好的模型会自己找到它的数字。按“下一步”，再点任何一个数：亮起来的行和列就是它的来历。
    """,
            en=r"""
    ## One formula, four steps

    $$\mathrm{Attention}(Q,K,V) = \mathrm{softmax}\!\left(\frac{QK^{\mathsf T}}{\sqrt d}\right)V$$

    To read a sentence, each token decides how much to take from every other. It has three rows of numbers: its row of Q says what it **looks for**, its row of K what it **is**, its row of V what it **brings**. $d$ is how many numbers a row has, and $\mathsf T$ means transposed: rows become columns.

    Below is a real sentence. The numbers are made up, so that each word looks for something sensible; a trained model finds its own. Press “next”, then click any number: the row and the column that light up are where it comes from.
    """,
        )
    )
    return


@app.cell
def _(mo, t):
    SEED = 7
    seed = mo.ui.number(0, 999, value=SEED, label=t(zh="随机种子", en="random seed"))
    seed
    return SEED, seed


@app.cell
def _(np, t):
    words = t(zh="我 爱 喝 茶", en="I love green tea").split()
    roles = t(zh="人 动作 动作 物", en="person action quality thing").split()
    parts = t(zh="人 动作 物 性质", en="person action thing quality").split()
    _looks = {parts[0]: [0, 2, 0, 0], parts[1]: [1, 0, 2, 0], parts[2]: [0, 1, 0, 2], parts[3]: [0, 0, 2, 0]}
    meaning = np.eye(4)[[parts.index(role) for role in roles]]
    wanted = np.array([_looks[role] for role in roles], dtype=float)
    return meaning, parts, wanted, words


@app.cell
def _(SEED, meaning, np, seed, wanted):
    _rng = np.random.default_rng(SEED if seed.value is None else int(seed.value))  # None: the field was cleared
    _noise = 0.3 * _rng.standard_normal((3, 4, 4))
    q, k, v = (np.stack([wanted, 2 * meaning, meaning]) + _noise).round(1)
    return k, q, v


@app.cell
def _(AttentionWidget, meaning, mo, page, parts, wanted, words):
    _start = {"q": wanted.tolist(), "k": meaning.tolist(), "v": meaning.tolist()}
    widget = AttentionWidget(**_start, tokens=words, parts=parts, lang=page.lang)
    picture = mo.ui.anywidget(widget)
    picture
    return (widget,)


@app.cell
def _(k, q, v, widget):
    # New numbers go into the same picture: a new one would start again at step 0.
    widget.q, widget.k, widget.v = q.tolist(), k.tolist(), v.tolist()
    return


@app.cell
def _(mo, t, words):
    _shares = [0.1, 0.7, 0.2, 0.0]
    _bar = "".join(
        f'<span style="flex:{share:.3f} 0 0">{word} {share:.0%}</span>'
        for word, share in zip(words, _shares, strict=True)
        if share
    )
    _read = t(zh="，", en=", ").join(f"**{word}** {share:.0%}" for word, share in zip(words, _shares, strict=True))
    mo.vstack(
        [
            mo.md(
                t(
                    zh="### 把一行权重读成百分比\n\n一行权重就是一个词的注意力怎么分。例如 `[0.1, 0.7, 0.2, 0.0]`：",
                    en="### Reading a row as percentages\n\nA row of weights says how one token divides its attention. For example, `[0.1, 0.7, 0.2, 0.0]`:",
                )
            ),
            mo.Html(f'<div class="lab-shares">{_bar}</div>'),
            mo.md(
                t(
                    zh=f"{_read}。最后一个词恰好为零。softmax 本身给不出恰好为零的权重（指数永远大于零）；要么是四舍五入，要么是掩码，见下文。",
                    en=f"{_read}. The last token gets exactly zero. Softmax alone never gives that, since an exponential is always above zero: it is either rounding, or a mask, which comes below.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 用代码做同样的事\n\n四步，四行。最大值和总和都按**行**计算：`axis=-1` 沿着一行，`keepdims=True` 保留这一维，所以二维、三维都能用。",
            en="## The same in code\n\nFour steps, four lines. The maximum and the sum are taken per **row**: `axis=-1` goes along a row, and `keepdims=True` keeps that dimension, so it works for two dimensions and for three.",
        )
    )
    return


@app.cell
def _(mo, np):
    def softmax_rows(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def attention_with_softmax(q, k, v):
        scores = q @ np.swapaxes(k, -1, -2)
        scaled = scores / np.sqrt(q.shape[-1])
        weights = softmax_rows(scaled)
        return scores, scaled, weights, weights @ v

    mo.show_code()
    return attention_with_softmax, softmax_rows


@app.cell
def _(attention_with_softmax, figures, mo, np, page, ss, t):
    _q, _k, _v = np.random.default_rng(7).standard_normal((3, 3, 4))
    _scores, _scaled, _weights, _output = attention_with_softmax(_q, _k, _v)
    _ours = ss.attention(_q[None], _k[None], _v[None])[0]
    mo.vstack(
        [
            mo.md(t(zh="三个随机的词，每个四个分量：", en="Three random tokens of four components each:")),
            page.side_by_side(
                page.matrix("QKᵀ", _scores),
                "÷ √d =",
                page.matrix("QKᵀ/√d", _scaled),
                "softmax →",
                page.matrix(t(zh="权重", en="weights"), _weights),
                "× V =",
                page.matrix(t(zh="输出", en="output"), _output),
            ),
            mo.md(
                t(
                    zh=f"权重每**行**之和为一。每**列**之和是 {figures(_weights.sum(0), 2)}，没有理由是一：一个词可以被许多词看，也可以没人看。",
                    en=f"Every **row** of weights sums to one. The **columns** sum to {figures(_weights.sum(0), 2)}; they have no reason to be one: a token may be read by many others, or by none.",
                )
            ),
            page.details(
                mo.md(
                    t(
                        zh=f"形状：{_scores.shape} → {_weights.shape} → {_output.shape}。每行之和：{figures(_weights.sum(-1), 6)}。与 `ss.attention` 最多相差 {np.abs(_output - _ours).max():.0e}。",
                        en=f"Shapes: {_scores.shape} → {_weights.shape} → {_output.shape}. Row sums: {figures(_weights.sum(-1), 6)}. The difference from `ss.attention` is at most {np.abs(_output - _ours).max():.0e}.",
                    )
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 三种打分函数，并排看\n\n打分函数把一个 query 和一个键变成一个分数。点积不是唯一的办法：**加性**打分先让 q 和 k 各乘一个矩阵（$W_1$、$W_2$）再相加，经过 tanh，最后与一个向量 $v$ 做点积。拖动 $d$，比较三张权重表：",
            en="## Three score functions, side by side\n\nA score function turns a query and a key into one score. The dot product is not the only way: **additive** scores multiply q and k by a matrix each ($W_1$, $W_2$), add them, apply tanh, and take the dot product with a vector $v$. Drag $d$ and compare the three tables of weights:",
        )
    )
    return


@app.cell
def _(mo):
    width = mo.ui.slider(steps=[4, 16, 64, 256], value=16, label="d", show_value=True)
    width
    return (width,)


@app.cell
def _(mo, np, page, ss, t, width):
    _d, _n = width.value, 6
    _rng = np.random.default_rng(5)
    _q, _k = _rng.standard_normal((2, _n, _d))
    _wq, _wk = _rng.standard_normal((2, _d, _d)) / np.sqrt(_d)
    _va = _rng.standard_normal(_d) / np.sqrt(_d)
    _additive = np.tanh((_q @ _wq)[:, None] + (_k @ _wk)[None]) @ _va
    _named = {
        t(zh="加性 v·tanh(W₁q + W₂k)", en="additive v·tanh(W₁q + W₂k)"): _additive,
        t(zh="点积 q·k", en="dot product q·k"): _q @ _k.T,
        t(zh="缩放 q·k/√d", en="scaled q·k/√d"): _q @ _k.T / np.sqrt(_d),
    }
    mo.vstack(
        [
            page.side_by_side(*(page.matrix(name, ss.softmax(x)) for name, x in _named.items())),
            page.table(
                [
                    t(zh="打分", en="score"),
                    t(zh="范围", en="range"),
                    t(zh="标准差", en="sd"),
                    t(zh="平均熵（奈特）", en="mean entropy (nats)"),
                    t(zh="平均最大权重", en="mean largest weight"),
                ],
                [
                    (
                        name,
                        f"{x.min():.2f} … {x.max():.2f}",
                        x.std(),
                        ss.partition(x).entropy.mean(),
                        ss.partition(x).peak.mean(),
                    )
                    for name, x in _named.items()
                ],
            ),
            mo.md(
                t(
                    zh="tanh 把**每一个值**限制在正负一之间，但它们的加权和不受限。这里的 $v$ 有 $d$ 个分量，抽取时已经按 $1/\\sqrt d$ 缩小；正因为如此，加性打分才不需要另外缩放。",
                    en="tanh keeps **each value** between minus one and one, but not their weighted sum. Here $v$ has $d$ components, and they were shrunk by $1/\\sqrt d$ when they were drawn; only for that reason do additive scores need no further scaling.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, page, t):
    mo.accordion(
        {
            t(
                zh="它们各要多少时间和内存（当场测量，几秒钟）",
                en="What each costs in time and memory (measured live, a few seconds)",
            ): mo.lazy(lambda: page.measured("scores", "width", "sharpness", "cost"), show_loading_indicator=True)
        }
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 掩码\n\n不许一个词看的位置，分数设为 $-\\infty$。于是它的权重恰好为零，其余的权重之和仍为一。例如写下一个词时不能偷看后面的词，这叫**因果**掩码。如果一行**什么都**不许看，就没有合理的权重：本库返回零，而不是悄悄地把权重平分。",
            en="## Masks\n\nPositions a token must not see get the score $-\\infty$. Their weights are then exactly zero, and the others still sum to one. When a model writes the next word, for example, it must not peek at later ones: that is a **causal** mask. A row that may see **nothing** has no sensible weights: this library returns zeros instead of silently sharing the weight out equally.",
        )
    )
    return


@app.cell
def _(mo, t):
    kind = mo.ui.radio(
        {
            t(zh="都能看", en="all visible"): "all",
            t(zh="因果：只看自己和过去", en="causal: itself and the past"): "causal",
            t(zh="窗口：左右各一", en="window: one on each side"): "window",
            t(zh="第一行什么也看不到", en="the first row sees nothing"): "none",
        },
        value=t(zh="因果：只看自己和过去", en="causal: itself and the past"),
        inline=True,
    )
    kind
    return (kind,)


@app.cell
def _(kind, np, page, ss, t):
    _rng = np.random.default_rng(9)
    _q, _k = _rng.standard_normal((2, 1, 5, 8))
    _mask = np.ones((5, 5), dtype=bool)
    if kind.value == "causal":
        _mask = np.tril(_mask)
    elif kind.value == "window":
        _mask = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) <= 1
    elif kind.value == "none":
        _mask[0] = False
    _scores = np.where(_mask, _q[0] @ _k[0].T / np.sqrt(8), -np.inf)
    _weights = ss.softmax(_q[0] @ _k[0].T / np.sqrt(8), where=_mask)
    page.side_by_side(
        page.matrix(t(zh="分数", en="scores"), _scores), "→", page.matrix(t(zh="权重", en="weights"), _weights)
    )
    return


@app.cell
def _(mo, np, page, ss, t):
    _rng = np.random.default_rng(4)
    _q, _k, _v, _g = _rng.standard_normal((4, 3, 4))
    _weights = ss.softmax(_q @ _k.T / 2.0)
    _to_weights = _g @ _v.T
    _to_scores = ss.jacobian_product(_weights, _to_weights)
    mo.vstack(
        [
            mo.md(
                t(
                    zh="## 反向传播：对权重的梯度\n\n训练时，损失 $L$ 对输出 $O$ 的梯度 $\\partial L/\\partial O$ 往回传。输出是 $O = sV$，所以对权重 $s$ 的梯度是 $\\partial L/\\partial s = (\\partial L/\\partial O)\\,V^{\\mathsf T}$：一行一个词，橙色表示“给它更多权重，损失会上升”，蓝色表示会下降。",
                    en="## The backward pass: the gradient at the weights\n\nIn training, the gradient of the loss $L$ at the output $O$, $\\partial L/\\partial O$, travels back. The output is $O = sV$, so the gradient at the weights $s$ is $\\partial L/\\partial s = (\\partial L/\\partial O)\\,V^{\\mathsf T}$, one row per token. Orange means that more weight there would raise the loss, blue that it would lower it.",
                )
            ),
            page.side_by_side(
                page.matrix("∂L/∂O", _g), "×", page.matrix("Vᵀ", _v.T), "=", page.matrix("∂L/∂s", _to_weights)
            ),
            mo.md(
                t(
                    zh="再乘以 softmax 的雅可比矩阵（第五课），就是对分数的梯度 $\\partial L/\\partial x$。它每一行之和为零：把一行的分数一起抬高，什么也不改变。",
                    en="Multiply by the Jacobian of softmax (lesson five) to get the gradient at the scores, $\\partial L/\\partial x$. Each of its rows sums to zero: raising all scores of a row together changes nothing.",
                )
            ),
            page.side_by_side(page.matrix("∂L/∂s", _to_weights), "softmax →", page.matrix("∂L/∂x", _to_scores)),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 键太多，装不下怎么办？\n\n序列很长时，权重表存不下。办法是一段一段地读键，边读边更新到目前为止的最大值和总和。这叫“在线 softmax”，是快速注意力的核心。库里的 `partition`（读一段）和 `merge`（合并两段）做的就是这件事。",
            en="## What if there are too many keys to fit?\n\nFor a long sequence, the table of weights is too large to store. The way out: read the keys part by part, and update the maximum and the sum so far. This is “online softmax”, the heart of fast attention. The library's `partition` (reads a part) and `merge` (joins two) do just that.",
        )
    )
    return


@app.cell
def _(figure, mo, np, ss, t):
    _x = np.random.default_rng(6).normal(0.0, 3.0, 1000)
    _whole, _parts = ss.partition(_x), ss.partition(_x[:400]).merge(ss.partition(_x[400:]))
    mo.md(
        t(
            zh=f"一千个分数：整行一起算，熵是 {figure(float(_whole.entropy), 6)} 奈特；分两段算再合并，是 {figure(float(_parts.entropy), 6)} 奈特。",
            en=f"A thousand scores: the entropy of the row read as a whole is {figure(float(_whole.entropy), 6)} nats; of two parts merged, {figure(float(_parts.entropy), 6)} nats.",
        )
    )
    return


@app.cell
def _(page, practice):
    answer_8 = practice.editor(page, "online-softmax")
    practice.shown(page, "online-softmax", answer_8)
    return (answer_8,)


@app.cell
def _(answer_8, page, practice):
    practice.graded(page, "online-softmax", answer_8)
    return


@app.cell
def _(page, t):
    page.foot(
        t(zh="QKᵀ → 除以 √d → 按行 softmax → 乘以 V。", en="QKᵀ → divide by √d → softmax per row → multiply by V."),
        t(
            zh="一行的长度是键的个数，不是 d；行和为一，列和不必。",
            en="A row has one entry per key, not d entries; rows sum to one, columns need not.",
        ),
        t(
            zh="掩码让权重恰好为零；一行全被遮住时，结果要另外约定。",
            en="A mask makes weights exactly zero; for a row that is masked completely, a rule of its own is needed.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
