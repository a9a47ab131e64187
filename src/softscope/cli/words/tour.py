"""Words of `softscope tour`; each stop fills in the figures it has just computed."""

from softscope._text import Text

TOUR: dict[str, Text] = {
    "tour.summary": Text(en="See what the library does, in six short stops.", zh="用六个小站看完本库能做什么。"),
    "tour.description": Text(
        en="Shows what the library does. Every line shown is run on the spot, and each stop ends with a sentence "
        "about what it has just measured.",
        zh="演示本库能做什么。显示的每一行都是现场运行的，每一站最后用一句话说明刚刚测到的结果。",
    ),
    "tour.example.lang": Text(en="The tour in Chinese.", zh="中文版导览。"),
    "tour.welcome": Text(
        en="A tour of softscope in {stops} stops. Everything below is computed now; you can type it into Python "
        "yourself.",
        zh="softscope 导览，共 {stops} 站。下面的结果都是现算的，你也可以在 Python 里照着输入。",
    ),
    "tour.overflow.title": Text(en="Large numbers", zh="很大的数"),
    "tour.overflow.why": Text(
        en="Softmax divides exp(x) by the sum of all exp(x). Coded exactly like that, it fails on large numbers.",
        zh="softmax 就是 exp(x) 除以所有 exp(x) 的总和。直接照着写，数一大就出错。",
    ),
    "tour.overflow.measured": Text(
        en="The formula as written gave nan for {naive} of {n} numbers. ss.softmax subtracts the largest first, "
        "and its weights sum to {total}.",
        zh="照公式直接算，{n} 个数里有 {naive} 个得到 nan。ss.softmax 先减去最大值，权重之和为 {total}。",
    ),
    "tour.temperature.title": Text(en="Temperature", zh="温度"),
    "tour.temperature.why": Text(
        en="The numbers are divided by the temperature before softmax. temperature_for goes the other way: it finds "
        "the temperature that gives the largest weight you ask for.",
        zh="先把这些数除以温度，再做 softmax。temperature_for 能反过来求温度：让最大权重恰好是想要的值。",
    ),
    "tour.temperature.measured": Text(
        en="The largest weight is {cold} at T = 0.25 and {hot} at T = 4; at T = {T} it is {half}.",
        zh="最大权重在 T = 0.25 时是 {cold}，T = 4 时是 {hot}；T = {T} 时是 {half}。",
    ),
    "tour.partition.title": Text(en="All readings from one pass", zh="一次扫描，全部读数"),
    "tour.partition.why": Text(
        en="A partition holds every reading of a row; the partitions of two parts merge into the partition of the "
        "whole row.",
        zh="partition 保存一行的所有读数；两段各自的 partition 可以合并成整行的。",
    ),
    "tour.partition.measured": Text(
        en="The weight of {n} numbers is spread as if {support} shared it evenly; computed in two parts and merged, "
        "the entropy differs by {difference}.",
        zh="{n} 个数的权重，分散程度相当于由 {support} 个平分；分两段计算再合并，熵相差 {difference}。",
    ),
    "tour.sparse.title": Text(en="Exact zeros", zh="恰好为零"),
    "tour.sparse.why": Text(
        en="Softmax gives everyone a share. Entmax and sparsemax can give nothing at all.",
        zh="softmax 人人有份；entmax 和 sparsemax 则可以一点也不给。",
    ),
    "tour.sparse.measured": Text(
        en="How many of the {n} weights are exactly 0: softmax {softmax} (its smallest is {smallest}), entmax "
        "{entmax}, sparsemax {sparsemax}.",
        zh="{n} 个权重中恰好为 0 的：softmax 有 {softmax} 个（最小的是 {smallest}），entmax 有 {entmax} 个，sparsemax "
        "有 {sparsemax} 个。",
    ),
    "tour.attention.title": Text(en="Why attention divides by √d", zh="注意力为什么要除以 √d"),
    "tour.attention.why": Text(
        en="64 random queries and keys of dimension 256, first without the scale, then with it: the largest weight, "
        "the entropy and the sum of s(1−s), all averaged.",
        zh="64 个随机的 query 和 key，维度 256，先不缩放，再缩放：最大权重、熵、s(1−s) 之和，都取平均。",
    ),
    "tour.attention.measured": Text(
        en="Unscaled, one key takes {plain} of a query's weight on average; scaled by 1/√d, {scaled}. "
        "The sum of s(1−s) is {times} times as large when scaled.",
        zh="不缩放时，每个 query 平均把 {plain} 的权重给了一个 key；乘以 1/√d 之后是 {scaled}。"
        "缩放后，s(1−s) 之和是原来的 {times} 倍。",
    ),
    "tour.gradient.title": Text(en="How much gradient is left", zh="梯度还剩多少"),
    "tour.gradient.why": Text(
        en="How much of what a loss wants gets through the softmax to q and k? If almost nothing does, the row is "
        "blocked. Shown here: the number of blocked rows and the median transmission.",
        zh="损失函数的要求，有多少能穿过 softmax 传到 q 和 k？几乎传不过去的行称为被阻断。"
        "下面是被阻断的行数和传导率的中位数。",
    ),
    "tour.gradient.measured": Text(
        en="Of {rows} rows, {plain} are blocked without the scale and {scaled} with it.",
        zh="{rows} 行中，不缩放时有 {plain} 行被阻断，缩放后有 {scaled} 行。",
    ),
    "tour.next": Text(en="What next?", zh="接下来"),
    "tour.next.explain": Text(en="Explain your own numbers.", zh="解释你自己的数。"),
    "tour.next.help": Text(en="Everything explain can do.", zh="explain 的全部用法。"),
    "tour.next.readme": Text(en="More about the library.", zh="关于本库的更多说明。"),
}
