"""Every sentence of the report, English and Chinese side by side."""

from __future__ import annotations

from softscope._text import LANGS, Lang

__all__ = ["CLAIMS", "FRAME", "LANGS", "PROPERTIES", "SENTENCES", "STATUS", "Lang"]

# Property: (short title for tables, the claim), each in English and Chinese. The order is the report's order.
CLAIMS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "returns": (
        ("same shape, floats", "形状不变、浮点"),
        (
            "every 1-D array gives an array of floats of the same shape",
            "任何一维数组都得到形状相同的浮点数组",
        ),
    ),
    "finite": (
        ("finite", "有限"),
        ("finite logits, large ones too, give finite weights", "有限的分数（很大的也一样）得到有限的权重"),
    ),
    "non_negative": (
        ("never negative", "非负"),
        ("no weight is negative", "没有负的权重"),
    ),
    "sums_to_one": (
        ("sums to 1", "总和为 1"),
        ("the weights sum to 1", "权重之和为 1"),
    ),
    "order": (
        ("keeps the order", "保持次序"),
        (
            "a larger logit never gets a smaller weight, and equal logits get equal weights",
            "分数更大，权重不会更小；分数相等，权重也相等",
        ),
    ),
    "shift": (
        ("ignores a shift", "平移不变"),
        ("adding one number to all logits changes nothing", "所有分数加上同一个数，权重不变"),
    ),
    "permutation": (
        ("follows a reordering", "置换等变"),
        ("reordering the logits reorders the weights alike", "分数换了顺序，权重也跟着换同样的顺序"),
    ),
    "continuity": (
        ("no jumps", "连续"),
        ("a small step moves the weights by a bounded amount", "分数变动一小步，权重的变动有界"),
    ),
    "sharpens": (
        ("sharpens", "放大则更尖锐"),
        ("amplifying the logits concentrates the weights on the largest", "放大分数，权重向最大的分数集中"),
    ),
    "responds": (
        ("responds", "随分数变化"),
        ("the weights depend on the logits", "权重随分数而变"),
    ),
    "minus_infinity": (
        ("-inf gets 0", "-inf 得 0"),
        (
            "a logit of -inf gets weight 0, and the others are as if it were absent",
            "分数为 -inf 的位置权重为 0，其余权重就像它不存在一样",
        ),
    ),
    "all_minus_infinity": (
        ("all -inf: NaN or 0", "全为 -inf：NaN 或 0"),
        ("logits that are all -inf give all NaN or all 0", "分数全为 -inf 时，权重全为 NaN 或全为 0"),
    ),
    "nan": (
        ("NaN stays visible", "NaN 不被掩盖"),
        ("a NaN among the logits makes every weight NaN", "分数中有一个 NaN，所有权重都是 NaN"),
    ),
    "empty": (
        ("empty", "空数组"),
        ("an empty array gives an empty array", "空数组得到空数组"),
    ),
    "input_unchanged": (
        ("leaves its input alone", "不改动输入"),
        ("the input is left as it was, and may be read-only", "输入保持原样，也可以是只读的"),
    ),
    "integers": (
        ("integers", "整数"),
        ("integers get the weights of the same numbers as floats", "整数得到的权重与同样数值的浮点数相同"),
    ),
    "axis": (
        ("axis", "axis 参数"),
        (
            "along any axis each row gets the weights it gets alone",
            "沿任意轴，每一行得到的权重与它单独计算时相同",
        ),
    ),
    "where": (
        ("where", "where 参数"),
        (
            "a masked logit gets weight 0, and the others are as if it were absent",
            "被遮住的分数权重为 0，其余权重就像它不存在一样",
        ),
    ),
    "smooth": (
        ("no kinks", "光滑"),
        ("the weights have no kink", "权重没有折点"),
    ),
}

PROPERTIES: tuple[str, ...] = tuple(CLAIMS)
"""The names of all properties, in the order of the report."""

# What a broken property says. Values in braces are filled in by wording.say.
SENTENCES: dict[str, tuple[str, str]] = {
    "held": ("{claim}.", "{claim}。"),
    "undeclared": (
        "Not tested, since {option} was not declared; pass {option}=True to test it.",
        "未检验，因为没有声明 {option}；传入 {option}=True 即可检验。",
    ),
    "raised": ("Expected that {claim}, but f raised {error}.", "要求：{claim}；但 f 抛出了 {error}。"),
    "not_numbers": (
        "Expected that {claim}, but f returned {came} instead of an array of real numbers.",
        "要求：{claim}；但 f 返回的是 {came}，不是实数数组。",
    ),
    "wrong_shape": (
        "Expected that {claim}, but f returned shape {got} where the input has {want}.",
        "要求：{claim}；但输入的形状是 {want}，f 返回的形状却是 {got}。",
    ),
    "not_finite": (
        "Expected that {claim}, but f returned {got} for finite logits.",
        "要求：{claim}；但分数有限，f 却返回了 {got}。",
    ),
    "returns.floats": (
        "The weights must come as a NumPy array of floats, but f returned {came}.",
        "权重应当是 NumPy 浮点数组，但 f 返回的是 {came}。",
    ),
    "finite.moderate": (
        "Finite logits must give finite weights, but {got} came.",
        "有限的分数应当得到有限的权重，结果却是 {got}。",
    ),
    "finite.large": (
        "Finite logits must give finite weights, however large: overflow must not show, but {got} came.",
        "分数再大，只要有限，权重就应当有限，不应溢出，结果却是 {got}。",
    ),
    "non_negative": (
        "No weight may be negative, but the logit {logit} gets {weight}.",
        "权重不能为负，但分数 {logit} 的权重是 {weight}。",
    ),
    "sums_to_one": (
        "The weights must sum to 1 within {tolerance}, but they sum to {total}.",
        "权重之和应当为 1（误差不超过 {tolerance}），实际却是 {total}。",
    ),
    "order.larger": (
        "A larger logit must not get a smaller weight, but {low} gets {weight_low} and {high} gets {weight_high}.",
        "分数更大，权重不应更小，但分数 {low} 得到 {weight_low}，分数 {high} 得到 {weight_high}。",
    ),
    "order.equal": (
        "Equal logits must get equal weights, but two logits of {logit} get {one} and {other}.",
        "相等的分数应当得到相等的权重，但两个分数都是 {logit}，权重却是 {one} 和 {other}。",
    ),
    "shift": (
        "Adding one number to all logits must not change the weights, but adding {shift} turns {before} into {after}.",
        "所有分数加上同一个数，权重应当不变，但加上 {shift} 之后，{before} 变成了 {after}。",
    ),
    "permutation": (
        "Reordering the logits must reorder the weights alike, to {want}, but {got} came.",
        "分数换了顺序，权重应当同样换成 {want}，结果却是 {got}。",
    ),
    "continuity": (
        "A step of length {step} may move the weights by at most {allowed} (lipschitz={lipschitz}), "
        "but it moved them by {moved}.",
        "分数移动 {step}，权重最多可以移动 {allowed}（lipschitz={lipschitz}），实际却移动了 {moved}。",
    ),
    "sharpens.smaller": (
        "Amplifying the logits must not make the weight of the largest smaller, "
        "but times {factor} it falls from {before} to {after}.",
        "放大分数，最大分数的权重不应变小，但放大到 {factor} 倍时，它从 {before} 降到了 {after}。",
    ),
    "sharpens.limit": (
        "Amplifying the logits must drive the weights to one-hot on the largest, but times {factor} they are {got}.",
        "不断放大分数，权重应当趋于只落在最大的分数上，但放大到 {factor} 倍时仍是 {got}。",
    ),
    "responds": (
        "The weights must depend on the logits, but {one} and {other} both get {got}.",
        "权重应当随分数而变，但 {one} 和 {other} 都得到 {got}。",
    ),
    "minus_infinity.weight": (
        "A logit of -inf must get weight exactly 0, but it gets {weight}.",
        "分数为 -inf 时，权重应当恰好为 0，实际却是 {weight}。",
    ),
    "minus_infinity.others": (
        "Beside a logit of -inf the others must get the weights they get without it, {want}, but {got} came.",
        "有分数为 -inf 时，其余的权重应当与没有它时一样，即 {want}，结果却是 {got}。",
    ),
    "all_minus_infinity": (
        "When all logits are -inf there is nothing to choose, and the weights must be all NaN or all 0, "
        "but {got} came.",
        "分数全为 -inf 时无可选择，权重应当全为 NaN 或全为 0，结果却是 {got}。",
    ),
    "nan": (
        "One unknown logit makes every weight unknown, so all must be NaN, but {got} came.",
        "有一个分数未知，所有权重就都未知，应当全为 NaN，结果却是 {got}。",
    ),
    "input_unchanged.changed": (
        "The input must be left as it was, but {before} became {after}.",
        "输入应当保持原样，但 {before} 变成了 {after}。",
    ),
    "input_unchanged.read_only": (
        "A read-only array must be accepted, but given one f raised {error}.",
        "应当接受只读数组，但遇到只读数组时 f 抛出了 {error}。",
    ),
    "integers": (
        "Integers must get the weights of the same numbers as floats, {want}, but {got} came.",
        "整数应当与同样数值的浮点数得到一样的权重，即 {want}，结果却是 {got}。",
    ),
    "axis": (
        "With axis={axis} each row along that axis must get the weights it gets alone: "
        "{row} must get {want}, but {got} came.",
        "axis={axis} 时，该轴上的每一行应当得到它单独计算时的权重：{row} 应当得到 {want}，结果却是 {got}。",
    ),
    "where.weight": (
        "A masked logit must get weight exactly 0, but it gets {weight}.",
        "被遮住的分数，权重应当恰好为 0，实际却是 {weight}。",
    ),
    "where.others": (
        "Beside masked logits the others must get the weights they get without them, {want}, but {got} came.",
        "有分数被遮住时，其余的权重应当与没有它们时一样，即 {want}，结果却是 {got}。",
    ),
    "where.nothing": (
        "With every logit masked all weights must be 0, but {got} came.",
        "所有分数都被遮住时，权重应当全为 0，结果却是 {got}。",
    ),
    "smooth": (
        "The weights have a kink: on the way along {direction} their slope jumps from {before} to {after}.",
        "权重有折点：沿方向 {direction} 前进时，斜率从 {before} 突变为 {after}。",
    ),
    "smooth.coarse": (
        "Not judged: kinks are told from bends by steps so small that only float64 resolves them.",
        "未判断：区分折点与弯曲需要极小的步长，只有 float64 才能分辨。",
    ),
}

# Padded so that columns line up; a Chinese character is as wide as the ideographic space.
STATUS = {
    "held": ("held        ", "成立　"),
    "broken": ("broken      ", "不成立"),
    "not declared": ("not declared", "未检验"),
}
FRAME = {
    "passed": ("passed: {tested} properties tested, all hold", "通过：检验了 {tested} 条性质，全部成立"),
    "failed": (
        "failed: {broken} of {tested} properties broken",
        "未通过：检验了 {tested} 条性质，{broken} 条不成立",
    ),
    "input": ("input ", "输入"),
    "output": ("output", "输出"),
    "informative": ("(for information only) ", "（仅供参考）"),
}
