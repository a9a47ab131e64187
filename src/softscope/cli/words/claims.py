"""Words of `softscope claims`: its help, its errors, and the frame around the ledger's own sentences."""

from softscope._text import Text

CLAIMS: dict[str, Text] = {
    "claims.summary": Text(
        en="Measure what the source texts claim, with a verdict on each claim.", zh="原文的每条论断：实测结果与结论。"
    ),
    "claims.description": Text(
        en="Checks the claims of the source texts one by one: what was measured, whether the claim holds, and why. "
        "Every verdict is computed as you watch, never hard-coded. The whole ledger takes a minute or two; --fast "
        "skips the slow claims, and says which.",
        zh="逐条检验原文的论断：测到了什么，论断是否成立，为什么。结论都是现场算出来的，不是写死的。全部检验需要一两分钟"
        "；--fast 跳过较慢的，并说明跳过了哪些。",
    ),
    "claims.argument.id": Text(
        en="Only these claims, such as S1-03; default: all.", zh="只检验这些论断，如 S1-03；默认检验全部。"
    ),
    "claims.option.text": Text(en="Only the claims of one text.", zh="只检验某一篇的论断。"),
    "claims.option.verdict": Text(en="Show only the claims with this verdict.", zh="只显示这种结论的论断。"),
    "claims.option.fast": Text(en="Skip the claims that take seconds each.", zh="跳过每条要几秒钟的论断。"),
    "claims.option.seed": Text(
        en="Draw every random sample from another seed; default: 0.", zh="用另一个种子重新抽取所有随机样本；默认 0。"
    ),
    "claims.option.format": Text(
        en="Output format; html is one page for a browser.", zh="输出格式；html 是用浏览器打开的一个网页。"
    ),
    "claims.example.one": Text(en="Two claims, by number.", zh="按编号指定的两条论断。"),
    "claims.example.fails": Text(en="The claims of text 004 that do not hold.", zh="第 004 篇中不成立的论断。"),
    "claims.example.page": Text(en="The whole ledger as a page.", zh="把整本总账输出为网页。"),
    "claims.id.unknown": Text(
        en="there is no claim {value}; claims run from S0-01 to S4-24, and softscope claims lists them all",
        zh="没有 {value} 这条论断；编号从 S0-01 到 S4-24，softscope claims 会列出全部",
    ),
    "claims.nothing": Text(
        en="no claim fits all of the ids, --text and --fast that were given; leave one of them out",
        zh="没有论断同时符合所给的编号、--text 和 --fast；请去掉其中一个",
    ),
    "claims.text.unknown": Text(
        en="--text must be one of {known}, but got {value}",
        zh="--text 只能是 {known} 之一，收到的却是 {value}",
    ),
    "claims.verdict.unknown": Text(
        en="--verdict must be one of {known}, but got {value}",
        zh="--verdict 只能是 {known} 之一，收到的却是 {value}",
    ),
    "claims.format.unknown": Text(
        en="--format must be text, json, markdown or html, but got {value}",
        zh="--format 只能是 text、json、markdown 或 html，收到的却是 {value}",
    ),
    "claims.package.missing": Text(
        en="these claims need {package}, which is not installed: pip install 'softscope[torch]'",
        zh="检验这些论断需要 {package}，但没有安装：pip install 'softscope[torch]'",
    ),
    "claims.title": Text(en="The ledger of claims", zh="论断总账"),
    "claims.intro": Text(
        en="What five texts on softmax and attention claim, and what measurement says. ± is one standard error.",
        zh="五篇讲 softmax 和注意力的文章说了什么，实测又怎么说。± 为一个标准误。",
    ),
    # The titles as the texts have them; in English those of 001 and 002 are translated.
    "claims.text.000": Text(
        en="000, without a title: why a sharp softmax stops learning", zh="000，无标题：尖锐的 softmax 为什么学不动"
    ),
    "claims.text.001": Text(en="001 “Why must attention use softmax?”", zh="001《为什么注意力机制必须使用 Softmax？》"),
    "claims.text.002": Text(
        en="002 “Q4: Why divide by √d_k before softmax?”", zh="002《Q4：为什么 Softmax 前需要除以 √d_k？》"
    ),
    "claims.text.003": Text(
        en="003 “Chapter 4: Softmax — The Art of Probability”", zh="003《第 4 章：Softmax — 概率的艺术》"
    ),
    "claims.text.004": Text(
        en="004 “Proof 1: Smaller d in softmax(QKᵀ/√d) leads to more one-hot-like outputs” and “Proof 2”, on vanishing "
        "gradients",
        zh="004《Proof 1: Smaller d in softmax(QKᵀ/√d) leads to more one-hot-like outputs》和"
        "《Proof 2：当 S 趋近于 one-hot 时 dS/dZ 趋近于 0，会引起梯度消失》",
    ),
    "claims.verdict.holds": Text(en="holds", zh="成立"),
    "claims.verdict.only-if": Text(en="holds only if …", zh="有条件成立"),
    "claims.verdict.fails": Text(en="does not hold", zh="不成立"),
    "claims.verdict.cited": Text(en="cited, not measurable here", zh="引用，此处无法测量"),
    "claims.verdict.opinion": Text(en="opinion", zh="观点"),
    "claims.claim": Text(en="claim", zh="论断"),
    "claims.verdict": Text(en="verdict", zh="结论"),
    "claims.found": Text(en="found", zh="依据"),
    "claims.evidence.measured": Text(en="measured", zh="实测"),
    "claims.evidence.derived": Text(en="derived", zh="推导"),
    "claims.evidence.quoted": Text(en="quoted", zh="引用"),
    "claims.instead": Text(en="true is", zh="正确说法"),
    "claims.source.supports": Text(en="{source} (supports it)", zh="{source}（支持）"),
    "claims.source.contradicts": Text(en="{source} (contradicts it)", zh="{source}（不支持）"),
    "claims.code": Text(en="the check", zh="检验代码"),
    "claims.code.at": Text(en="{module}, line {line}", zh="{module}，第 {line} 行"),
    "claims.made": Text(en="softscope {version}, seed {seed}.", zh="softscope {version}，种子 {seed}。"),
    "claims.left_out": Text(
        en="Left out by --fast, because each takes longer: {count} ({names}).",
        zh="--fast 略去了较慢的 {count} 条：{names}。",
    ),
    "claims.only_if": Text(en="only if", zh="条件"),
    "claims.because": Text(en="because", zh="原因"),
    "claims.source": Text(en="source", zh="来源"),
    "claims.shown": Text(en="shown by", zh="实验"),
    "claims.cases": Text(en="cases", zh="情形"),
    "claims.none": Text(en="No claim matches these filters.", zh="没有符合这些条件的论断。"),
    "claims.counted": Text(en="claims: {count}", zh="论断 {count} 条"),
    "claims.count": Text(en="{verdict}\N{NO-BREAK SPACE}{count}", zh="{count} 条{verdict}"),
    "claims.contradictions": Text(en="Where the texts disagree", zh="各篇互相矛盾之处"),
    "claims.winner.against": Text(
        en="Measurement sides with {winner}, against {loser}.",
        zh="实测支持 {winner}，不支持 {loser}。",
    ),
    "claims.rule": Text(
        en="How we judge: a sentence with a false half does not hold. “Only if” names a condition on the inputs under "
        "which the sentence is true as written. What needs other words does not hold, and the right words stand beside "
        "it. Evidence is measured, derived, quoted or judged.",
        zh="怎样下结论：有一半不对的句子就是不成立。“有条件”指的是对输入的条件，在它之下原句一字不改就成立。"
        "要换个说法才对的，算不成立，正确的说法写在旁边。依据分四种：实测、推导、引用、评判。",
    ),
    "claims.winner.partly": Text(
        en="Measurement sides with {winner}; {loser} holds only under a condition.",
        zh="实测支持 {winner}；{loser} 只在一定条件下成立。",
    ),
    "claims.winner.both": Text(en="Both hold: they are about different things.", zh="两边都成立：说的不是同一件事。"),
    "claims.winner.neither": Text(en="Neither holds.", zh="两边都不成立。"),
    "claims.winner.each": Text(en="Each holds only under its own condition.", zh="两边各自只在自己的条件下成立。"),
    "claims.filter.all": Text(en="all", zh="全部"),
    "claims.filter.search": Text(en="search", zh="搜索"),
    "claims.filter.left": Text(en="claims shown", zh="条论断在显示"),
}
