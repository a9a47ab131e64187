"""Words of `softscope claims`: its help, its mistakes, and the frame around the ledger's own sentences."""

CLAIMS: dict[str, tuple[str, str]] = {
    "claims.summary": (
        "What the source texts claim, measured, with a verdict on each.",
        "原文的每条论断：实测结果与结论。",
    ),
    "claims.description": (
        "Checks the claims of the source texts one by one: what was measured, whether the claim holds, and why. "
        "Verdicts are computed as you watch, never typed in. All of them take a few minutes; --fast leaves out the "
        "slow ones.",
        "逐条检验原文的论断：测到了什么，论断是否成立，为什么。结论都是现场算出来的，不是写死的。"
        "全部检验需要几分钟；--fast 跳过较慢的。",
    ),
    "claims.argument.id": (
        "Only these claims, such as S1-03; without any, all.",
        "只检验这些论断，如 S1-03；不写则检验全部。",
    ),
    "claims.option.text": ("Only the claims of one text.", "只检验某一篇的论断。"),
    "claims.option.verdict": ("Show only the claims with this verdict.", "只显示这种结论的论断。"),
    "claims.option.fast": ("Leave out the claims that take seconds each.", "跳过每条要几秒钟的论断。"),
    "claims.option.format": (
        "How to write it; html is one page to open in a browser.",
        "输出的形式；html 是一个可用浏览器打开的网页。",
    ),
    "claims.example.one": ("One claim.", "一条论断。"),
    "claims.example.fails": (
        "What text 004 claims and measurement does not bear out.",
        "第 004 篇中实测不支持的论断。",
    ),
    "claims.example.page": ("The whole ledger as a page.", "整本账作为一个网页。"),
    "claims.id.unknown": (
        "there is no claim {value}; claims are called S0-01 to S4-24, and softscope claims lists them",
        "没有 {value} 这条论断；编号从 S0-01 到 S4-24，softscope claims 会列出全部",
    ),
    "claims.text.unknown": (
        "--text must be one of {known}, but {value} came",
        "--text 只能是 {known} 之一，收到的却是 {value}",
    ),
    "claims.verdict.unknown": (
        "--verdict must be one of {known}, but {value} came",
        "--verdict 只能是 {known} 之一，收到的却是 {value}",
    ),
    "claims.format.unknown": (
        "--format must be text, json, markdown or html, but {value} came",
        "--format 只能是 text、json、markdown 或 html，收到的却是 {value}",
    ),
    "claims.package.missing": (
        "these claims need {package}, which is not installed: pip install 'softscope[torch]'",
        "检验这些论断需要 {package}，但没有安装：pip install 'softscope[torch]'",
    ),
    "claims.title": ("The ledger of claims", "论断总账"),
    "claims.intro": (
        "What five texts on softmax and attention claim, and what measurement says. ± is one standard error.",
        "五篇讲 softmax 和注意力的文章说了什么，实测又怎么说。± 表示一个标准误差。",
    ),
    "claims.text.000": ("000: why a sharp softmax stops learning", "000：尖锐的 softmax 为什么学不动"),
    "claims.text.001": ("001: why attention uses softmax", "001：注意力为什么用 softmax"),
    "claims.text.002": ("002: why to divide by √d", "002：为什么要除以 √d"),
    "claims.text.003": ("003: a chapter on softmax", "003：softmax 一章"),
    "claims.text.004": ("004: two proofs", "004：两个证明"),
    "claims.verdict.holds": ("holds", "成立"),
    "claims.verdict.only-if": ("holds only if …", "有条件成立"),
    "claims.verdict.fails": ("does not hold", "不成立"),
    "claims.verdict.cited": ("cited, not measurable here", "引用，此处无法测量"),
    "claims.verdict.opinion": ("opinion", "观点"),
    "claims.claim": ("claim", "论断"),
    "claims.verdict": ("verdict", "结论"),
    "claims.measured": ("measured", "实测"),
    "claims.only_if": ("only if", "条件"),
    "claims.because": ("because", "原因"),
    "claims.source": ("source", "来源"),
    "claims.shown": ("shown by", "实验"),
    "claims.cases": ("cases", "情形"),
    "claims.none": ("No claim is left with these filters.", "按这些条件筛选后，没有论断剩下。"),
    "claims.counted": ("claims: {count}", "论断 {count} 条"),
    "claims.count": ("{verdict}\N{NO-BREAK SPACE}{count}", "{count} 条{verdict}"),
    "claims.contradictions": ("Where the texts disagree", "各篇互相矛盾之处"),
    "claims.winner.against": (
        "Measurement sides with {winner}, against {loser}.",
        "实测支持 {winner}，不支持 {loser}。",
    ),
    "claims.winner.partly": (
        "Measurement sides with {winner}; {loser} only under a condition.",
        "实测支持 {winner}；{loser} 只在一定条件下成立。",
    ),
    "claims.winner.both": ("Both stand: they speak of different things.", "两边都站得住：说的是不同的事。"),
    "claims.winner.neither": ("Neither stands.", "两边都站不住。"),
    "claims.winner.each": (
        "Each stands under its own condition only.",
        "两边各自只在自己的条件下站得住。",
    ),
    "claims.filter.all": ("all", "全部"),
    "claims.filter.search": ("search", "搜索"),
    "claims.filter.left": ("claims shown", "条论断在显示"),
}
