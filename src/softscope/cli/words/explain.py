"""Words of `softscope explain`: its help, its table, and what it says of wrong input."""

EXPLAIN: dict[str, tuple[str, str]] = {
    "explain.summary": (
        "What softmax, or another map, makes of a row of numbers.",
        "看 softmax（或别的映射）怎样处理一行数。",
    ),
    "explain.description": (
        "Turns a row of numbers (logits) into weights and tells what happened: each weight as a bar, how far the "
        "weight is spread, what the temperature changed, and where a small change still has an effect.",
        "把一行分数 (logits) 变成权重，并说明发生了什么：每个权重画成条形，权重有多分散，温度改变了什么，"
        "哪里的小变动还有作用。",
    ),
    "explain.argument.numbers": (
        "The logits. Without any they are read from standard input.",
        "分数 (logits)。一个也不写时，从标准输入读取。",
    ),
    "explain.argument.file": (
        "A NumPy file; its last axis is the row.",
        "NumPy 文件；最后一个轴是一行。",
    ),
    "explain.argument.stdin": (
        "Standard input: numbers apart by blanks, commas or lines, all one row.",
        "标准输入：数之间用空格、逗号或换行隔开，合成一行。",
    ),
    "explain.option.temperature": (
        "The temperature that divides the logits, above 0; 1 without it.",
        "温度，分数要除以它，必须大于 0；不写则为 1。",
    ),
    "explain.option.map": (
        "softmax (without it), sparsemax, entmax:A with A from 1 to 2; for comparison, and not part of the "
        "library: linear (x/sum), relu (max(x, 0)/sum), sigmoid, hardmax.",
        "softmax（默认）、sparsemax、entmax:A（A 从 1 到 2）；另有不属于本库、只作对比的 linear（x/总和）、"
        "relu（max(x, 0)/总和）、sigmoid、hardmax。",
    ),
    "explain.option.file": ("The file, whatever its name ends in.", "要读的文件，文件名结尾不限。"),
    "explain.option.row": (
        "Which row of the file, from 0; negative ones count from the end.",
        "取文件的第几行，从 0 数起；负数从末尾数起。",
    ),
    "explain.option.format": (
        "Text to read (without it), or JSON for programs.",
        "给人看的文本（默认），或给程序用的 JSON。",
    ),
    "explain.example.temperature": ("Three close numbers, sharpened.", "三个相近的数，降低温度使其更尖锐。"),
    "explain.example.sparsemax": ("A map that gives exact zeros.", "能给出恰好为 0 的权重的映射。"),
    "explain.example.linear": ("Why not just divide by the sum?", "为什么不能直接除以总和？"),
    "explain.example.stdin": ("Numbers from a pipe, JSON out.", "从管道读数，输出 JSON。"),
    "explain.example.file": ("One row of a file.", "文件中的某一行。"),
    "head.one": ("{map} · T = {temperature} · 1 number{source}", "{map} · T = {temperature} · 1 个数{source}"),
    "head.many": (
        "{map} · T = {temperature} · {count} numbers{source}",
        "{map} · T = {temperature} · {count} 个数{source}",
    ),
    "source.arguments": ("", ""),
    "source.stdin": (" from standard input", "，来自标准输入"),
    "source.file": (" from {name}", "，来自 {name}"),
    "source.row": (
        "Row {row} of {rows} (the first is 0); the file is {shape}.",
        "第 {row} 行（共 {rows} 行，从 0 数起）；文件形状为 {shape}。",
    ),
    "source.row.first": (
        "Row {row} of {rows} (the first is 0); the file is {shape}. --row shows another.",
        "第 {row} 行（共 {rows} 行，从 0 数起）；文件形状为 {shape}。用 --row 看别的行。",
    ),
    "column.logit": ("logit", "分数"),
    "column.weight": ("weight", "权重"),
    "column.logistic": ("s(1−s)", "s(1−s)"),
    "column.slope": ("slope", "斜率"),
    "column.plain": ("at T = 1", "T = 1 时"),
    "table.rest": (
        "The {shown} largest; {rest} more hold {share} together.",
        "只列出最大的 {shown} 个；其余 {rest} 个合计占 {share}。",
    ),
    "table.rest.bare": ("The {shown} largest; there are {rest} more.", "只列出最大的 {shown} 个；还有 {rest} 个。"),
    "reading.entropy": ("entropy in nats (at most {full})", "熵，单位 nat（最大 {full}）"),
    "reading.effective_support": ("effective support (of {n})", "有效支撑数（共 {n}）"),
    "reading.peak": ("largest weight", "最大权重"),
    "reading.sharpness": ("sharpness (0 even, 1 all on one)", "尖锐度（0 均匀，1 全归一个）"),
    "reading.jacobian_trace": ("sum of s(1−s)", "s(1−s) 之和"),
    "reading.weight_sum": ("sum of the weights", "权重之和"),
    "number.wrong": (
        "{value}, at place {place}, is not a number; write numbers such as -1.5 or 2e3",
        "第 {place} 个 {value} 不是数；请写 -1.5、2e3 这样的数",
    ),
    "number.infinite": (
        "the numbers must be finite, but {value} came at place {place}; leave it out",
        "所有的数都必须有限，第 {place} 个却是 {value}；请去掉它",
    ),
    "temperature.wrong": (
        "--temperature must be a finite number above 0, but {value} came",
        "--temperature 必须是大于 0 的有限数，收到的却是 {value}",
    ),
    "map.unknown": ("there is no map {value}; there are {known}", "没有 {value} 这个映射；可用的有 {known}"),
    "alpha.wrong": (
        "the alpha of entmax must lie between 1 (softmax) and 2 (sparsemax), but {value} came",
        "entmax 的 alpha 必须在 1 (softmax) 与 2 (sparsemax) 之间，收到的却是 {value}",
    ),
    "format.unknown": (
        "--format must be text or json, but {value} came",
        "--format 只能是 text 或 json，收到的却是 {value}",
    ),
    "row.wrong": ("--row must be a whole number, but {value} came", "--row 必须是整数，收到的却是 {value}"),
    "row.needless": (
        "--row chooses among the rows of a file, but these numbers are one row; leave it out",
        "--row 用来选文件中的一行，而这里的数只有一行；请去掉它",
    ),
    "row.outside": (
        "{name} has the rows 0 … {last}, but --row {value} came",
        "{name} 的行号是 0 到 {last}，收到的却是 --row {value}",
    ),
    "source.none": (
        "no numbers came; write them after the command, pipe them in, or name a .npy file",
        "没有收到数；请写在命令后面，或用管道传入，或给出 .npy 文件",
    ),
    "source.several": (
        "the numbers must come from one place, but several were named: arguments, - or one file; keep one",
        "数只能来自一处，这里却有几处：参数、- 或一个文件；请只留一处",
    ),
    "source.empty": ("there are no numbers in it; one or more are needed", "里面没有数；至少需要一个"),
    "stdin.npy": (
        "standard input holds a .npy file, not text; name it with --file",
        "标准输入是 .npy 文件而不是文本；请用 --file 指定它",
    ),
    "stdin.long": (
        "standard input holds more than {most} MiB of text; put the numbers into a .npy file",
        "标准输入超过 {most} MiB；请把数存成 .npy 文件",
    ),
    "stdin.binary": (
        "standard input is not UTF-8 text; write the numbers as text",
        "标准输入不是 UTF-8 文本；请把数写成文本",
    ),
    "stdin.unreadable": ("standard input cannot be read: {reason}", "标准输入无法读取：{reason}"),
    "file.unreadable": ("{name} cannot be read: {reason}", "无法读取 {name}：{reason}"),
    "file.not_npy": (
        "{name} is not a .npy file of plain numbers; write one with numpy.save, or pipe text in",
        "{name} 不是只含数字的 .npy 文件；请用 numpy.save 保存，或用管道传入文本",
    ),
    "file.dtype": (
        "{name} must hold real numbers, but its dtype is {dtype}; convert it",
        "{name} 里必须是实数，其 dtype 却是 {dtype}；请先转换",
    ),
}
