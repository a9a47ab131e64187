"""Words of `softscope experiment`: its help, its frame, and what it says of a wrong use.

What an experiment itself says stands beside its numbers, in `softscope.experiments`.
"""

EXPERIMENT: dict[str, tuple[str, str]] = {
    "experiment.summary": (
        "Measure one question about softmax and attention, and draw it.",
        "就 softmax 与注意力的一个问题做实测并画图。",
    ),
    "experiment.description": (
        "Runs one experiment: prints what was found and the tables behind it, with units, sample sizes and standard "
        "errors (± is one standard error), and draws the chart if asked. Seeds are fixed: a run can be repeated.",
        "运行一个实验：给出结论和背后的数据表，含单位、样本量和标准误（± 为一个标准误），需要时画图。"
        "种子固定，可以重复。",
    ),
    "experiment.argument.name": ("Which one; see --list.", "实验的名字，见 --list。"),
    "experiment.option.list": ("All experiments: name, time, question.", "列出所有实验：名字、耗时、问题。"),
    "experiment.option.plot": (
        "Draw the chart to this file: .html (works offline, with findings and tables), .svg or .png.",
        "把图画到这个文件：.html（可离线打开，含结论和数据表）、.svg 或 .png。",
    ),
    "experiment.option.format": (
        "text (without it), json for programs, markdown for documents.",
        "text（默认）、给程序用的 json、给文档用的 markdown。",
    ),
    "experiment.option.large": (
        "Also the large sizes, which take longer: learning (d = 1024), cost (n = 4096).",
        "加上更大的规模，耗时更长：learning（d = 1024）、cost（n = 4096）。",
    ),
    "experiment.option.seed": ("Seed of all that is random; 0 without it.", "随机种子；不写则为 0。"),
    "experiment.example.list": ("What there is to ask.", "看看有哪些问题。"),
    "experiment.example.entropy": ("Tables and findings on the terminal.", "在终端显示数据表和结论。"),
    "experiment.example.plot": ("A page with chart and tables, in Chinese.", "中文网页，含图和数据表。"),
    "experiment.example.markdown": ("For a document.", "用于文档。"),
    "experiment.seconds": ("{seconds} s", "{seconds} 秒"),
    "experiment.list.next": (
        "Times are for two idle cores. Run one: softscope experiment NAME --plot NAME.html",
        "耗时以两个空闲核心计。运行其中一个：softscope experiment NAME --plot NAME.html",
    ),
    "experiment.done": ("Took {seconds} s, seed {seed}.", "用时 {seconds} 秒，种子 {seed}。"),
    "experiment.done.plot": (
        "Took {seconds} s, seed {seed}; the chart is in {path}.",
        "用时 {seconds} 秒，种子 {seed}；图在 {path}。",
    ),
    "experiment.none": (
        "no experiment was named; softscope experiment --list shows them all",
        "没有写实验的名字；用 softscope experiment --list 查看全部",
    ),
    "experiment.several": (
        "one experiment at a time, but {count} names came; run them one after the other",
        "一次只能运行一个实验，却收到了 {count} 个名字；请逐个运行",
    ),
    "experiment.unknown": (
        "there is no experiment {name}; there are {known}",
        "没有 {name} 这个实验；可用的有 {known}",
    ),
    "experiment.unknown.near": (
        "there is no experiment {name}; did you mean {guess}?",
        "没有 {name} 这个实验；是不是想写 {guess}？",
    ),
    "experiment.list.alone": (
        "--list takes no name, but {argument} came; leave one of them out",
        "--list 不需要名字，却收到了 {argument}；请去掉其中之一",
    ),
    "experiment.large": (
        "{name} has no larger sizes; leave --large out",
        "{name} 没有更大的规模；请去掉 --large",
    ),
    "experiment.format": (
        "--format must be one of {known}, but {value} came",
        "--format 只能是 {known} 之一，收到的却是 {value}",
    ),
    "experiment.suffix": (
        "--plot must end in one of {known}, but {path} came; rename it",
        "--plot 的文件名必须以 {known} 之一结尾，收到的却是 {path}；请改名",
    ),
    "experiment.missing": (
        "this needs {package}, which is not installed; pip install 'softscope[experiments]' installs it",
        "需要 {package}，但没有安装；请运行 pip install 'softscope[experiments]'",
    ),
    "experiment.nowhere": (
        "{path} cannot be written, there is no folder {folder}; make it first",
        "无法写入 {path}，因为没有 {folder} 这个文件夹；请先建立它",
    ),
    "experiment.folder": (
        "{path} is a folder; name a file in it",
        "{path} 是文件夹；请写出其中的文件名",
    ),
    "experiment.unwritable": ("{path} cannot be written: {reason}", "无法写入 {path}：{reason}"),
}
