"""Words of `softscope checkup`: its help, its mistakes, and the frame around what the doctor says."""

CHECKUP: dict[str, tuple[str, str]] = {
    "checkup.summary": (
        "Which attention heads starve, why, and what helps.",
        "哪些注意力头在挨饿，为什么，怎么办。",
    ),
    "checkup.description": (
        "Judges what was read of a model's attention: which heads learn, which are right, which rest and which starve, "
        "and what helps. Without a record it trains two built-in patients before your eyes, one with 1/√d and one "
        "without; that takes well under two minutes and needs PyTorch. The exit code is 0 when nothing was found, 1 "
        "for "
        "a finding at or above --fail-on, 2 for a wrong use; for the built-in patients it is 0 unless --fail-on is "
        "given. "
        "[tool.softscope] in pyproject.toml may set fail-on and mute.",
        "根据读到的注意力判断：哪些头在学，哪些已经读对，哪些在停歇，哪些在挨饿，以及怎么办。不给记录时，现场训练两个"
        "内置的病人，"
        "一个有 1/√d，一个没有；远不到两分钟，需要 PyTorch。退出码：没有问题为 0，有达到 --fail-on 的问题为 1，用法有"
        "误为 2；"
        "内置的病人总是 0，除非写了 --fail-on。pyproject.toml 的 [tool.softscope] 里可以写 fail-on 和 mute。",
    ),
    "checkup.argument.record": (
        "A record of a run; without one, the two built-in patients.",
        "一次训练的记录；不写则用两个内置的病人。",
    ),
    "checkup.option.format": (
        "How to write it: text, json or html.",
        "输出的形式：text、json 或 html。",
    ),
    "checkup.option.report": (
        "Write the report to this file too: a page that opens without a network.",
        "另把报告写进这个文件：不联网也能打开的网页。",
    ),
    "checkup.option.fail_on": (
        "From which severity on the exit code is 1: finding (the default), tip or informative.",
        "从哪一级起退出码为 1：finding（默认）、tip 或 informative。",
    ),
    "checkup.option.exit_zero": ("Exit with 0 whatever was found.", "不管发现什么，退出码都是 0。"),
    "checkup.option.mute": (
        "Checks to mute, such as SS010 or SS004:encoder.*, with commas between.",
        "要静音的检查，如 SS010 或 SS004:encoder.*，用逗号隔开。",
    ),
    "checkup.example.patients": ("The two built-in patients.", "两个内置的病人。"),
    "checkup.example.record": ("What a recorded run says, also as a page.", "一次训练的记录说明了什么，另存为网页。"),
    "checkup.example.fail": ("For CI: fails at a tip already.", "用于 CI：有建议就算失败。"),
    "checkup.torch": (
        "the built-in patients need PyTorch, which is not installed: pip install 'softscope[torch]'",
        "内置的病人需要 PyTorch，但没有安装：pip install 'softscope[torch]'",
    ),
    "checkup.several": (
        "checkup takes one record, but {count} arguments came; leave the others out",
        "checkup 只接受一个记录，却收到了 {count} 个参数；请去掉多余的",
    ),
    "checkup.missing": (
        "there is no file {path}; give a record of a run, or nothing for the two built-in patients",
        "没有 {path} 这个文件；请给出一次训练的记录，或者什么都不写，用两个内置的病人",
    ),
    "checkup.folder": (
        "{path} is a folder; models from a folder cannot be checked yet: probe the model in Python and check its "
        "record",
        "{path} 是一个目录；目录里的模型还不能直接体检：请在 Python 里用 probe 观察模型，再检查它的记录",
    ),
    "checkup.function": (
        "{path} looks like module:function, which cannot be checked yet: probe the model in Python and check its "
        "record",
        "{path} 像是 module:function，还不能直接体检：请在 Python 里用 probe 观察模型，再检查它的记录",
    ),
    "checkup.records.absent": (
        "this version cannot read records yet; call checkup without an argument for the two built-in patients",
        "这个版本还不能读记录；不带参数调用 checkup，可看两个内置的病人",
    ),
    "checkup.unreadable": (
        "{path} cannot be read as a record: {reason}",
        "{path} 无法作为记录读取：{reason}",
    ),
    "checkup.format.unknown": (
        "--format must be text, json or html, but {value} came",
        "--format 只能是 text、json 或 html，收到的却是 {value}",
    ),
    "checkup.severity.unknown": (
        "{where} must be finding, tip or informative, but {value} came",
        "{where} 只能是 finding、tip 或 informative，收到的却是 {value}",
    ),
    "checkup.mute.unknown": (
        "there is no check {value} to mute in {where}; there are {known}",
        "{where} 里没有 {value} 这项检查可以静音；可用的有 {known}",
    ),
    "checkup.settings.broken": (
        "pyproject.toml cannot be read: {reason}; mend it or run elsewhere",
        "pyproject.toml 无法读取：{reason}；请改正，或换个目录运行",
    ),
    "checkup.settings.unknown": (
        "[tool.softscope] has no setting {name}; there are {known}",
        "[tool.softscope] 没有 {name} 这项设置；可用的有 {known}",
    ),
    "checkup.settings.type": (
        "mute in [tool.softscope] must be a list of texts such as SS010, but {value} came",
        "[tool.softscope] 的 mute 必须是 SS010 这样的文字组成的列表，收到的却是 {value}",
    ),
    "checkup.unwritable": (
        "the report cannot be written to {path}: {reason}",
        "报告无法写入 {path}：{reason}",
    ),
    "checkup.opening": (
        "Two patients, the same in all but one factor: associative recall, d = {d}, {steps} steps. The doctor reads "
        "their attention as they train.",
        "两个病人，只差一个因子：联想检索，d = {d}，训练 {steps} 步。训练时，医生一直在读它们的注意力。",
    ),
    "checkup.column.patient": ("patient", "病人"),
    "checkup.column.step": ("step", "步"),
    "checkup.column.loss": ("loss", "损失"),
    "checkup.column.blocked": ("blocked", "被阻断"),
    "checkup.column.transmission": ("transm.", "传导率"),
    "checkup.column.advantage": ("advantage", "优势"),
    "checkup.column.state": ("state", "状态"),
    "checkup.difference": ("The difference", "差别在哪里"),
    "checkup.difference.answers": (
        "With 1/√d {right} of the answers are right in the end, without it {wrong}; guessing gives {chance}.",
        "有 1/√d 的最后答对 {right}，没有的答对 {wrong}；随机猜是 {chance}。",
    ),
    "checkup.difference.start": (
        "At step 0, {right} of the rows are blocked with it and {wrong} without: the softmax without a scale is almost "
        "one-hot before it has learned anything.",
        "第 0 步，有它时被阻断的行是 {right}，没有时是 {wrong}：没有缩放的 softmax 什么都还没学，就几乎成了 one-hot。",
    ),
    "checkup.difference.end": (
        "In the end both are sharp ({right} and {wrong} of the rows blocked), and sharpness alone cannot tell them "
        "apart. "
        "The advantage can: {good} against {bad}.",
        "最后两个都很尖锐（被阻断的行分别是 {right} 和 {wrong}），只看尖锐分不出好坏。优势分得出：{good} 对 {bad}。",
    ),
    "checkup.report.written": ("Report: {path}", "报告：{path}"),
}
