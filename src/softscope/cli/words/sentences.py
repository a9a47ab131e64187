"""What `softscope explain` says about a row of numbers; every figure comes from a measurement."""

from softscope._text import Text

SENTENCES: dict[str, Text] = {
    "joint": Text(en="+", zh="-"),  # whether a space goes between sentences
    "one": Text(
        en="There is only one number, so it takes all the weight, whatever its value.",
        zh="只有一个数，所以不论它多大，权重都归它。",
    ),
    "one.other": Text(en="There is only one number; its weight is {weight}.", zh="只有一个数，它的权重是 {weight}。"),
    "equal": Text(en="All {n} numbers are equal, so each gets {share}.", zh="{n} 个数全都相等，所以每个都得 {share}。"),
    "tied": Text(
        en="{k} of the {n} numbers share first place ({x}); each of them gets {share}.",
        zh="{n} 个数里有 {k} 个并列最大（{x}），它们各得 {share}。",
    ),
    "lead": Text(
        en="Number {i} ({x}) is the largest. It is {gap} above number {j} ({y}), so it gets {times} times the weight: "
        "{share} against {other}.",
        zh="第 {i} 个数（{x}）最大。它比第 {j} 个数（{y}）大 {gap}，权重因此是后者的 {times} 倍：{share} 对 {other}。",
    ),
    "lead.zero": Text(
        en="Number {i} ({x}) is the largest and gets {share}. Number {j} ({y}), {gap} below it, gets 0.",
        zh="第 {i} 个数（{x}）最大，得到 {share}。第 {j} 个数（{y}）比它小 {gap}，权重为 0。",
    ),
    "lead.bare": Text(
        en="Number {i} ({x}) is the largest; its weight is {share}. Number {j} ({y}) is {gap} below it; its weight is "
        "{other}.",
        zh="第 {i} 个数（{x}）最大，权重是 {share}。第 {j} 个数（{y}）比它小 {gap}，权重是 {other}。",
    ),
    "spread": Text(
        en="Overall, the weight is spread as if {support} of the {n} numbers shared it evenly.",
        zh="整体来看，权重的分散程度相当于 {n} 个数里有 {support} 个在平分。",
    ),
    "spread.one": Text(en="In effect all the weight is on one number.", zh="权重实际上都在一个数上。"),
    "zeros": Text(en="Weights that are exactly 0: {k} of {n}.", zh="权重恰好为 0 的有 {k} 个（共 {n} 个）。"),
    "zeros.rounded": Text(
        en="Weights too small for a floating-point number, so they read 0: {k} of {n}.",
        zh="有 {k} 个权重（共 {n} 个）小到浮点数装不下，所以显示为 0。",
    ),
    "undefined.linear": Text(
        en="The numbers sum to 0, and division by 0 is undefined: there are no weights.",
        zh="这些数的总和是 0，除以 0 没有意义，所以得不到权重。",
    ),
    "undefined.relu": Text(
        en="No number is above 0, so ReLU leaves nothing to share: there are no weights.",
        zh="没有一个数大于 0，经过 ReLU 什么也不剩，所以得不到权重。",
    ),
    "temperature.try": Text(
        en="This is temperature 1. At --temperature 0.5 number {i} would get {half} instead of {one}; at "
        "--temperature 2, {double}.",
        zh="这里的温度是 1。换成 --temperature 0.5，第 {i} 个数的权重会从 {one} 变为 {half}；换成 2，则变为 {double}。",
    ),
    "temperature.try.same": Text(
        en="This is temperature 1. At 0.5 or 2, number {i} would still get {one}, to the digits shown.",
        zh="这里的温度是 1。换成 0.5 或 2，第 {i} 个数的权重仍显示为 {one}。",
    ),
    "temperature.idle": Text(
        en="Changing the temperature would not help: {map} gives these numbers the same weights at 0.5 and at 2.",
        zh="改变温度没有用：对这些数，{map} 在温度 0.5 和 2 时给出的权重一样。",
    ),
    "temperature.same": Text(
        en="The temperature changes nothing: {map} gives these numbers the same weights as at T = 1.",
        zh="温度没有起作用：对这些数，{map} 给出的权重与 T = 1 时一样。",
    ),
    "temperature.moved": Text(
        en="Compared with T = 1, T = {T} moves the weight of number {i} most: {before} → {after}.",
        zh="与 T = 1 相比，T = {T} 时变化最大的是第 {i} 个数的权重：{before} → {after}。",
    ),
    "temperature.sharper": Text(
        en="Compared with T = 1, T = {T} is sharper: effective support {before} → {after}, largest weight "
        "{peak_before} → {peak_after}.",
        zh="与 T = 1 相比，T = {T} 更尖锐：有效支撑数 {before} → {after}，最大权重 {peak_before} → {peak_after}。",
    ),
    "temperature.flatter": Text(
        en="Compared with T = 1, T = {T} is flatter: effective support {before} → {after}, largest weight "
        "{peak_before} → {peak_after}.",
        zh="与 T = 1 相比，T = {T} 更平缓：有效支撑数 {before} → {after}，最大权重 {peak_before} → {peak_after}。",
    ),
    "name.logistic": Text(en="s(1−s)", zh="s(1−s) "),
    "name.slope": Text(en="The slope", zh="斜率"),
    "slope.most": Text(
        en="{name} says how strongly a weight responds when its number changes. It is strongest at number {i}, "
        "{slope}: change that number by {step} and its weight changes by about {moved}.",
        zh="{name}表示一个数变动时，它的权重反应有多强。第 {i} 个数处最强，为 {slope}：把这个数改动 {step}，它的权重大"
        "约变动 {moved}。",
    ),
    "slope.even": Text(
        en="{name} says how strongly a weight responds when its number changes. It is {slope} at every number: change "
        "one, say number {i}, by {step}, and its weight changes by about {moved}.",
        zh="{name}表示一个数变动时，它的权重反应有多强。每个数处都是 {slope}：比如把第 {i} 个数改动 {step}，它的权重大"
        "约变动 {moved}。",
    ),
    "slope.least": Text(en="It is weakest at number {i}, {slope}.", zh="第 {i} 个数处最弱，为 {slope}。"),
    "slope.zero": Text(
        en="It is 0 for {k} of the {n}: they do not respond at all, and no gradient reaches them.",
        zh="{n} 个数里有 {k} 个为 0：它们毫无反应，也没有梯度能传到那里。",
    ),
    "slope.hardly": Text(
        en="It is near 0 for {k} of the {n} (below {bound}, a hundredth of its value if all shared evenly): they "
        "hardly respond.",
        zh="{n} 个数里有 {k} 个接近 0（低于 {bound}，即大家平分时的百分之一）：它们几乎没有反应。",
    ),
    "slope.saturated": Text(
        en="The row is saturated: all s(1−s) add up to only {trace}, less than {bound}. Small changes in the numbers "
        "hardly move any weight, so hardly any gradient gets through.",
        zh="这一行已经饱和：所有 s(1−s) 加起来只有 {trace}，低于 {bound}。数的小变动几乎推不动任何权重，梯度也就几乎传"
        "不过去。",
    ),
    "slope.none": Text(
        en="The slope is 0 everywhere: no small change in a number moves any weight of {map}, so there is no gradient "
        "to learn from.",
        zh="斜率处处为 0：数的小变动推不动 {map} 的任何权重，也就没有梯度可学。",
    ),
    "rival": Text(
        en="{map} is not part of the library; it is here for comparison.",
        zh="{map} 不属于本库，放在这里只作对比。",
    ),
    "rival.negative": Text(
        en="It fails here: {k} of the {n} weights are negative, but a share of a whole cannot be.",
        zh="它在这里行不通：{n} 个权重里有 {k} 个是负的，而份额不可能为负。",
    ),
    "rival.flipped": Text(
        en="And because the numbers sum to less than 0, the largest number gets the smallest weight.",
        zh="而且因为总和小于 0，最大的数反而得到最小的权重。",
    ),
    "rival.sum": Text(
        en="Its weights sum to {total}, not 1: it judges each number alone and does not divide up a whole.",
        zh="它的权重加起来是 {total} 而不是 1：每个数各算各的，没有在分配一个整体。",
    ),
    "rival.shift": Text(
        en="Add 1 to every number, and its weights change by up to {shift}; the weights of softmax change by {steady}.",
        zh="给每个数都加 1，它的权重最多变动 {shift}，而 softmax 的权重变动 {steady}。",
    ),
    "rows": Text(
        en="Over the {rows} rows of the file, the effective support runs from {low} to {high} of {n}; the median is "
        "{middle}.",
        zh="文件中 {rows} 行的有效支撑数从 {low} 到 {high}（共 {n}），中位数 {middle}。",
    ),
    "rows.left_out": Text(
        en="Rows left out because they hold nan or inf, or because their weights are not shares: {k}.",
        zh="另有 {k} 行含 nan 或 inf，或权重不构成份额，没有计入。",
    ),
    "rows.none": Text(
        en="None of the {rows} rows of the file has weights that are shares of a whole.",
        zh="文件的 {rows} 行里，没有一行的权重构成份额。",
    ),
}
