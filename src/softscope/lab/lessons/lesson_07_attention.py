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
            zh="从 Q、K、V 算到输出，每一步都说得出形状和含义",
            en="go from Q, K and V to the output, and state the shape and meaning of each step",
        ),
        t(zh="比较加性、点积、缩放点积三种打分", en="compare additive, dot-product and scaled dot-product scores"),
        t(zh="用掩码决定谁能看到谁", en="use a mask to decide which token can see which"),
    )
    return


@app.cell
def _(mo, t):
    # F2-1
    mo.md(
        t(
            zh=r"""
    ## 一个公式，四步

    $$\mathrm{Attention}(Q,K,V) = \mathrm{softmax}\!\left(\frac{QK^{\mathsf T}}{\sqrt d}\right)V$$

    三个词，四个分量。按“下一步”，点任何一个数，看它从哪里来。
    """,
            en=r"""
    ## One formula, four steps

    $$\mathrm{Attention}(Q,K,V) = \mathrm{softmax}\!\left(\frac{QK^{\mathsf T}}{\sqrt d}\right)V$$

    Three tokens, four components. Press “next”, and click any number to see where it comes from.
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
def _(SEED, np, seed):
    _rng = np.random.default_rng(SEED if seed.value is None else int(seed.value))  # None: the field was cleared
    q, k, v = _rng.standard_normal((3, 3, 4)).round(2)
    return k, q, v


@app.cell
def _(AttentionWidget, k, mo, page, q, v):
    picture = mo.ui.anywidget(AttentionWidget(q=q.tolist(), k=k.tolist(), v=v.tolist(), lang=page.lang))
    picture
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 用代码做同样的事\n\n最大值和总和都按**行**计算：`axis=-1` 并保留维度，二维、三维都能用。",
            en="## The same in code\n\nThe maximum and the sum are taken per **row**: `axis=-1` with the dimension kept, so it works in two or three dimensions.",
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
def _(attention_with_softmax, figures, k, mo, np, page, q, ss, t, v):
    # F3-10 F3-11
    _scores, _scaled, _weights, _output = attention_with_softmax(q, k, v)
    _ours = ss.attention(q[None], k[None], v[None])[0]
    mo.vstack(
        [
            page.side_by_side(
                page.matrix("QKᵀ", _scores),
                "→",
                page.matrix("QKᵀ/√d", _scaled),
                "→",
                page.matrix(t(zh="权重", en="weights"), _weights),
                "→",
                page.matrix(t(zh="输出", en="output"), _output),
            ),
            mo.md(
                t(
                    zh=f"形状：{_scores.shape} → {_weights.shape} → {_output.shape}。每行之和：{figures(_weights.sum(-1))}；每**列**之和：{figures(_weights.sum(0))}，没有理由是一：一个词可以被许多词看，也可以没人看。与 `ss.attention` 最多相差 {np.abs(_output - _ours).max():.0e}。",
                    en=f"Shapes: {_scores.shape} → {_weights.shape} → {_output.shape}. Row sums: {figures(_weights.sum(-1))}; **column** sums: {figures(_weights.sum(0))}, which have no reason to be one: a token may be read by many tokens, or by none. The difference from `ss.attention` is at most {np.abs(_output - _ours).max():.0e}.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 三种打分函数，并排看\n\n打分函数把一个 query 和一个 key 变成一个数。",
            en="## Three score functions, side by side\n\nA score function turns a query and a key into one number.",
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
    # F2-8
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
                    zh="tanh 把**每一个值**限制在正负一之间，但加权后的总和不受限：v 有 $h$ 个分量（这里 $h = d$），抽取时按 $1/\\sqrt h$ 缩小，加性打分才不需要另外缩放。",
                    en="tanh keeps **each value** between minus one and one, but not their weighted sum: v has $h$ components (here $h = d$), and only because it is shrunk by $1/\\sqrt h$ when drawn do additive scores need no extra scaling.",
                )
            ),
        ]
    )
    return


@app.cell
def _(mo, page, t):
    # F2-14
    mo.accordion(
        {
            t(
                zh="它们各要多少时间和内存（当场测量，几秒钟）",
                en="What each costs in time and memory (measured live, a few seconds)",
            ): mo.lazy(lambda: page.measured("scores", "spread", "cost"), show_loading_indicator=True)
        }
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 掩码\n\n看不到的位置，分数设为负无穷，权重就恰好为零，其余的重新归一。一行**什么都**看不到时没有答案可言：本库返回零，而不是悄悄返回均匀分布。",
            en="## Masks\n\nA position that must not be seen gets a score of minus infinity, so its weight is exactly zero, and the rest are renormalised. A row that sees **nothing** has no answer: this library returns zeros instead of silently returning a uniform distribution.",
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
def _(figures, mo, np, ss, t):
    # F1-5
    _rng = np.random.default_rng(4)
    _q, _k, _v, _g = _rng.standard_normal((4, 1, 3, 4))
    _weights = ss.softmax(_q[0] @ _k[0].T / 2.0)
    _to_weights = _g[0] @ _v[0].T
    _to_scores = ss.jacobian_product(_weights, _to_weights)
    mo.md(
        t(
            zh=f"## 反向传播：对权重的梯度\n\n输出是 $O = sV$，所以损失对权重的梯度是 $\\partial L/\\partial s = (\\partial L/\\partial O)\\,V^{{\\mathsf T}}$；再乘以雅可比矩阵，就得到对分数的梯度。第一行：对权重 {figures(_to_weights[0])}，对分数 {figures(_to_scores[0])}，后者之和为 {_to_scores[0].sum():.0e}：把所有分数一起抬高，什么也不改变。",
            en=f"## The backward pass: the gradient at the weights\n\nThe output is $O = sV$, so the gradient of the loss at the weights is $\\partial L/\\partial s = (\\partial L/\\partial O)\\,V^{{\\mathsf T}}$; multiply it by the Jacobian to get the gradient at the scores. First row: at the weights {figures(_to_weights[0])}, at the scores {figures(_to_scores[0])}. The latter sums to {_to_scores[0].sum():.0e}: raising all scores together changes nothing.",
        )
    )
    return


@app.cell
def _(mo, t):
    mo.md(
        t(
            zh="## 键太多，装不下怎么办？\n\n长序列的权重表存不下，于是一段一段地读键，边读边修正最大值和总和：这就是“在线 softmax”，快速注意力的核心。库里的 `partition` 和 `merge` 做的也是这件事。",
            en="## What if there are too many keys to fit?\n\nThe table of weights of a long sequence is too large to store, so the keys are read in parts, and the maximum and the sum are corrected along the way. This is “online softmax”, the heart of fast attention. The library's `partition` and `merge` do the same.",
        )
    )
    return


@app.cell
def _(figure, mo, np, ss, t):
    _x = np.random.default_rng(6).normal(0.0, 3.0, 1000)
    _whole, _parts = ss.partition(_x), ss.partition(_x[:400]).merge(ss.partition(_x[400:]))
    mo.md(
        t(
            zh=f"一千个分数，整行的熵 {figure(float(_whole.entropy), 6)}，分两段再合并 {figure(float(_parts.entropy), 6)}。",
            en=f"A thousand scores: the entropy of the whole row is {figure(float(_whole.entropy), 6)}; of two parts merged, {figure(float(_parts.entropy), 6)}.",
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
            zh="掩码给出恰好为零的权重；全部遮住的行要单独约定。",
            en="A mask gives weights of exactly zero; a fully masked row needs a rule of its own.",
        ),
    )
    return


if __name__ == "__main__":
    app.run()
