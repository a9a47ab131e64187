"""All sentences of the report, with English and Chinese side by side."""

from __future__ import annotations

from softscope._text import Text

# Property: (short title for tables, the claim), in the report's order.
CLAIMS: dict[str, tuple[Text, Text]] = {
    "returns": (
        Text(en="same shape, floats", zh="形状不变、浮点"),
        Text(en="every 1-D array gives a float array of the same shape", zh="任何一维数组都得到形状相同的浮点数组"),
    ),
    "finite": (
        Text(en="finite", zh="有限"),
        Text(en="finite logits, even large ones, give finite weights", zh="有限的分数（很大的也一样）得到有限的权重"),
    ),
    "non_negative": (
        Text(en="never negative", zh="非负"),
        Text(en="no weight is negative", zh="没有负的权重"),
    ),
    "sums_to_one": (
        Text(en="sums to 1", zh="总和为 1"),
        Text(en="the weights sum to 1", zh="权重之和为 1"),
    ),
    "order": (
        Text(en="keeps the order", zh="保持次序"),
        Text(
            en="a larger logit never gets a smaller weight, and equal logits get equal weights",
            zh="分数更大，权重不会更小；分数相等，权重也相等",
        ),
    ),
    "shift": (
        Text(en="ignores a shift", zh="平移不变"),
        Text(en="adding one number to all logits changes nothing", zh="所有分数加上同一个数，权重不变"),
    ),
    "permutation": (
        Text(en="follows a reordering", zh="置换等变"),
        Text(
            en="reordering the logits reorders the weights in the same way", zh="分数换了顺序，权重也跟着换同样的顺序"
        ),
    ),
    "continuity": (
        Text(en="no jumps", zh="连续"),
        Text(en="a small step moves the weights by a bounded amount", zh="分数变动一小步，权重的变动有界"),
    ),
    "sharpens": (
        Text(en="sharpens", zh="放大则更尖锐"),
        Text(en="amplifying the logits concentrates the weights on the largest", zh="放大分数，权重向最大的分数集中"),
    ),
    "responds": (
        Text(en="responds", zh="随分数变化"),
        Text(en="the weights depend on the logits", zh="权重随分数而变"),
    ),
    "minus_infinity": (
        Text(en="-inf gets 0", zh="-inf 得 0"),
        Text(
            en="a logit of -inf gets weight 0, and the others are as if it were absent",
            zh="分数为 -inf 的位置权重为 0，其余权重就像它不存在一样",
        ),
    ),
    "all_minus_infinity": (
        Text(en="all -inf: NaN or 0", zh="全为 -inf：NaN 或 0"),
        Text(en="logits that are all -inf give all NaN or all 0", zh="分数全为 -inf 时，权重全为 NaN 或全为 0"),
    ),
    "nan": (
        Text(en="NaN stays visible", zh="NaN 不被掩盖"),
        Text(en="a NaN among the logits makes every weight NaN", zh="分数中有一个 NaN，所有权重都是 NaN"),
    ),
    "empty": (
        Text(en="empty", zh="空数组"),
        Text(en="an empty array gives an empty array", zh="空数组得到空数组"),
    ),
    "input_unchanged": (
        Text(en="leaves its input alone", zh="不改动输入"),
        Text(en="the input is left unchanged, and may be read-only", zh="输入保持原样，也可以是只读的"),
    ),
    "integers": (
        Text(en="integers", zh="整数"),
        Text(en="integers get the same weights as equal floats", zh="整数得到的权重与同样数值的浮点数相同"),
    ),
    "axis": (
        Text(en="axis", zh="axis 参数"),
        Text(
            en="along any axis, each row gets the weights it would get alone",
            zh="沿任意轴，每一行得到的权重与它单独计算时相同",
        ),
    ),
    "where": (
        Text(en="where", zh="where 参数"),
        Text(
            en="a masked logit gets weight 0, and the others are as if it were absent",
            zh="被遮住的分数权重为 0，其余权重就像它不存在一样",
        ),
    ),
    "smooth": (
        Text(en="no kinks", zh="光滑"),
        Text(en="the weights have no kink", zh="权重没有折点"),
    ),
}

PROPERTIES: tuple[str, ...] = tuple(CLAIMS)
"""The names of all properties, in the order of the report."""

# Sentences for broken properties. wording.say fills in the values in braces.
SENTENCES: dict[str, Text] = {
    "held": Text(en="{claim}.", zh="{claim}。"),
    "undeclared": Text(
        en="Not tested, because {option} was not declared; pass {option}=True to test it.",
        zh="未检验，因为没有声明 {option}；传入 {option}=True 即可检验。",
    ),
    "raised": Text(en="Expected that {claim}, but f raised {error}.", zh="要求：{claim}；但 f 抛出了 {error}。"),
    "not_numbers": Text(
        en="Expected that {claim}, but f returned {came} instead of an array of real numbers.",
        zh="要求：{claim}；但 f 返回的是 {came}，不是实数数组。",
    ),
    "wrong_shape": Text(
        en="Expected that {claim}, but f returned shape {got} for an input of shape {want}.",
        zh="要求：{claim}；但输入的形状是 {want}，f 返回的形状却是 {got}。",
    ),
    "not_finite": Text(
        en="Expected that {claim}, but f returned {got} for finite logits.",
        zh="要求：{claim}；但分数有限，f 却返回了 {got}。",
    ),
    "returns.floats": Text(
        en="The weights must be a NumPy array of floats, but f returned {came}.",
        zh="权重应当是 NumPy 浮点数组，但 f 返回的是 {came}。",
    ),
    "finite.moderate": Text(
        en="Finite logits must give finite weights, but got {got}.",
        zh="有限的分数应当得到有限的权重，结果却是 {got}。",
    ),
    "finite.large": Text(
        en="Finite logits, however large, must give finite weights without overflow, but got {got}.",
        zh="分数再大，只要有限，权重就应当有限，不应溢出，结果却是 {got}。",
    ),
    "non_negative": Text(
        en="No weight may be negative, but the logit {logit} gets {weight}.",
        zh="权重不能为负，但分数 {logit} 的权重是 {weight}。",
    ),
    "sums_to_one": Text(
        en="The weights must sum to 1 within {tolerance}, but they sum to {total}.",
        zh="权重之和应当为 1（误差不超过 {tolerance}），实际却是 {total}。",
    ),
    "order.larger": Text(
        en="A larger logit must not get a smaller weight, but {low} gets {weight_low} and {high} gets {weight_high}.",
        zh="分数更大，权重不应更小，但分数 {low} 得到 {weight_low}，分数 {high} 得到 {weight_high}。",
    ),
    "order.equal": Text(
        en="Equal logits must get equal weights, but two logits of {logit} get {one} and {other}.",
        zh="相等的分数应当得到相等的权重，但两个分数都是 {logit}，权重却是 {one} 和 {other}。",
    ),
    "shift": Text(
        en="Adding one number to all logits must not change the weights, but adding {shift} turns {before} into "
        "{after}.",
        zh="所有分数加上同一个数，权重应当不变，但加上 {shift} 之后，{before} 变成了 {after}。",
    ),
    "permutation": Text(
        en="Reordering the logits must reorder the weights in the same way, to {want}, but got {got}.",
        zh="分数换了顺序，权重应当同样换成 {want}，结果却是 {got}。",
    ),
    "continuity": Text(
        en="A step of length {step} may move the weights by at most {allowed} (lipschitz={lipschitz}), "
        "but it moved them by {moved}.",
        zh="分数移动 {step}，权重最多可以移动 {allowed}（lipschitz={lipschitz}），实际却移动了 {moved}。",
    ),
    "sharpens.smaller": Text(
        en="Amplifying the logits must not lower the weight of the largest, but at a factor of {factor} it falls from "
        "{before} to {after}.",
        zh="放大分数，最大分数的权重不应变小，但放大到 {factor} 倍时，它从 {before} 降到了 {after}。",
    ),
    "sharpens.limit": Text(
        en="Amplifying the logits must drive the weights to one-hot on the largest, but at a factor of {factor} they "
        "are {got}.",
        zh="不断放大分数，权重应当趋于只落在最大的分数上，但放大到 {factor} 倍时仍是 {got}。",
    ),
    "responds": Text(
        en="The weights must depend on the logits, but {one} and {other} both get {got}.",
        zh="权重应当随分数而变，但 {one} 和 {other} 都得到 {got}。",
    ),
    "minus_infinity.weight": Text(
        en="A logit of -inf must get weight exactly 0, but it gets {weight}.",
        zh="分数为 -inf 时，权重应当恰好为 0，实际却是 {weight}。",
    ),
    "minus_infinity.others": Text(
        en="With a logit of -inf, the others must get the same weights as without it, {want}, but got {got}.",
        zh="有分数为 -inf 时，其余的权重应当与没有它时一样，即 {want}，结果却是 {got}。",
    ),
    "all_minus_infinity": Text(
        en="When all logits are -inf, there is nothing to choose from, so the weights must be all NaN or all 0, but "
        "got {got}.",
        zh="分数全为 -inf 时无可选择，权重应当全为 NaN 或全为 0，结果却是 {got}。",
    ),
    "nan": Text(
        en="One unknown logit makes every weight unknown, so all must be NaN, but got {got}.",
        zh="有一个分数未知，所有权重就都未知，应当全为 NaN，结果却是 {got}。",
    ),
    "input_unchanged.changed": Text(
        en="The input must be left unchanged, but {before} became {after}.",
        zh="输入应当保持原样，但 {before} 变成了 {after}。",
    ),
    "input_unchanged.read_only": Text(
        en="A read-only array must be accepted, but f raised {error} when given one.",
        zh="应当接受只读数组，但遇到只读数组时 f 抛出了 {error}。",
    ),
    "integers": Text(
        en="Integers must get the same weights as equal floats, {want}, but got {got}.",
        zh="整数应当与同样数值的浮点数得到一样的权重，即 {want}，结果却是 {got}。",
    ),
    "axis": Text(
        en="With axis={axis}, each row along that axis must get the weights it would get alone: {row} must get "
        "{want}, but got {got}.",
        zh="axis={axis} 时，该轴上的每一行应当得到它单独计算时的权重：{row} 应当得到 {want}，结果却是 {got}。",
    ),
    "where.weight": Text(
        en="A masked logit must get weight exactly 0, but it gets {weight}.",
        zh="被遮住的分数，权重应当恰好为 0，实际却是 {weight}。",
    ),
    "where.others": Text(
        en="With masked logits, the others must get the same weights as without them, {want}, but got {got}.",
        zh="有分数被遮住时，其余的权重应当与没有它们时一样，即 {want}，结果却是 {got}。",
    ),
    "where.nothing": Text(
        en="With every logit masked, all weights must be 0, but got {got}.",
        zh="所有分数都被遮住时，权重应当全为 0，结果却是 {got}。",
    ),
    "smooth": Text(
        en="The weights have a kink: along {direction} their slope jumps from {before} to {after}.",
        zh="权重有折点：沿方向 {direction} 前进时，斜率从 {before} 突变为 {after}。",
    ),
    "smooth.coarse": Text(
        en="Not judged: telling kinks from bends takes steps so small that only float64 resolves them.",
        zh="未判断：区分折点与弯曲需要极小的步长，只有 float64 才能分辨。",
    ),
}

# Padded to line up the columns; a Chinese character is as wide as the ideographic space.
STATUS = {
    "held": Text(en="held        ", zh="成立　"),
    "broken": Text(en="broken      ", zh="不成立"),
    "not declared": Text(en="not declared", zh="未检验"),
}
FRAME = {
    "passed": Text(en="passed: {tested} properties tested, all hold", zh="通过：检验了 {tested} 条性质，全部成立"),
    "failed": Text(
        en="failed: {broken} of {tested} properties broken",
        zh="未通过：检验了 {tested} 条性质，{broken} 条不成立",
    ),
    "input": Text(en="input ", zh="输入"),
    "output": Text(en="output", zh="输出"),
    "informative": Text(en="(for information only) ", zh="（仅供参考）"),
}
