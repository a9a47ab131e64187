"""Words of `softscope explain`: its help, its table and its input errors."""

from softscope._text import Text, same

EXPLAIN: dict[str, Text] = {
    "explain.summary": Text(
        en="Show what softmax, or another map, does to a row of numbers.", zh="看 softmax（或别的映射）怎样处理一行数。"
    ),
    "explain.description": Text(
        en="Turns a row of numbers (logits) into weights and explains the result: each weight as a bar, how widely "
        "the weight is spread, what the temperature changed, and where a small change still has an effect.",
        zh="把一行分数 (logits) 变成权重，并说明发生了什么：每个权重画成条形，权重有多分散，温度改变了什么，哪里的小变"
        "动还有作用。",
    ),
    "explain.argument.numbers": Text(
        en="The logits. If there are none, they are read from standard input.",
        zh="分数 (logits)。一个也不写时，从标准输入读取。",
    ),
    "explain.argument.file": Text(
        en="A NumPy file; its last axis is the row.",
        zh="NumPy 文件；最后一个轴是一行。",
    ),
    "explain.argument.stdin": Text(
        en="Standard input: numbers separated by spaces, commas or newlines, all in one row.",
        zh="标准输入：数之间用空格、逗号或换行隔开，合成一行。",
    ),
    "explain.option.temperature": Text(
        en="The temperature, which divides the logits; above 0, default: 1.",
        zh="温度，分数要除以它；必须大于 0，默认为 1。",
    ),
    "explain.option.map": Text(
        en="softmax (default), sparsemax, entmax:A with A at least 1; for comparison only, not part of the library: "
        "linear (x/sum), relu (max(x, 0)/sum), sigmoid, hardmax.",
        zh="softmax（默认）、sparsemax、entmax:A（A 不小于 1）；另有不属于本库、只作对比的 linear（x/总和）、relu（"
        "max(x, 0)/总和）、sigmoid、hardmax。",
    ),
    "explain.option.file": Text(en="The file to read, whatever its extension.", zh="要读的文件，扩展名不限。"),
    "explain.option.row": Text(
        en="Which row of the file, from 0; negative numbers count from the end.",
        zh="取文件的第几行，从 0 数起；负数从末尾数起。",
    ),
    "explain.option.format": Text(
        en="Text for people (default), or JSON for programs.", zh="给人看的文本（默认），或给程序用的 JSON。"
    ),
    "explain.example.temperature": Text(en="Three close numbers, sharpened.", zh="三个相近的数，降低温度使其更尖锐。"),
    "explain.example.sparsemax": Text(en="A map that gives exact zeros.", zh="能给出恰好为 0 的权重的映射。"),
    "explain.example.linear": Text(en="Why not just divide by the sum?", zh="为什么不能直接除以总和？"),
    "explain.example.stdin": Text(en="Numbers from a pipe, JSON out.", zh="从管道读数，输出 JSON。"),
    "explain.example.file": Text(en="One row of a file.", zh="文件中的某一行。"),
    "head.one": Text(
        en="{map} · T = {temperature} · 1 number{source}", zh="{map} · T = {temperature} · 1 个数{source}"
    ),
    "head.many": Text(
        en="{map} · T = {temperature} · {count} numbers{source}",
        zh="{map} · T = {temperature} · {count} 个数{source}",
    ),
    "source.arguments": same(""),
    "source.stdin": Text(en=" from standard input", zh="，来自标准输入"),
    "source.file": Text(en=" from {name}", zh="，来自 {name}"),
    "source.row": Text(
        en="Row {row} of {rows} (the first is 0); the file is {shape}.",
        zh="第 {row} 行（共 {rows} 行，从 0 数起）；文件形状为 {shape}。",
    ),
    "source.row.first": Text(
        en="Row {row} of {rows} (the first is 0); the file is {shape}. --row shows another.",
        zh="第 {row} 行（共 {rows} 行，从 0 数起）；文件形状为 {shape}。用 --row 看别的行。",
    ),
    "column.logit": Text(en="logit", zh="分数"),
    "column.weight": Text(en="weight", zh="权重"),
    "column.logistic": same("s(1−s)"),
    "column.slope": Text(en="slope", zh="斜率"),
    "column.plain": Text(en="at T = 1", zh="T = 1 时"),
    "table.rest": Text(
        en="The {shown} largest; the other {rest} hold {share} together.",
        zh="只列出最大的 {shown} 个；其余 {rest} 个合计占 {share}。",
    ),
    "table.rest.bare": Text(
        en="The {shown} largest; there are {rest} more.", zh="只列出最大的 {shown} 个；还有 {rest} 个。"
    ),
    "reading.entropy": Text(en="entropy in nats (at most {full})", zh="熵，单位 nat（最大 {full}）"),
    "reading.effective_support": Text(en="effective support (of {n})", zh="有效支撑数（共 {n}）"),
    "reading.peak": Text(en="largest weight", zh="最大权重"),
    "reading.sharpness": Text(en="sharpness (0 even, 1 all on one)", zh="尖锐度（0 均匀，1 全归一个）"),
    "reading.jacobian_trace": Text(en="sum of s(1−s)", zh="s(1−s) 之和"),
    "reading.weight_sum": Text(en="sum of the weights", zh="权重之和"),
    "number.wrong": Text(
        en="{value}, at position {place}, is not a number; write numbers such as -1.5 or 2e3",
        zh="第 {place} 个 {value} 不是数；请写 -1.5、2e3 这样的数",
    ),
    "number.infinite": Text(
        en="the numbers must be finite, but got {value} at position {place}; leave it out",
        zh="所有的数都必须有限，第 {place} 个却是 {value}；请去掉它",
    ),
    "temperature.wrong": Text(
        en="--temperature must be a finite number above 0, but got {value}",
        zh="--temperature 必须是大于 0 的有限数，收到的却是 {value}",
    ),
    "map.unknown": Text(en="there is no map {value}; there are {known}", zh="没有 {value} 这个映射；可用的有 {known}"),
    "alpha.wrong": Text(
        en="the alpha of entmax must be a finite number, at least 1 (1 is softmax, 2 sparsemax), but got {value}",
        zh="entmax 的 alpha 必须是不小于 1 的有限数（1 即 softmax，2 即 sparsemax），收到的却是 {value}",
    ),
    "format.unknown": Text(
        en="--format must be text or json, but got {value}",
        zh="--format 只能是 text 或 json，收到的却是 {value}",
    ),
    "row.wrong": Text(en="--row must be a whole number, but got {value}", zh="--row 必须是整数，收到的却是 {value}"),
    "row.needless": Text(
        en="--row chooses among the rows of a file, but these numbers are one row; leave it out",
        zh="--row 用来选文件中的一行，而这里的数只有一行；请去掉它",
    ),
    "row.outside": Text(
        en="{name} has rows 0 … {last}, but got --row {value}",
        zh="{name} 的行号是 0 到 {last}，收到的却是 --row {value}",
    ),
    "source.none": Text(
        en="got no numbers; write them after the command, pipe them in, or name a .npy file",
        zh="没有收到数；请写在命令后面，或用管道传入，或给出 .npy 文件",
    ),
    "source.several": Text(
        en="the numbers must come from one source (arguments, - or one file), but got several; keep one",
        zh="数只能有一个来源（参数、- 或一个文件），这里却有几个；请只留一个",
    ),
    "source.empty": Text(en="the input holds no numbers; at least one is needed", zh="输入里没有数；至少需要一个"),
    "stdin.npy": Text(
        en="standard input holds a .npy file, not text; pass it with --file",
        zh="标准输入是 .npy 文件而不是文本；请用 --file 指定它",
    ),
    "stdin.long": Text(
        en="standard input holds more than {most} MiB of text; put the numbers into a .npy file",
        zh="标准输入超过 {most} MiB；请把数存成 .npy 文件",
    ),
    "stdin.binary": Text(
        en="standard input is not UTF-8 text; write the numbers as text",
        zh="标准输入不是 UTF-8 文本；请把数写成文本",
    ),
    "stdin.unreadable": Text(en="cannot read standard input: {reason}", zh="无法读取标准输入：{reason}"),
    "file.unreadable": Text(en="cannot read {name}: {reason}", zh="无法读取 {name}：{reason}"),
    "file.not_npy": Text(
        en="{name} is not a .npy file of plain numbers; write one with numpy.save, or pipe text in",
        zh="{name} 不是只含数字的 .npy 文件；请用 numpy.save 保存，或用管道传入文本",
    ),
    "file.dtype": Text(
        en="{name} must hold real numbers, but its dtype is {dtype}; convert it",
        zh="{name} 里必须是实数，其 dtype 却是 {dtype}；请先转换",
    ),
}
