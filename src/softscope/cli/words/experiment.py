"""Words of `softscope experiment`: its help, its frame and its usage errors.

An experiment's own texts are next to its numbers, in `softscope.experiments`.
"""

from softscope._text import Text

EXPERIMENT: dict[str, Text] = {
    "experiment.summary": Text(
        en="Answer one question about softmax and attention by measurement, and draw it.",
        zh="用实测回答一个关于 softmax 与注意力的问题，并画图。",
    ),
    "experiment.description": Text(
        en="Runs one experiment. It prints the findings and the tables behind them, with units, sample sizes and "
        "standard errors (± is one standard error), and draws the chart on request. Seeds are fixed, so you can "
        "repeat a run.",
        zh="运行一个实验：给出结论和背后的数据表，含单位、样本量和标准误（± 为一个标准误），需要时画图。种子固定，可以"
        "重复运行。",
    ),
    "experiment.argument.name": Text(en="The name of the experiment; see --list.", zh="实验的名字，见 --list。"),
    "experiment.option.list": Text(
        en="List all experiments: name, time, question.", zh="列出所有实验：名字、耗时、问题。"
    ),
    "experiment.option.plot": Text(
        en="Write the chart to this file: .html (works offline, with findings and tables), .svg or .png.",
        zh="把图写入这个文件：.html（可离线打开，含结论和数据表）、.svg 或 .png。",
    ),
    "experiment.option.format": Text(
        en="text (default), json for programs, markdown for documents.",
        zh="text（默认）、给程序用的 json、给文档用的 markdown。",
    ),
    "experiment.option.large": Text(
        en="Also run the large sizes, which take longer: learning (d = 1024), cost (n = 4096).",
        zh="加上更大的规模，耗时更长：learning（d = 1024）、cost（n = 4096）。",
    ),
    "experiment.option.seed": Text(en="Random seed; default: 0.", zh="随机种子；默认为 0。"),
    "experiment.example.list": Text(en="See which questions there are.", zh="看看有哪些问题。"),
    "experiment.example.entropy": Text(en="Findings and tables in the terminal.", zh="在终端显示结论和数据表。"),
    "experiment.example.plot": Text(en="A page with chart and tables, in Chinese.", zh="中文网页，含图和数据表。"),
    "experiment.example.markdown": Text(en="For a document.", zh="用于文档。"),
    "experiment.seconds": Text(en="{seconds} s", zh="{seconds} 秒"),
    "experiment.list.next": Text(
        en="Times are for two idle cores. To run one: softscope experiment NAME --plot NAME.html",
        zh="耗时以两个空闲核心计。运行其中一个：softscope experiment NAME --plot NAME.html",
    ),
    "experiment.folded": Text(
        en="Every row is in --format json: {tables}.",
        zh="全部数据行见 --format json：{tables}。",
    ),
    "experiment.folded.rows": Text(en="{table} ({rows} rows)", zh="{table}（{rows} 行）"),
    "experiment.done": Text(en="Took {seconds} s, seed {seed}.", zh="用时 {seconds} 秒，种子 {seed}。"),
    "experiment.done.plot": Text(
        en="Took {seconds} s, seed {seed}; the chart is in {path}.",
        zh="用时 {seconds} 秒，种子 {seed}；图在 {path}。",
    ),
    "experiment.none": Text(
        en="no experiment was given; softscope experiment --list shows them all",
        zh="没有写实验的名字；用 softscope experiment --list 查看全部",
    ),
    "experiment.several": Text(
        en="one experiment at a time, but got {count} names; run them one by one",
        zh="一次只能运行一个实验，却收到了 {count} 个名字；请逐个运行",
    ),
    "experiment.unknown": Text(
        en="there is no experiment {name}; choose from {known}", zh="没有 {name} 这个实验；可用的有 {known}"
    ),
    "experiment.unknown.near": Text(
        en="there is no experiment {name}; did you mean {guess}?",
        zh="没有 {name} 这个实验；是不是想写 {guess}？",
    ),
    "experiment.list.alone": Text(
        en="--list takes no name, but got {argument}; leave one of them out",
        zh="--list 不需要名字，却收到了 {argument}；请去掉其中之一",
    ),
    "experiment.large": Text(
        en="{name} has no larger sizes; leave --large out",
        zh="{name} 没有更大的规模；请去掉 --large",
    ),
    "experiment.format": Text(
        en="--format must be one of {known}, but got {value}",
        zh="--format 只能是 {known} 之一，收到的却是 {value}",
    ),
    "experiment.suffix": Text(
        en="--plot must end in one of {known}, but got {path}; rename it",
        zh="--plot 的文件名必须以 {known} 之一结尾，收到的却是 {path}；请改名",
    ),
    "experiment.missing": Text(
        en="this needs {package}, which is not installed; run pip install 'softscope[experiments]'",
        zh="需要 {package}，但没有安装；请运行 pip install 'softscope[experiments]'",
    ),
    "experiment.nowhere": Text(
        en="cannot write {path}, there is no folder {folder}; create it first",
        zh="无法写入 {path}，因为没有 {folder} 这个文件夹；请先创建它",
    ),
    "experiment.folder": Text(
        en="{path} is a folder; name a file in it",
        zh="{path} 是文件夹；请写出其中的文件名",
    ),
    "experiment.unwritable": Text(en="cannot write {path}: {reason}", zh="无法写入 {path}：{reason}"),
}
